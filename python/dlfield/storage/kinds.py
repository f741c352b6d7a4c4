"""Classes for `isinstance` checks of storages: a `dlfield.Tensor` has one buffer, and its memory decides the kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Never, TypeAlias

from dlfield import _native
from dlfield._native import Tensor
from dlfield.storage.managed import SoftwareManagedGPUStorage

__all__ = ["CPUStorage", "CUDAManagedGPUStorage", "GPUStorage", "Storage", "memory_of"]


def memory_of(tensor: Tensor) -> str:
    """Return the kind of a tensor's memory: "host", "device", or "managed" for both."""
    if tensor.device.type == "cuda_managed":
        return "managed"
    return "host" if _native._can_access("cpu", tensor.device) else "device"


class _Kind(type):
    """Metaclass whose classes have no instances of their own: `isinstance` checks the memory of tensors."""

    _memory: frozenset[str]
    _classes: tuple[type, ...]

    def __instancecheck__(cls, instance: object) -> bool:
        if isinstance(instance, Tensor):
            return memory_of(instance) in cls._memory
        return isinstance(instance, cls._classes)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls._classes) or super().__subclasscheck__(subclass)

    def __call__(cls, *_arguments: object, **_keywords: object) -> Never:
        raise TypeError(f"{cls.__name__} has no constructor, it is for isinstance; call storage(), zeros() or similar")


if TYPE_CHECKING:
    # The types of their instances.
    Storage: TypeAlias = Tensor | SoftwareManagedGPUStorage
    CPUStorage: TypeAlias = Tensor
    GPUStorage: TypeAlias = Tensor
    CUDAManagedGPUStorage: TypeAlias = Tensor
else:

    class Storage(metaclass=_Kind):
        """A field in one or two buffers: a `dlfield.Tensor` or a `SoftwareManagedGPUStorage`.

        `storage`, `as_storage`, `empty` and similar functions make storages.

        Example
        -------
        >>> import dlfield as dl
        >>> from dlfield import storage
        >>> isinstance(storage.zeros((4, 3)), storage.Storage), isinstance(dl.zeros((4, 3)), storage.Storage)
        (True, True)
        """

        __module__ = "dlfield.storage"

        _memory: ClassVar[frozenset[str]] = frozenset({"host", "managed", "device"})
        _classes: ClassVar[tuple[type, ...]] = (Tensor, SoftwareManagedGPUStorage)

    class CPUStorage(Storage):
        """A storage with a host buffer: a `dlfield.Tensor` in host memory.

        Example
        -------
        >>> from dlfield import storage
        >>> isinstance(storage.zeros((4, 3)), storage.CPUStorage)
        True
        """

        __module__ = "dlfield.storage"

        _memory = frozenset({"host"})
        _classes = ()

    class GPUStorage(Storage):
        """A storage with a device buffer: a `dlfield.Tensor` in device memory.

        Example
        -------
        >>> from dlfield import storage
        >>> isinstance(storage.zeros((4, 3)), storage.GPUStorage)
        False
        """

        __module__ = "dlfield.storage"

        _memory = frozenset({"device"})
        _classes = ()

    class CUDAManagedGPUStorage(Storage):
        """A storage with one buffer for host and device: a `dlfield.Tensor` in managed memory.

        Example
        -------
        >>> from dlfield import storage
        >>> isinstance(storage.zeros((4, 3)), storage.CUDAManagedGPUStorage)
        False
        """

        __module__ = "dlfield.storage"

        _memory = frozenset({"managed"})
        _classes = ()
