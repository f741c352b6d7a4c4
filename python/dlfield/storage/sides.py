"""Host/device pairs: two buffers with the same values, one of which may be out of date, and their synchronization."""

from __future__ import annotations

from typing import Any, Literal, Self

from dlfield import _native
from dlfield._native import Device, Tensor
from dlfield.storage.state import SyncState

__all__ = ["Sides"]


class Sides:
    """A host buffer, a device buffer, and the state that all views of the pair share."""

    __slots__ = ("__weakref__", "_device", "_host", "_state")

    def __init__(self, host: Tensor, device: Tensor, sync_state: SyncState) -> None:
        self._host = host
        self._device = device
        self._state = sync_state

    @classmethod
    def whole(cls, host: Tensor, device: Tensor, sync_state: SyncState) -> Self:
        """Return the pair of two buffers, which `sync_state` adopts or already has."""
        sync_state.adopt(host, device)
        return cls(host, device, sync_state)

    @property
    def sync_state(self) -> SyncState:
        """Which buffer was modified last; the same object in all views."""
        return self._state

    @property
    def device(self) -> Device:
        """The device of the device buffer, as `cuda:0`."""
        return self._device.device

    def host_to_device(self, *, force: bool = False) -> None:
        """Copy the whole host buffer to the device if it was modified, or with `force`.

        If the device buffer was modified, nothing is done without `force`.
        """
        self._state.host_to_device(force=force)

    def device_to_host(self, *, force: bool = False) -> None:
        """Copy the whole device buffer to the host if it was modified, or with `force`.

        If the host buffer was modified, nothing is done without `force`.
        """
        self._state.device_to_host(force=force)

    def set_host_modified(self) -> None:
        """Mark the host buffer as modified: it is copied before the device buffer is used."""
        self._state.state = SyncState.SYNC_HOST_DIRTY

    def set_device_modified(self) -> None:
        """Mark the device buffer as modified: it is copied before the host buffer is used."""
        self._state.state = SyncState.SYNC_DEVICE_DIRTY

    def set_synchronized(self) -> None:
        """Mark the buffers as equal."""
        self._state.state = SyncState.SYNC_CLEAN

    def synchronize(self) -> None:
        """Copy the buffer that was modified to the other one."""
        with self._state.lock:
            self.host_to_device()
            self.device_to_host()

    def _buffer(self, device: str | None, access: Literal["", "r", "rw"]) -> Tensor:
        """Return the buffer that `device` can use, None for the host; dlfield's import functions call this.

        Access "r" synchronizes the buffer; "rw" also marks it as modified; "" does neither. For a device that can use
        neither buffer, return one that is up to date, to copy from.
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
        """Return True if `device` can use the device buffer, False if the host buffer, None if neither."""
        if device in (None, "cpu"):
            return False
        # A GPU can access a pinned host buffer too, but the device buffer is nearer.
        sides = ((self._device, True), (self._host, False))
        return next((on_device for side, on_device in sides if _native._can_access(device, side.device)), None)

    def _up_to_date(self) -> tuple[Tensor, bool]:
        """Return a buffer that is up to date, and whether it is the device buffer, which is chosen if both are."""
        with self._state.lock:
            on_host = self._state.state == SyncState.SYNC_HOST_DIRTY
            return (self._host, False) if on_host else (self._device, True)

    def _covers(self, key: Any) -> bool:
        """Return whether a write to `key` needs no synchronization first: all is up to date, or all is overwritten."""
        if self._state.state == SyncState.SYNC_CLEAN:
            return True
        found = self._host[key]
        return isinstance(found, Tensor) and self._state.is_whole(found)
