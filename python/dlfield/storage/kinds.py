"""The classes to check storages with: one with one buffer is a `dlfield.Tensor`, and its memory says which kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Never, TypeAlias

from dlfield._native import Tensor
from dlfield.storage.managed import SoftwareManagedGPUStorage

__all__ = ["CPUStorage", "CUDAManagedGPUStorage", "GPUStorage", "Storage", "memory_of"]


def memory_of(tensor: Tensor) -> str:
    """Return whose memory a tensor has: "host", "managed" for both or "device"."""
    if tensor.device.type in ("cpu", "cuda_host"):
        return "host"
    return "managed" if tensor.device.type == "cuda_managed" else "device"


class _Kind(type):
    """Counts tensors by their memory, and has no instances of its own."""

    _memory: frozenset[str]
    _classes: tuple[type, ...]

    def __instancecheck__(cls, instance: object) -> bool:
        if isinstance(instance, Tensor):
            return memory_of(instance) in cls._memory
        return isinstance(instance, cls._classes)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls._classes) or super().__subclasscheck__(subclass)

    def __call__(cls, *_arguments: object, **_keywords: object) -> Never:
        raise TypeError(f"{cls.__name__} is there to check types with; storage(), zeros() and the like make one")


if TYPE_CHECKING:
    # What their instances are.
    Storage: TypeAlias = Tensor | SoftwareManagedGPUStorage
    CPUStorage: TypeAlias = Tensor
    GPUStorage: TypeAlias = Tensor
    CUDAManagedGPUStorage: TypeAlias = Tensor
else:

    class Storage(metaclass=_Kind):
        """A field in one or two buffers: a `dlfield.Tensor` or a `SoftwareManagedGPUStorage`.

        Storages are made by `storage`, `as_storage`, `empty` and the like.

        Example
        -------
        >>> import dlfield as dl
        >>> from dlfield import storage
        >>> isinstance(storage.zeros((4, 3)), storage.Storage), isinstance(dl.zeros((4, 3)), storage.Storage)
        (True, True)
        """

        _memory: ClassVar[frozenset[str]] = frozenset({"host", "managed", "device"})
        _classes: ClassVar[tuple[type, ...]] = (Tensor, SoftwareManagedGPUStorage)

    class CPUStorage(Storage):
        """A storage with a buffer of the host: a `dlfield.Tensor` there.

        Example
        -------
        >>> from dlfield import storage
        >>> isinstance(storage.zeros((4, 3)), storage.CPUStorage)
        True
        """

        _memory = frozenset({"host"})
        _classes = ()

    class GPUStorage(Storage):
        """A storage with a buffer of a device: a `dlfield.Tensor` there.

        Example
        -------
        >>> from dlfield import storage
        >>> isinstance(storage.zeros((4, 3)), storage.GPUStorage)
        False
        """

        _memory = frozenset({"device"})
        _classes = ()

    class CUDAManagedGPUStorage(Storage):
        """A storage with one buffer that host and device use: a `dlfield.Tensor` in managed memory.

        Example
        -------
        >>> from dlfield import storage
        >>> isinstance(storage.zeros((4, 3)), storage.CUDAManagedGPUStorage)
        False
        """

        _memory = frozenset({"managed"})
        _classes = ()
