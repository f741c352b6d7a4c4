"""Exchange with xarray without a copy: tensors as `xarray.DataArray` and back.

Importing this module adds two attributes to every `xarray.DataArray`: `__gt_data_interface__`, the interface of the
wrapped array with the dims of the DataArray, and `__gt_dims__`, by which GT4Py 1.1 orders the dimensions of an
argument. Both are computed at each access, so they stay valid when a DataArray gets other data or dims. An accessor
that is already registered under one of these names is kept; one registered later replaces the attribute of this module,
and xarray warns.

dlfield imports DataArrays with or without this module, with the same result. Operators go by name with a DataArray on
either side. An assignment to a DataArray goes by position, as xarray takes the elements of a tensor alone: write
`array[...] = tensor.variable`.

Example
-------
>>> import numpy as np
>>> import xarray
>>> import dlfield.xarray
>>> level = xarray.DataArray(np.zeros((4, 3)), dims=("K", "I"))
>>> level.__gt_data_interface__[None]["dims"], level.__gt_dims__
(('K', 'I'), ('K', 'I'))
"""

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from dlfield._native import DimsError, ExchangeError, NotAnArrayError, Tensor, _tensor, as_numpy, get_dims
from dlfield.interop.frameworks import imported

if TYPE_CHECKING:
    import xarray
else:
    xarray = imported("xarray", "dlfield.xarray")

__all__ = ["from_xarray", "to_xarray"]


def to_xarray(obj: Any, *, name: Hashable | None = None, coords: Any = None) -> xarray.DataArray:
    """Return an `xarray.DataArray` that shares the memory of `obj` and has its dims.

    Origin and halo are dropped: xarray would copy them unchanged to every slice of the DataArray.

    Parameters
    ----------
    obj : Tensor or array
        A `Tensor`, or any other object with dims that `as_numpy` accepts.
    name : hashable, optional
        The DataArray's name.
    coords : mapping or sequence, optional
        The DataArray's coordinates, as for `xarray.DataArray`.

    Returns
    -------
    xarray.DataArray
        It wraps a NumPy array on the same memory, read-only if `obj` is.

    Raises
    ------
    DimsError
        `obj` has no dims.
    ExchangeError
        NumPy cannot share the memory of `obj`.
    NotAnArrayError, DTypeError, DeviceError
        As for `from_dlpack`.

    Example
    -------
    >>> import dlfield as dl
    >>> from dlfield.xarray import to_xarray
    >>> field = dl.zeros((4, 3), dims="KI")
    >>> array = to_xarray(field, name="pressure", coords={"I": [10.0, 20.0, 30.0]})
    >>> array.loc[{"I": 20.0}] = 7.0
    >>> array.dims, float(field[0, 1])
    (('K', 'I'), 7.0)
    """
    array, dims = as_numpy(obj, copy=False), get_dims(obj)
    if dims is None:
        raise DimsError(f"obj: found {type(obj).__name__} without dims; from_dlpack(obj, dims=...) gives it some")
    return xarray.DataArray(array, coords=coords, dims=dims, name=name)


def from_xarray(data_array: xarray.DataArray, *, origin: Sequence[SupportsIndex] | None = None) -> Tensor:
    """Return a `Tensor` that shares the memory of a DataArray and has its dims.

    Coordinates, attributes and name are dropped.

    Parameters
    ----------
    data_array : xarray.DataArray
        A DataArray whose dims are strings and whose data is an array in memory that `from_dlpack` accepts.
    origin : sequence of int, optional
        Index of the first compute point; default: the origin of the wrapped array, else zeros.

    Returns
    -------
    Tensor
        It shares the memory, and is read-only if the memory is.

    Raises
    ------
    NotAnArrayError
        `data_array` is not a DataArray.
    DimsError
        The name of a dimension is not a string, or the wrapped array has other dims.
    ExchangeError
        The data is not in memory, or cannot be shared without a copy.
    DTypeError, LayoutError, DeviceError
        As `from_dlpack`.

    Example
    -------
    >>> import numpy as np
    >>> import xarray
    >>> from dlfield.xarray import from_xarray
    >>> array = xarray.DataArray(np.zeros((4, 3)), dims=("K", "I"))
    >>> field = from_xarray(array.isel(K=slice(1, None)))
    >>> field[0, 1] = 7.0
    >>> field.dims, float(array[1, 1])
    (('K', 'I'), 7.0)
    """
    if not isinstance(data_array, xarray.DataArray):
        hint = (
            "; pass one of its arrays, such as dataset['name']"
            if isinstance(data_array, xarray.Dataset)
            else "; from_dlpack takes others"
        )
        raise NotAnArrayError(f"data_array: expected an xarray.DataArray, got {type(data_array).__name__}{hint}")
    _labels(data_array)
    if data_array.chunks is not None:
        raise ExchangeError("data_array: its data is in chunks, which are not in memory; pass data_array.compute()")
    return _tensor(data_array, "data_array", copy=False, origin=origin)


class _Attribute(property):
    """An attribute that this module adds to DataArrays.

    xarray's own accessors are cached, and would be wrong once a DataArray is renamed or gets other data.
    `src/python/import/type_info.rs` recognizes this class by its module.
    """


class _Buffer(dict[str, Any]):
    """An array interface that keeps the owner of its memory alive."""

    owner: object


def _register(name: str, find: Callable[[xarray.DataArray], Any]) -> None:
    """Add an attribute to DataArrays; keep an existing one, unless an earlier import of this module added it."""
    present = inspect.getattr_static(xarray.DataArray, name, None)
    if present is None or type(present).__module__ == __name__:
        setattr(xarray.DataArray, name, _Attribute(find))


def _labels(data_array: xarray.DataArray) -> tuple[str, ...]:
    """Return the dims; raise an error if one is not a string."""
    for dim in data_array.dims:
        if not isinstance(dim, str):
            fix = f"data_array.rename({{{dim!r}: 'name'}})"
            raise DimsError(f"data_array: found {dim!r} in its dims {data_array.dims}, labels are strings; pass {fix}")
    return tuple(data_array.dims)


def _data_interface(data_array: xarray.DataArray) -> dict[Any, Any]:
    """Return GT4Py's data interface of the wrapped array, with the dims of the DataArray."""
    dims, data = _labels(data_array), data_array.data
    for name in ("__gt_data_interface__", "__gt_interface__"):
        interface = getattr(data, name, None)
        if interface is None:
            continue
        if callable(interface):
            interface = interface()
        if not isinstance(interface, Mapping):
            raise ExchangeError(f"{name}: expected a mapping from a device to a dictionary, got {interface!r}")
        return {device: _labelled(value, dims, data) for device, value in interface.items()}
    if isinstance(data, np.ndarray) and data.dtype.kind == "V":
        # The array interface would describe bfloat16 and similar dtypes as void; a `Tensor` has none for them either.
        raise AttributeError(f"__gt_data_interface__: there is no type string for {data.dtype}")
    found = {}
    for device, name in ((None, "__array_interface__"), ("gpu", "__cuda_array_interface__")):
        buffer = getattr(data, name, None)
        if buffer is not None:
            found[device] = _labelled(buffer, dims, data)
    if not found:
        raise AttributeError(f"__gt_data_interface__: {type(data).__name__} has no interface to forward")
    return found


def _labelled(value: Any, dims: tuple[str, ...], data: Any) -> Any:
    """Return an array interface of `data` with dims; for a callable, return a callable that returns one."""
    if callable(value):
        return partial(_called, value, dims, data)
    if not isinstance(value, Mapping):
        # Its key may be no device; the consumer checks the entries that it uses.
        return value
    inner_dims = value.get("dims")
    if inner_dims is not None and _as_labels(inner_dims) != dims:
        raise DimsError(f"data_array: its dims are {dims}, but the data interface of its array has {inner_dims!r}")
    buffer = _Buffer(value, dims=dims)
    buffer.owner = (data, value)
    return buffer


def _called(function: Callable[[], Any], dims: tuple[str, ...], data: Any) -> Any:
    return _labelled(function(), dims, data)


def _as_labels(dims: Any) -> tuple[str, ...] | None:
    """Return the dims of a data interface as strings, None if they are not a sequence."""
    return tuple(str(label) for label in dims) if isinstance(dims, (str, Sequence)) else None


def _gt4py_dims(data_array: xarray.DataArray) -> tuple[str, ...]:
    """Return the dims if GT4Py knows all of them, else raise: GT4Py then keeps the order of the dimensions."""
    dims = tuple(data_array.dims)
    if not all(isinstance(dim, str) and (dim in ("I", "J", "K") or dim.isdecimal()) for dim in dims):
        raise AttributeError(f"__gt_dims__: GT4Py knows 'I', 'J', 'K' and decimal digits, not all of {dims}")
    return dims


_register("__gt_data_interface__", _data_interface)
_register("__gt_dims__", _gt4py_dims)
