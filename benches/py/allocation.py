"""Measure allocation, compared with NumPy and GT4Py."""

import time
from collections.abc import Callable
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
from gt4py import storage

import dlfield as dl
from interleaved import Function, Loop, best_measured, best_times, one_argument, turns
from report import Line

SMALL = (8, 8, 8)
MEDIUM = (128, 128, 80)  # 10 MB of float64
LARGE = (20_000_000,)  # 160 MB of float64


def _first_write(allocate: Callable[[Any], Any]) -> float:
    """Return the seconds of the first full write to fresh memory, with the same NumPy call for all allocators."""
    memory = allocate(LARGE)
    array = np.asarray(memory)
    start = time.perf_counter()
    array.fill(1.0)
    return time.perf_counter() - start


def _used_zeros(zeros: Callable[[Any], Any]) -> float:
    """Return the seconds of `zeros` and one pass over it, after a block of this size was freed."""
    zeros(MEDIUM)
    start = time.perf_counter()
    array = np.asarray(zeros(MEDIUM))
    np.add(array, 1.0, out=array)
    return time.perf_counter() - start


def _many_fields(empty: Callable[[Any], Any]) -> Callable[[], float]:
    """Return a measurement of a pass that reads five fields at one index and writes a sixth."""
    arrays = [np.asarray(empty(MEDIUM)) for _ in range(6)]
    for array in arrays:
        array.fill(1.0)
    # One plane after the other, so that the rows of all fields are in the caches together.
    planes = [list(plane) for plane in zip(*arrays, strict=True)]

    def run() -> float:
        start = time.perf_counter()
        for out, *given in planes:
            np.multiply(given[0], given[1], out=out)
            for each in given[2:]:
                np.add(out, each, out=out)
        return time.perf_counter() - start

    return run


def lines() -> list[Line]:
    large = best_times({"np.zeros": (np.zeros, LARGE), "dlfield.zeros": (dl.zeros, LARGE)})
    write = best_measured(
        {"np.zeros": partial(_first_write, np.zeros), "dlfield.zeros": partial(_first_write, dl.zeros)}
    )
    used = best_measured(
        {"np.zeros": partial(_used_zeros, np.zeros), "dlfield.zeros": partial(_used_zeros, dl.zeros)}, rounds=30
    )
    many = best_measured({"NumPy": _many_fields(np.empty), "dlfield": _many_fields(dl.empty)}, rounds=30)
    return [
        *_small_lines(),
        Line("`zeros` of 160 MB", large["dlfield.zeros"], "`np.zeros`", large["np.zeros"], 1.5),
        Line("first full write to it", write["dlfield.zeros"], "to `np.zeros`'", write["np.zeros"], 1.1),
        Line("`zeros` of 10 MB again, one pass", used["dlfield.zeros"], "`np.zeros`", used["np.zeros"], 1),
        Line("a pass over six fields of 10 MB", many["dlfield"], "over NumPy's", many["NumPy"], 1),
    ]


def _with_preset(function: Function, argument: Any, calls: int) -> float:
    start = time.perf_counter()
    for _ in repeat(None, calls):
        function(argument, backend="gt:cpu_ifirst")
    return time.perf_counter() - start


def _with_value(function: Function, argument: Any, calls: int) -> float:
    start = time.perf_counter()
    for _ in repeat(None, calls):
        function(argument, 2.5)
    return time.perf_counter() - start


def _with_both(function: Function, argument: Any, calls: int) -> float:
    start = time.perf_counter()
    for _ in repeat(None, calls):
        function(argument, 2.5, backend="gt:cpu_ifirst")
    return time.perf_counter() - start


def _small_lines() -> list[Line]:
    """Compare small allocations, with and without a preset."""
    array = np.ones(SMALL)
    cases: dict[str, tuple[Function, Any, Loop]] = {
        "gt4py.storage.empty": (storage.empty, SMALL, _with_preset),
        "empty": (dl.empty, SMALL, one_argument),
        "empty, preset": (dl.empty, SMALL, _with_preset),
        "np.empty": (np.empty, SMALL, one_argument),
        "zeros": (dl.zeros, SMALL, one_argument),
        "zeros, preset": (dl.zeros, SMALL, _with_preset),
        "np.zeros": (np.zeros, SMALL, one_argument),
        "ones": (dl.ones, SMALL, one_argument),
        "ones, preset": (dl.ones, SMALL, _with_preset),
        "np.ones": (np.ones, SMALL, one_argument),
        "full": (dl.full, SMALL, _with_value),
        "full, preset": (dl.full, SMALL, _with_both),
        "np.full": (np.full, SMALL, _with_value),
        "from_array": (dl.from_array, array, one_argument),
        "np.array": (np.array, array, one_argument),
    }
    measured = {name: turns((call, argument), 0.005, loop) for name, (call, argument, loop) in cases.items()}
    times = best_measured(measured, rounds=60)

    def line(what: str, peer: str, reach: float) -> Line:
        call, _, preset = what.partition(", ")
        of = "an ndarray of " if call == "from_array" else ""
        text = f"`{call}` of {of}{SMALL}{', gt:cpu_ifirst' if preset else ''}"
        return Line(text, times[what], f"`{peer}`", times[peer], reach)

    return [
        line("empty", "np.empty", 3),
        line("empty, preset", "np.empty", 3),
        line("empty, preset", "gt4py.storage.empty", 0.01),
        line("zeros", "np.zeros", 1),
        line("zeros, preset", "np.zeros", 1),
        line("ones", "np.ones", 1.5),
        line("ones, preset", "np.ones", 1.5),
        line("full", "np.full", 1.5),
        line("full, preset", "np.full", 1.5),
        line("from_array", "np.array", 1),
    ]
