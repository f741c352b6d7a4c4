"""Measure arithmetic on tensors, compared with arrays of NumPy and xarray in the same layout."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray

import dlfield as dl
from interleaved import best_times
from report import Line

SHAPES = ((4, 4, 4), (32, 32, 16), (128, 128, 80))
DIMS = ("I", "J", "K")


def lines() -> list[Line]:
    """Measure `a + b` of equal shapes, and of a plane and a column, for which NumPy needs an explicit broadcast."""
    found = []
    for shape in SHAPES:
        fields = [dl.full(shape, value, backend="gt:cpu_ifirst", padding="none") for value in (1.0, 2.0)]
        arrays = [field.to_numpy().copy(order="K") for field in fields]
        labelled = [xarray.DataArray(array, dims=DIMS) for array in arrays]
        times = best_times(
            {
                "tensor": (_pair(operator.add), fields),
                "ufunc": (_pair(np.add), fields),
                "numpy": (_pair(operator.add), arrays),
                "xarray": (_pair(operator.add), labelled),
            }
        )
        what, goal = f"`a + b` of {shape}", _goal(shape)
        found.append(Line(what, times["tensor"], "NumPy's arrays", times["numpy"], **goal))
        found.append(Line(f"`np.add(a, b)` of {shape}", times["ufunc"], "NumPy's arrays", times["numpy"], **goal))
        found.append(Line(what, times["tensor"], "xarray's `DataArray`", times["xarray"], 1))
    for i, j, k in SHAPES:
        plane, column = dl.ones((i, j), dims="IJ"), dl.ones((k,), dims="K")
        times = best_times(
            {
                "tensor": (_pair(operator.add), [plane, column]),
                "numpy": (_outer, [plane.to_numpy(), column.to_numpy()]),
            }
        )
        what, peer = f"IJ + K of {(i, j, k)}", "`a[:, :, None] + b` in NumPy"
        found.append(Line(what, times["tensor"], peer, times["numpy"], **_goal((i, j, k))))
    return found


def _goal(shape: tuple[int, int, int]) -> dict[str, float]:
    """Return the goal: 3 µs more than NumPy, which is negligible for the largest shape."""
    return {"reach": 1} if shape == SHAPES[-1] else {"more": 3000}


def _pair(function: Callable[[Any, Any], object]) -> Callable[[list[Any]], object]:
    return lambda pair: function(pair[0], pair[1])


def _outer(pair: list[Any]) -> object:
    return pair[0][:, :, None] + pair[1]
