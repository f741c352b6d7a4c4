"""The arrays that a compiled stencil gets where `as_numpy` and `as_cupy` do not serve."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from dlfield import _native
from dlfield._native import Descriptor

__all__ = ["Export", "unaccessed", "writable_array"]

Export = Callable[[Descriptor], Any]


class _WritableExport:
    """Read-only memory exported as writable: GT4Py's C++ requires that, also of fields that it only reads."""

    def __init__(self, field: Descriptor) -> None:
        self.field = field
        self.__array_interface__ = {
            "version": 3,
            "shape": field.shape,
            "strides": field.strides,
            "typestr": field.dtype.str,
            "data": (field.ptr, False),
        }


def writable_array(field: Descriptor) -> npt.NDArray[Any]:
    """Return a writable array on host memory, also if it is read-only, for a stencil that does not write it."""
    return np.asarray(_WritableExport(field))


def unaccessed(value: Any, dims: tuple[str, ...], device: str, export: Export) -> Any:
    """Return the argument for a field that the stencil does not access, in the stencil's order of dimensions.

    GT4Py's generated code may name such a field in a branch that never runs, and needs an array for it. GT4Py checks
    nothing about it, so an object that is not an array on the stencil's device is returned as it is.
    """
    if value is None:
        return None
    try:
        field = _native.describe(value, device=device)
    except _native.Error:
        return value
    if field.dims is None or sorted(field.dims) != sorted(dims):
        return export(field)
    return export(field).transpose([field.dims.index(label) for label in dims])
