"""Counts the memory that a use leaks, in a process of its own.

That process has one thread and imports only the frameworks that the test module imports itself. So nothing allocates
but the uses and, now and then, a table of the interpreter: much less than a leak in each round.
"""

import ctypes
import gc
import importlib
import json
import os
import sys
from array import array
from collections.abc import Callable, MutableSequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import dlfield as dl
from childproc import run_python


class Growth(NamedTuple):
    """The growth of memory over some rounds of a use."""

    # Blocks that Python's own allocator has handed out.
    blocks: int
    # Bytes that `malloc` has handed out.
    heap: int
    # Bytes of address space, as large blocks have mappings of their own.
    mapped: int

    def is_none_in(self, rounds: int) -> bool:
        """Whether the growth is less than the smallest possible leak in each round."""
        return self.blocks < rounds / 2 and self.heap < 16 * rounds and self.mapped < 4096 * rounds

    def assert_none_in(self, rounds: int) -> None:
        assert self.is_none_in(rounds), self


class MallInfo(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    hblkhd: int
    uordblks: int
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()  # noqa: SIM905
    ]


def count(into: MutableSequence[int], at: int) -> None:
    """Write the current counts, in the order of `Growth`, into existing memory."""
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = MallInfo
    info: MallInfo = mallinfo()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    into[at + 1], into[at + 2] = info.uordblks + info.hblkhd, pages * os.sysconf("SC_PAGE_SIZE")
    into[at] = sys.getallocatedblocks()


def measure(use: Callable[[], object], rounds: int, least: int) -> Growth:
    """Run the use `rounds` times, several times over: the least growth, as only a leak recurs in each repeat.

    A use that runs Python code fills the interpreter's caches for hundreds of rounds, so there are `least` in all.
    """
    size, repeats = len(Growth._fields), max(5, least // rounds)
    counts = array("q", bytes(8 * size * repeats))
    for at in range(0, size * repeats, size):
        gc.collect()
        count(counts, at)
        for _ in range(rounds):
            use()
    # The first repeat is a warm-up.
    readings = [counts[at : at + size] for at in range(size, size * repeats, size)]
    grown = [[after - before for before, after in zip(*pair, strict=True)] for pair in pairwise(readings)]
    return Growth(*map(min, zip(*grown, strict=True)))


def report(module: str, uses: str, rounds: int, least: int) -> None:
    """Print the growth by each use that a function of a module returns; `grown` runs this in a new process."""
    found: dict[str, Callable[[], object]] = getattr(importlib.import_module(module), uses)()
    for use in found.values():
        for _ in range(5):
            use()
    gc.freeze()
    print(json.dumps({name: measure(use, rounds, least) for name, use in found.items()}))


def grown(module: str, uses: str, rounds: int, least: int = 600) -> dict[str, Growth]:
    """The growth over `rounds` of each use that a function of a test module returns, by name.

    A use that makes many calls in each round needs fewer rounds than `least`.
    """
    output = run_python(f"""
        import leak_checks
        leak_checks.report({module!r}, {uses!r}, {rounds}, {least})
    """)
    return {name: Growth(*counts) for name, counts in json.loads(output.splitlines()[-1]).items()}


def live() -> tuple[int, int]:
    """The blocks and bytes that dlfield has allocated and not freed."""
    report = dl.memory_report()
    return len(report.blocks) + report.small_blocks, report.nbytes
