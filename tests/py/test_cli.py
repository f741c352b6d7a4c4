"""`python -m dlfield`: `info` and `demo`."""

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import dlfield as dl


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dlfield", *arguments], capture_output=True, text=True, timeout=300, check=False, cwd=cwd
    )


@pytest.fixture(scope="module")
def info() -> str:
    """What `info` prints."""
    done = run("info")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_info_names_versions_frameworks_and_cuda(info: str) -> None:
    lines = info.splitlines()
    assert any("dlfield" in line and dl.__version__ in line for line in lines)
    assert re.search(r"(?im)^cuda\s+no\b.*\w", info), "CUDA yes or no, and why"
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
