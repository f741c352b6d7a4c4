"""Helpers for tests of stencil calls: field specifications, and arrays of several libraries."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import dlfield as dl
from oracle import InterfaceOnly

Array = npt.NDArray[Any]

F8 = dl.FieldSpec("float64", "IJK")
W8 = dl.FieldSpec("float64", "IJK", access="w")


def signature(fields: dict[str, Any]) -> dl.Signature:
    return dl.Signature(**fields)


def copying(**fields: Any) -> dl.Signature:
    return dl.Signature(on_mismatch="copy", **fields)


def spec(dims: Any = "IJ", dtype: Any = "float64", **keywords: Any) -> dl.FieldSpec:
    return dl.FieldSpec(dtype, dims, **keywords)


def accessed(access: Any = "r", dtype: str = "float64", dims: Any = "IJ", **keywords: Any) -> dl.FieldSpec:
    return dl.FieldSpec(dtype, dims, access=access, **keywords)


def cube(*shape: int, dtype: str = "float64") -> Array:
    """Distinct numbers in increasing order."""
    return np.arange(float(np.prod(shape or (2, 3, 4)))).reshape(shape or (2, 3, 4)).astype(dtype)


def numbers(dtype: str = "float64") -> Array:
    return np.arange(12).reshape(3, 4).astype(dtype)


def misaligned() -> Array:
    """An array whose memory starts 8 bytes after a multiple of 64."""
    block = np.zeros(40)
    array = block[(72 - block.ctypes.data) % 64 // 8 :][:12].reshape(3, 4)
    array[...] = numbers()
    return array


def view(field: dl.Descriptor) -> Array:
    """The memory of a descriptor as a kernel sees it."""
    return np.asarray(InterfaceOnly(field))


def torch_of(array: Array) -> Any:
    return pytest.importorskip("torch").from_numpy(array)


def dataarray(array: Array, dims: Any = "IJK") -> Any:
    return pytest.importorskip("xarray").DataArray(array, dims=tuple(dims))


def next_field(array: Array, dims: Any = "IJK") -> Any:
    """A field of gt4py.next on the same memory."""
    gtx = pytest.importorskip("gt4py.next")
    kinds = {"K": gtx.DimensionKind.VERTICAL}
    labels = [gtx.Dimension(dim, kind=kinds.get(dim, gtx.DimensionKind.HORIZONTAL)) for dim in dims]
    return gtx.common._field(array, domain=gtx.common.domain(dict(zip(labels, array.shape, strict=True))))


SIG = dl.Signature(a=spec(), b=spec(access="w"), c=spec(access="rw", optional=True))


def array() -> Array:
    """An argument for any field of `SIG`."""
    return np.zeros((3, 4))
