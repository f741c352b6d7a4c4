"""A storage with a buffer on each side, which copies what the other side is to see."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dlfield._native import Tensor, empty_like
from dlfield.storage.base import Storage, with_halo
from dlfield.storage.state import SyncState
from dlfield.storage.values import is_on_gpu, plain_key, readable

__all__ = ["SoftwareManagedGPUStorage"]


class SoftwareManagedGPUStorage(Storage):
    """A storage with a buffer of the host and one of a device.

    Each side is brought up to date when it is used and the other was modified. What writes through an array that was
    handed out is not seen: that it was handed out for writing counts as a modification, and whoever keeps it calls
    `set_host_modified` or `set_device_modified` after later writes.

    `np.asarray`, stencil calls and assignments to storages bring the side they use up to date. `dlfield.as_numpy`,
    `from_dlpack`, `from_array` and `tensor[...] = storage` read it as it is; call `synchronize` before.

    Example
    -------
    >>> import dlfield as dl
    >>> from dlfield import storage
    >>> if dl.cuda.is_available():
    ...     field = storage.zeros((4, 3), device="gpu")
    ...     field[1, 1] = 3.0
    ...     assert field.sync_state.state == storage.SyncState.SYNC_HOST_DIRTY
    """

    __slots__ = ("_device", "_state")
    _memory = frozenset()

    def __init__(self, host: Tensor, device: Tensor, sync_state: SyncState) -> None:
        super().__init__(host)
        self._device = device
        self._state = sync_state

    @classmethod
    def whole(cls, host: Tensor, device: Tensor, sync_state: SyncState) -> Self:
        """Return the storage on a pair of buffers, which `sync_state` takes over or has already."""
        sync_state.adopt(host, device)
        return cls(host, device, sync_state)

    @property
    def sync_state(self) -> SyncState:
        """Which buffer is modified; the same object in all views."""
        return self._state

    @property
    def device(self) -> str:
        """Name of the device, as `cuda:0`."""
        return str(self._device.device)

    @property
    def data(self) -> memoryview:
        """Memory of the host buffer, which counts as modified."""
        return self.to_numpy().data

    @property
    def device_data(self) -> Any:
        """`cupy.cuda.MemoryPointer` of the device buffer, which counts as modified."""
        return self.to_cupy().data

    @property
    def halo(self) -> tuple[tuple[int, int], ...]:
        """Widths of the halo, lower and upper, for each dimension; it can be set."""
        return self._main.halo

    @halo.setter
    def halo(self, halo: Any) -> None:
        self._main, self._device = with_halo(self._main, halo), with_halo(self._device, halo)

    @property
    def domain_view(self) -> Self:
        """View of what the halo leaves."""
        return type(self)(self._main.domain_view, self._device.domain_view, self._state)

    @property
    def __gt_data_interface__(self) -> dict[str | tuple[str, int] | None, dict[str, Any]]:
        host = self._main.__gt_data_interface__
        device = self._device.__gt_data_interface__
        for entry in host.values():
            entry.update(acquire=self.device_to_host, touch=self.set_host_modified)
        for entry in device.values():
            entry.update(acquire=self.host_to_device, touch=self.set_device_modified)
        return host | device

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.handed_out(None).__array_interface__

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.handed_out(self.device).__cuda_array_interface__

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Any:
        self.device_to_host()
        array = self._main.__array__(dtype, copy)
        if np.may_share_memory(array, self._main.to_numpy()):
            self.handed_out(None)
        return array

    def __repr__(self) -> str:
        shown = super().__repr__()[:-1].replace("device='cpu'", f"device={self.device!r}")
        return f"{shown}, sync_state={self._state!r})"

    def __getitem__(self, key: Any, /) -> Any:
        key = plain_key(key)
        found = self._main[key]
        if isinstance(found, Tensor):
            return type(self)(found, self._device[key], self._state)
        if self._state.state == SyncState.SYNC_DEVICE_DIRTY:
            self.device_to_host()
            found = self._main[key]
        return found

    def __setitem__(self, key: Any, value: Any, /) -> None:
        key = plain_key(key)
        if is_on_gpu(value):
            with readable(value, self.device) as source:
                if not self._covers(key):
                    self.host_to_device()
                self._device[key] = source
            self.set_device_modified()
        else:
            with readable(value, None) as source:
                if not self._covers(key):
                    self.device_to_host()
                self._main[key] = source
            self.set_host_modified()

    def copy(self) -> Self:
        """Return a storage with the same parameters, a copy of the values and a state of its own."""
        state = self._state.state
        # What is out of date is not copied.
        host = empty_like(self._main) if state == SyncState.SYNC_DEVICE_DIRTY else self._main.copy()
        device = empty_like(self._device) if state == SyncState.SYNC_HOST_DIRTY else self._device.copy()
        return self.whole(host, device, SyncState(state))

    def transpose(self, *axes: Any) -> Self:
        """Return a view with permuted dimensions; `axes` are numbers or labels, default is the reverse."""
        return type(self)(self._main.transpose(*axes), self._device.transpose(*axes), self._state)

    def to_numpy(self) -> npt.NDArray[Any]:
        """Return the NumPy array on the host buffer, which is brought up to date and counts as modified."""
        return self.handed_out(None).to_numpy()

    def to_cupy(self) -> Any:
        """Return the CuPy array on the device buffer, which is brought up to date and counts as modified."""
        array = self._device.to_cupy()
        self.handed_out(self.device)
        return array

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
        self.host_to_device()
        self.device_to_host()

    def is_on_gpu(self) -> bool:
        """Return whether the device buffer is up to date."""
        return self._state.state != SyncState.SYNC_HOST_DIRTY

    def read_side(self, device: str | None) -> Tensor:
        """Return the buffer of the host (None) or of the device, brought up to date."""
        if device is None:
            self.device_to_host()
            return self._main
        self.host_to_device()
        return self._device

    def __reduce_ex__(self, protocol: Any, /) -> Any:
        raise TypeError("a SoftwareManagedGPUStorage cannot be pickled; pickle the array of one side, as to_numpy()")

    def _covers(self, key: Any) -> bool:
        """Return whether an index selects all of both buffers, so that nothing of them is left to bring up to date."""
        if self._state.state == SyncState.SYNC_CLEAN:
            return True
        found = self._main[key]
        return isinstance(found, Tensor) and self._state.is_whole(found)

    def handed_out(self, device: str | None) -> Tensor:
        """Return the buffer of the host (None) or of the device, up to date, for others to write to."""
        tensor = self.read_side(device)
        if not tensor.readonly:
            (self.set_host_modified if device is None else self.set_device_modified)()
        return tensor
