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
LARGE = (20_000_000,)  # 160 MB of float64


def _first_write(allocate: Callable[[Any], Any]) -> float:
    """Return the seconds of the first full write to fresh memory, with the same NumPy call for all allocators."""
    memory = allocate(LARGE)
    array = np.asarray(memory)
    start = time.perf_counter()
    array.fill(1.0)
    return time.perf_counter() - start


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
    ]
