"""What memory this process holds: in RAM, from the C library's allocator, and in Python objects."""

import ctypes
import os
import sys
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
