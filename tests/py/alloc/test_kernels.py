"""The kernels that are shipped as PTX: they match their source, and NVIDIA's assembler accepts them."""

import hashlib
import subprocess
import sys
from importlib.metadata import files
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[3] / "src/copy/cuda"
PTX = SOURCES / "kernels.ptx"
BETWEEN = ["sm_60", "sm_70", "sm_75", "sm_80", "sm_90", "sm_100"]
further = pytest.mark.exhaustive


def test_the_ptx_matches_its_source() -> None:
    first = PTX.read_text().splitlines()[0]
    source = hashlib.sha256((SOURCES / "kernels.cu").read_bytes()).hexdigest()
    assert first.endswith(source), "kernels.cu was changed: make kernels"


@pytest.mark.skipif(sys.platform != "linux", reason="NVIDIA has its assembler for Linux on PyPI")
@pytest.mark.parametrize("architecture", ["sm_52", "sm_120", *(pytest.param(name, marks=further) for name in BETWEEN)])
def test_the_assembler_accepts_the_ptx(architecture: str, tmp_path: Path) -> None:
    found = [file for file in files("nvidia-cuda-nvcc-cu12") or [] if file.name == "ptxas"]
    options = ["--warning-as-error", "-v", "-arch", architecture, "-o", str(tmp_path / "out")]
    command = [str(found[0].locate()), *options, str(PTX)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Compiling entry function 'dlfield_") == 5
