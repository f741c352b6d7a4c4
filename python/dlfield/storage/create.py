"""Storages from data: `storage` copies the data, `as_storage` shares its buffers."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from dlfield import _native
from dlfield._native import ExchangeError, LayoutError, NoSuchBufferError, NotAnArrayError, Tensor
from dlfield.storage.allocate import empty
from dlfield.storage.kinds import Storage, memory_of
from dlfield.storage.managed import SoftwareManagedGPUStorage
from dlfield.storage.parameters import BufferDevices, Parameters, buffer_devices, is_on_device, labels_of
from dlfield.storage.state import SyncState
from dlfield.storage.validate import check_pair, check_shape, checked

__all__ = ["as_storage", "storage"]


def storage(
    data: Any = None,
    device_data: Any = None,
    *,
    copy: bool = True,
    sync_state: SyncState | None = None,
    shape: Any = None,
    dtype: Any = None,
    **parameters: Unpack[Parameters],
) -> Storage:
    """Allocate a storage with the values of `data`.

    A parameter that is not given is taken from the preset `defaults`, else from `data` or `device_data`, else it has
    the default of `empty`. Without data the storage is uninitialized.

    Parameters
    ----------
    data : array, optional
        Anything `np.asarray()` or `dlfield.from_dlpack` accepts.
    device_data : array, optional
        The values on a device. With `data`, the two are buffers with the same values.
    copy : bool, optional
        False calls `as_storage`.
    sync_state : SyncState, optional
        Which of `data` and `device_data` is up to date; default: both.
    shape : int or sequence of int, optional
        Elements per dimension; default: those of the data.
    dtype : str, type or dtype, optional
        The type to which the values are cast; default: that of the data, and float64 without data.
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

    Returns
    -------
    Storage
        As for `empty`.

    Raises
    ------
    LayoutError
        Neither data nor `shape` is given, or they disagree, or as `empty`.
    NoSuchBufferError
        `sync_state` says that a missing buffer is up to date.
    ExchangeError
        `sync_state` is not that of the storage `data`.

    Example
    -------
    >>> import numpy as np
    >>> from dlfield import storage
    >>> field = storage.storage(np.arange(3.0), dims="K", defaults="gtx86")
    >>> field.dims, field.to_numpy().tolist()
    (('K',), [0.0, 1.0, 2.0])
    """
    if not copy:
        return as_storage(data, device_data, sync_state=sync_state, shape=shape, dtype=dtype, **parameters)
    if data is None and device_data is None:
        return _without_data(shape, dtype, sync_state, parameters)
    _check_type(sync_state)
    if isinstance(data, SoftwareManagedGPUStorage) and device_data is None:
        # The state must not change until the buffer that is up to date has been copied.
        with data.sync_state.lock:
            return _copied(data, None, sync_state, shape, dtype, parameters)
    return _copied(_array(data), _array(device_data), sync_state, shape, dtype, parameters)


def _copied(
    data: Any, device_data: Any, sync_state: SyncState | None, shape: Any, dtype: Any, parameters: Parameters
) -> Storage:
    where = buffer_devices(parameters, data, device_data)
    host, device, state = _sources(data, device_data, sync_state)
    labels = labels_of(parameters)
    like = host if host is not None else device
    sizes = _native._inspect(like).shape
    check_shape("the data", sizes, shape)
    if device is not None and _native._inspect(device).shape != sizes:
        raise LayoutError(f"device_data: its shape {_native._inspect(device).shape} must be that of data, {sizes}")
    both = where.is_pair and host is not None and device is not None and state == SyncState.SYNC_CLEAN
    on_host = host is not None and state != SyncState.SYNC_DEVICE_DIRTY
    # If both are up to date, copy from the buffer that is nearer to the destination.
    if on_host and device is not None and state == SyncState.SYNC_CLEAN and where.device is not None:
        on_host = where.is_pair
    source = host if on_host else device

    def made(side: str, values: Any) -> Tensor:
        tensor = _native.empty_like(source, dtype, device=side, **labels)
        if values is not None:
            given = labels["dims"] is not None or labels["halo"] is not None
            tensor[...] = _labelled(values, tensor, labels["dims"]) if given else values
        return tensor

    if not where.is_pair:
        return made(where.memory, source)
    assert where.device is not None
    first = made("cpu", host if on_host else None)
    second = made(where.device, device if both or not on_host else None)
    left = SyncState.SYNC_HOST_DIRTY if on_host else SyncState.SYNC_DEVICE_DIRTY
    return SoftwareManagedGPUStorage.whole(first, second, SyncState(SyncState.SYNC_CLEAN if both else left))


def as_storage(
    data: Any = None,
    device_data: Any = None,
    *,
    sync_state: SyncState | None = None,
    shape: Any = None,
    dtype: Any = None,
    **parameters: Unpack[Parameters],
) -> Storage:
    """Make a storage on the given buffers without copying them; without buffers, as `empty`.

    If a host/device pair is requested and one buffer is given, the other is allocated. The parameters must match the
    buffers.

    Parameters
    ----------
    data, device_data : array, optional
        The buffers: arrays that `dlfield.from_dlpack` accepts, or storages.
    sync_state : SyncState, optional
        Which buffer is up to date; default: both, or the only one given. For buffers of a storage it must be that
        storage's.
    shape : int or sequence of int, optional
        Elements per dimension; default: those of the buffers.
    dtype : str, type or dtype, optional
        Type of the elements; default: that of the buffers.
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

    Raises
    ------
    LayoutError, DimsError, DTypeError
        The buffers do not match the parameters, or each other.
    NoSuchBufferError
        A buffer is missing.
    ExchangeError
        `sync_state` belongs to other buffers.

    Example
    -------
    >>> import numpy as np
    >>> from dlfield import storage
    >>> array = np.zeros((4, 3))
    >>> field = storage.as_storage(array, halo=(1, 0))
    >>> field[1, 2] = 5.0
    >>> float(array[1, 2])
    5.0
    """
    if data is None and device_data is None:
        return _without_data(shape, dtype, sync_state, parameters)
    _check_type(sync_state)
    where = buffer_devices(parameters, data, device_data)
    if isinstance(device_data, SoftwareManagedGPUStorage) or (
        isinstance(data, SoftwareManagedGPUStorage) and device_data is not None
    ):
        raise ExchangeError("data: found a host/device pair, which has both buffers; pass it alone, as data")
    pair: tuple[Any, Any] = (data, device_data)
    if isinstance(data, SoftwareManagedGPUStorage):
        sync_state = _state_of(data, sync_state)
        pair = (data._host, data._device) if where.is_pair else _one_side(data, where)
    elif device_data is None and is_on_device(data):
        pair = (None, data)
    host = None if pair[0] is None else _wrapped(pair[0], False, parameters)
    device = None if pair[1] is None else _wrapped(pair[1], True, parameters)
    if host is not None:
        host = checked("data", host, shape, dtype, parameters)
    if device is not None:
        device = checked("device_data", device, shape, dtype, parameters)
    _check_sides(host, device, where.device if parameters.get("device") is not None else None)
    if host is not None and device is not None:
        check_pair(host, device)
    if where.is_pair:
        assert where.device is not None
        return _paired(host, device, where.device, sync_state, parameters)
    if host is not None and device is not None and device_data is not None:
        raise LayoutError(f"managed: found {where.managed!r} with two buffers, must be 'gt4py'; or pass one buffer")
    if sync_state is not None and not isinstance(data, SoftwareManagedGPUStorage):
        _check_state(host, device, sync_state.state)
    found = device if host is None else host
    target = "host" if where.device is None else "device" if where.managed is None else "managed"
    if found is None or memory_of(found) != target:
        raise NoSuchBufferError(f"data: found no buffer on {where.memory}; storage() allocates one and copies")
    if isinstance(data, SoftwareManagedGPUStorage):
        # Later writes to the buffer are not detected.
        data._buffer(None if where.device is None else str(data.device), "rw")
    return found


def _without_data(shape: Any, dtype: Any, sync_state: SyncState | None, parameters: Parameters) -> Storage:
    if shape is None:
        raise LayoutError("shape: expected one, as no data is given, got None")
    if sync_state is not None:
        raise ExchangeError("sync_state: found one without buffers; pass data or device_data")
    return empty(shape, "float64" if dtype is None else dtype, **parameters)


def _array(data: Any) -> Any:
    """Return arrays and None unchanged, and other values, such as a list, as a NumPy array."""
    if data is None:
        return data
    try:
        _native._inspect(data)
    except NotAnArrayError:
        return np.asarray(data)
    return data


def _sources(data: Any, device_data: Any, sync_state: SyncState | None) -> tuple[Any, Any, int]:
    """Return the sources of the values on host and device, and which of them is up to date."""
    if isinstance(data, SoftwareManagedGPUStorage) and device_data is None:
        sync_state = _state_of(data, sync_state)
        return data._host, data._device, sync_state.state
    state = SyncState.SYNC_CLEAN if sync_state is None else sync_state.state
    if device_data is None and is_on_device(data):
        data, device_data = None, data
    _check_state(data, device_data, state)
    return data, device_data, state


def _check_state(host: Any, device: Any, state: int) -> None:
    """Raise an error if the buffer that `state` says is up to date is missing."""
    for buffer, says, name in (
        (host, SyncState.SYNC_HOST_DIRTY, "data"),
        (device, SyncState.SYNC_DEVICE_DIRTY, "device_data"),
    ):
        if buffer is None and state == says:
            raise NoSuchBufferError(f"{name}: found None, but sync_state marks its buffer as up to date")


def _state_of(data: SoftwareManagedGPUStorage, sync_state: SyncState | None) -> SyncState:
    if sync_state not in (None, data.sync_state):
        raise ExchangeError("sync_state: not the sync_state of the storage passed as data; leave it out")
    return data.sync_state


def _one_side(data: SoftwareManagedGPUStorage, where: BufferDevices) -> tuple[Any, Any]:
    """Return only the host buffer, or only the device buffer, as `where` says."""
    return (data._host, None) if where.device is None else (None, data._device)


def _wrapped(buffer: Any, on_device: bool, parameters: Parameters) -> Tensor:
    """Return a tensor on a buffer, with the given dims and halo."""
    name = "device_data" if on_device else "data"
    try:
        found = _native._inspect(buffer).device
    except NotAnArrayError:
        raise NotAnArrayError(f"{name}: {type(buffer)} has no array protocol; storage() copies values") from None
    side = found if on_device or isinstance(buffer, Tensor) else None
    if on_device and side is not None and side.type in ("cpu", "cuda_host"):
        raise NoSuchBufferError(f"device_data: found a buffer on {side}, must be on a device; pass it as data")
    tensor = _native.from_dlpack(buffer, device=side, copy=False, dims=parameters.get("dims"))
    halo = parameters.get("halo")
    if halo is not None:
        tensor.halo = halo
    return tensor


def _paired(
    host: Tensor | None, device: Tensor | None, gpu: str, sync_state: SyncState | None, parameters: Parameters
) -> Storage:
    one_sided = SyncState.SYNC_HOST_DIRTY if device is None else SyncState.SYNC_DEVICE_DIRTY
    alone = host is None or device is None
    if sync_state is None:
        sync_state = SyncState(one_sided if alone else SyncState.SYNC_CLEAN)
    elif alone and sync_state.state != one_sided:
        missing = "data" if host is None else "device_data"
        raise NoSuchBufferError(f"{missing}: found None, but {sync_state!r} marks its buffer as up to date")
    for name, buffer in (("data", host), ("device_data", device)):
        if buffer is not None and buffer.readonly:
            raise ExchangeError(f"{name}: found read-only memory, must be writable: the other buffer is copied to it")
    if host is None:
        assert device is not None
        host = _native.empty_like(device, device="cpu", **labels_of(parameters))
    if device is None:
        device = _native.empty_like(host, device=gpu, **labels_of(parameters))
    return SoftwareManagedGPUStorage.whole(host, device, sync_state)


def _labelled(values: Any, like: Tensor, dims: Any) -> Any:
    """Return values with the origin of `like`, a tensor of their shape, and given dims in place of their own."""
    found = _native._source(values, like.device)
    return values if found is None else _native.from_dlpack(found, dims=dims, origin=like.origin)


def _check_type(sync_state: Any) -> None:
    if sync_state is not None and not isinstance(sync_state, SyncState):
        raise ExchangeError(f"sync_state: found {sync_state!r}, must be a SyncState, as SyncState({sync_state!r})")


def _check_sides(host: Tensor | None, device: Tensor | None, target: str | None) -> None:
    """Raise an error if a buffer is not on its side, or is on another device than `target`."""
    if host is not None and memory_of(host) == "device":
        raise NoSuchBufferError(f"data: found a buffer on {host.device}, must be on the host if device_data is given")
    if target is not None and device is not None and not _native._can_access(target, device.device):
        raise NoSuchBufferError(f"device: found {target!r}, but the buffer is on {device.device}; storage() copies")
