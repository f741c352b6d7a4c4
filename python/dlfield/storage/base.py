"""What every storage has; as it stands here it is for those with one buffer."""

from __future__ import annotations

from typing import Any, ClassVar, Self, SupportsIndex

import numpy as np
import numpy.typing as npt

from dlfield._native import LayoutError, Tensor, _restate
from dlfield.storage.values import plain_key, readable

__all__ = ["Storage", "memory_of", "with_halo"]


class _Kind(type):
    """Counts a `Tensor` as a storage of the kind that its memory is."""

    _memory: frozenset[str]

    def __instancecheck__(cls, instance: object) -> bool:
        if isinstance(instance, Tensor):
            return memory_of(instance) in cls._memory
        return super().__instancecheck__(instance)


class Storage(metaclass=_Kind):
    """A field in one or two buffers: the class to check types with.

    Storages are made by `storage`, `as_storage`, `empty` and the like. A `dlfield.Tensor` is a storage, too: one of the
    host's memory a `CPUStorage`, of a device's a `GPUStorage`, of managed memory a `CUDAManagedGPUStorage`.

    Example
    -------
    >>> import dlfield as dl
    >>> from dlfield import storage
    >>> isinstance(dl.zeros((4, 3)), storage.CPUStorage)
    True
    >>> isinstance(storage.zeros((4, 3)), storage.Storage)
    True
    """

    __slots__ = ("_main",)

    # Of whose memory a tensor counts as one.
    _memory: ClassVar[frozenset[str]] = frozenset({"host", "managed", "device"})

    def __init__(self, tensor: Tensor) -> None:
        self._main = tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return self._main.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next, along each dimension."""
        return self._main.strides

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self._main.ndim

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, without padding."""
        return self._main.nbytes

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return self._main.dtype

    @property
    def dims(self) -> tuple[str, ...]:
        """Labels of the dimensions."""
        return self._main.dims

    @property
    def layout(self) -> tuple[int, ...]:
        """Rank of each dimension's stride, 0 for the largest."""
        return self._main.layout

    @property
    def alignment_size(self) -> int:
        """Bytes that the address of the element at `aligned_index` is a multiple of."""
        return self._main.alignment_size

    @property
    def aligned_index(self) -> tuple[int, ...]:
        """Index of the element whose address is aligned."""
        return self._main.aligned_index

    @property
    def halo(self) -> tuple[tuple[int, int], ...]:
        """Widths of the halo, lower and upper, for each dimension.

        It can be set, to pairs or to one number for both. The memory stays as it is, and with it the aligned element.

        Example
        -------
        >>> from dlfield import storage
        >>> field = storage.zeros((4, 3))
        >>> field.halo = (1, (0, 2))
        >>> field.domain_view.shape
        (2, 1)
        """
        return self._main.halo

    @halo.setter
    def halo(self, halo: Any) -> None:
        self._main = with_halo(self._main, halo)

    @property
    def device(self) -> str | None:
        """Name of the device that has a buffer, as `cuda:0`; None if only the host has one."""
        return None

    @property
    def data(self) -> memoryview | None:
        """Memory of the host buffer, None if there is none."""
        return None

    @property
    def device_data(self) -> Any:
        """`cupy.cuda.MemoryPointer` of the device buffer, None if there is none."""
        return None

    @property
    def domain_view(self) -> Self:
        """View of what the halo leaves."""
        return type(self)(self._main.domain_view)

    @property
    def __gt_data_interface__(self) -> dict[str | tuple[str, int] | None, dict[str, Any]]:
        return self._main.__gt_data_interface__

    @property
    def __gt_dims__(self) -> tuple[str, ...]:
        return self.dims

    def __repr__(self) -> str:
        return f"{type(self).__name__}{repr(self._main).removeprefix('Tensor')}"

    def __len__(self) -> int:
        return len(self._main)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Any:
        return self._main.__array__(dtype, copy)

    def __getitem__(self, key: Any, /) -> Any:
        found = self._main[plain_key(key)]
        return type(self)(found) if isinstance(found, Tensor) else found

    def __setitem__(self, key: Any, value: Any, /) -> None:
        with readable(value, self.device) as source:
            self._main[plain_key(key)] = source

    def copy(self) -> Self:
        """Return a storage with the same parameters and a copy of the values."""
        return type(self)(self._main.copy())

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any] | None = None, /) -> Self:
        return self.copy()

    def transpose(self, *axes: Any) -> Self:
        """Return a view with permuted dimensions; `axes` are numbers or labels, default is the reverse.

        Example
        -------
        >>> from dlfield import storage
        >>> storage.zeros((4, 3)).transpose("J", "I").shape
        (3, 4)
        """
        return type(self)(self._main.transpose(*axes))

    def to_numpy(self) -> npt.NDArray[Any]:
        """Return the NumPy array on the host buffer.

        Raises
        ------
        NoSuchBufferError
            There is no host buffer.
        """
        return self._main.to_numpy()

    def to_cupy(self) -> Any:
        """Return the CuPy array on the device buffer.

        Raises
        ------
        NoSuchBufferError
            There is no device buffer.
        """
        return self._main.to_cupy()

    def to_ndarray(self) -> Any:
        """Return the CuPy array on the device buffer if there is one, else the NumPy array on the host buffer."""
        return self.to_numpy() if self.device is None else self.to_cupy()

    def host_to_device(self, *, force: bool = False) -> None:
        """Copy to the device what was modified on the host; nothing to do in a storage with one buffer."""

    def device_to_host(self, *, force: bool = False) -> None:
        """Copy to the host what was modified on the device; nothing to do in a storage with one buffer."""

    def set_host_modified(self) -> None:
        """Mark the host buffer as modified; nothing to do in a storage with one buffer."""

    def set_device_modified(self) -> None:
        """Mark the device buffer as modified; nothing to do in a storage with one buffer."""

    def set_synchronized(self) -> None:
        """Mark the buffers as equal; nothing to do in a storage with one buffer."""

    def synchronize(self) -> None:
        """Make the buffers equal; nothing to do in a storage with one buffer."""

    def is_on_gpu(self) -> bool:
        """Return whether the values can be read on a device without a copy."""
        return self.device is not None

    def read_side(self, device: str | None) -> Tensor:  # noqa: ARG002, there is no other side
        """Return the buffer to read from on a device, None for the host, or the only one there is."""
        return self._main


def memory_of(tensor: Tensor) -> str:
    """Return whose memory a tensor has: "host", "managed" for both or "device"."""
    if tensor.device.type in ("cpu", "cuda_host"):
        return "host"
    return "managed" if tensor.device.type == "cuda_managed" else "device"


def with_halo(tensor: Tensor, halo: Any) -> Tensor:
    """Return a tensor on the same memory with another halo, and the origin that follows from it."""
    pairs = [(width, width) if isinstance(width, SupportsIndex) else tuple(width) for width in halo]
    if not all(len(pair) == 2 and all(isinstance(width, SupportsIndex) for width in pair) for pair in pairs):
        raise LayoutError(f"halo: found {halo!r}, must be a width or a pair (lower, upper) for each dimension")
    # Rows are padded where the alignment asks for it, as in every allocation of a storage.
    padding = "row" if tensor.alignment_size > tensor.itemsize else "none"
    promised = (list(tensor.layout), padding, tensor.alignment_size, list(tensor.aligned_index))
    return _restate(tensor, (list(tensor.dims), None, pairs, *promised))
