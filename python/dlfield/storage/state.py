"""The synchronization state of a host/device pair, shared by all views of the pair."""

import operator
import threading
from typing import Any, ClassVar

from dlfield._native import Error, ExchangeError, Tensor

__all__ = ["SyncState"]


class SyncState:
    """Which buffer of a `SoftwareManagedGPUStorage` was modified last.

    All views of a host/device pair share one `SyncState`. It keeps the whole pair alive, so that a view synchronizes
    the whole pair too.

    Parameters
    ----------
    state
        `SYNC_CLEAN`, `SYNC_HOST_DIRTY` or `SYNC_DEVICE_DIRTY`.

    Raises
    ------
    ExchangeError
        `state` has another value.

    Example
    -------
    >>> from dlfield.storage import SyncState
    >>> sync_state = SyncState(SyncState.SYNC_HOST_DIRTY)
    >>> sync_state
    SyncState(SYNC_HOST_DIRTY)
    >>> sync_state.state = SyncState.SYNC_CLEAN
    """

    __module__ = "dlfield.storage"

    SYNC_CLEAN: ClassVar[int] = 0
    SYNC_HOST_DIRTY: ClassVar[int] = 1
    SYNC_DEVICE_DIRTY: ClassVar[int] = 2

    __slots__ = ("_pair", "_state", "lock")

    def __init__(self, state: int = SYNC_CLEAN) -> None:
        # Held while copying between the buffers or writing to one, until the state is updated. Waiting for it releases
        # the GIL, as copies do.
        self.lock: threading.RLock = threading.RLock()
        self._pair: tuple[Tensor, Tensor] | None = None
        self.state = state

    @property
    def state(self) -> int:
        """Return `SYNC_CLEAN`, `SYNC_HOST_DIRTY` or `SYNC_DEVICE_DIRTY`."""
        return self._state

    @state.setter
    def state(self, state: int) -> None:
        try:
            number = operator.index(state)
        except TypeError:
            number = -1
        if number not in (self.SYNC_CLEAN, self.SYNC_HOST_DIRTY, self.SYNC_DEVICE_DIRTY):
            expected = "SyncState.SYNC_CLEAN, SyncState.SYNC_HOST_DIRTY or SyncState.SYNC_DEVICE_DIRTY"
            raise ExchangeError(f"state: expected {expected}, got {state!r}")
        with self.lock:
            self._state = number

    def __repr__(self) -> str:
        return f"SyncState({('SYNC_CLEAN', 'SYNC_HOST_DIRTY', 'SYNC_DEVICE_DIRTY')[self._state]})"

    def adopt(self, host: Tensor, device: Tensor) -> None:
        """Adopt a pair, or check that it is part of the pair adopted before.

        Raises
        ------
        ExchangeError
            The state belongs to another pair.
        """
        with self.lock:
            if self._pair is None:
                self._pair = host, device
                return
            whole = self._pair
        places = [_place(part, base) for part, base in zip((host, device), whole, strict=True)]
        if None in places or places[0] != places[1]:
            raise ExchangeError(
                "sync_state: it belongs to other buffers; pass the sync_state of the storage that data and "
                "device_data are buffers of, or a new SyncState"
            )

    def pair(self) -> tuple[Tensor, Tensor]:
        """Return the whole host buffer and the whole device buffer."""
        if self._pair is None:
            raise Error("sync_state: it has no buffers yet")
        return self._pair

    def is_whole(self, part: Tensor) -> bool:
        """Return whether a view of one of the buffers covers all of it."""
        return part.size == self.pair()[0].size

    def host_to_device(self, *, force: bool) -> None:
        """Copy to the device if the host buffer was modified, or with `force`."""
        with self.lock:
            if force or self._state == self.SYNC_HOST_DIRTY:
                host, device = self.pair()
                device[...] = host
                self._state = self.SYNC_CLEAN

    def device_to_host(self, *, force: bool) -> None:
        """Copy to the host if the device buffer was modified, or with `force`."""
        with self.lock:
            if force or self._state == self.SYNC_DEVICE_DIRTY:
                host, device = self.pair()
                host[...] = device
                self._state = self.SYNC_CLEAN


def _place(part: Tensor, whole: Tensor) -> tuple[Any, ...] | None:
    """Return shape, first index, steps and directions of `part` in indices of `whole`; None if it is elsewhere."""
    if part.dtype != whole.dtype:
        return None
    if part.size == 0:
        return (part.shape,)
    lowest = whole.ptr + sum((size - 1) * min(way, 0) for size, way in zip(whole.shape, whole.strides, strict=True))
    ways = [(size, stride) for size, stride in zip(part.shape, part.strides, strict=True) if size > 1]
    low = sum((size - 1) * min(stride, 0) for size, stride in ways)
    high = sum((size - 1) * max(stride, 0) for size, stride in ways)
    corners = [_counted(part.ptr + reach - lowest, whole) for reach in (0, low, high)]
    steps = [_counted(abs(stride), whole) for _, stride in ways]
    if corners[0] is None or None in corners or None in steps:
        return None
    # Along a negative stride of `whole`, indices count down from the last one.
    backwards = [stride < 0 for stride in whole.strides]
    first = [size - 1 - at if back else at for at, size, back in zip(corners[0], whole.shape, backwards, strict=True)]
    turned = [
        (stride < 0) != any(back and count for back, count in zip(backwards, step or (), strict=True))
        for step, (_, stride) in zip(steps, ways, strict=True)
    ]
    return part.shape, first, steps, turned


def _counted(distance: int, whole: Tensor) -> tuple[int, ...] | None:
    """Return a distance in bytes as elements along each dimension; None if it leads to no element of the memory."""
    counts = [0] * whole.ndim
    for axis in sorted(range(whole.ndim), key=lambda axis: -abs(whole.strides[axis])):
        if whole.shape[axis] > 1:
            counts[axis], distance = divmod(distance, abs(whole.strides[axis]))
    inside = all(0 <= count < max(size, 1) for count, size in zip(counts, whole.shape, strict=True))
    return tuple(counts) if inside and distance == 0 else None
