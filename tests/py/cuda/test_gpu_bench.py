"""The measurements for a GPU run on the test double with a few bytes, and their checks of the results hold."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from driver import IS_FAKE

BENCHES = Path(__file__).parents[3] / "benches/py"
# In a process of its own, as PyTorch keeps pinned memory, and tvm-ffi an array of the double of CuPy that it refuses.
PROGRAM = """
import json, sys
from driver import DRIVER, MISUSE
import cupy_double
sys.modules["cupy"] = cupy_double
import gpu
gpu.SECTIONS = [section for section in gpu.SECTIONS if section is not gpu.stencils]
lines, grids, heading = gpu.measure(gpu.Sizes(large=20, cast=4 << 12, most=1 << 12, rounds=2, seconds=0.0, calls=1))
assert heading.endswith(".\\n")
DRIVER.wait_for_work()
assert not [name for name in MISUSE if DRIVER.report()[name]], DRIVER.report()["messages"]
print(json.dumps(sorted({line.what for line in lines} | {row[0] for grid in grids for row in grid.rows})))
"""
# How often each section measures something. CuPy's and PyTorch's kernels, and GT4Py's compiler, are not there.
MEASURED = {"rows": 16, "C to F": 5, "C to (2": 5, "cast": 246, "pinned memory": 1, "`as_torch": 1, "allocation": 1}


@pytest.mark.skipif(not IS_FAKE, reason="make bench-cuda runs them on a GPU")
def test_the_measurements_run() -> None:
    pytest.importorskip("torch")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(BENCHES), *filter(None, sys.path)])}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    named = json.loads(done.stdout.splitlines()[-1])
    assert {start: sum(name.startswith(start) for name in named) for start in MEASURED} == MEASURED
