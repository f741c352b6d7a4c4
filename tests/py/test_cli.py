"""`python -m dlfield`: `info` and `demo`."""

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import dlfield as dl


def run(*arguments: str, cwd: Path | None = None, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command in `cwd`, with `path` added to the import path."""
    searched = os.pathsep.join(str(one) for one in (path, os.environ.get("PYTHONPATH")) if one)
    return subprocess.run(
        [sys.executable, "-m", "dlfield", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": searched},
    )


@pytest.fixture(scope="module")
def info() -> str:
    """The output of `info`."""
    done = run("info")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_info_names_versions_frameworks_and_cuda(info: str) -> None:
    lines = info.splitlines()
    assert any("dlfield" in line and dl.__version__ in line for line in lines)
    unavailable_reason = dl.cuda.unavailable_reason()
    if unavailable_reason is None:
        assert len(re.findall(r"(?m)^cuda\s+yes: cuda:\d is \w", info)) == dl.cuda.device_count()
    else:
        assert f"cuda     no: {unavailable_reason}" in lines
    for name in ("numpy", "torch", "jax", "xarray", "gt4py"):
        assert any(name in line and version(name) in line for line in lines), name


def test_info_says_which_protocols_each_framework_offers(info: str) -> None:
    rows = [line for line in info.splitlines() if "__dlpack__" in line]
    lines = {row.split()[0]: row for row in rows}
    for protocol in ("__dlpack_c_exchange_api__", "__array_interface__", "__array__", "__gt_dims__", "buffer"):
        assert protocol in lines["dlfield"]
    assert "__dlpack_c_exchange_api__" in lines["torch"]
    assert "jax" in lines
    assert "__dlpack_c_exchange_api__" not in lines["numpy"]
    assert "Error" not in info, "every installed framework could be asked"


def install(folder: Path, distribution: str, version: str, module: str) -> None:
    """Create the files of an installed distribution whose module makes NumPy arrays."""
    (folder / module).mkdir(exist_ok=True)
    (folder / module / "__init__.py").write_text("from numpy import zeros")
    metadata = folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    (metadata / "top_level.txt").write_text(module)


def test_info_knows_distributions_of_other_names(tmp_path: Path) -> None:
    install(tmp_path, "cupy-cuda12x", "13.9.1", "cupy")
    (row,) = re.findall("(?m)^cupy .*", run("info", path=tmp_path).stdout)
    assert "13.9.1 (cupy-cuda12x)" in row
    assert "__array_interface__" in row
    install(tmp_path, "cupy-cuda13x", "14.0", "cupy")
    (row,) = re.findall("(?m)^cupy .*", run("info", path=tmp_path).stdout)
    assert "13.9.1 (cupy-cuda12x), 14.0 (cupy-cuda13x)" in row


def test_info_survives_a_framework_that_cannot_be_imported(tmp_path: Path) -> None:
    (tmp_path / "cupy").mkdir()
    (tmp_path / "cupy" / "__init__.py").write_text("raise RuntimeError('no driver')")
    done = run("info", path=tmp_path)
    assert done.returncode == 0
    assert re.search(r"(?m)^cupy +unknown +RuntimeError: no driver$", done.stdout)


@pytest.mark.parametrize("arguments", [(), ("nonsense",), ("info", "--nonsense")])
def test_wrong_arguments_are_explained(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert "usage" in done.stderr


@pytest.mark.usefixtures("torch", "jax")
def test_demo_runs_a_stencil_and_saves_its_picture(tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    done = run("demo", "--output", str(picture), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "WRONG" not in done.stdout
    pointers = re.findall(r"(?m)^\s*(?:dlfield|NumPy|PyTorch|JAX)\s+(0x[0-9a-f]+)", done.stdout)
    assert len(pointers) == 4
    assert len(set(pointers)) == 1, "the same memory for all"
