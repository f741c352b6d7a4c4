"""xarray's labelled arrays on dlfield's memory, and the attributes by which stencil codes read them.

Importing this module gives every `xarray.DataArray` two attributes: `__gt_data_interface__`, which is that of the array
inside with the DataArray's own dims, and `__gt_dims__`, by which GT4Py 1.1 orders the dimensions of an argument. Both
are worked out whenever they are asked for, so they follow when a DataArray gets other data or dims. An accessor that
somebody has registered under one of these names stays; one that is registered later replaces ours, and xarray warns.

dlfield's own readers take DataArrays with or without this module, and see the same.

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

from dlfield._native import DimsError, ExchangeError, NotAnArrayError, Tensor, as_numpy, from_dlpack, get_dims
from dlfield.frameworks import imported

if TYPE_CHECKING:
    import xarray
else:
    xarray = imported("xarray", "dlfield.xarray")

__all__ = ["from_xarray", "to_xarray"]


def to_xarray(obj: Any, *, name: Hashable | None = None, coords: Any = None) -> xarray.DataArray:
    """Return the `xarray.DataArray` on the memory of `obj`, with its dims.

    Origin and halo do not come along: xarray would hand them on, as they are, to every slice of the DataArray.

    Parameters
    ----------
    obj
        A `Tensor`, or anything else `as_numpy` takes that states its dims.
    name
        The DataArray's name.
    coords
        The DataArray's coordinates, as `xarray.DataArray` takes them.

    Returns
    -------
    xarray.DataArray
        A NumPy array on the same memory, labelled; read-only where `obj` is.

    Raises
    ------
    DimsError
        `obj` states no dims.
    ExchangeError
        `obj` has no memory that NumPy could share.

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
    """Return the `Tensor` on the memory of a DataArray, with its dims.

    Coordinates, attributes and name stay behind.

    Parameters
    ----------
    data_array
        Its dims are strings, and its data is in memory, in an array that `from_dlpack` takes.
    origin
        Index of the first compute point; default: what the array inside states, else zeros.

    Returns
    -------
    Tensor
        It shares the memory, and is read-only where that is.

    Raises
    ------
    NotAnArrayError
        `data_array` is no DataArray.
    DimsError
        A dimension is not named by a string, or the array inside states other dims.
    ExchangeError
        The data is not in memory, or can't be shared without a copy.
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
        hint = ", such as dataset['name']" if isinstance(data_array, xarray.Dataset) else "; from_dlpack takes others"
        raise NotAnArrayError(f"data_array: found {type(data_array).__name__}, allowed is an xarray.DataArray{hint}")
    _labels(data_array)
    if data_array.chunks is not None:
        raise ExchangeError("data_array: its data is in chunks, which are not in memory; pass data_array.compute()")
    return from_dlpack(data_array, copy=False, origin=origin)


class _Default(property):
    """An attribute that this module has put on DataArrays.

    xarray's own accessors keep what they have made, and would be wrong once a DataArray is renamed or gets other data.
    The readers in `src/py/read/facts.rs` know this class by its module.
    """


class _Buffer(dict[str, Any]):
    """An array interface that keeps alive what its memory belongs to."""

    owner: object


def _register(name: str, find: Callable[[xarray.DataArray], Any]) -> None:
    """Give DataArrays an attribute, unless it is there already and not from an earlier import of this module."""
    present = inspect.getattr_static(xarray.DataArray, name, None)
    if present is None or type(present).__module__ == __name__:
        setattr(xarray.DataArray, name, _Default(find))


def _labels(data_array: xarray.DataArray) -> tuple[str, ...]:
    """Return the dims, all of which must be strings."""
    for dim in data_array.dims:
        if not isinstance(dim, str):
            fix = f"data_array.rename({{{dim!r}: 'name'}})"
            raise DimsError(f"data_array: found {dim!r} in its dims {data_array.dims}, labels are strings; pass {fix}")
    return tuple(data_array.dims)


def _data_interface(data_array: xarray.DataArray) -> dict[Any, Any]:
    """Return GT4Py's data interface of the array inside, with the dims of the DataArray."""
    dims, data = _labels(data_array), data_array.data
    for name in ("__gt_data_interface__", "__gt_interface__"):
        interface = getattr(data, name, None)
        if interface is None:
            continue
        if callable(interface):
            interface = interface()
        if not isinstance(interface, Mapping):
            raise ExchangeError(f"{name}: found {interface!r}, allowed is a mapping from a device to a dictionary")
        return {device: _labelled(value, dims, data) for device, value in interface.items()}
    if isinstance(data, np.ndarray) and data.dtype.kind == "V":
        # The array interface would call bfloat16 and its like void, so a `Tensor` has none for them either.
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
    """Return an array interface of `data` with dims; for a callable, a callable that returns one."""
    if callable(value):
        return partial(_called, value, dims, data)
    if not isinstance(value, Mapping):
        # It may stand under a key that is no device; whoever reads one judges.
        return value
    stated = value.get("dims")
    if stated is not None and _stated(stated) != dims:
        raise DimsError(f"data_array: its dims are {dims}, but the data interface of the array inside says {stated!r}")
    buffer = _Buffer(value, dims=dims)
    buffer.owner = (data, value)
    return buffer


def _called(function: Callable[[], Any], dims: tuple[str, ...], data: Any) -> Any:
    return _labelled(function(), dims, data)


def _stated(dims: Any) -> tuple[str, ...] | None:
    """Return the labels that a data interface states, None if they are none."""
    return tuple(str(label) for label in dims) if isinstance(dims, (str, Sequence)) else None


def _gt4py_dims(data_array: xarray.DataArray) -> tuple[str, ...]:
    """Return the dims where GT4Py knows all of them; it takes the dimensions of other arrays as they come."""
    dims = tuple(data_array.dims)
    if not all(isinstance(dim, str) and (dim in ("I", "J", "K") or dim.isdecimal()) for dim in dims):
        raise AttributeError(f"__gt_dims__: GT4Py knows 'I', 'J', 'K' and decimal digits, not all of {dims}")
    return dims


_register("__gt_data_interface__", _data_interface)
_register("__gt_dims__", _gt4py_dims)
