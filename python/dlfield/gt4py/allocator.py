"""An allocator of dlfield's memory for the fields of `gt4py.next`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dlfield import _native
from dlfield._native import DeviceError, DTypeError, LayoutError

__all__ = ["Allocator", "allocator"]

# Bytes that gt4py.next's own allocators align rows to, by the type of the device.
_ALIGNMENT_SIZES = {"cpu": 64, "cuda": 128}


@dataclass(frozen=True)
class Allocator:
    """An allocator with the attributes of those of `gt4py.next`; `allocator` returns it.

    Allocators of the same device are equal and hashable, so that `gt4py.next` caches one constructor for all of them.
    """

    __module__ = "dlfield.gt4py"

    device: _native.Device

    @property
    def device_type(self) -> Any:
        """The type of the device, as an enumerator of GT4Py."""
        from gt4py._core.definitions import DeviceType

        return DeviceType.CPU if self.device.type == "cpu" else DeviceType.CUDA

    # GT4Py's protocol has it by this name.
    __gt_device_type__ = device_type

    def __gt_allocate__(
        self,
        domain: Any,
        dtype: Any,
        device_id: int = 0,
        aligned_index: Sequence[Any] | None = None,
    ) -> Any:
        """Allocate memory for a field; `zeros` and the other constructors of `gt4py.next` call it.

        Parameters
        ----------
        domain
            A `gt4py.next.Domain`: each dimension with its range.
        dtype
            A scalar `DType` of GT4Py.
        device_id
            The number of the allocator's device, or 0, which `gt4py.next` passes if the caller names no device.
        aligned_index
            Pairs of a dimension and an absolute index in `domain`; that point of each row is aligned. The default for a
            dimension is its start; a dimension that `domain` does not have is ignored.

        Returns
        -------
        gt4py.storage.allocators.TensorBuffer
            `buffer` is a `dlfield.Tensor` with the labels of the domain, `ndarray` a NumPy or CuPy array on its
            memory.

        Raises
        ------
        LayoutError
            `aligned_index` is outside of `domain`, or a size overflows.
        DTypeError
            `dtype` is not a scalar type.
        DeviceError
            `device_id` is another device, or does not exist.
        ImportError
            The device is a GPU, and CuPy is not installed.
        """
        from gt4py._core.definitions import Device
        from gt4py.next.custom_layout_allocators import horizontal_first_layout_mapper
        from gt4py.storage.allocators import TensorBuffer

        if device_id not in (0, self.device.id):
            raise DeviceError(
                f"device_id: found {device_id}, must be {self.device.id}, this allocator is for {self.device}"
            )
        if dtype.tensor_shape:
            raise DTypeError(f"dtype: found {dtype}, must be a scalar type: gt4py.next has no fields of sub-arrays")
        layout, alignment_size = horizontal_first_layout_mapper(domain.dims), _ALIGNMENT_SIZES[self.device.type]
        tensor = _native.empty(
            tuple(domain.shape),
            dtype.scalar_type,
            dims=tuple(dimension.value for dimension in domain.dims),
            layout=layout,
            alignment_size=alignment_size,
            aligned_index=_relative(domain, aligned_index or ()),
            device=self.device,
        )
        return TensorBuffer(
            buffer=tensor,
            memory_address=tensor.ptr,
            device=Device(self.__gt_device_type__, self.device.id),
            dtype=dtype,
            shape=tensor.shape,
            strides=tensor.strides,
            layout_map=layout,
            byte_offset=0,
            byte_alignment=alignment_size,
            aligned_index=tensor.aligned_index,
            ndarray=tensor.to_ndarray(),
        )


def allocator(device: Any = "cpu") -> Allocator:
    """Return an allocator that places the fields of `gt4py.next` in dlfield's memory.

    Layout and alignment are those of gt4py.next's own allocators: horizontal dimensions have the smallest strides, then
    vertical, then local ones, the first of each kind first, and rows are aligned to 64 bytes, on a GPU to 128. Unlike
    in those allocators, empty domains work, and sizes are 64-bit. Fields on a GPU are CuPy arrays.

    Parameters
    ----------
    device : str or device, optional
        Where to allocate: "cpu", "gpu", "cuda:N", a `Device`, DLPack's pair of type and id, or the device object of
        a framework.

    Returns
    -------
    Allocator
        For the keyword `allocator` of `zeros`, `ones`, `full`, `empty` and `as_field` of `gt4py.next`.

    Raises
    ------
    DeviceError
        `device` is neither the host nor a CUDA GPU.

    Example
    -------
    >>> from gt4py import next as gtx
    >>> import dlfield as dl
    >>> from dlfield import gt4py
    >>> I, K = gtx.Dimension("I"), gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
    >>> field = gtx.zeros({I: (-1, 5), K: 4}, allocator=gt4py.allocator())
    >>> field.ndarray.strides, field.ndarray.ctypes.data % 64
    ((8, 64), 0)
    >>> tensor = dl.from_dlpack(field)
    >>> tensor.dims, tensor.origin, tensor.ptr == field.ndarray.ctypes.data
    (('I', 'K'), (1, 0), True)
    """
    where = _native.Device(device)
    if where.type not in _ALIGNMENT_SIZES:
        raise DeviceError(
            f"device: expected 'cpu', 'gpu' or 'cuda:N', got {where}; fields of gt4py.next are NumPy arrays or CuPy "
            "arrays in device memory"
        )
    return Allocator(where)


def _relative(domain: Any, aligned_index: Sequence[Any]) -> tuple[int, ...]:
    """Return the aligned index relative to the start of the domain, in the order of its dimensions."""
    indices = {named.dim: int(named.value) for named in aligned_index}
    found = []
    for named_range in domain:
        dim, (start, stop) = named_range.dim, (named_range.unit_range.start, named_range.unit_range.stop)
        index = indices.get(dim, start)
        if index != start and not start <= index < stop:
            raise LayoutError(
                f"aligned_index: found {index} for {dim.value}, must be in the domain's [{start}, {stop})"
            )
        found.append(index - start)
    return tuple(found)
