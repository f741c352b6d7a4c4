"""Two buffers with the same values, one of which may be out of date: what brings them together again."""

from __future__ import annotations

from typing import Any, Literal, Self

from dlfield._native import Device, Tensor
from dlfield.storage.state import SyncState

__all__ = ["Sides"]


class Sides:
    """A buffer of the host and one of a device, and the state that all views of them share."""

    __slots__ = ("__weakref__", "_device", "_host", "_state")

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
    def sync_state(self) -> SyncState:
        """Which buffer is modified; the same object in all views."""
        return self._state

    @property
    def device(self) -> Device:
        """The device that has a buffer, as `cuda:0`."""
        return self._device.device

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

    def _covers(self, key: Any) -> bool:
        """Return whether an index selects all of both buffers, so that nothing of them is left to bring up to date."""
        if self._state.state == SyncState.SYNC_CLEAN:
            return True
        found = self._host[key]
        return isinstance(found, Tensor) and self._state.is_whole(found)
