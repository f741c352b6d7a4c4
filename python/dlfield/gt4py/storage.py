"""Drop-in replacement for `gt4py.storage`: the same functions, signatures and results, on dlfield's memory.

Results are NumPy arrays, or CuPy arrays if the preset is for a GPU. As in GT4Py, `dimensions` says which of I, J, K and
the data dimensions an array has; the layout depends on this set and on positions, not on the order of the names. Sizes
are 64-bit, zero-size shapes work, and every block is aligned to 64 bytes at least.
"""

from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from dlfield import _native
from dlfield._native import DimsError, LayoutError
from dlfield.frameworks import as_cupy

__all__ = ["empty", "from_array", "full", "ones", "zeros"]

_CARTESIAN = ("I", "J", "K")


def empty(
    shape: Sequence[SupportsIndex],
    dtype: Any = np.float64,
    *,
    backend: str,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dimensions: Sequence[Any] | None = None,
) -> npt.NDArray[Any]:
    """Allocate an uninitialized array with the layout and alignment of `backend`.

    Parameters
    ----------
    shape
        Size of each dimension, zero or more.
    dtype
        Anything `np.dtype()` accepts, ml_dtypes too; a sub-array dtype adds trailing data dimensions. None is float64.
    backend
        Name of a preset, see `dlfield.presets()`.
    aligned_index
        Index of the element whose address is aligned; default: all zeros.
    dimensions
        One name for each dimension: "I", "J", "K", digits for data dimensions, or objects with `__gt_axis_name__`.
        Default: I, J, K, then data dimensions.

    Returns
    -------
    numpy.ndarray
        A view that keeps the memory alive; a `cupy.ndarray` if the preset is for a GPU.

    Raises
    ------
    LayoutError
        `backend` is unknown, `shape` or `aligned_index` is wrong, or a size overflows.
    DimsError
        `dimensions` has another name, a duplicate or the wrong length.
    DTypeError
        `dtype` is big-endian, structured, object or datetime.
    DeviceError
        The preset is for a GPU, and there is none.

    Example
    -------
    >>> from dlfield import gt4py
    >>> gt4py.empty((4, 5, 6), backend="gt:cpu_ifirst").strides
    (8, 32, 160)
    """
    return _array(_allocate(_native.empty, shape, dtype, backend, aligned_index, dimensions))


def zeros(
    shape: Sequence[SupportsIndex],
    dtype: Any = np.float64,
    *,
    backend: str,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dimensions: Sequence[Any] | None = None,
) -> npt.NDArray[Any]:
    """Allocate an array of zeros; parameters and errors as `empty`.

    Example
    -------
    >>> from dlfield import gt4py
    >>> gt4py.zeros((2, 2), "int32", backend="numpy", dimensions=("I", "K")).tolist()
    [[0, 0], [0, 0]]
    """
    return _array(_allocate(_native.zeros, shape, dtype, backend, aligned_index, dimensions))


def ones(
    shape: Sequence[SupportsIndex],
    dtype: Any = np.float64,
    *,
    backend: str,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dimensions: Sequence[Any] | None = None,
) -> npt.NDArray[Any]:
    """Allocate an array of ones; parameters and errors as `empty`.

    Example
    -------
    >>> from dlfield import gt4py
    >>> gt4py.ones((3,), backend="numpy", dimensions=("K",)).tolist()
    [1.0, 1.0, 1.0]
    """
    return _array(_allocate(_native.ones, shape, dtype, backend, aligned_index, dimensions))


def full(
    shape: Sequence[SupportsIndex],
    fill_value: Any,
    dtype: Any = np.float64,
    *,
    backend: str,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dimensions: Sequence[Any] | None = None,
) -> npt.NDArray[Any]:
    """Allocate an array filled with `fill_value`; the other parameters and errors as `empty`.

    As in GT4Py, the scalar type of `dtype` converts `fill_value`: 2.7 becomes 2 in an integer array.

    Example
    -------
    >>> from dlfield import gt4py
    >>> gt4py.full((2,), 2.7, int, backend="numpy").tolist()
    [2, 2]
    """
    tensor = _allocate(_native.empty, shape, dtype, backend, aligned_index, dimensions)
    tensor[...] = tensor.dtype.type(fill_value)
    return _array(tensor)


def from_array(
    data: Any,
    dtype: Any = np.float64,
    *,
    backend: str,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dimensions: Sequence[Any] | None = None,
) -> npt.NDArray[Any]:
    """Copy `data` into a new array; the other parameters and errors as `empty`.

    Parameters
    ----------
    data
        Anything `np.asarray()` or `as_cupy` accepts, or a gt4py.next Field. With a sub-array `dtype` its last sizes
        must be those of the dtype.
    dtype
        The dtype of the result, to which the values are cast; None keeps the dtype of `data`.

    Raises
    ------
    LayoutError
        The last sizes of `data` are not those of the sub-array `dtype`.

    Example
    -------
    >>> import numpy as np
    >>> from dlfield import gt4py
    >>> gt4py.from_array(np.arange(3), backend="numpy").dtype
    dtype('float64')
    >>> gt4py.from_array(np.arange(3, dtype="int32"), dtype=None, backend="numpy").dtype
    dtype('int32')
    """
    inside = getattr(data, "ndarray", data)
    source = as_cupy(inside) if hasattr(inside, "__cuda_array_interface__") else np.asarray(inside)
    target = source.dtype if dtype is None else np.dtype(dtype)
    shape = source.shape
    if target.shape:
        split = len(shape) - target.ndim
        if split < 0 or shape[split:] != target.shape:
            raise LayoutError(
                f"data: its shape {shape} must end with {target.shape}, the shape of the sub-array dtype {target}"
            )
        shape = shape[:split]
    tensor = _allocate(_native.empty, shape, target, backend, aligned_index, dimensions)
    # Cast by NumPy's rules for assignment; tensors allow fewer casts.
    tensor[...] = source.astype(tensor.dtype, copy=False)
    return _array(tensor)


def _array(tensor: _native.Tensor) -> npt.NDArray[Any]:
    """Return a NumPy array on the memory, or a CuPy array on a GPU's, which type checkers do not know."""
    array: npt.NDArray[Any] = tensor.to_ndarray()
    return array


def _allocate(
    function: Any,
    shape: Sequence[SupportsIndex],
    dtype: Any,
    backend: str,
    aligned_index: Sequence[SupportsIndex] | None,
    dimensions: Sequence[Any] | None,
) -> _native.Tensor:
    if backend is None:
        raise LayoutError(f"backend: found None, must be one of {sorted(_native.presets())}")
    if not isinstance(shape, Iterable):
        raise TypeError(f"shape: found {shape!r}, must be a sequence of sizes, one for each dimension")
    sizes = tuple(shape)
    tensor: _native.Tensor = function(
        sizes,
        np.float64 if dtype is None else dtype,
        backend=backend,
        dims=None if dimensions is None else _canonical(dimensions, len(sizes)),
        aligned_index=aligned_index,
    )
    return tensor


def _canonical(dimensions: Sequence[Any], ndim: int) -> tuple[str, ...]:
    """Return the names in GT4Py's order, by position: those of I, J, K that are present, then the data dimensions."""
    names = tuple(getattr(name, "__gt_axis_name__", name) for name in dimensions)
    for name in names:
        if not isinstance(name, str) or not (name in _CARTESIAN or name.isdecimal()):
            raise DimsError(f'dimensions: found {name!r} in {names}, allowed are "I", "J", "K" and decimal digits')
    if len(set(names)) != len(names):
        raise DimsError(f"dimensions: found a duplicate in {names}, each name may occur once")
    if len(names) != ndim:
        raise DimsError(f"dimensions: found {len(names)} names {names}, must be one for each of the {ndim} dimensions")
    present = [name for name in _CARTESIAN if name in names]
    return (*present, *(str(index) for index in range(ndim - len(present))))
