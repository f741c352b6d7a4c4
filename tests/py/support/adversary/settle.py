"""What a case may not leave: references, memory of dlfield, interrupts that nobody has seen."""

from __future__ import annotations

import gc
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import fakes
from leak_checks import live

if TYPE_CHECKING:
    from adversary.case import Case


def settle(case: Case, before: tuple[int, int]) -> None:
    """Drop everything: nothing may be left, and nothing released may have been written."""
    case.call = lambda: None
    # At the limit of recursion `sys.unraisablehook` fails too. `np.float64`, which converts for GT4Py, drops errors.
    may_be_lost = case.reached_the_limit or case.entry.name == "gt4py.full"
    for lost in [] if may_be_lost else case.interrupts:
        case.found(f"nobody has seen the {type(lost).__name__} that a callback raised")
    case.interrupts.clear()
    case.holders.clear()
    # Not of other classes: those may have references to participants.
    counted = [each for each in case.participants if type(each) in (np.ndarray, torch.Tensor, bytearray)]
    case.participants.clear()
    # A tensor in a cycle hides what it keeps from the collector, which may be a cycle again.
    while gc.collect():
        pass
    for memory in case.memories:
        for text in memory.findings():
            case.found(text)
    for exporter in case.exporters:
        # A request fails at Python's limit of recursion after it was counted.
        if exporter.requested != exporter.released and not case.reached_the_limit:
            case.found(f"{exporter.requested} buffers requested, {exporter.released} released")
    case.memories.clear()
    case.exporters.clear()
    case.promised.clear()
    if case.entry.name == "as_jax":
        wait_for_jax(counted, before)
    while counted:
        last = counted.pop()
        # `last` and the argument.
        references = 0 if any(last is each for each in counted) else sys.getrefcount(last) - 2
        if references:
            for each in gc.get_referrers(last):
                case.note(f"  referred to by {type(each).__name__}: {str(each)[:300]}")
            case.found(f"{references} references to a {type(last).__name__} are left")
    last = None
    if not case.findings:
        fakes._kept.clear()
    gc.collect()
    after = live()
    if after != before:
        case.found(f"dlfield's memory: {before} blocks and bytes before, {after} after")


def wait_for_jax(found: list[Any], before: tuple[int, int]) -> None:
    """Wait until JAX's threads have dropped the memory that it has copied, for a second at most."""
    # The list, the loop's variable and the argument.
    for _ in range(100):
        if live() == before and all(sys.getrefcount(each) <= 3 for each in found):
            return
        time.sleep(0.01)
        gc.collect()
