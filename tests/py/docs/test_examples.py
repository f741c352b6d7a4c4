"""The scripts of `examples/` run unchanged and print what they claim."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

for framework in ("gt4py", "torch", "xarray"):
    pytest.importorskip(framework)

EXAMPLES = Path(__file__).parents[3] / "examples"
# One is a module, one runs on several processes: test_mpi.py.
OTHERS = ("only_dlpack.py", "diffusion_mpi.py")
SCRIPTS = sorted(path for path in EXAMPLES.glob("*.py") if path.name not in OTHERS)


def test_there_are_examples() -> None:
    assert [path.stem for path in SCRIPTS] == ["horizontal_diffusion", "vertical_solve"]
    listed = (EXAMPLES / "README.md").read_text()
    assert all(f"({path.name})" in listed for path in EXAMPLES.glob("*.py"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_example(script: Path) -> None:
    """Copies only where announced: arrays of three kinds are used in place."""
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line[:26].rstrip() for line in lines] == [
        "torch.Tensor",
        "xarray.DataArray, K J I",
        "DLPack alone",
        "dlfield.Tensor, copied",
    ]
    for line in lines[:3]:
        theirs, stencils = re.findall("0x[0-9a-f]+", line)
        assert theirs == stencils
    warned = [line for line in done.stderr.splitlines() if "LayoutWarning" in line]
    assert warned
    assert all("a temporary copy is used" in line for line in warned), warned
