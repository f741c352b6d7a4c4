"""Calls every way in and out and drops everything; then a leak checker looks at what is left (`make sanitize`).

With the argument `leak` it loses a tensor, so that a checker that finds nothing is noticed.
"""

import ctypes
import gc
import sys
import warnings
from contextlib import suppress

import test_faults_memory
import test_leaks

import dlfield as dl

ROUNDS = 3


def calls() -> int:
    """Make the calls of the other tests of leaks; return how many."""
    field = dl.zeros((6, 5, 4), dims="IJK", halo=(1, 1, 0))
    for _ in range(ROUNDS):
        for use in test_leaks.USES.values():
            use(field)
        for call in test_faults_memory.CALLS.values():
            # Some of these are refused.
            with suppress(dl.Error, TypeError, ValueError, LookupError):
                call()
    return ROUNDS * (len(test_leaks.USES) + len(test_faults_memory.CALLS))


warnings.simplefilter("ignore", dl.LayoutWarning)
if "leak" in sys.argv[1:]:
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(dl.zeros((30, 40))))
print(f"{calls()} calls")
gc.collect()
