"""Drop-in replacement for `gt4py.storage`: the same functions, signatures and results, on dlfield's memory.

Results are NumPy arrays, or CuPy arrays on CuPy's current device if the preset is for a GPU. As in GT4Py, `dimensions`
says which of I, J, K and the data dimensions an array has; the layout depends on this set and on positions, not on the
order of the names. Sizes are 64-bit, zero-size shapes work, and every block is aligned to 64 bytes at least.

The first allocation imports `gt4py.storage`, whose registry says which layout a preset has; without GT4Py dlfield's
presets do.
"""

import operator
import sys
from collections.abc import Iterable, Sequence
from typing import Any, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from dlfield import _native
from dlfield._native import DimsError, LayoutError
from dlfield.gt4py.registry import registered_layout
from dlfield.interop.frameworks import as_cupy

__all__ = ["empty", "from_array", "full", "ones", "zeros"]

_CARTESIAN = ("I", "J", "K")

# NumPy dtypes that tensors do not have: `longdouble`, `clongdouble`, `datetime64` and `timedelta64`.
_ONLY_NUMPY = "gGMm"

_Target: TypeAlias = _native.Tensor | npt.NDArray[Any]


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
    shape : sequence of int
        Size of each dimension, zero or more.
    dtype : str, type or dtype, optional
        Anything `np.dtype()` accepts, ml_dtypes too; a sub-array dtype adds trailing data dimensions. None is float64.
        As in GT4Py the byte order becomes native, and datetime64 and timedelta64 lose their unit.
    backend : str
        Name of a preset: one that is registered in GT4Py, also by `register`, or else one of `dlfield.presets()`.
    aligned_index : sequence of int, optional
        Index of the element whose address is aligned; default: all zeros.
    dimensions : sequence of str, optional
        One name for each dimension: "I", "J", "K", digits for data dimensions, or objects with `__gt_axis_name__`.
        Names may repeat; each dimension beyond the I, J and K that are present is a data dimension. Default: I, J, K,
        then data dimensions.

    Returns
    -------
    numpy.ndarray
        A view that keeps the memory alive; a `cupy.ndarray` if the preset is for a GPU.

    Raises
    ------
    UnknownPresetError
        `backend` is unknown. It is a `LayoutError` and, as in GT4Py, a RuntimeError.
    LayoutError
        `shape` or `aligned_index` is wrong, or a size overflows.
    DimsError
        `dimensions` has another name or the wrong length.
    DTypeError
        `dtype` is structured, object or text.
    DeviceError
        The preset is for a GPU, and no GPU is available.

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
    """Allocate an array of zeros; result and errors are those of `empty`.

    As in GT4Py it is a ValueError that datetime64 has no zero.

    Parameters
    ----------
    shape : sequence of int
        Size of each dimension.
    dtype : str, type or dtype, optional
        Type of the elements, as in `empty`.
    backend : str
        Name of a preset.
    aligned_index : sequence of int, optional
        Index of the element whose address is aligned; default: all zeros.
    dimensions : sequence of str, optional
        One name for each dimension, as in `empty`.

    Example
    -------
    >>> from dlfield import gt4py
    >>> gt4py.zeros((2, 2), "int32", backend="numpy", dimensions=("I", "K")).tolist()
    [[0, 0], [0, 0]]
    """
    array = _array(_allocate(_native.zeros, shape, dtype, backend, aligned_index, dimensions))
    # Raises the ValueError for datetime64.
    array.dtype.type(0)
    return array


def ones(
    shape: Sequence[SupportsIndex],
    dtype: Any = np.float64,
    *,
    backend: str,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dimensions: Sequence[Any] | None = None,
) -> npt.NDArray[Any]:
    """Allocate an array of ones; result and errors are those of `empty`.

    Parameters
    ----------
    shape : sequence of int
        Size of each dimension.
    dtype : str, type or dtype, optional
        Type of the elements, as in `empty`.
    backend : str
        Name of a preset.
    aligned_index : sequence of int, optional
        Index of the element whose address is aligned; default: all zeros.
    dimensions : sequence of str, optional
        One name for each dimension, as in `empty`.

    Example
    -------
    >>> from dlfield import gt4py
    >>> gt4py.ones((3,), backend="numpy", dimensions=("K",)).tolist()
    [1.0, 1.0, 1.0]
    """
    return full(shape, 1, dtype, backend=backend, aligned_index=aligned_index, dimensions=dimensions)


def full(
    shape: Sequence[SupportsIndex],
    fill_value: Any,
    dtype: Any = np.float64,
    *,
    backend: str,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dimensions: Sequence[Any] | None = None,
) -> npt.NDArray[Any]:
    """Allocate an array filled with `fill_value`; result and errors are those of `empty`.

    Parameters
    ----------
    shape : sequence of int
        Size of each dimension.
    fill_value : number
        The value of every element. As in GT4Py, the scalar type of `dtype` converts it: 2.7 becomes 2 in an integer
        array.
    dtype : str, type or dtype, optional
        Type of the elements, as in `empty`.
    backend : str
        Name of a preset.
    aligned_index : sequence of int, optional
        Index of the element whose address is aligned; default: all zeros.
    dimensions : sequence of str, optional
        One name for each dimension, as in `empty`.

    Example
    -------
    >>> from dlfield import gt4py
    >>> gt4py.full((2,), 2.7, int, backend="numpy").tolist()
    [2, 2]
    """
    target = _allocate(_native.empty, shape, dtype, backend, aligned_index, dimensions)
    target[...] = target.dtype.type(fill_value)
    return _array(target)


def from_array(
    data: Any,
    dtype: Any = np.float64,
    *,
    backend: str,
    aligned_index: Sequence[SupportsIndex] | None = None,
    dimensions: Sequence[Any] | None = None,
) -> npt.NDArray[Any]:
    """Copy `data` into a new array; result and other errors are those of `empty`.

    Parameters
    ----------
    data : array
        Anything `np.asarray()` or `as_cupy` accepts, or a gt4py.next Field. With a sub-array `dtype` its last sizes
        must be those of the dtype.
    dtype : str, type or dtype, optional
        The dtype of the result, to which the values are cast; None keeps the dtype of `data`.
    backend : str
        Name of a preset.
    aligned_index : sequence of int, optional
        Index of the element whose address is aligned; default: all zeros.
    dimensions : sequence of str, optional
        One name for each dimension, as in `empty`.

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
    # The other arguments first: reading them may run code that moves the memory of `data`.
    backend = _plain(backend)
    dimensions = None if dimensions is None else _given_names(dimensions)
    aligned_index = None if aligned_index is None else _integers(aligned_index)
    given = None if dtype is None else _element(dtype)
    inside = getattr(data, "ndarray", data)
    source = as_cupy(inside) if hasattr(inside, "__cuda_array_interface__") else np.asarray(inside)
    element, inner = _element(source.dtype) if given is None else given
    shape = source.shape
    split = len(shape) - len(inner)
    if split < 0 or shape[split:] != inner:
        raise LayoutError(f"data: its shape {shape} must end with {inner}, the shape of the sub-array dtype {dtype}")
    subarray = np.dtype((element, inner)) if inner else element
    target = _allocate(_native.empty, shape[:split], subarray, backend, aligned_index, dimensions)
    # Cast by NumPy's rules for assignment; tensors allow fewer casts.
    target[...] = source.astype(target.dtype, copy=False)
    return _array(target)


def _array(target: _Target) -> npt.NDArray[Any]:
    """Return a NumPy array on the memory, or a CuPy array on a GPU's, which type checkers do not know."""
    array: npt.NDArray[Any] = target if isinstance(target, np.ndarray) else target.to_ndarray()
    return array


def _allocate(
    function: Any,
    shape: Sequence[SupportsIndex],
    dtype: Any,
    backend: str,
    aligned_index: Sequence[SupportsIndex] | None,
    dimensions: Sequence[Any] | None,
) -> _Target:
    """Allocate with the registered layout: a tensor, or a NumPy array for a dtype that tensors do not have."""
    if not isinstance(shape, Iterable):
        raise TypeError(f"shape: found {shape!r}, must be a sequence of sizes, one for each dimension")
    sizes = tuple(operator.index(size) for size in shape)
    names = _names(dimensions, len(sizes))
    index = None if aligned_index is None else _aligned_index(aligned_index, len(sizes))
    element, inner = _element(dtype)
    sizes, names = sizes + inner, names + tuple(str(number) for number in range(len(inner)))
    layout, alignment, device = registered_layout(backend, names)
    keywords: dict[str, Any] = {
        "layout": layout,
        "alignment_size": alignment * element.itemsize,
        "device": device if device == "cpu" else _current_gpu(),
    }
    if index is not None:
        # As in GT4Py it may lie outside, for instance the origin of larger fields: rows are aligned, so that only the
        # position in an aligned block counts.
        inside = (each if each <= size else each % alignment for each, size in zip(index, sizes, strict=False))
        keywords["aligned_index"] = (*inside, *(0 for _ in inner))
    if device == "cpu" and element.char in _ONLY_NUMPY:
        return _allocate_bytes(function, sizes, element, keywords)
    tensor: _native.Tensor = function(sizes, element, **keywords)
    return tensor


def _current_gpu() -> str:
    """Return the GPU on which CuPy allocates; the first one if CuPy is not in use."""
    cupy = sys.modules.get("cupy")
    try:
        return "gpu" if cupy is None else f"cuda:{cupy.cuda.Device().id}"
    except RuntimeError:
        # CuPy has found no GPU; the error of the allocation says what was looked for.
        return "gpu"


def _allocate_bytes(
    function: Any, sizes: tuple[int, ...], dtype: np.dtype[Any], keywords: dict[str, Any]
) -> npt.NDArray[Any]:
    """Allocate bytes, and view them as an array of a dtype that tensors do not have."""
    if not sizes:
        keywords |= {"layout": (0,)} | ({"aligned_index": (0,)} if "aligned_index" in keywords else {})
        return _allocate_bytes(function, (1,), dtype, keywords).reshape(())
    row = keywords["layout"].index(len(sizes) - 1)
    in_bytes = [dtype.itemsize if axis == row else 1 for axis in range(len(sizes))]
    if "aligned_index" in keywords:
        keywords["aligned_index"] = tuple(map(operator.mul, keywords["aligned_index"], in_bytes))
    tensor: _native.Tensor = function(tuple(map(operator.mul, sizes, in_bytes)), np.uint8, **keywords)
    # NumPy changes the size of elements along the last axis only.
    return np.moveaxis(np.moveaxis(tensor.to_numpy(), row, -1).view(dtype), -1, row)


def _element(dtype: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return the dtype of the elements, and the shape of a sub-array dtype.

    Numbers become native, and dates and times lose their unit, because GT4Py allocates the scalar type.
    """
    try:
        found = np.dtype(dtype)
    except (TypeError, ValueError):
        # A dtype of another library, or an error that lists the dtypes.
        found = _native.empty(0, dtype).dtype
    return np.dtype(found.base.type) if found.base.kind in "biufcmM" else found.base, found.shape


def _aligned_index(aligned_index: Sequence[SupportsIndex], ndim: int) -> tuple[int, ...]:
    index = _integers(aligned_index)
    if len(index) != ndim:
        raise LayoutError(f"aligned_index: found {index}, must be one index for each of the {ndim} dimensions")
    return index


def _integers(aligned_index: Sequence[SupportsIndex]) -> tuple[int, ...]:
    if not isinstance(aligned_index, Iterable):
        raise TypeError(f"aligned_index: found {aligned_index!r}, must be a sequence of indices")
    return tuple(operator.index(each) for each in aligned_index)


def _names(dimensions: Sequence[Any] | None, ndim: int) -> tuple[str, ...]:
    if dimensions is None:
        return (*_CARTESIAN[:ndim], *(str(number) for number in range(ndim - len(_CARTESIAN))))
    names = _given_names(dimensions)
    if len(names) != ndim:
        raise DimsError(f"dimensions: found {len(names)} names {names}, must be one for each of the {ndim} dimensions")
    return names


def _given_names(dimensions: Sequence[Any]) -> tuple[str, ...]:
    """Return the names of the dimensions. A GTScript axis alone is one dimension; iterating over it would never end."""
    named: Sequence[Any] = (dimensions,) if hasattr(dimensions, "__gt_axis_name__") else dimensions
    names = tuple(_plain(getattr(name, "__gt_axis_name__", name)) for name in named)
    for name in names:
        if not isinstance(name, str) or not (name in _CARTESIAN or name.isdigit()):
            raise DimsError(f'dimensions: expected "I", "J", "K" and decimal digits, got {name!r} in {names}')
    return names


def _plain(text: Any) -> Any:
    """Return a string of a subclass, whose methods may be code of others, as one of the class itself."""
    return str.__str__(text) if isinstance(text, str) else text
