"""The kinds of storages that have one buffer."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from dlfield._native import Tensor
from dlfield.storage.base import Storage, memory_of

__all__ = ["CPUStorage", "CUDAManagedGPUStorage", "GPUStorage", "kind_of"]


class _Exchanged(Storage):
    """What one buffer of any device has: DLPack."""

    __slots__ = ()

    def __dlpack__(self, **keywords: Any) -> Any:
        return self._main.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._main.__dlpack_device__()


class CPUStorage(_Exchanged):
    """A storage with a buffer of the host.

    Example
    -------
    >>> from dlfield import storage
    >>> type(storage.zeros((4, 3))).__name__
    'CPUStorage'
    """

    __slots__ = ()
    _memory = frozenset({"host"})

    @property
    def data(self) -> memoryview:
        """Memory of the host buffer."""
        return self.to_numpy().data

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._main.__array_interface__


class GPUStorage(_Exchanged):
    """A storage with a buffer of a device."""

    __slots__ = ()
    _memory = frozenset({"device"})

    @property
    def device(self) -> str:
        """Name of the device, as `cuda:0`."""
        return str(self._main.device)

    @property
    def device_data(self) -> Any:
        """`cupy.cuda.MemoryPointer` of the device buffer."""
        return self.to_cupy().data

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._main.__cuda_array_interface__

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Any:
        array = self.to_cupy()
        cast = array if dtype is None else array.astype(dtype, copy=False)
        return cast.copy() if copy and cast is array else cast


class CUDAManagedGPUStorage(_Exchanged):
    """A storage with one buffer of managed memory, which host and device use."""

    __slots__ = ()
    _memory = frozenset({"managed"})

    @property
    def data(self) -> memoryview:
        """Memory of the buffer."""
        return self.to_numpy().data

    @property
    def device(self) -> str:
        """Name of the device that uses the memory."""
        return f"cuda:{self._main.device.id}"

    @property
    def device_data(self) -> Any:
        """`cupy.cuda.MemoryPointer` of the buffer."""
        return self.to_cupy().data

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self._main.__array_interface__

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._main.__cuda_array_interface__


def kind_of(tensor: Tensor) -> type[Storage]:
    """Return the kind of storage that the memory of a tensor makes."""
    kinds: dict[str, type[Storage]] = {"host": CPUStorage, "managed": CUDAManagedGPUStorage, "device": GPUStorage}
    return kinds[memory_of(tensor)]
