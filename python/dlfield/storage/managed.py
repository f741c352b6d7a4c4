"""The public class of host/device pairs, `SoftwareManagedGPUStorage`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from dlfield import _native
from dlfield._native import Error, Tensor, empty_like
from dlfield.storage.arithmetic import PairArithmetic
from dlfield.storage.exchange import ExchangedSides
from dlfield.storage.state import SyncState

__all__ = ["SoftwareManagedGPUStorage"]


class SoftwareManagedGPUStorage(ExchangedSides, PairArithmetic):
    """A storage with a host buffer and a device buffer.

    Each buffer is synchronized when it is used after the other was modified. Writes through an exported array are not
    detected: the export of a writable array counts as a modification, and after later writes through it callers must
    call `set_host_modified` or `set_device_modified`.

    Several threads may use it: a lock serializes changes of the buffers. Accesses through exported arrays must be
    synchronized by the threads.

    Example
    -------
    >>> import dlfield as dl
    >>> from dlfield import storage
    >>> if dl.cuda.is_available():
    ...     field = storage.zeros((4, 3), device="gpu")
    ...     field[1, 1] = 3.0
    ...     assert field.sync_state.state == storage.SyncState.SYNC_HOST_DIRTY
    """

    __module__ = "dlfield.storage"

    __slots__ = ()

    # Higher than that of tensors, of which it has two.
    __array_priority__: float = 11.0

    @property
    def shape(self) -> tuple[int, ...]:
        """Size of each dimension."""
        return self._host.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Byte strides of the host buffer."""
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
        """Size of all elements of one buffer in bytes, without padding."""
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
        """Alignment in bytes of the address of the element at `aligned_index`."""
        return self._host.alignment_size

    @property
    def aligned_index(self) -> tuple[int, ...]:
        """Index of the element whose address is aligned."""
        return self._host.aligned_index

    @property
    def halo(self) -> tuple[tuple[int, int], ...]:
        """Widths of the halo, lower and upper, for each dimension.

        It can be set, to pairs or to one number for both, as for a `dlfield.Tensor`.
        """
        return self._host.halo

    @halo.setter
    def halo(self, halo: Any) -> None:
        self._host.halo = halo
        self._device.halo = self._host.halo

    @property
    def domain_view(self) -> Self:
        """View without the halo."""
        return type(self)(self._host.domain_view, self._device.domain_view, self._state)

    @property
    def __gt_dims__(self) -> tuple[str, ...]:
        return self.dims

    def __repr__(self) -> str:
        name = type(self).__name__
        with self._state.lock:
            side, state = self._shown_side(), repr(self._state)
            shown = repr(side).removeprefix("Tensor").removesuffix(")")
        shown = shown.replace(f"device='{side.device}'", f"device='{self.device}'")
        return name + shown.replace("\n", "\n" + " " * (len(name) - len("Tensor"))) + f", sync_state={state})"

    def __str__(self) -> str:
        with self._state.lock:
            return repr(self) if self.ndim else str(self._shown_side())

    def _shown_side(self) -> Tensor:
        """Return the buffer whose values are shown: the host buffer if it is up to date. Nothing is copied for that."""
        return self._device if self._state.state == SyncState.SYNC_DEVICE_DIRTY else self._host

    def __len__(self) -> int:
        return len(self._host)

    def __getitem__(self, key: Any, /) -> Any:
        # Objects of other libraries are imported before the lock is taken: their code may take locks of its own.
        key, kind = _native._key(self._host, key)
        with self._state.lock:
            if kind == "basic":
                found = self._host[key]
                if isinstance(found, Tensor):
                    return type(self)(found, self._device[key], self._state)
            self.device_to_host()
            if kind == "newaxis":
                # Later writes to the view are not detected.
                self.set_host_modified()
            return self._host[key]

    def __setitem__(self, key: Any, value: Any, /) -> None:
        value, on_device = self._source(value)
        side, mark = (self._device, self.set_device_modified) if on_device else (self._host, self.set_host_modified)
        key, kind = _native._key(side, key)
        with self._state.lock:
            if kind != "basic" or not self._covers(key):
                (self.host_to_device if on_device else self.device_to_host)()
            outdated = SyncState.SYNC_HOST_DIRTY if on_device else SyncState.SYNC_DEVICE_DIRTY
            try:
                side[key] = value
            except (Error, IndexError, ValueError):
                # Raised before anything was written.
                raise
            except BaseException:
                if self._state.state != outdated:
                    mark()
                raise
            mark()

    def copy(self) -> Self:
        """Return a storage with the same parameters, a copy of the values and a state of its own."""
        with self._state.lock:
            state = self._state.state
            # A buffer that is out of date is not copied.
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
        """Return a view with permuted dimensions; `axes` are numbers or labels, default: reversed."""
        return type(self)(self._host.transpose(*axes), self._device.transpose(*axes), self._state)

    def _source(self, value: Any) -> tuple[Any, bool]:
        """Return the array to assign for a value, and whether it is on a device."""
        if isinstance(value, SoftwareManagedGPUStorage):
            return value._up_to_date()
        found = _native._source(value, self.device)
        if found is None:
            return value, False
        return found, found.device.type in ("cuda", "cuda_managed")


def _unpickled(values: Tensor, device: str) -> SoftwareManagedGPUStorage:
    """Rebuild a pair from its pickled host buffer."""
    state = SyncState(SyncState.SYNC_HOST_DIRTY)
    return SoftwareManagedGPUStorage.whole(values, empty_like(values, device=device), state)
