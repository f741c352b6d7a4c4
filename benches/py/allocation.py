"""Measure allocation, compared with NumPy and GT4Py."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from gt4py import storage

import dlfield as dl
from interleaved import best_measured, best_times
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
    small = best_times(
        {
            "np.empty": (np.empty, SMALL),
            "dlfield.empty": (dl.empty, SMALL),
            "dlfield.empty, backend": (lambda shape: dl.empty(shape, backend="gt:cpu_ifirst"), SMALL),
            "gt4py.storage.empty": (lambda shape: storage.empty(shape, backend="gt:cpu_ifirst"), SMALL),
        }
    )
    large = best_times({"np.zeros": (np.zeros, LARGE), "dlfield.zeros": (dl.zeros, LARGE)})
    write = best_measured(
        {"np.zeros": partial(_first_write, np.zeros), "dlfield.zeros": partial(_first_write, dl.zeros)}
    )
    used = best_measured(
        {"np.zeros": partial(_used_zeros, np.zeros), "dlfield.zeros": partial(_used_zeros, dl.zeros)}, rounds=30
    )
    many = best_measured({"NumPy": _many_fields(np.empty), "dlfield": _many_fields(dl.empty)}, rounds=30)
    plain, backend = small["dlfield.empty"], small["dlfield.empty, backend"]
    return [
        Line("`empty((8, 8, 8))`", plain, "`np.empty`", small["np.empty"], "at most 3"),
        Line("`empty((8, 8, 8))`", plain, "`gt4py.storage.empty`", small["gt4py.storage.empty"], "at most 0.01"),
        Line(
            '`empty((8, 8, 8), backend="gt:cpu_ifirst")`',
            backend,
            "`gt4py.storage.empty`, same backend",
            small["gt4py.storage.empty"],
            "",
        ),
        Line("`zeros` of 160 MB", large["dlfield.zeros"], "`np.zeros`", large["np.zeros"], "at most 1.5"),
        Line("first full write to it", write["dlfield.zeros"], "to `np.zeros`'", write["np.zeros"], "at most 1.1"),
        Line("`zeros` of 10 MB again, one pass", used["dlfield.zeros"], "`np.zeros`", used["np.zeros"], "at most 1"),
        Line("a pass over six fields of 10 MB", many["dlfield"], "over NumPy's", many["NumPy"], "at most 1"),
    ]
