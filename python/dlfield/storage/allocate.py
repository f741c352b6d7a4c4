"""Allocation of storages: `empty`, `zeros`, `ones`, `full` and their `_like` variants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex, Unpack

from dlfield import _native
from dlfield._native import Tensor
from dlfield.storage.kinds import Storage
from dlfield.storage.managed import SoftwareManagedGPUStorage
from dlfield.storage.parameters import Parameters, buffer_devices, labels_of
from dlfield.storage.state import SyncState

__all__ = ["empty", "empty_like", "full", "full_like", "ones", "ones_like", "zeros", "zeros_like"]

_Shape = SupportsIndex | Sequence[SupportsIndex]


def empty(shape: _Shape, dtype: Any = "float64", **parameters: Unpack[Parameters]) -> Storage:
    """Allocate an uninitialized storage.

    Parameters
    ----------
    shape : int or sequence of int
        Elements per dimension.
    dtype : str, type or dtype, optional
        Type of the elements.
    defaults : str, optional
        A preset of `dlfield.presets()`, whose layout, alignment and device apply.
    device : str or device, optional
        "gpu", "cuda:N", or "cpu" for host memory in spite of the preset.
    managed : {"gt4py", "cuda", None}, optional
        What synchronizes host and device, if there is a device: "gt4py" (default) for a host/device pair, "cuda" for
        managed memory, None for a device buffer only.
    dims : str or sequence of str, optional
        Labels of the dimensions.
    halo : sequence of int or pairs, optional
        For each dimension the width on both sides, or `(lower, upper)`.
    layout : sequence of int, optional
        The rank of the stride of each dimension, 0 for the largest.
    aligned_index : sequence of int, optional
        An index; by default the lower halo.
    alignment_size : int, optional
        Alignment in bytes of the element at `aligned_index`.

    Returns
    -------
    Storage
        A `SoftwareManagedGPUStorage` for a host/device pair, else a `dlfield.Tensor`.

    Raises
    ------
    LayoutError, DimsError, DTypeError
        As `dlfield.empty`, or `defaults` or `managed` is unknown.
    DeviceError
        The device does not exist.

    Example
    -------
    >>> from dlfield import storage
    >>> field = storage.empty((4, 3), defaults="gt:cpu_ifirst", halo=(1, 0))
    >>> isinstance(field, storage.CPUStorage), field.layout, field.halo
    (True, (1, 0), ((1, 1), (0, 0)))
    """
    return _placed(lambda device, **labels: _native.empty(shape, dtype, device=device, **labels), parameters)


def zeros(shape: _Shape, dtype: Any = "float64", **parameters: Unpack[Parameters]) -> Storage:
    """Allocate a storage of zeros; result and errors are those of `empty`.

    Parameters
    ----------
    shape : int or sequence of int
        Elements per dimension.
    dtype : str, type or dtype, optional
        Type of the elements.
    defaults : str, optional
        A preset, whose layout, alignment and device apply.
    device : str or device, optional
        "gpu", "cuda:N", or "cpu" for host memory in spite of the preset.
    managed : {"gt4py", "cuda", None}, optional
        What synchronizes host and device, as in `empty`.
    dims : str or sequence of str, optional
        Labels of the dimensions.
    halo : sequence of int or pairs, optional
        For each dimension the width on both sides, or `(lower, upper)`.
    layout : sequence of int, optional
        The rank of the stride of each dimension, 0 for the largest.
    aligned_index : sequence of int, optional
        An index; by default the lower halo.
    alignment_size : int, optional
        Alignment in bytes of the element at `aligned_index`.

    Example
    -------
    >>> from dlfield import storage
    >>> storage.zeros((2,), "int32").to_numpy().tolist()
    [0, 0]
    """
    return _placed(lambda device, **labels: _native.zeros(shape, dtype, device=device, **labels), parameters)


def ones(shape: _Shape, dtype: Any = "float64", **parameters: Unpack[Parameters]) -> Storage:
    """Allocate a storage of ones; result and errors are those of `empty`.

    Parameters
    ----------
    shape : int or sequence of int
        Elements per dimension.
    dtype : str, type or dtype, optional
        Type of the elements.
    defaults : str, optional
        A preset, whose layout, alignment and device apply.
    device : str or device, optional
        "gpu", "cuda:N", or "cpu" for host memory in spite of the preset.
    managed : {"gt4py", "cuda", None}, optional
        What synchronizes host and device, as in `empty`.
    dims : str or sequence of str, optional
        Labels of the dimensions.
    halo : sequence of int or pairs, optional
        For each dimension the width on both sides, or `(lower, upper)`.
    layout : sequence of int, optional
        The rank of the stride of each dimension, 0 for the largest.
    aligned_index : sequence of int, optional
        An index; by default the lower halo.
    alignment_size : int, optional
        Alignment in bytes of the element at `aligned_index`.

    Example
    -------
    >>> from dlfield import storage
    >>> storage.ones((2,)).to_numpy().tolist()
    [1.0, 1.0]
    """
    return _placed(lambda device, **labels: _native.ones(shape, dtype, device=device, **labels), parameters)


def full(shape: _Shape, fill_value: Any, dtype: Any = "float64", **parameters: Unpack[Parameters]) -> Storage:
    """Allocate a storage filled with `fill_value`; result and errors are those of `empty`.

    Parameters
    ----------
    shape : int or sequence of int
        Elements per dimension.
    fill_value : number
        The value of every element.
    dtype : str, type or dtype, optional
        Type of the elements.
    defaults : str, optional
        A preset, whose layout, alignment and device apply.
    device : str or device, optional
        "gpu", "cuda:N", or "cpu" for host memory in spite of the preset.
    managed : {"gt4py", "cuda", None}, optional
        What synchronizes host and device, as in `empty`.
    dims : str or sequence of str, optional
        Labels of the dimensions.
    halo : sequence of int or pairs, optional
        For each dimension the width on both sides, or `(lower, upper)`.
    layout : sequence of int, optional
        The rank of the stride of each dimension, 0 for the largest.
    aligned_index : sequence of int, optional
        An index; by default the lower halo.
    alignment_size : int, optional
        Alignment in bytes of the element at `aligned_index`.

    Example
    -------
    >>> from dlfield import storage
    >>> storage.full((2,), 7.0).to_numpy().tolist()
    [7.0, 7.0]
    """
    return _placed(lambda device, **labels: _native.full(shape, fill_value, dtype, device=device, **labels), parameters)


def empty_like(data: Any, dtype: Any = None, **parameters: Unpack[Parameters]) -> Storage:
    """Allocate an uninitialized storage like `data`; result and errors are those of `empty`.

    Parameters
    ----------
    data : array or storage
        Source of the shape and of each parameter that is not given.
    dtype : str, type or dtype, optional
        Type of the elements; that of `data` if it is not given.
    defaults : str, optional
        A preset, whose layout, alignment and device apply.
    device : str or device, optional
        "gpu", "cuda:N", or "cpu" for host memory in spite of the preset.
    managed : {"gt4py", "cuda", None}, optional
        What synchronizes host and device, as in `empty`.
    dims : str or sequence of str, optional
        Labels of the dimensions.
    halo : sequence of int or pairs, optional
        For each dimension the width on both sides, or `(lower, upper)`.
    layout : sequence of int, optional
        The rank of the stride of each dimension, 0 for the largest.
    aligned_index : sequence of int, optional
        An index; by default the lower halo.
    alignment_size : int, optional
        Alignment in bytes of the element at `aligned_index`.

    Example
    -------
    >>> from dlfield import storage
    >>> field = storage.zeros((4, 3), dims="KI", halo=(1, 0))
    >>> storage.empty_like(field, halo=(2, 0)).halo
    ((2, 2), (0, 0))
    """
    return _placed(lambda device, **labels: _native.empty_like(data, dtype, device=device, **labels), parameters, data)


def zeros_like(data: Any, dtype: Any = None, **parameters: Unpack[Parameters]) -> Storage:
    """Allocate a storage of zeros like `data`; result and errors are those of `empty`.

    Parameters
    ----------
    data : array or storage
        Source of the shape and of each parameter that is not given.
    dtype : str, type or dtype, optional
        Type of the elements; that of `data` if it is not given.
    defaults : str, optional
        A preset, whose layout, alignment and device apply.
    device : str or device, optional
        "gpu", "cuda:N", or "cpu" for host memory in spite of the preset.
    managed : {"gt4py", "cuda", None}, optional
        What synchronizes host and device, as in `empty`.
    dims : str or sequence of str, optional
        Labels of the dimensions.
    halo : sequence of int or pairs, optional
        For each dimension the width on both sides, or `(lower, upper)`.
    layout : sequence of int, optional
        The rank of the stride of each dimension, 0 for the largest.
    aligned_index : sequence of int, optional
        An index; by default the lower halo.
    alignment_size : int, optional
        Alignment in bytes of the element at `aligned_index`.

    Example
    -------
    >>> from dlfield import storage
    >>> storage.zeros_like(storage.ones((2,))).to_numpy().tolist()
    [0.0, 0.0]
    """
    return _placed(lambda device, **labels: _native.zeros_like(data, dtype, device=device, **labels), parameters, data)


def ones_like(data: Any, dtype: Any = None, **parameters: Unpack[Parameters]) -> Storage:
    """Allocate a storage of ones like `data`; result and errors are those of `empty`.

    Parameters
    ----------
    data : array or storage
        Source of the shape and of each parameter that is not given.
    dtype : str, type or dtype, optional
        Type of the elements; that of `data` if it is not given.
    defaults : str, optional
        A preset, whose layout, alignment and device apply.
    device : str or device, optional
        "gpu", "cuda:N", or "cpu" for host memory in spite of the preset.
    managed : {"gt4py", "cuda", None}, optional
        What synchronizes host and device, as in `empty`.
    dims : str or sequence of str, optional
        Labels of the dimensions.
    halo : sequence of int or pairs, optional
        For each dimension the width on both sides, or `(lower, upper)`.
    layout : sequence of int, optional
        The rank of the stride of each dimension, 0 for the largest.
    aligned_index : sequence of int, optional
        An index; by default the lower halo.
    alignment_size : int, optional
        Alignment in bytes of the element at `aligned_index`.

    Example
    -------
    >>> from dlfield import storage
    >>> storage.ones_like(storage.zeros((2,)), "int32").to_numpy().tolist()
    [1, 1]
    """
    return _placed(lambda device, **labels: _native.ones_like(data, dtype, device=device, **labels), parameters, data)


def full_like(data: Any, fill_value: Any, dtype: Any = None, **parameters: Unpack[Parameters]) -> Storage:
    """Allocate a storage filled with `fill_value` like `data`; result and errors are those of `empty`.

    Parameters
    ----------
    data : array or storage
        Source of the shape and of each parameter that is not given.
    fill_value : number
        The value of every element.
    dtype : str, type or dtype, optional
        Type of the elements; that of `data` if it is not given.
    defaults : str, optional
        A preset, whose layout, alignment and device apply.
    device : str or device, optional
        "gpu", "cuda:N", or "cpu" for host memory in spite of the preset.
    managed : {"gt4py", "cuda", None}, optional
        What synchronizes host and device, as in `empty`.
    dims : str or sequence of str, optional
        Labels of the dimensions.
    halo : sequence of int or pairs, optional
        For each dimension the width on both sides, or `(lower, upper)`.
    layout : sequence of int, optional
        The rank of the stride of each dimension, 0 for the largest.
    aligned_index : sequence of int, optional
        An index; by default the lower halo.
    alignment_size : int, optional
        Alignment in bytes of the element at `aligned_index`.

    Example
    -------
    >>> from dlfield import storage
    >>> storage.full_like(storage.zeros((2,)), 3.0).to_numpy().tolist()
    [3.0, 3.0]
    """
    return _placed(
        lambda device, **labels: _native.full_like(data, fill_value, dtype, device=device, **labels), parameters, data
    )


def _placed(make: Callable[..., Tensor], parameters: Parameters, data: Any = None) -> Storage:
    """Allocate the buffer, or both buffers of a pair, each filled on its own device."""
    where, labels = buffer_devices(parameters, data), labels_of(parameters)
    if where.is_pair:
        return SoftwareManagedGPUStorage.whole(make("cpu", **labels), make(where.device, **labels), SyncState())
    return make(where.memory, **labels)
