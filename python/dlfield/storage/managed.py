"""A storage with a buffer on each side, which copies what the other side is to see."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from typing_extensions import CapsuleType

from dlfield import _native
from dlfield._native import Device, Error, Tensor, empty_like
from dlfield.storage.arithmetic import PairArithmetic
from dlfield.storage.state import SyncState

__all__ = ["SoftwareManagedGPUStorage"]

# DLPack's name for the host.
_CPU = (1, 0)


class SoftwareManagedGPUStorage(PairArithmetic):
    """A storage with a buffer of the host and one of a device.

    Each side is brought up to date when it is used and the other was modified. What writes through an array that was
    handed out is not seen: that it was handed out for writing counts as a modification, and whoever keeps it calls
    `set_host_modified` or `set_device_modified` after later writes.

    Several threads may use it: one at a time changes what the sides hold. What they do with arrays that were handed out
    is theirs to order.

    Example
    -------
    >>> import dlfield as dl
    >>> from dlfield import storage
    >>> if dl.cuda.is_available():
    ...     field = storage.zeros((4, 3), device="gpu")
    ...     field[1, 1] = 3.0
    ...     assert field.sync_state.state == storage.SyncState.SYNC_HOST_DIRTY
    """

    __slots__ = ("__weakref__", "_device", "_host", "_state")

    # Above tensors, of which it has two.
    __array_priority__ = 11.0

    def __init__(self, host: Tensor, device: Tensor, sync_state: SyncState) -> None:
        self._host = host
        self._device = device
        self._state = sync_state

    @classmethod
    def whole(cls, host: Tensor, device: Tensor, sync_state: SyncState) -> Self:
        """Return the storage on a pair of buffers, which `sync_state` takes over or has already."""
        sync_state.adopt(host, device)
        return cls(host, device, sync_state)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return self._host.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element of the host buffer to the next, along each dimension."""
        return self._host.strides

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self._host.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._host.size

    @property
    def nbytes(self) -> int:
        """Bytes of all elements of one buffer, without padding."""
        return self._host.nbytes

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self._host.dtype

    @property
    def dims(self) -> tuple[str, ...]:
        """Labels of the dimensions."""
        return self._host.dims

    @property
    def layout(self) -> tuple[int, ...]:
        """Rank of each dimension's stride, 0 for the largest."""
        return self._host.layout

    @property
    def alignment_size(self) -> int:
        """Bytes that the address of the element at `aligned_index` is a multiple of."""
        return self._host.alignment_size

    @property
    def aligned_index(self) -> tuple[int, ...]:
        """Index of the element whose address is aligned."""
        return self._host.aligned_index

    @property
    def halo(self) -> tuple[tuple[int, int], ...]:
        """Widths of the halo, lower and upper, for each dimension.

        It can be set, to pairs or to one number for both, as that of a `dlfield.Tensor`.
        """
        return self._host.halo

    @halo.setter
    def halo(self, halo: Any) -> None:
        self._host.halo = halo
        self._device.halo = self._host.halo

    @property
    def sync_state(self) -> SyncState:
        """Which buffer is modified; the same object in all views."""
        return self._state

    @property
    def device(self) -> Device:
        """The device that has a buffer, as `cuda:0`."""
        return self._device.device

    @property
    def data(self) -> memoryview:
        """Memory of the host buffer, which is brought up to date and counts as modified."""
        with self._state.lock:
            self.device_to_host()
            data = memoryview(self._host)
            self.set_host_modified()
        return data

    @property
    def device_data(self) -> Any:
        """`cupy.cuda.MemoryPointer` of the device buffer, which is brought up to date and counts as modified."""
        return self.to_cupy().data

    @property
    def domain_view(self) -> Self:
        """View of what the halo leaves."""
        return type(self)(self._host.domain_view, self._device.domain_view, self._state)

    @property
    def __gt_data_interface__(self) -> dict[str | tuple[str, int] | None, dict[str, Any]]:
        host = self._host.__gt_data_interface__
        device = self._device.__gt_data_interface__
        for entry in host.values():
            entry.update(acquire=self.device_to_host, touch=self.set_host_modified)
        for entry in device.values():
            entry.update(acquire=self.host_to_device, touch=self.set_device_modified)
        return host | device

    @property
    def __gt_dims__(self) -> tuple[str, ...]:
        return self.dims

    @property
    def __array_interface__(self) -> dict[str, Any]:
        with self._state.lock:
            self.device_to_host()
            interface = self._host.__array_interface__
            self.set_host_modified()
        return interface

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        with self._state.lock:
            self.host_to_device()
            interface = self._device.__cuda_array_interface__
            self.set_device_modified()
        return interface

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Any:
        with self._state.lock:
            self.device_to_host()
            array = self._host.__array__(dtype, copy)
            if np.may_share_memory(array, self._host.to_numpy()):
                self.set_host_modified()
        return array

    def __repr__(self) -> str:
        shown = repr(self._host).removeprefix("Tensor")[:-1].replace("device='cpu'", f"device='{self.device}'")
        return f"{type(self).__name__}{shown}, sync_state={self._state!r})"

    def __len__(self) -> int:
        return len(self._host)

    def __getitem__(self, key: Any, /) -> Any:
        key = _plain_key(key)
        with self._state.lock:
            found = self._host[key]
            if isinstance(found, Tensor):
                return type(self)(found, self._device[key], self._state)
            if self._state.state == SyncState.SYNC_DEVICE_DIRTY:
                self.device_to_host()
                found = self._host[key]
        return found

    def __setitem__(self, key: Any, value: Any, /) -> None:
        # What belongs to others is asked before the lock is taken, as they may have locks of their own.
        key, (value, on_device) = _plain_key(key), self._source(value)
        side, mark = (self._device, self.set_device_modified) if on_device else (self._host, self.set_host_modified)
        with self._state.lock:
            if not self._covers(key):
                (self.host_to_device if on_device else self.device_to_host)()
            behind = SyncState.SYNC_HOST_DIRTY if on_device else SyncState.SYNC_DEVICE_DIRTY
            try:
                side[key] = value
            except (Error, IndexError, ValueError):
                # Found before anything was written.
                raise
            except BaseException:
                if self._state.state != behind:
                    mark()
                raise
            mark()

    def copy(self) -> Self:
        """Return a storage with the same parameters, a copy of the values and a state of its own."""
        with self._state.lock:
            state = self._state.state
            # What is out of date is not copied.
            host = empty_like(self._host) if state == SyncState.SYNC_DEVICE_DIRTY else self._host.copy()
            device = empty_like(self._device) if state == SyncState.SYNC_HOST_DIRTY else self._device.copy()
        return self.whole(host, device, SyncState(state))

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any] | None = None, /) -> Self:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        with self._state.lock:
            values = self._host
            if self._state.state == SyncState.SYNC_DEVICE_DIRTY:
                values = empty_like(self._host)
                values[...] = self._device
        return _unpickled, (values, str(self.device))

    def transpose(self, *axes: Any) -> Self:
        """Return a view with permuted dimensions; `axes` are numbers or labels, default is the reverse."""
        return type(self)(self._host.transpose(*axes), self._device.transpose(*axes), self._state)

    def to_numpy(self) -> npt.NDArray[Any]:
        """Return the NumPy array on the host buffer, which is brought up to date and counts as modified."""
        with self._state.lock:
            self.device_to_host()
            array = self._host.to_numpy()
            self.set_host_modified()
        return array

    def to_cupy(self) -> Any:
        """Return the CuPy array on the device buffer, which is brought up to date and counts as modified."""
        with self._state.lock:
            # CuPy's work comes after what was given to the device before.
            self.host_to_device()
            array = self._device.to_cupy()
            self.set_device_modified()
        return array

    def to_ndarray(self) -> Any:
        """Return the CuPy array on the device buffer, as `to_cupy`."""
        return self.to_cupy()

    def host_to_device(self, *, force: bool = False) -> None:
        """Copy all of the host buffer to the device if it was modified, or with `force`.

        Where the device was modified, nothing is done without `force`.
        """
        self._state.host_to_device(force=force)

    def device_to_host(self, *, force: bool = False) -> None:
        """Copy all of the device buffer to the host if it was modified, or with `force`.

        Where the host was modified, nothing is done without `force`.
        """
        self._state.device_to_host(force=force)

    def set_host_modified(self) -> None:
        """Mark the host buffer as modified: it is copied before the device's is used."""
        self._state.state = SyncState.SYNC_HOST_DIRTY

    def set_device_modified(self) -> None:
        """Mark the device buffer as modified: it is copied before the host's is used."""
        self._state.state = SyncState.SYNC_DEVICE_DIRTY

    def set_synchronized(self) -> None:
        """Mark the buffers as equal."""
        self._state.state = SyncState.SYNC_CLEAN

    def synchronize(self) -> None:
        """Copy the buffer that was modified to the other side."""
        with self._state.lock:
            self.host_to_device()
            self.device_to_host()

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        # Of what is not the host's buffer as it is, the device's says what it thinks.
        on_host = dl_device in (_CPU, self._host.__dlpack_device__())
        side = self._host if on_host else self._device
        # Managed memory goes by the name of any CUDA device.
        is_at_hand = dl_device in (None, _CPU, side.__dlpack_device__()) or side.device.type == "cuda_managed"
        is_copied = copy or not is_at_hand
        with self._state.lock:
            (self.device_to_host if on_host else self.host_to_device)()
            capsule = side.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
            if not is_copied:
                (self.set_host_modified if on_host else self.set_device_modified)()
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device.__dlpack_device__()

    def _side(self, device: str | None, access: Literal["", "r", "rw"]) -> Tensor:
        """Return the buffer that can be used from a device, None for the host's: what the readers of arrays ask for.

        To be read it is brought up to date; to be written, it counts as modified as well. For a device that can use
        neither, it is one that can be copied from, which is up to date.
        """
        with self._state.lock:
            on_device = self._is_of_device(device)
            if on_device is None:
                return self._up_to_date()[0]
            if access:
                (self.host_to_device if on_device else self.device_to_host)()
            if access == "rw":
                (self.set_device_modified if on_device else self.set_host_modified)()
            return self._device if on_device else self._host

    def _is_of_device(self, device: str | None) -> bool | None:
        """Return whether the device buffer is the one that can be used from a device; None if neither can."""
        if device in (None, "cpu", str(self._host.device)):
            return False
        own = self.device
        if device == str(own) or (own.type == "cuda_managed" and str(device).startswith("cuda:")):
            return True
        return None

    def _up_to_date(self) -> tuple[Tensor, bool]:
        """Return a buffer that is up to date, and whether it is the device's: that if both are."""
        with self._state.lock:
            on_host = self._state.state == SyncState.SYNC_HOST_DIRTY
            return (self._host, False) if on_host else (self._device, True)

    def _source(self, value: Any) -> tuple[Any, bool]:
        """Return what to assign for a value, and whether it is on a device."""
        if isinstance(value, SoftwareManagedGPUStorage):
            return value._up_to_date()
        found = _native._source(value, self.device)
        if found is None:
            return value, False
        return found, found.device.type in ("cuda", "cuda_managed")

    def _covers(self, key: Any) -> bool:
        """Return whether an index selects all of both buffers, so that nothing of them is left to bring up to date."""
        if self._state.state == SyncState.SYNC_CLEAN:
            return True
        found = self._host[key]
        return isinstance(found, Tensor) and self._state.is_whole(found)


def _unpickled(values: Tensor, device: str) -> SoftwareManagedGPUStorage:
    """Make the storage of which the host's buffer was pickled."""
    state = SyncState(SyncState.SYNC_HOST_DIRTY)
    return SoftwareManagedGPUStorage.whole(values, empty_like(values, device=device), state)


def _plain_key(key: Any) -> Any:
    """Return an index with the arrays in it as those of NumPy, wherever they are."""
    if isinstance(key, tuple):
        return tuple(_plain_key(part) for part in key)
    if isinstance(key, SoftwareManagedGPUStorage):
        return key.__array__(copy=True)
    if isinstance(key, (int, slice, list, np.ndarray, np.generic)):
        return key
    found = _native._source(key, "cpu")
    return key if found is None else found.to_device("cpu").to_numpy()
