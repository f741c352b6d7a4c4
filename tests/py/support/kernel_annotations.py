"""Kernels whose annotations are text, and what type checkers see of `dl.Field`: `make lint` checks this file."""

# ruff: noqa: F821, UP037 (it takes the texts in `dl.Field[...]` for annotations)

from __future__ import annotations

from typing import Any, assert_type

import numpy as np

import dlfield as dl


@dl.kernel
def step(inp: dl.Field[Any, "float64", "IJ"], out: dl.Field[Any, "float64", "IJ", "w"], dt: float) -> Any:
    """Return what the body gets."""
    return inp.shape, out.strides, dt


def local() -> Any:
    """Return a kernel with an annotation that only this function knows."""
    Inp = dl.Field[Any, "float64", "IJ"]  # noqa: N806

    @dl.kernel
    def inner(inp: Inp) -> Any:
        return inp.shape

    return inner


class Model:
    """Has a kernel with an annotation that only the class knows."""

    Column = dl.Field[Any, "float64", "IJ"]

    @dl.kernel
    def total(self, inp: Column) -> float:
        """Return a number."""
        return float(inp.shape[1])


def check_types() -> None:
    """Is never called: a type checker sees the function's own parameters and result."""
    assert_type(Model().total(np.zeros((3, 4))), float)
    step(np.zeros((3, 4)), np.zeros((3, 4)), "no")  # type: ignore[arg-type]
    step(np.zeros((3, 4)))  # type: ignore[call-arg]

    # The dtype first is shorter, but a type checker takes a text there for the name of a type.
    @dl.kernel
    def short(inp: dl.Field["float64", "IJ"]) -> None:  # type: ignore[name-defined]
        inp.anything()


class Fields:
    """Annotates fields."""

    inp: dl.Field[Any, "float64", "IJ"]
    count: int
