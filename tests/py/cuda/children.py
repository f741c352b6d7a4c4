"""Other processes that attach memory of this one."""

from childproc import run_python
from driver import MISUSE

# Such a process prints at its end the misuse that its driver has counted: nothing.
CHILD = f"""
import sys
import numpy as np
import dlfield as dl
from driver import DRIVER as driver

def misuse():
    report = driver.report()
    return {{name: report[name] for name in {MISUSE!r} if report.get(name)}}
"""


def run_child(code: str) -> list[str]:
    return run_python(CHILD + code).splitlines()
