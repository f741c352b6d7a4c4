"""A compiled GT4Py stencil on our fields, next to the same stencil on GT4Py's own."""

from collections.abc import Callable
from typing import Any

import numpy as np
from gt4py import storage
from gt4py.cartesian import gtscript

import dlfield as dl
from interleaved import best_times
from report import Line

SHAPE = (130, 130, 80)
ORIGIN = (1, 1, 0)


def laplacian(inp: gtscript.Field[np.float64], out: gtscript.Field[np.float64]) -> None:
    with computation(PARALLEL), interval(...):  # type: ignore[name-defined]  # noqa: F821
        out = (  # noqa: F841
            inp[-1, 0, 0] + inp[1, 0, 0] + inp[0, -1, 0] + inp[0, 1, 0] - 4.0 * inp[0, 0, 0]
        )


def _call(stencil: Any, inp: Any, out: Any) -> Callable[[], None]:
    return lambda: stencil(inp, out, origin=ORIGIN, domain=(128, 128, 80))


def lines() -> list[Line]:
    found = []
    values = np.random.default_rng(1).random(SHAPE)
    for backend in ("gt:cpu_kfirst", "gt:cpu_ifirst"):
        stencil = gtscript.stencil(backend=backend)(laplacian)
        theirs = storage.from_array(values, backend=backend), storage.zeros(SHAPE, backend=backend)
        ours = dl.from_array(values, backend=backend), dl.zeros(SHAPE, backend=backend)
        times = best_times(
            {"gt4py.storage": _call(stencil, *theirs), "dlfield": _call(stencil, *ours)}, rounds=40, turn=0.1
        )
        np.testing.assert_array_equal(np.asarray(ours[1]), theirs[1])
        found.append(
            Line(
                f"Laplacian on {SHAPE}, {backend}, fields of dlfield",
                times["dlfield"],
                "fields of `gt4py.storage`",
                times["gt4py.storage"],
                "at most 1",
            )
        )
    return found
