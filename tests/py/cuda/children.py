"""Other processes that attach memory of this one."""

from pathlib import Path

from childproc import run_python
from driver import MISUSE

# Such a process prints at its end the misuse that its driver has counted: nothing.
CHILD = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import numpy as np
import dlfield as dl
from driver import DRIVER as driver

def misuse():
    report = driver.report()
    return {{name: report[name] for name in {MISUSE!r} if report.get(name)}}
"""


def run_child(code: str) -> list[str]:
    return run_python(CHILD + code).splitlines()
