"""What memory this process holds: in RAM, from the C library's allocator, and in Python objects."""

import ctypes
import gc
import os
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path


class MallInfo(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    hblkhd: int
    uordblks: int
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()  # noqa: SIM905
    ]


def resident_bytes() -> int:
    """The memory of this process that is in RAM."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def malloc_bytes() -> int:
    """The bytes that `malloc` has given out and not got back: exact, where RSS hides what fits into free pages."""
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = MallInfo
    info: MallInfo = mallinfo()
    return info.uordblks + info.hblkhd


def python_blocks() -> int:
    """The blocks that Python's own allocator has given out."""
    return sys.getallocatedblocks()


def least_growth(run: Callable[[], object]) -> tuple[int, int]:
    """How many more of Python's blocks, and of bytes of `malloc`, there are after a run than before it, warmed up.

    The least of three runs: a leak is in each of them, what a table grows by now and then is not.
    """
    run()
    counts = []
    for _ in range(4):
        gc.collect()
        counts.append((python_blocks(), malloc_bytes()))
        run()
    grown = [(after[0] - before[0], after[1] - before[1]) for before, after in pairwise(counts)]
    return min(blocks for blocks, _ in grown), min(size for _, size in grown)
