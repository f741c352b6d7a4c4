"""Measure how the cost of importing a NumPy array grows with live results and with the number of dimensions."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from interleaved import Loop, best_measured, best_times, new_loop
from peers import Consumer
from producers import DTYPE, SHAPE
from report import Grid

LIVE = (0, 1_000, 100_000)
NDIMS = (0, 1, 2, 3, 4, 6, 8, 16)
CALLS = 10_000


def measure(consumers: dict[str, Consumer]) -> list[Grid]:
    """Return the times with other results alive, and with more dimensions."""
    return [_live(consumers), _ndim(consumers)]


def _live(consumers: dict[str, Consumer]) -> Grid:
    names = ("describe", "from_dlpack")
    times = best_measured(
        {
            (name, live): partial(_with_others, new_loop(), consumers[name].call, live)
            for live in LIVE
            for name in names
        },
        rounds=50,
    )
    rows = [[f"{live:,}", *(f"{times[name, live]:.1f}" for name in names)] for live in LIVE]
    return Grid("exchange", "with so many results alive, ns", ["alive", *names], rows)


def _with_others(loop: Loop, call: Callable[[Any], Any], live: int) -> float:
    """Return the seconds of one call while the results of `live` other calls are alive."""
    array = np.zeros(SHAPE, DTYPE)
    _others = [call(np.zeros(1)) for _ in range(live)]
    return loop(call, array, CALLS) / CALLS


def _ndim(consumers: dict[str, Consumer]) -> Grid:
    names = ("describe", "nanobind", "from_dlpack", "np.from_dlpack")
    times = best_times(
        {(name, ndim): (consumers[name].call, np.zeros((2,) * ndim, DTYPE)) for ndim in NDIMS for name in names},
        rounds=150,
        turn=0.002,
    )
    rows = [[str(ndim), *(f"{times[name, ndim]:.1f}" for name in names)] for ndim in NDIMS]
    slopes = [np.polyfit(NDIMS, [times[name, ndim] for ndim in NDIMS], 1)[0] for name in names]
    rows.append(["per dimension", *(f"{slope:.2g}" for slope in slopes)])
    return Grid("exchange", "by number of dimensions, ns", ["dimensions", *names], rows)
