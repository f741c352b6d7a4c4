"""Types of the compiled module: everything in `dlfield` that is not written in Python.

The docstrings are those of the module; `tools/stub_docs.py --write` copies them.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from types import EllipsisType, TracebackType
from typing import Any, Literal, NoReturn, Protocol, Self, SupportsIndex, TypeAlias, final, overload

import numpy as np
import numpy.typing as npt
import torch
import xarray
from typing_extensions import Buffer, CapsuleType

from dlfield.kernels.c_functions import Ctypes, Domain

__all__ = [
    "BoundCall",
    "DTypeError",
    "Descriptor",
    "Device",
    "DeviceError",
    "DimsError",
    "Error",
    "ExchangeError",
    "FieldSpec",
    "LayoutError",
    "LayoutWarning",
    "NoSuchBufferError",
    "NotAnArrayError",
    "OverlapError",
    "Preflight",
    "Preset",
    "Signature",
    "Tensor",
    "_KernelCall",
    "_SharedBlock",
    "__version__",
    "_allocate_shared",
    "_as_optional",
    "_block_state",
    "_can_access",
    "_copy_layout",
    "_copy_state",
    "_cuda_current_stream",
    "_cuda_device_count",
    "_cuda_device_name",
    "_cuda_init",
    "_cuda_memory_info",
    "_cuda_pop_stream",
    "_cuda_push_stream",
    "_cuda_synchronize",
    "_cuda_unavailable_reason",
    "_inspect",
    "_jax_takes",
    "_key",
    "_memory_report",
    "_open_shared",
    "_rebuild",
    "_register_package",
    "_relabelled",
    "_source",
    "_stencil_arguments",
    "_tensor",
    "_trace_allocations",
    "_trace_copies",
    "_wait",
    "_with_metadata",
    "as_numpy",
    "as_torch",
    "describe",
    "empty",
    "empty_like",
    "from_array",
    "from_dlpack",
    "from_pointer",
    "frombuffer",
    "full",
    "full_like",
    "get_dims",
    "get_origin",
    "num_threads",
    "ones",
    "ones_like",
    "preflight",
    "presets",
    "register_preset",
    "set_num_threads",
    "zeros",
    "zeros_like",
]

__version__: str

_Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
_Dims: TypeAlias = str | Sequence[str | SupportsIndex]
_IntArray: TypeAlias = npt.NDArray[np.integer[Any]]
_Ints: TypeAlias = Sequence[SupportsIndex] | _IntArray
_IntsByLabel: TypeAlias = _Ints | Mapping[str, SupportsIndex]
_Halo: TypeAlias = (
    Sequence[SupportsIndex | Sequence[SupportsIndex]]
    | _IntArray
    | Mapping[str, SupportsIndex | Sequence[SupportsIndex]]
)
_Axes: TypeAlias = SupportsIndex | str | tuple[SupportsIndex | str, ...]
_Padding: TypeAlias = Literal["none", "row"]

# Indices of views. NumPy's arrays have `__index__` too, but their keys copy, so that these are not `SupportsIndex`.
_Int: TypeAlias = int | np.integer[Any]
_Range: TypeAlias = slice | EllipsisType
_Basic: TypeAlias = _Int | _Range

class _TorchDevice(Protocol):
    @property
    def type(self) -> str: ...
    @property
    def index(self) -> int | None: ...

class _JaxDevice(Protocol):
    @property
    def platform(self) -> str: ...
    @property
    def id(self) -> int: ...

class _CupyDevice(Protocol):
    @property
    def id(self) -> int: ...
    def use(self) -> None: ...

class _CudaCoreDevice(Protocol):
    @property
    def device_id(self) -> int: ...

_DeviceLike: TypeAlias = Device | str | tuple[int, int] | _TorchDevice | _JaxDevice | _CupyDevice | _CudaCoreDevice
# A stream's number as in the array API standard, or an object with `__cuda_stream__`.
_StreamLike: TypeAlias = int | Any

class Error(Exception):
    """The base class of all errors of dlfield."""

class LayoutWarning(UserWarning):
    """A field in a slow layout, for a stencil or by a preset that does not have its labels; or a field that is copied."""

class LayoutError(Error, ValueError):
    """An invalid shape, layout, padding, alignment or preset."""

class DTypeError(Error, TypeError):
    """An element type that cannot be shared, or does not fit."""

class DimsError(Error, ValueError):
    """Labels that are invalid, or contradict each other."""

class DeviceError(Error, RuntimeError):
    """A device that does not exist, or is not the expected one."""

class ExchangeError(Error, BufferError, ValueError):
    """Memory or a request of another library that the protocol does not allow."""

class NoSuchBufferError(Error, LookupError, TypeError):
    """A host or device buffer that the object does not have."""

class NotAnArrayError(Error, TypeError):
    """An object without an array protocol."""

class OverlapError(Error, ValueError):
    """A field that is written and shares memory with another one, or with itself."""

@final
class Device:
    """A place of memory: a kind of device and its number.

    Equal to its name ("cpu", "cuda:0", "cuda_host", ...) and to DLPack's pair of integers; hashes like the name. Made from
    either, or from a device of PyTorch, JAX, CuPy, cuda.core or Numba; PyTorch's "cuda" without a number is its current device.

    >>> import dlfield as dl
    >>> dl.Device("gpu")
    Device('cuda:0')
    >>> dl.Device("cpu") == "cpu" == dl.Device((1, 0))
    True
    """

    def __new__(cls, device: _DeviceLike) -> Device: ...
    @property
    def type(self) -> str:
        """The kind: "cpu", "cuda", "cuda_host", "cuda_managed", "rocm", ..."""
    @property
    def id(self) -> int:
        """The number among devices of its kind; 0 if there is only one."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Preset:
    """A named set of alignment, layout rule and device, chosen with `backend=`.

    >>> import dlfield as dl
    >>> dl.presets()["gtmc"]
    Preset('gtmc', alignment=8, layout=(0, 2, 1), device='cpu')
    """

    @property
    def name(self) -> str:
        """The name, as `backend=` takes it."""
    @property
    def device(self) -> Device:
        """The device on which memory is allocated."""
    @property
    def alignment(self) -> int:
        """Alignment in elements of the aligned index and of every row at that index; 1 means no alignment. Presets that align in bytes have
        1: those of array frameworks, which align the start of the memory and keep rows compact, and "gt4py.next".
        """
    @property
    def layout(self) -> Literal["C", "F"] | tuple[int, int, int]:
        """ "C" or "F" (by index), or the ranks of I, J and K (by label; 0 is the largest stride), or "HorizontalFirst" of "gt4py.next"."""

@final
class Tensor:
    """A field: memory with the layout a stencil needs, shared without a copy with every array library.

    Strides are in bytes. Views, copies and pickles keep dims, origin and halo. Made by `empty`, `zeros`, `ones`, `full`,
    their `_like` forms, `from_array` and `from_dlpack`.

    >>> import dlfield as dl, numpy as np
    >>> field = dl.zeros((6, 6, 4), backend="gt:cpu_ifirst", halo=(1, 1, 0))
    >>> field.domain_view[...] = 1.0
    >>> float(np.asarray(field).sum())
    64.0
    """

    __dlpack_c_exchange_api__: CapsuleType
    @property
    def shape(self) -> tuple[int, ...]:
        """Extents, in index order."""
    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next, in index order."""
    @property
    def ndim(self) -> int:
        """Number of dimensions."""
    @property
    def size(self) -> int:
        """Number of elements."""
    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
    @property
    def nbytes(self) -> int:
        """Bytes of all elements, without padding."""
    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type, as `numpy.dtype`."""
    @property
    def device(self) -> Device:
        """The device of the memory."""
    @property
    def dims(self) -> tuple[str, ...]:
        """Labels of the dimensions, in index order."""
    @property
    def origin(self) -> tuple[int, ...]:
        """Index of the first compute point."""
    @property
    def halo(self) -> tuple[tuple[int, int], ...]:
        """(lower, upper) halo widths per dimension.

        Can be set, each entry to a pair or to one number for both; raises `LayoutError` if they do not fit the shape.
        Setting the halo sets the origin to the lower widths. Dims, memory, aligned index and existing views do not change.

        >>> import dlfield as dl
        >>> field = dl.zeros((6, 6))
        >>> field.halo = (1, (2, 0))
        >>> field.origin, field.domain_view.shape
        ((1, 2), (4, 4))
        """
    @halo.setter
    def halo(self, halo: _Halo) -> None: ...
    @property
    def variable(self) -> xarray.Variable:
        """The `xarray.Variable` on the same memory, with the dims: by it the operators and `where` of a `DataArray` on the left match
        dimensions by label. Absent while xarray is not imported.

        >>> import dlfield as dl, xarray
        >>> field = dl.zeros((2, 3), dims="KI")
        >>> field.variable.dims, (xarray.DataArray([1.0, 2.0, 3.0], dims="I") - field).dims
        (('K', 'I'), ('I', 'K'))
        """
    @property
    def layout(self) -> tuple[int, ...]:
        """Rank of each dimension's stride; 0 is the largest."""
    @property
    def alignment_size(self) -> int:
        """Alignment in bytes of the element at `aligned_index`."""
    @property
    def aligned_index(self) -> tuple[int, ...]:
        """The index of the aligned element."""
    @property
    def ptr(self) -> int:
        """Address of the element at index 0."""
    @property
    def readonly(self) -> bool:
        """Whether the memory is read-only through this tensor."""
    @property
    def data(self) -> npt.NDArray[Any] | None:
        """The memory as a NumPy array, None if the host cannot read it.

        It is not a `memoryview`, as that of NumPy's arrays: netCDF4 takes an object with one for an array of NumPy's.

        >>> import dlfield as dl
        >>> dl.zeros((2, 3)).data.shape
        (2, 3)
        """
    @property
    def device_data(self) -> Any:
        """The memory as a `cupy.cuda.MemoryPointer`, None if no GPU can read it.

        >>> import dlfield as dl
        >>> dl.zeros((2, 3)).device_data is None
        True
        """
    @property
    def T(self) -> Tensor:
        """The field with its dimensions, and their labels, in reverse order, on the same memory.

        >>> import dlfield as dl
        >>> dl.zeros((2, 3)).T.dims
        ('J', 'I')
        """
    # This setter and those below are for `field.T += 1`, which sets the view itself.
    @T.setter
    def T(self, view: Tensor) -> None: ...
    @property
    def domain_view(self) -> Tensor:
        """The field without its halo, on the same memory.

        >>> import dlfield as dl
        >>> dl.zeros((6, 6), halo=(1, (2, 0))).domain_view.shape
        (4, 4)
        """
    @domain_view.setter
    def domain_view(self, view: Tensor) -> None: ...
    @property
    def block(self) -> Tensor:
        """The whole memory block, padding included, as a contiguous field of one dimension on the same memory: for MPI, checksums
        and object stores. It has the same element type, and is read-only if the field is.

        All views of memory that dlfield allocated have the same block. Of other memory it is what lies between the first and the
        last element, which must fill it, in any order of dimensions; else `ExchangeError`.

        >>> import dlfield as dl
        >>> field = dl.zeros((3, 5), alignment_size=64)
        >>> field.block.shape, field[1, 2:].block.ptr == field.block.ptr
        ((24,), True)
        """
    @block.setter
    def block(self, view: Tensor) -> None: ...
    # `dlfield.interop.flags.Flags`: what `numpy.ndarray.flags` has, read-only.
    @property
    def flags(self) -> Any:
        """Memory order and access, with the names of `numpy.ndarray.flags`, also as items: `flags["C_CONTIGUOUS"]`. Read-only.

        `owndata` is False: a tensor shares its memory with its views, and cannot resize it.

        >>> import dlfield as dl
        >>> flags = dl.zeros((2, 3), backend="F").flags
        >>> flags.f_contiguous, flags["C_CONTIGUOUS"], flags.writeable
        (True, False, True)
        """
    def alignment(self) -> int:
        """Returns the largest power of two that divides the address of the element at index 0, in bytes: its actual alignment.

        >>> import dlfield as dl
        >>> dl.zeros(3).alignment() >= 64
        True
        """
    def is_contiguous(self, order: Literal["C", "F", "A"] = "C") -> bool:
        """Returns whether the elements are contiguous: "C" with the last index fastest, "F" with the first, "A" either. Raises
        `ValueError` for another order.

        >>> import dlfield as dl
        >>> field = dl.zeros((2, 3), backend="F")
        >>> field.is_contiguous(), field.is_contiguous("F")
        (False, True)
        """
    def item(self, *args: SupportsIndex | tuple[SupportsIndex, ...]) -> Any:
        """Returns one element as a Python number: the only one; or the one at an index, which may also be a position in C order.

        From a device, only this element is copied. Raises `ValueError` without an index unless there is one element, and
        `IndexError` for an index outside.

        >>> import dlfield as dl
        >>> field = dl.from_array([[1, 2], [3, 4]])
        >>> field.item(1, 0), field.item(-1), field[0, 1:].item()
        (3, 4, 2)
        """
    def tolist(self) -> Any:
        """Returns the elements as nested lists of Python numbers, copied from any device; one number without dimensions.

        >>> import dlfield as dl
        >>> dl.ones((2, 2), "int32").tolist()
        [[1, 1], [1, 1]]
        """
    def tobytes(self, order: Literal["C", "F", "A"] = "C") -> bytes:
        r"""Returns a copy of the elements as `bytes`, without padding, from any device. `order` is "C", "F" or "A", as for
        `numpy.ndarray.tobytes`.

        >>> import dlfield as dl
        >>> dl.from_array([[1, 2], [3, 4]], "int8").tobytes("F")
        b'\x01\x03\x02\x04'
        """
    def fill(self, value: Any) -> None:
        """Sets all elements to a number, as `field[...] = value`, by the same rules: `DTypeError` for one that is not cast by
        NumPy's "same_kind" rule, as 2.5 for int32, `OverflowError` for an integer that does not fit.

        >>> import dlfield as dl
        >>> field = dl.zeros(2)
        >>> field.fill(3)
        >>> field.tolist()
        [3.0, 3.0]
        """
    def flatten(self, order: Literal["C", "F", "A", "K"] = "C") -> Any:
        """Returns a copy of the elements as a 1-D array without labels: of NumPy, or of CuPy on a device. `order` is that of the
        elements: "C", "F", "A", "K".

        >>> import dlfield as dl
        >>> dl.from_array([[1, 2], [3, 4]]).flatten("F")
        array([1, 3, 2, 4])
        """
    def ravel(self, order: Literal["C", "F", "A", "K"] = "C") -> Any:
        """Returns the elements as a 1-D array without labels: of NumPy, or of CuPy on a device. It has the field's memory if the
        elements are there in this order without gaps, else a copy. `order` as for `flatten`.

        >>> import dlfield as dl
        >>> field = dl.zeros((2, 3))
        >>> field.ravel()[4] = 1
        >>> field[1, 1].item()
        1.0
        """
    def reshape(self, *shape: SupportsIndex | Sequence[SupportsIndex], dims: _Dims | None = None) -> Tensor:
        """Returns a view of another shape: the same elements in C order, on the same memory. One extent may be -1.

        `dims` are the new labels; without them they are the standard ones, as for `zeros`, unless the shape stays the same.
        Raises `LayoutError` for another number of elements, or if that would need a copy; `DimsError` for wrong labels.

        >>> import dlfield as dl
        >>> field = dl.zeros((4, 6))
        >>> field.reshape(2, 2, -1, dims=("tile", "I", "J")).shape
        (2, 2, 6)
        """
    def squeeze(self, axis: _Axes | None = None) -> Tensor:
        """Returns a view without the dimensions of one point, or without those in `axis`: a number, a label, or a tuple of these.

        Raises `LayoutError` for an axis of more or fewer points, `DimsError` for an axis that the field does not have.

        >>> import dlfield as dl
        >>> dl.zeros((1, 3, 1)).squeeze("K").dims
        ('I', 'J')
        """
    def swapaxes(self, axis1: SupportsIndex | str, axis2: SupportsIndex | str) -> Tensor:
        """Returns a view with two dimensions exchanged, by number or label. Raises `DimsError` for one that the field does not have.

        >>> import dlfield as dl
        >>> dl.zeros((2, 3, 4)).swapaxes("I", -1).dims
        ('K', 'J', 'I')
        """
    def astype(
        self,
        dtype: Any,
        order: Literal["C", "F", "A", "K"] = "K",
        casting: str = "unsafe",
        *,
        copy: bool | int | None = None,
    ) -> Tensor:
        """Returns a copy with another element type, and the same labels, layout, padding and alignment.

        The parameters are those of `numpy.ndarray.astype`. On a device, what is not cast by NumPy's "same_kind" rule is by CuPy.

        Parameters
        ----------
        dtype : str, type or dtype
            The element type.
        order : {"C", "F", "A", "K"}, optional
            "C" or "F" instead of "K" give that order without padding; "A" gives "F" for a field in that order, "C" for others.
        casting : {"no", "equiv", "safe", "same_kind", "unsafe"}, optional
            The rule for conversions that are allowed.
        copy : bool, optional
            False returns the field itself if it has the element type and the order.

        Returns
        -------
        Tensor

        Raises
        ------
        TypeError
            A conversion that the rule does not allow.

        Example
        -------
        >>> import dlfield as dl
        >>> dl.full(2, 1.9).astype("int32").tolist()
        [1, 1]
        """
    def view(self, dtype: Any | None = None) -> Tensor:
        """Returns the same memory as elements of another type, as `numpy.ndarray.view` does: with the same labels, and with the halo
        if the element size is the same; else the last dimension gets more or fewer points, and must have no gaps.

        Raises `ValueError` for a last dimension that cannot be divided so, `DTypeError` for a type that fields cannot have.

        >>> import dlfield as dl
        >>> dl.full(2, -1, "int8").view("uint8").tolist()
        [255, 255]
        """
    # The keywords are those of NumPy's methods; with `out` the result is that array, else a tensor.
    def sum(self, axis: _Axes | None = None, **keywords: Any) -> Tensor | Any:
        """Returns the sum, along the dimensions in `axis`, or `dim`: a number, a label, a tuple of these, or None for all.

        The halo counts, as for a NumPy array: `field.domain_view.sum()` leaves it out.
        xarray's `skipna=True` leaves NaN out.
        The result is a tensor with the other dimensions; without any, it converts to a number wherever it is. Keywords as for
        `numpy.ndarray.sum`: `dtype`, `out`, `keepdims`, `initial`, `where`. Raises `DimsError` for an axis that the field does not have.

        >>> import dlfield as dl
        >>> field = dl.ones((2, 3))
        >>> field.sum("J").dims, f"{field.sum():.1f}"
        (('I',), '6.0')
        """
    def prod(self, axis: _Axes | None = None, **keywords: Any) -> Tensor | Any:
        """Returns the product, along the dimensions in `axis`, or `dim`: a number, a label, a tuple of these, or None for all.

        The halo counts, as for a NumPy array: `field.domain_view.prod()` leaves it out.
        xarray's `skipna=True` leaves NaN out.
        The result is a tensor with the other dimensions; without any, it converts to a number wherever it is. Keywords as for
        `numpy.ndarray.prod`: `dtype`, `out`, `keepdims`, `initial`, `where`. Raises `DimsError` for an axis that the field does not have.

        >>> import dlfield as dl
        >>> dl.full((2, 3), 2.0).prod("J").tolist()
        [8.0, 8.0]
        """
    def min(self, axis: _Axes | None = None, **keywords: Any) -> Tensor | Any:
        """Returns the smallest element, along the dimensions in `axis`, or `dim`: a number, a label, a tuple of these, or None for all.

        The halo counts, as for a NumPy array: `field.domain_view.min()` leaves it out.
        xarray's `skipna=True` leaves NaN out.
        The result is a tensor with the other dimensions; without any, it converts to a number wherever it is. Keywords as for
        `numpy.ndarray.min`: `out`, `keepdims`, `initial`, `where`. Raises `DimsError` for an axis that the field does not have.

        >>> import dlfield as dl
        >>> dl.from_array([[1, 2], [3, 0]]).min("I").tolist()
        [1, 0]
        """
    def max(self, axis: _Axes | None = None, **keywords: Any) -> Tensor | Any:
        """Returns the largest element, along the dimensions in `axis`, or `dim`: a number, a label, a tuple of these, or None for all.

        The halo counts, as for a NumPy array: `field.domain_view.max()` leaves it out.
        xarray's `skipna=True` leaves NaN out.
        The result is a tensor with the other dimensions; without any, it converts to a number wherever it is. Keywords as for
        `numpy.ndarray.max`: `out`, `keepdims`, `initial`, `where`. Raises `DimsError` for an axis that the field does not have.

        >>> import dlfield as dl
        >>> dl.from_array([[1, 2], [3, 0]]).max().item()
        3
        """
    def any(self, axis: _Axes | None = None, **keywords: Any) -> Tensor | Any:
        """Returns whether any element is true, along the dimensions in `axis`, or `dim`: a number, a label, a tuple of these, or None for all.

        The halo counts, as for a NumPy array: `field.domain_view.any()` leaves it out.
        The result is a tensor with the other dimensions; without any, it converts to a number wherever it is. Keywords as for
        `numpy.ndarray.any`: `out`, `keepdims`, `where`. Raises `DimsError` for an axis that the field does not have.

        >>> import dlfield as dl
        >>> bool((dl.ones((2, 3)) > 1).any())
        False
        """
    def all(self, axis: _Axes | None = None, **keywords: Any) -> Tensor | Any:
        """Returns whether all elements are true, along the dimensions in `axis`, or `dim`: a number, a label, a tuple of these, or None for all.

        The halo counts, as for a NumPy array: `field.domain_view.all()` leaves it out.
        The result is a tensor with the other dimensions; without any, it converts to a number wherever it is. Keywords as for
        `numpy.ndarray.all`: `out`, `keepdims`, `where`. Raises `DimsError` for an axis that the field does not have.

        >>> import dlfield as dl
        >>> bool((dl.ones((2, 3)) > 0).all())
        True
        """
    def mean(self, axis: _Axes | None = None, **keywords: Any) -> Tensor | Any:
        """Returns the mean, along the dimensions in `axis`, or `dim`: a number, a label, a tuple of these, or None for all.

        The halo counts, as for a NumPy array: `field.domain_view.mean()` leaves it out.
        xarray's `skipna=True` leaves NaN out.
        The result is as for `sum`. Integers give float64; float16 and bfloat16 are computed in float32. Keywords as for
        `numpy.ndarray.mean`: `dtype`, `out`, `keepdims`, `where`. Raises `DimsError` for an axis that the field does not have.

        >>> import dlfield as dl
        >>> dl.from_array([[1, 2], [3, 4]]).mean("I").tolist()
        [2.0, 3.0]
        """
    def var(self, axis: _Axes | None = None, **keywords: Any) -> Tensor | Any:
        """Returns the variance, along the dimensions in `axis`, or `dim`: a number, a label, a tuple of these, or None for all.

        The halo counts, as for a NumPy array: `field.domain_view.var()` leaves it out.
        xarray's `skipna=True` leaves NaN out.
        The result is as for `sum`. Integers give float64; float16 and bfloat16 are computed in float32. Keywords as for
        `numpy.ndarray.var`: `dtype`, `out`, `ddof`, `keepdims`, `where`. Raises `DimsError` for an axis that the field does not have.

        >>> import dlfield as dl
        >>> dl.from_array([1.0, 3.0]).var().item()
        1.0
        """
    def std(self, axis: _Axes | None = None, **keywords: Any) -> Tensor | Any:
        """Returns the standard deviation, along the dimensions in `axis`, or `dim`: a number, a label, a tuple of these, or None for all.

        The halo counts, as for a NumPy array: `field.domain_view.std()` leaves it out.
        xarray's `skipna=True` leaves NaN out.
        The result is as for `sum`. Integers give float64; float16 and bfloat16 are computed in float32. Keywords as for
        `numpy.ndarray.std`: `dtype`, `out`, `ddof`, `keepdims`, `where`. Raises `DimsError` for an axis that the field does not have.

        >>> import dlfield as dl
        >>> dl.from_array([1.0, 5.0]).std().item()
        2.0
        """
    def copy(self, order: Literal["C", "F", "A", "K"] = "K") -> Tensor:
        """Returns a writable copy with the same labels, layout, padding and alignment; with `order` "C", "F" or "A" in that order of
        NumPy's, without padding. Raises `MemoryError` if the allocation fails.

        >>> import dlfield as dl
        >>> field = dl.zeros((2, 3), dims="KI").as_readonly()
        >>> field.copy().readonly, field.copy().dims
        (False, ('K', 'I'))
        """
    def transpose(self, *axes: Any) -> Tensor:
        """Returns the field with its dimensions in another order, by number or label, on the same memory; reversed without
        arguments.

        Raises `DimsError` unless each dimension is named once.

        >>> import dlfield as dl
        >>> dl.zeros((2, 3, 4)).transpose("K", "I", "J").shape
        (4, 2, 3)
        """
    def with_dims(self, dims: _Dims) -> Tensor:
        """Returns the field with other labels on the same memory, in index order; `dims` as for `zeros`. Halo and origin stay.

        Raises `DimsError` unless there is one label for each dimension.

        >>> import dlfield as dl
        >>> dl.zeros((2, 3)).with_dims("KI").dims
        ('K', 'I')
        """
    def rename(self, labels: Mapping[str, str] | None = None, **names: str) -> Tensor:
        """Returns the field with other names for some of its labels, on the same memory: a mapping or keywords, as in xarray.

        Raises `DimsError` for a label that the field does not have, `TypeError` for a mapping and keywords.

        >>> import dlfield as dl
        >>> field = dl.zeros((2, 3), dims="x y")
        >>> field.rename({"x": "I"}).dims, field.rename(x="I", y="J").dims
        (('I', 'y'), ('I', 'J'))
        """
    def with_halo(self, halo: _Halo) -> Tensor:
        """Returns the field with another halo, whose lower widths are the origin, on the same memory; `halo` as for `zeros`, also a
        mapping by label. Setting `halo` changes the field itself.

        Raises `LayoutError` for a halo that does not fit the shape.

        >>> import dlfield as dl
        >>> dl.zeros((4, 5)).with_halo({"J": (1, 2)}).origin
        (0, 1)
        """
    def fill_halo(self, mode: Literal["constant", "edge", "wrap"], constant_values: Any = 0) -> None:
        """Fills the halo from the points of the domain, edges and corners too; between processes `dlfield.mpi.HaloExchange` does.

        `mode` is one of `numpy.pad`: "wrap", the points of the other end, of a periodic domain; "edge", the nearest point;
        "constant", `constant_values`. Raises `ValueError` for another mode, `LayoutError` for a domain without points.

        >>> import dlfield as dl
        >>> field = dl.from_array([0.0, 1.0, 2.0, 0.0], halo=((1, 1),))
        >>> field.fill_halo("wrap")
        >>> field.tolist()
        [2.0, 1.0, 2.0, 1.0]
        """
    def as_readonly(self) -> Tensor:
        """Returns the field on the same memory, read-only for the new tensor and everything made from it.

        >>> import dlfield as dl, numpy as np
        >>> np.from_dlpack(dl.zeros(3).as_readonly()).flags.writeable
        False
        """
    def to_device(self, device: _DeviceLike, *, stream: _StreamLike | None = None) -> Tensor:
        """Returns the field on another device, with the same layout and labels; itself if it is there already.

        Pinned and managed memory becomes memory of the host or of a CUDA device without a copy. Other memory is copied, in
        the given stream or else the current one of this thread; a copy on the host is complete when this returns. Raises
        `DeviceError` if the device is not available, `MemoryError` if the allocation fails.

        >>> import dlfield as dl
        >>> field = dl.zeros(3)
        >>> field.to_device("cpu") is field
        True
        """
    def to_numpy(self) -> npt.NDArray[Any]:
        """Returns a NumPy array on the same memory. Raises `NoSuchBufferError` if the host cannot read it.

        >>> import dlfield as dl
        >>> field = dl.zeros((2, 3), backend="F")
        >>> field.to_numpy().strides == field.strides
        True
        """
    def to_cupy(self) -> Any:
        """Returns a CuPy array on the same memory. Raises `NoSuchBufferError` if no GPU can read it.

        >>> import dlfield as dl
        >>> dl.zeros(3).to_cupy()
        Traceback (most recent call last):
            ...
        dlfield.NoSuchBufferError: device: expected memory on cuda or cuda_managed, got cpu; copy it with to_device('cuda:0')
        """
    def to_ndarray(self) -> Any:
        """Returns the array of the device's library, on the same memory: NumPy on the host, CuPy on a GPU.

        >>> import dlfield as dl
        >>> dl.ones(2).to_ndarray()
        array([1., 1.])
        """
    def to_torch(self, *, copy: bool | None = None) -> torch.Tensor:
        """Returns `dlfield.as_torch(self)`, a `torch.Tensor` on the same memory.

        >>> import dlfield as dl
        >>> field = dl.zeros((2, 3))
        >>> field.to_torch().data_ptr() == field.ptr
        True
        """
    def to_jax(self, *, copy: bool | None = None) -> Any:
        """Returns `dlfield.as_jax(self)`, a `jax.Array` on the same memory if JAX can use it, else on a copy.

        >>> import dlfield as dl
        >>> field = dl.zeros((2, 3), backend="jax")
        >>> field.to_jax().unsafe_buffer_pointer() == field.ptr
        True
        """
    def to_xarray(self, *, name: Hashable | None = None, coords: Any = None) -> xarray.DataArray:
        """Returns an `xarray.DataArray` on the same memory with the same dims. `dlfield.xarray.to_xarray` has the parameters and
        errors.

        >>> import dlfield as dl
        >>> dl.zeros((4, 3), dims="KI").to_xarray(name="pressure").dims
        ('K', 'I')
        """
    def plot(self, axes: Any = None, **keywords: Any) -> Any:
        """Draws one plane with matplotlib, its halo outside of a red frame, and returns the `Axes`; a field of one dimension as a line.

        The plane has the first two dimensions of more than one point, the first one to the right, at the origin of the others.
        `axes` are those to draw in, by default new ones. The other keywords are those of `Axes.imshow`, for a line of `Axes.plot`.
        Raises `ImportError` if matplotlib is not installed, `DimsError` for a field without such dimensions.

        >>> import dlfield as dl
        >>> axes = dl.zeros((6, 5, 4), halo=(1, 1, 0)).plot()
        >>> axes.get_xlabel(), axes.get_ylabel(), axes.get_title()
        ('I', 'J', 'K=0')
        """
    def share(self) -> Tensor:
        """Returns a copy in shared memory with the same layout, padding, alignment and labels; the tensor itself if it is in shared
        memory already.

        `multiprocessing` passes it, and its views, to other processes without a copy; `dlfield.shared_name` and `dlfield.attach`
        do so for other processes of this machine. The memory is freed when no process has it any more; others can attach it as
        long as this process has a tensor or an array on it. On Linux, for memory on the host and on CUDA devices ("cuda:N").
        Raises `DeviceError` for other devices and during graph capture, `LayoutError` for an alignment that does not divide a
        page, or 256 bytes on a device.

        On a device the memory is CUDA's, by `cuIpcGetMemHandle`, in multiples of 2 MiB. It is this process's: it has to stay
        alive while others have the memory, which it frees after them. See `attach` for the order of their work.

        >>> import dlfield as dl
        >>> field = dl.ones((2, 3)).share()
        >>> dl.attach(dl.shared_name(field))[1].tolist()
        [1.0, 1.0, 1.0]
        """
    def host_to_device(self, *, force: bool = False) -> None:
        """Copies modifications of the host to the device: does nothing, as there is one buffer. For code that takes any storage,
        such as `dlfield.storage.SoftwareManagedGPUStorage`.

        >>> import dlfield as dl
        >>> dl.zeros(3).host_to_device()
        """
    def device_to_host(self, *, force: bool = False) -> None:
        """Copies modifications of the device to the host: does nothing, as there is one buffer.

        >>> import dlfield as dl
        >>> dl.zeros(3).device_to_host()
        """
    def set_host_modified(self) -> None:
        """Marks the host buffer as modified: does nothing, as there is one buffer.

        >>> import dlfield as dl
        >>> dl.zeros(3).set_host_modified()
        """
    def set_device_modified(self) -> None:
        """Marks the device buffer as modified: does nothing, as there is one buffer.

        >>> import dlfield as dl
        >>> dl.zeros(3).set_device_modified()
        """
    def set_synchronized(self) -> None:
        """Marks the buffers as equal: does nothing, as there is one buffer.

        >>> import dlfield as dl
        >>> dl.zeros(3).set_synchronized()
        """
    def synchronize(self) -> None:
        """Makes the buffers equal: does nothing, as there is one buffer.

        >>> import dlfield as dl
        >>> dl.zeros(3).synchronize()
        """
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __contains__(self, value: Any, /) -> bool: ...
    # Keys with a range at the start, at the end or second; with numbers alone the result is a view or an element.
    @overload
    def __getitem__(self, key: _Range, /) -> Tensor: ...
    @overload
    def __getitem__(self, key: tuple[_Range, *tuple[_Basic, ...]], /) -> Tensor: ...
    @overload
    def __getitem__(self, key: tuple[*tuple[_Basic, ...], _Range], /) -> Tensor: ...
    @overload
    def __getitem__(self, key: tuple[_Int, _Range, *tuple[_Basic, ...]], /) -> Tensor: ...
    @overload
    def __getitem__(self, key: Any, /) -> Any: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    def __delitem__(self, key: Any, /) -> None: ...
    def __bool__(self) -> bool: ...
    def __index__(self) -> int: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> complex: ...
    def __round__(self, ndigits: SupportsIndex | None = None) -> Any: ...
    def __dir__(self) -> list[str]: ...
    def __format__(self, format_spec: str, /) -> str: ...
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any: ...
    def __add__(self, value: Any, /) -> Tensor: ...
    def __radd__(self, value: Any, /) -> Tensor: ...
    def __iadd__(self, value: Any, /) -> Self: ...
    def __sub__(self, value: Any, /) -> Tensor: ...
    def __rsub__(self, value: Any, /) -> Tensor: ...
    def __isub__(self, value: Any, /) -> Self: ...
    def __mul__(self, value: Any, /) -> Tensor: ...
    def __rmul__(self, value: Any, /) -> Tensor: ...
    def __imul__(self, value: Any, /) -> Self: ...
    def __truediv__(self, value: Any, /) -> Tensor: ...
    def __rtruediv__(self, value: Any, /) -> Tensor: ...
    def __itruediv__(self, value: Any, /) -> Self: ...
    def __floordiv__(self, value: Any, /) -> Tensor: ...
    def __rfloordiv__(self, value: Any, /) -> Tensor: ...
    def __ifloordiv__(self, value: Any, /) -> Self: ...
    def __mod__(self, value: Any, /) -> Tensor: ...
    def __rmod__(self, value: Any, /) -> Tensor: ...
    def __imod__(self, value: Any, /) -> Self: ...
    def __pow__(self, value: Any, /) -> Tensor: ...
    def __rpow__(self, value: Any, /) -> Tensor: ...
    def __ipow__(self, value: Any, /) -> Self: ...
    def __lshift__(self, value: Any, /) -> Tensor: ...
    def __rlshift__(self, value: Any, /) -> Tensor: ...
    def __ilshift__(self, value: Any, /) -> Self: ...
    def __rshift__(self, value: Any, /) -> Tensor: ...
    def __rrshift__(self, value: Any, /) -> Tensor: ...
    def __irshift__(self, value: Any, /) -> Self: ...
    def __and__(self, value: Any, /) -> Tensor: ...
    def __rand__(self, value: Any, /) -> Tensor: ...
    def __iand__(self, value: Any, /) -> Self: ...
    def __xor__(self, value: Any, /) -> Tensor: ...
    def __rxor__(self, value: Any, /) -> Tensor: ...
    def __ixor__(self, value: Any, /) -> Self: ...
    def __or__(self, value: Any, /) -> Tensor: ...
    def __ror__(self, value: Any, /) -> Tensor: ...
    def __ior__(self, value: Any, /) -> Self: ...
    def __divmod__(self, value: Any, /) -> tuple[Tensor, Tensor]: ...
    def __rdivmod__(self, value: Any, /) -> tuple[Tensor, Tensor]: ...
    def __lt__(self, value: Any, /) -> Tensor: ...
    def __le__(self, value: Any, /) -> Tensor: ...
    def __gt__(self, value: Any, /) -> Tensor: ...
    def __ge__(self, value: Any, /) -> Tensor: ...
    # By element if the other operand is an array or a number.
    def __eq__(self, value: object, /) -> Any: ...
    # By element if the other operand is an array or a number.
    def __ne__(self, value: object, /) -> Any: ...
    def __hash__(self) -> int: ...
    def __matmul__(self, value: Any, /) -> NoReturn: ...
    def __rmatmul__(self, value: Any, /) -> NoReturn: ...
    def __imatmul__(self, value: Any, /) -> NoReturn: ...
    def __neg__(self, /) -> Tensor: ...
    def __pos__(self, /) -> Tensor: ...
    def __abs__(self, /) -> Tensor: ...
    def __invert__(self, /) -> Tensor: ...
    def __copy__(self) -> Tensor: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> Tensor: ...
    def __reduce_ex__(self, protocol: SupportsIndex, /) -> tuple[Any, ...]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]: ...
    # A `pyarrow.Array`.
    def __arrow_array__(self, type: Any = None) -> Any: ...  # noqa: A002
    @property
    def __array_priority__(self) -> float: ...
    @property
    def __array_interface__(self) -> dict[str, Any]: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...
    @property
    def __gt_dims__(self) -> tuple[str, ...]: ...
    @property
    def __gt_origin__(self) -> tuple[int, ...]: ...
    @property
    def __gt_data_interface__(self) -> dict[str | tuple[str, int] | None, dict[str, Any]]: ...
    def __dlpack__(
        self,
        *,
        stream: _StreamLike | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def _repr_html_(self) -> str: ...

@final
class Descriptor:
    """The validated description of an array of any library: what `describe` returns.

    Strides are in bytes. `dims`, `origin` and `halo` are None if unknown. Keeps the array alive.

    >>> import dlfield as dl, numpy as np
    >>> seen = dl.describe(np.ones((2, 3), "int16"), dims="JI")
    >>> seen.strides, seen.dims, seen.readonly, str(seen.device)
    ((6, 2), ('J', 'I'), False, 'cpu')
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents, in index order."""
    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next, in index order."""
    @property
    def ndim(self) -> int:
        """Number of dimensions."""
    @property
    def size(self) -> int:
        """Number of elements."""
    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
    @property
    def nbytes(self) -> int:
        """Bytes of all elements, without padding."""
    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type, as `numpy.dtype`."""
    @property
    def device(self) -> Device:
        """The device of the memory."""
    @property
    def dims(self) -> tuple[str, ...] | None:
        """Labels of the dimensions; None if unknown."""
    # `Any` stands for None, which it never is in a `BoundCall`.
    @property
    def origin(self) -> tuple[int, ...] | Any:
        """Index of the first compute point; None if unknown."""
    @property
    def halo(self) -> tuple[tuple[int, int], ...] | None:
        """(lower, upper) halo widths per dimension; None if unknown."""
    @property
    def layout(self) -> tuple[int, ...]:
        """Rank of each dimension's stride; 0 is the largest."""
    @property
    def alignment_size(self) -> int:
        """Alignment in bytes of the element at `aligned_index`, which a `Tensor` promises; 1 for other objects."""
    @property
    def aligned_index(self) -> tuple[int, ...]:
        """The index of the aligned element; zeros for objects that promise none."""
    @property
    def T(self) -> Descriptor:
        """The description with its dimensions, and their labels, in reverse order; `owner` is the same object.

        >>> import dlfield as dl, numpy as np
        >>> dl.describe(np.ones((2, 3)), dims="JI").T.dims
        ('I', 'J')
        """
    @property
    def ptr(self) -> int:
        """Address of the element at index 0."""
    @property
    def domain_ptr(self) -> int:
        """Address of the first point to compute: the element at `origin`, or without one after the lower halo.

        >>> import dlfield as dl
        >>> field = dl.describe(dl.zeros((4, 5), halo=(1, 2)))
        >>> field.domain_ptr - field.ptr == field.strides[0] + 2 * field.strides[1]
        True
        """
    @property
    def element_strides(self) -> tuple[int, ...]:
        """Elements from one element to the next, in index order.

        >>> import dlfield as dl, numpy as np
        >>> dl.describe(np.ones((2, 3))).element_strides
        (3, 1)
        """
    @property
    def ctypes(self) -> Ctypes:
        """The memory for `ctypes`, as `numpy.ndarray.ctypes`: `data` is the address of the element at index 0, `shape` and `strides`
        are arrays of `c_ssize_t`, and `data_as`, `shape_as` and `strides_as` take another type.

        >>> import ctypes, dlfield as dl
        >>> field = dl.describe(dl.full((2, 3), 5.0))
        >>> field.ctypes.data_as(ctypes.POINTER(ctypes.c_double))[0], list(field.ctypes.strides_as(ctypes.c_int))
        (5.0, [24, 8])
        """
    @property
    def readonly(self) -> bool:
        """Whether the memory is read-only."""
    @property
    def owner(self) -> Any:
        """The object that was described."""
    @property
    def protocol(self) -> str:
        """The protocol that it was imported by."""
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]: ...
    def alignment(self) -> int:
        """Returns the largest power of two that divides the address."""
    def is_contiguous(self, order: Literal["C", "F", "A"] = "C") -> bool:
        """Returns whether the elements are contiguous: "C" with the last index fastest, "F" with the first, "A" either."""

@final
class Preflight:
    """The result of `preflight`: whether memory can be shared, why not, and what to do about it.

    True if nothing is copied; its str begins with the verdict.

    >>> import dlfield as dl
    >>> bool(dl.preflight(dl.zeros((3, 4)), "torch"))
    True
    >>> print(dl.preflight(dl.zeros((3, 4))[::-1], "torch"))
    copy: PyTorch has no negative strides, found (-32, 8) bytes; pass copy=None for a copy
    """

    @property
    def verdict(self) -> Literal["zero-copy", "copy", "impossible"]:
        """ "zero-copy", "copy" or "impossible"."""
    @property
    def reason(self) -> str:
        """Why it would copy or fail; empty if there is no obstacle."""
    @property
    def fix(self) -> str:
        """What to do about it; empty if there is nothing to do."""
    def __bool__(self) -> bool: ...

@final
class FieldSpec:
    """The specification of one field of a stencil.

    Parameters
    ----------
    dtype : str, type or dtype, or several, optional
        The element type: anything that `np.dtype()` takes, and dtypes of ml_dtypes, torch and jax. Several: a string such as
        "float32 | float64", or a tuple or list; a temporary copy of a field of another type has the first. None: any.
    dims : str or sequence of str, optional
        Labels in the order in which the kernel indexes the field: a text as "IJK" or "lat lon", or a sequence. A field may
        have fewer dimensions than others, as "IJ"; data dimensions are digits, as in "IJK0". None: any number of dimensions,
        indexed in the argument's own order, regardless of its labels; they bound `BoundCall.domain` if the argument states them.
    access : {"r", "w", "rw"}, optional
        "r": read only; "w": written, without use of the old values; "rw": both. Elements that a call does not write keep
        their values; but if the call gets a temporary copy in a narrower type, all elements are cast to it and back.
    layout : sequence of int, optional
        The order of strides in which the kernel is fast: the rank of each dimension's stride, in the order of `dims`, 0 for
        the largest. None: any. Without `dims`, a layout or shape fixes the number of dimensions.
    alignment_size : int, optional
        Alignment in bytes of the first compute point, the element at the origin.
    shape : sequence of int, str or None, optional
        The extents, in the order of `dims`: an integer for a fixed one, None for any, or the name of a size with an optional
        offset, as "I" or "I+1". All fields of a call agree on the sizes of these names, regardless of the labels. None: any extents.
    optional : bool, optional
        Whether the field may be left out, or be None.
    backend : str, optional
        A preset, whose layout and alignment apply unless `layout` or `alignment_size` says otherwise; the device is that of the
        `Signature`. Alignments in elements are converted to bytes; the presets "jax", "torch" and "cupy" align the element at
        index 0. Without `dims`, the layout goes by the argument's own labels, or I, J, K, "0", ... if it has none.
    boundary : sequence of int or pairs, or mapping, optional
        How many points outside of the domain the kernel reads (GT4Py's word): for each dimension a number for both sides or
        `(lower, upper)`, or a mapping by label, as `{"I": 1}` for 0 in the others. `BoundCall.domain` leaves out the upper points, and
        a field whose origin, or lower halo, is smaller than the lower ones is a LayoutError.

    Raises
    ------
    DTypeError, DimsError, LayoutError
        An unknown element type; invalid labels; a layout, shape or boundary that does not fit `dims`; an alignment below 1; an
        unknown preset.
    ValueError
        Another value of `access`.

    Warns
    -----
    LayoutWarning
        The preset orders strides by I, J and K, and `dims` has several labels but none of these.

    Example
    -------
    >>> import dlfield as dl
    >>> dl.FieldSpec("float32", "IJK", access="w", layout=(2, 1, 0)).dims
    ('I', 'J', 'K')
    >>> dl.FieldSpec("float32", "IJK", backend="gtmc").alignment_size
    32
    >>> signature = dl.Signature(inp=dl.FieldSpec("float64", "IJ", boundary={"I": 1}))
    >>> signature.bind(inp=dl.zeros((6, 6), origin=(1, 0))).domain
    (4, 6)
    """

    def __new__(
        cls,
        dtype: Any,
        dims: _Dims | None = None,
        *,
        access: Literal["r", "w", "rw"] = "r",
        layout: _Ints | None = None,
        alignment_size: SupportsIndex | None = None,
        shape: Sequence[SupportsIndex | str | None] | None = None,
        optional: bool = False,
        backend: str | None = None,
        boundary: _Halo | None = None,
    ) -> FieldSpec: ...
    def __getnewargs_ex__(self) -> tuple[tuple[str | None, tuple[str, ...] | None], dict[str, Any]]: ...
    @property
    def dtype(self) -> np.dtype[Any] | None:
        """Element type, as `numpy.dtype`, if exactly one is allowed; else None."""
    @property
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        """The element types allowed, as a tuple of `numpy.dtype`; empty if any is."""
    @property
    def dims(self) -> tuple[str, ...] | None:
        """Labels, in the order in which the kernel indexes the field; None for any."""
    @property
    def access(self) -> Literal["r", "w", "rw"]:
        """ "r", "w" or "rw"."""
    @property
    def layout(self) -> tuple[int, ...] | None:
        """Ranks of the fast strides, in the order of `dims`, also if a preset says them; None for any, or if they depend on the
        argument.
        """
    @property
    def alignment_size(self) -> int | None:
        """Alignment in bytes of the first compute point, also if a preset says it; of the element at index 0 for the presets that
        align that. None if it depends on the element type of the argument.
        """
    @property
    def shape(self) -> tuple[int | str | None, ...] | None:
        """The extents: integers, None for any, names of sizes with an offset; None if all are free."""
    @property
    def boundary(self) -> tuple[tuple[int, int], ...] | None:
        """How many points `(lower, upper)` outside of the domain the kernel reads, in the order of `dims`; None if that was not given."""
    @property
    def optional(self) -> bool:
        """Whether the field may be left out."""
    @property
    def backend(self) -> str | None:
        """The preset; None if there is none."""

@final
class Signature:
    """The fields that a stencil takes, checked at every call by `bind`.

    Parameters
    ----------
    device : str or device, optional
        The device that uses the fields: a `Device`, its name, DLPack's pair, or a device of PyTorch, JAX, CuPy, cuda.core or
        Numba. Pinned and managed memory fits the host, which waits for the work on it, and CUDA devices.
    on_mismatch : {"raise", "copy"}, optional
        What happens to a field with another device, dtype, alignment or layout than expected. "raise": an error, or for
        layout a `LayoutWarning`. "copy": the stencil gets a temporary copy, with one warning for each field; it is written
        back after the call if the field is written. Dtypes are cast by NumPy's "same_kind" rule, both ways if written, except
        for those of less than 16 bits that NumPy itself does not have (float8, int4). The host casts, so another dtype remains an error if
        the host can reach neither the field nor the copy.
    allow_overlap : bool, optional
        Whether written fields may share memory with other fields, as when an array is passed twice. The kernel is then
        responsible for the order of its reads and writes. Fields with the same elements share one temporary copy; a
        temporary copy of only one of two fields that overlap is an error.
    fields : FieldSpec
        A `FieldSpec` for each field, by its name.

    Raises
    ------
    LayoutError, DimsError, DTypeError, DeviceError
        A `FieldSpec` whose parts do not fit together, or an invalid device.
    TypeError
        A field that is not a `FieldSpec`.
    ValueError
        Another value of `on_mismatch`.

    Example
    -------
    >>> import dlfield as dl, numpy as np
    >>> sig = dl.Signature(inp=dl.FieldSpec("float64", "IJ"), out=dl.FieldSpec("float64", "IJ", access="w"))
    >>> with sig.bind(inp=np.ones((4, 5)), out=dl.zeros((5, 4), dims="JI")) as fields:
    ...     fields.out.shape, fields.out.strides, fields.domain
    ((4, 5), (8, 32), (4, 5))
    >>> print(sig)
    (inp: Field[float64, I J, cpu], out: Field[float64, I J, cpu, w])
    """

    # All but the first are for `**signature.fields`: type checkers take these for values of all keywords that are left.
    @overload
    def __new__(
        cls,
        *,
        device: _DeviceLike = "cpu",
        on_mismatch: Literal["raise", "copy"] = "raise",
        allow_overlap: bool = False,
        **fields: FieldSpec,
    ) -> Signature: ...
    @overload
    def __new__(
        cls, *, device: _DeviceLike, on_mismatch: Literal["raise", "copy"], **fields: FieldSpec
    ) -> Signature: ...
    @overload
    def __new__(cls, *, device: _DeviceLike, allow_overlap: bool, **fields: FieldSpec) -> Signature: ...
    @overload
    def __new__(
        cls, *, on_mismatch: Literal["raise", "copy"], allow_overlap: bool, **fields: FieldSpec
    ) -> Signature: ...
    @overload
    def __new__(cls, *, device: _DeviceLike, **fields: FieldSpec) -> Signature: ...
    @overload
    def __new__(cls, *, on_mismatch: Literal["raise", "copy"], **fields: FieldSpec) -> Signature: ...
    @overload
    def __new__(cls, *, allow_overlap: bool, **fields: FieldSpec) -> Signature: ...
    @overload
    def __new__(cls, **fields: FieldSpec) -> Signature: ...
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    @classmethod
    def from_annotations(
        cls,
        annotated: Any,
        *,
        device: _DeviceLike = "cpu",
        on_mismatch: Literal["raise", "copy"] = "raise",
        allow_overlap: bool = False,
    ) -> Signature:
        """Return the signature of the fields that a function, a class or a mapping annotates.

        Parameters
        ----------
        annotated : function, class or mapping
            A function or a class with annotations, whose bases count too, or a mapping of names to annotations. Those of fields
            are `dl.Field[...]`, `Annotated[Any, dl.FieldSpec(...)]`, `gtscript.Field[...]`, which is read and written, and
            entries of a stencil's `field_info`; each may be `... | None` for a field that may be left out, as one with the
            default None. Others, such as those of scalars, are left out.
        device, on_mismatch, allow_overlap : optional
            As for `Signature`.

        Raises
        ------
        TypeError
            No field is annotated, `annotated` is something else, or an annotation in a mapping is text.
        Exception
            What the evaluation of annotations that are text raises, with a note that names the parameter.

        Example
        -------
        >>> import dlfield as dl
        >>> def step(inp: dl.Field["float64", "IJ"], out: dl.Field["float64", "IJ", "w"], dt: float): ...
        >>> dl.Signature.from_annotations(step)
        Signature(inp=FieldSpec('float64', ('I', 'J')), out=FieldSpec('float64', ('I', 'J'), access='w'), device='cpu')
        """
    @classmethod
    def from_stencil(
        cls,
        stencil: Any,
        *,
        device: _DeviceLike | None = None,
        on_mismatch: Literal["raise", "copy"] = "raise",
        allow_overlap: bool = False,
    ) -> Signature:
        """Return the signature of a compiled GT4Py stencil, from its `field_info`.

        Each field has the layout in which the stencil's backend is fast. One that the stencil does not use may be left out.
        Scalars are not part of a signature.

        Parameters
        ----------
        stencil : stencil of GT4Py
            A stencil of `gtscript.stencil` or `gtscript.lazy_stencil`, which is compiled now, a frozen one, or a wrapped one.
        device : str or device, optional
            The device of all fields, by default that of the backend.
        on_mismatch, allow_overlap : optional
            As for `Signature`.

        Raises
        ------
        TypeError
            `stencil` is of another type.

        Example
        -------
        >>> import dlfield as dl
        >>> from gt4py.cartesian import gtscript
        >>> @gtscript.stencil(backend="numpy")
        ... def double(inp: gtscript.Field[float], out: gtscript.Field[gtscript.IJK, float]):
        ...     with computation(PARALLEL), interval(...):
        ...         out = 2.0 * inp
        >>> dl.Signature.from_stencil(double).fields["out"]
        FieldSpec('float64', ('I', 'J', 'K'), access='w', layout=(0, 1, 2), shape=(None, None, None))
        """
    def wrap(self, function: Callable[..., Any], order: str | None = None) -> Callable[..., Any]:
        """Return a function that binds its arguments and calls another one with them: no body in between.

        Parameters
        ----------
        function
            A function of C, by `ctypes`, cffi (`ffi.addressof(lib, "name")`) or `numba.cfunc`; or one of Python or f2py.
        order
            What the function takes, in its order, as text: attributes of the fields, "domain" and scalars. Attributes are
            "ptr", "domain_ptr" (the first point to compute), "shape", "strides" (bytes), "element_strides", "origin", "size",
            "ndim", "nbytes", "itemsize", and for a function of Python "array", of NumPy. Consecutive ones are those of each
            field in turn, so that "ptr strides domain" is pointer and strides of the first, pointer and strides of the second,
            then the domain; "inp.ptr" is that of one field. Any other name is a scalar argument, after the fields. A C function
            gets a list as the address of integers, or with a star, "*domain", as that many integers. By default, "array".

        Returns
        -------
        function
            With the fields and the scalars as parameters. It returns what `function` returns.

        Raises
        ------
        TypeError, ValueError
            An order that the function cannot have. At a call, of a C function with `argtypes`: another number or type of
            arguments, as `double *` for a field of float32.
        OverflowError
            At a call: an integer that does not fit the C type.
        Error
            At a call, as by `bind`.

        Example
        -------
        >>> import ctypes, dlfield as dl
        >>> memcpy = ctypes.CDLL(None).memcpy
        >>> memcpy.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
        >>> sig = dl.Signature(out=dl.FieldSpec("float64", "I", access="w"), inp=dl.FieldSpec("float64", "I"))
        >>> copy = sig.wrap(memcpy, "out.ptr inp.ptr inp.nbytes")
        >>> inp, out = dl.full(3, 2.0), dl.zeros(3)
        >>> address = copy(inp=inp, out=out)
        >>> out.tolist()
        [2.0, 2.0, 2.0]
        """
    @property
    def fields(self) -> dict[str, FieldSpec]:
        """The `FieldSpec` of each field, by name."""
    @property
    def device(self) -> Device:
        """The device that uses the fields."""
    @property
    def on_mismatch(self) -> Literal["raise", "copy"]:
        """ "raise", or "copy" for temporary copies."""
    @property
    def allow_overlap(self) -> bool:
        """Whether written fields may share memory with other fields."""
    def bind(self, /, **fields: Any) -> BoundCall:
        """Check the arguments of a call, and permute their dimensions into the order that the stencil was written for.

        Each is described as by `describe`. Its labels are trusted; one without labels is taken to be in the order of its
        `FieldSpec`. Without an origin, the compute points of a field start after its lower halo, or at index 0.

        Parameters
        ----------
        fields
            The arrays, by the signature's names: anything that `describe` takes. None for optional fields that are absent.

        Returns
        -------
        BoundCall
            Keeps the arrays alive. Use it in a `with` statement if an object has hooks (`acquire`, `touch`, `release`), or if
            fields may be copied.

        Raises
        ------
        TypeError
            A field is missing or unknown.
        NotAnArrayError, DTypeError, DimsError, DeviceError, LayoutError, ExchangeError
            A field does not fit, or two disagree on a named size; the message names them. Written fields must be writable, and
            share no memory with another field, unless the signature allows it, or within themselves; strides for which this is too
            hard to decide are taken to share memory. Errors about all fields (one is missing or unknown, sizes differ) have the
            signature's text as a note.
        Exception
            Exceptions of a producer pass through, with a note that names the field.

        Warns
        -----
        LayoutWarning
            A field has another layout than the fast one, or is copied.

        Example
        -------
        >>> import dlfield as dl, numpy as np
        >>> sig = dl.Signature(inp=dl.FieldSpec("float64", "IJK"))
        >>> sig.bind(inp=np.zeros((3, 4, 5), "float32"))
        Traceback (most recent call last):
            ...
        dlfield.DTypeError: field "inp": dtype: expected float64, got float32
        """

@final
class BoundCall:
    """The fields of one call, checked and in the order of dimensions of their `FieldSpec`: the result of `Signature.bind`.

    Each is a `Descriptor`, as an attribute or an item (for names that are attributes of the object itself); None if an
    optional field was not given. `origin` is never None, and `dims` only if neither the `FieldSpec` nor the argument has any.

    As a context manager it calls the hooks of objects with a data interface: every `acquire` on entry; on exit `touch` of
    the written fields, then every `release`, also if the body has failed. The hooks of an object that is passed for two
    fields are called for both. Without a `with` statement, no hooks are called. Temporary copies of fields
    (`on_mismatch="copy"`) are filled on entry, and written back on exit if the body has not failed; these fields are
    available only in between.

    >>> import dlfield as dl, numpy as np
    >>> bound = dl.Signature(x=dl.FieldSpec("float64", "IJ")).bind(x=np.ones((4, 5)))
    >>> bound.x.shape, bound["x"].origin, bound.domain
    ((4, 5), (0, 0), (4, 5))
    """

    @property
    def domain(self) -> Domain:
        """Extents of the largest domain that all fields have points for, from the origin of each to its upper halo: I, J and K
        first, then user labels in the order of the signature. Dimensions that no field has, and data dimensions, are left
        out. A tuple with `dims`, whose items go by label, too: `domain["I"]`. Warns if fields with the same extents have different
        origins, for instance if only one of them has a halo.
        """
    # None for an optional field that was not given, which a checker cannot know: hence the `Any`.
    def __getattr__(self, name: str, /) -> Descriptor | Any: ...
    def __getitem__(self, name: str, /) -> Descriptor | Any: ...
    def __contains__(self, name: str, /) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __enter__(self) -> BoundCall: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> Literal[False]: ...

def empty(
    shape: _Shape,
    dtype: Any = "float64",
    *,
    backend: str | None = None,
    dims: _Dims | None = None,
    layout: _Ints | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: _IntsByLabel | None = None,
    padding: _Padding | None = None,
    halo: _Halo | None = None,
    origin: _IntsByLabel | None = None,
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
    buffer: Buffer | Any = None,
) -> Tensor:
    """Allocates a field of the given shape with undefined values.

    Parameters
    ----------
    shape : int or sequence of int
        Elements per dimension.
    dtype : str, type or dtype, optional
        What `np.dtype()` takes, and dtypes of ml_dtypes, torch and jax.
    backend : str, optional
        A preset, such as "gt:cpu_ifirst", whose layout, alignment, padding and device apply.
    dims : str or sequence of str, optional
        Labels of the dimensions: "IJK", "lat lon", or a sequence; integers from 0 for data dimensions.
    layout : sequence of int, optional
        The rank of the stride of each dimension, 0 for the largest.
    alignment_size : int, optional
        Alignment in bytes of the element at `aligned_index`.
    aligned_index : sequence of int or mapping, optional
        An index; by default the lower halo.
    padding : {"none", "row"}, optional
        Whether each row begins at a multiple of the alignment.
    halo : sequence of int or pairs, or mapping, optional
        For each dimension the width on both sides, or `(lower, upper)`; a mapping goes by label.
    origin : sequence of int or mapping, optional
        Index of the first compute point; by default the lower halo.
    device : str or device, optional
        "cpu", "cuda:N", "cuda_host" (pinned), "cuda_managed", or a device object of PyTorch, JAX,
        CuPy, cuda.core or Numba.
    stream : int or stream, optional
        The CUDA stream that orders the work; by default the current one.
    buffer : buffer or array, optional
        Writable, contiguous memory to lay the field into: an object with the buffer protocol, or an array on
        `device`. The field keeps it. `empty` and `empty_like` keep the values that are there; all others
        overwrite them. The field begins at the first address that is aligned as asked for: by an
        `alignment_size` or `aligned_index` that may be after byte 0, and `empty` reads the values from there
        on. `frombuffer` reads them from a given byte.

    Returns
    -------
    Tensor
        In new memory, or in that of `buffer`.

    Raises
    ------
    LayoutError, DimsError, DTypeError, DeviceError
        An argument that does not fit; the message names it.
    TypeError
        An argument of another type, as a number for `halo`.
    MemoryError
        The allocation failed.
    ExchangeError, NotAnArrayError
        The buffer is read-only, or has no memory; a stream for the host.

    Warns
    -----
    LayoutWarning
        `backend` orders strides by I, J and K, and `dims` has several other labels and none of these.

    Example
    -------
    >>> import dlfield as dl
    >>> dl.empty((10, 10, 7), backend="gt:cpu_ifirst").strides
    (8, 80, 800)
    """

def zeros(
    shape: _Shape,
    dtype: Any = "float64",
    *,
    backend: str | None = None,
    dims: _Dims | None = None,
    layout: _Ints | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: _IntsByLabel | None = None,
    padding: _Padding | None = None,
    halo: _Halo | None = None,
    origin: _IntsByLabel | None = None,
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
    buffer: Buffer | Any = None,
) -> Tensor:
    """Allocates a field of zeros of the given shape.

    Parameters
    ----------
    shape : int or sequence of int
        Elements per dimension.
    dtype : str, type or dtype, optional
        What `np.dtype()` takes, and dtypes of ml_dtypes, torch and jax.
    backend : str, optional
        A preset, such as "gt:cpu_ifirst", whose layout, alignment, padding and device apply.
    dims : str or sequence of str, optional
        Labels of the dimensions: "IJK", "lat lon", or a sequence; integers from 0 for data dimensions.
    layout : sequence of int, optional
        The rank of the stride of each dimension, 0 for the largest.
    alignment_size : int, optional
        Alignment in bytes of the element at `aligned_index`.
    aligned_index : sequence of int or mapping, optional
        An index; by default the lower halo.
    padding : {"none", "row"}, optional
        Whether each row begins at a multiple of the alignment.
    halo : sequence of int or pairs, or mapping, optional
        For each dimension the width on both sides, or `(lower, upper)`; a mapping goes by label.
    origin : sequence of int or mapping, optional
        Index of the first compute point; by default the lower halo.
    device : str or device, optional
        "cpu", "cuda:N", "cuda_host" (pinned), "cuda_managed", or a device object of PyTorch, JAX,
        CuPy, cuda.core or Numba.
    stream : int or stream, optional
        The CUDA stream that orders the work; by default the current one.
    buffer : buffer or array, optional
        Writable, contiguous memory to lay the field into: an object with the buffer protocol, or an array on
        `device`. The field keeps it. `empty` and `empty_like` keep the values that are there; all others
        overwrite them. The field begins at the first address that is aligned as asked for: by an
        `alignment_size` or `aligned_index` that may be after byte 0, and `empty` reads the values from there
        on. `frombuffer` reads them from a given byte.

    Returns
    -------
    Tensor
        In new memory, or in that of `buffer`.

    Raises
    ------
    LayoutError, DimsError, DTypeError, DeviceError
        An argument that does not fit; the message names it.
    TypeError
        An argument of another type, as a number for `halo`.
    MemoryError
        The allocation failed.
    ExchangeError, NotAnArrayError
        The buffer is read-only, or has no memory; a stream for the host.

    Warns
    -----
    LayoutWarning
        `backend` orders strides by I, J and K, and `dims` has several other labels and none of these.

    Example
    -------
    >>> import dlfield as dl
    >>> dl.zeros((4, 3), halo=(1, 0)).origin
    (1, 0)
    """

def ones(
    shape: _Shape,
    dtype: Any = "float64",
    *,
    backend: str | None = None,
    dims: _Dims | None = None,
    layout: _Ints | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: _IntsByLabel | None = None,
    padding: _Padding | None = None,
    halo: _Halo | None = None,
    origin: _IntsByLabel | None = None,
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
    buffer: Buffer | Any = None,
) -> Tensor:
    """Allocates a field of ones of the given shape.

    Parameters
    ----------
    shape : int or sequence of int
        Elements per dimension.
    dtype : str, type or dtype, optional
        What `np.dtype()` takes, and dtypes of ml_dtypes, torch and jax.
    backend : str, optional
        A preset, such as "gt:cpu_ifirst", whose layout, alignment, padding and device apply.
    dims : str or sequence of str, optional
        Labels of the dimensions: "IJK", "lat lon", or a sequence; integers from 0 for data dimensions.
    layout : sequence of int, optional
        The rank of the stride of each dimension, 0 for the largest.
    alignment_size : int, optional
        Alignment in bytes of the element at `aligned_index`.
    aligned_index : sequence of int or mapping, optional
        An index; by default the lower halo.
    padding : {"none", "row"}, optional
        Whether each row begins at a multiple of the alignment.
    halo : sequence of int or pairs, or mapping, optional
        For each dimension the width on both sides, or `(lower, upper)`; a mapping goes by label.
    origin : sequence of int or mapping, optional
        Index of the first compute point; by default the lower halo.
    device : str or device, optional
        "cpu", "cuda:N", "cuda_host" (pinned), "cuda_managed", or a device object of PyTorch, JAX,
        CuPy, cuda.core or Numba.
    stream : int or stream, optional
        The CUDA stream that orders the work; by default the current one.
    buffer : buffer or array, optional
        Writable, contiguous memory to lay the field into: an object with the buffer protocol, or an array on
        `device`. The field keeps it. `empty` and `empty_like` keep the values that are there; all others
        overwrite them. The field begins at the first address that is aligned as asked for: by an
        `alignment_size` or `aligned_index` that may be after byte 0, and `empty` reads the values from there
        on. `frombuffer` reads them from a given byte.

    Returns
    -------
    Tensor
        In new memory, or in that of `buffer`.

    Raises
    ------
    LayoutError, DimsError, DTypeError, DeviceError
        An argument that does not fit; the message names it.
    TypeError
        An argument of another type, as a number for `halo`.
    MemoryError
        The allocation failed.
    ExchangeError, NotAnArrayError
        The buffer is read-only, or has no memory; a stream for the host.

    Warns
    -----
    LayoutWarning
        `backend` orders strides by I, J and K, and `dims` has several other labels and none of these.

    Example
    -------
    >>> import dlfield as dl
    >>> float(dl.ones((2, 2), "float32")[1, 1])
    1.0
    """

def full(
    shape: _Shape,
    fill_value: Any,
    dtype: Any = "float64",
    *,
    backend: str | None = None,
    dims: _Dims | None = None,
    layout: _Ints | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: _IntsByLabel | None = None,
    padding: _Padding | None = None,
    halo: _Halo | None = None,
    origin: _IntsByLabel | None = None,
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
    buffer: Buffer | Any = None,
) -> Tensor:
    """Allocates a field of the given shape with every element `fill_value`.

    Raises `OverflowError` for an integer that does not fit.

    Parameters
    ----------
    shape : int or sequence of int
        Elements per dimension.
    fill_value : number
        The value of every element, cast as by `numpy.full`, with its bits kept.
    dtype : str, type or dtype, optional
        What `np.dtype()` takes, and dtypes of ml_dtypes, torch and jax.
    backend : str, optional
        A preset, such as "gt:cpu_ifirst", whose layout, alignment, padding and device apply.
    dims : str or sequence of str, optional
        Labels of the dimensions: "IJK", "lat lon", or a sequence; integers from 0 for data dimensions.
    layout : sequence of int, optional
        The rank of the stride of each dimension, 0 for the largest.
    alignment_size : int, optional
        Alignment in bytes of the element at `aligned_index`.
    aligned_index : sequence of int or mapping, optional
        An index; by default the lower halo.
    padding : {"none", "row"}, optional
        Whether each row begins at a multiple of the alignment.
    halo : sequence of int or pairs, or mapping, optional
        For each dimension the width on both sides, or `(lower, upper)`; a mapping goes by label.
    origin : sequence of int or mapping, optional
        Index of the first compute point; by default the lower halo.
    device : str or device, optional
        "cpu", "cuda:N", "cuda_host" (pinned), "cuda_managed", or a device object of PyTorch, JAX,
        CuPy, cuda.core or Numba.
    stream : int or stream, optional
        The CUDA stream that orders the work; by default the current one.
    buffer : buffer or array, optional
        Writable, contiguous memory to lay the field into: an object with the buffer protocol, or an array on
        `device`. The field keeps it. `empty` and `empty_like` keep the values that are there; all others
        overwrite them. The field begins at the first address that is aligned as asked for: by an
        `alignment_size` or `aligned_index` that may be after byte 0, and `empty` reads the values from there
        on. `frombuffer` reads them from a given byte.

    Returns
    -------
    Tensor
        In new memory, or in that of `buffer`.

    Raises
    ------
    LayoutError, DimsError, DTypeError, DeviceError
        An argument that does not fit; the message names it.
    TypeError
        An argument of another type, as a number for `halo`.
    MemoryError
        The allocation failed.
    ExchangeError, NotAnArrayError
        The buffer is read-only, or has no memory; a stream for the host.

    Warns
    -----
    LayoutWarning
        `backend` orders strides by I, J and K, and `dims` has several other labels and none of these.

    Example
    -------
    >>> import dlfield as dl
    >>> float(dl.full((2, 2), -0.0)[0, 0])
    -0.0
    """

def empty_like(
    data: Any,
    dtype: Any = None,
    *,
    backend: str | None = None,
    dims: _Dims | None = None,
    layout: _Ints | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: _IntsByLabel | None = None,
    padding: _Padding | None = None,
    halo: _Halo | None = None,
    origin: _IntsByLabel | None = None,
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
    buffer: Buffer | Any = None,
) -> Tensor:
    """Allocates a field like `data` with undefined values.

    Element type, dims, layout, alignment, padding, halo, origin and device come from `data` unless given. `data` may be
    any array; the rest is derived from the strides of an array of another library. A preset given as `backend` replaces
    layout, alignment, padding and device. The shape cannot be overridden.

    Parameters
    ----------
    data : array
        An array of any library, or what NumPy can convert to one.
    dtype : str, type or dtype, optional
        As for `empty`; that of `data` if it is not given.
    backend : str, optional
        A preset, such as "gt:cpu_ifirst", whose layout, alignment, padding and device apply.
    dims : str or sequence of str, optional
        Labels of the dimensions: "IJK", "lat lon", or a sequence; integers from 0 for data dimensions.
    layout : sequence of int, optional
        The rank of the stride of each dimension, 0 for the largest.
    alignment_size : int, optional
        Alignment in bytes of the element at `aligned_index`.
    aligned_index : sequence of int or mapping, optional
        An index; by default the lower halo.
    padding : {"none", "row"}, optional
        Whether each row begins at a multiple of the alignment.
    halo : sequence of int or pairs, or mapping, optional
        For each dimension the width on both sides, or `(lower, upper)`; a mapping goes by label.
    origin : sequence of int or mapping, optional
        Index of the first compute point; by default the lower halo.
    device : str or device, optional
        "cpu", "cuda:N", "cuda_host" (pinned), "cuda_managed", or a device object of PyTorch, JAX,
        CuPy, cuda.core or Numba.
    stream : int or stream, optional
        The CUDA stream that orders the work; by default the current one.
    buffer : buffer or array, optional
        Writable, contiguous memory to lay the field into: an object with the buffer protocol, or an array on
        `device`. The field keeps it. `empty` and `empty_like` keep the values that are there; all others
        overwrite them. The field begins at the first address that is aligned as asked for: by an
        `alignment_size` or `aligned_index` that may be after byte 0, and `empty` reads the values from there
        on. `frombuffer` reads them from a given byte.

    Returns
    -------
    Tensor
        In new memory, or in that of `buffer`.

    Raises
    ------
    LayoutError, DimsError, DTypeError, DeviceError
        An argument that does not fit; the message names it.
    TypeError
        An argument of another type, as a number for `halo`.
    MemoryError
        The allocation failed.
    ExchangeError, NotAnArrayError
        The buffer is read-only, or has no memory; a stream for the host.

    Warns
    -----
    LayoutWarning
        `backend` orders strides by I, J and K, and `dims` has several other labels and none of these.

    Example
    -------
    >>> import dlfield as dl
    >>> dl.empty_like(dl.zeros((4, 3), layout=(1, 0))).layout
    (1, 0)
    """

def zeros_like(
    data: Any,
    dtype: Any = None,
    *,
    backend: str | None = None,
    dims: _Dims | None = None,
    layout: _Ints | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: _IntsByLabel | None = None,
    padding: _Padding | None = None,
    halo: _Halo | None = None,
    origin: _IntsByLabel | None = None,
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
    buffer: Buffer | Any = None,
) -> Tensor:
    """Allocates a field of zeros like `data`.

    Element type, dims, layout, alignment, padding, halo, origin and device come from `data` unless given. `data` may be
    any array; the rest is derived from the strides of an array of another library. A preset given as `backend` replaces
    layout, alignment, padding and device. The shape cannot be overridden.

    Parameters
    ----------
    data : array
        An array of any library, or what NumPy can convert to one.
    dtype : str, type or dtype, optional
        As for `empty`; that of `data` if it is not given.
    backend : str, optional
        A preset, such as "gt:cpu_ifirst", whose layout, alignment, padding and device apply.
    dims : str or sequence of str, optional
        Labels of the dimensions: "IJK", "lat lon", or a sequence; integers from 0 for data dimensions.
    layout : sequence of int, optional
        The rank of the stride of each dimension, 0 for the largest.
    alignment_size : int, optional
        Alignment in bytes of the element at `aligned_index`.
    aligned_index : sequence of int or mapping, optional
        An index; by default the lower halo.
    padding : {"none", "row"}, optional
        Whether each row begins at a multiple of the alignment.
    halo : sequence of int or pairs, or mapping, optional
        For each dimension the width on both sides, or `(lower, upper)`; a mapping goes by label.
    origin : sequence of int or mapping, optional
        Index of the first compute point; by default the lower halo.
    device : str or device, optional
        "cpu", "cuda:N", "cuda_host" (pinned), "cuda_managed", or a device object of PyTorch, JAX,
        CuPy, cuda.core or Numba.
    stream : int or stream, optional
        The CUDA stream that orders the work; by default the current one.
    buffer : buffer or array, optional
        Writable, contiguous memory to lay the field into: an object with the buffer protocol, or an array on
        `device`. The field keeps it. `empty` and `empty_like` keep the values that are there; all others
        overwrite them. The field begins at the first address that is aligned as asked for: by an
        `alignment_size` or `aligned_index` that may be after byte 0, and `empty` reads the values from there
        on. `frombuffer` reads them from a given byte.

    Returns
    -------
    Tensor
        In new memory, or in that of `buffer`.

    Raises
    ------
    LayoutError, DimsError, DTypeError, DeviceError
        An argument that does not fit; the message names it.
    TypeError
        An argument of another type, as a number for `halo`.
    MemoryError
        The allocation failed.
    ExchangeError, NotAnArrayError
        The buffer is read-only, or has no memory; a stream for the host.

    Warns
    -----
    LayoutWarning
        `backend` orders strides by I, J and K, and `dims` has several other labels and none of these.

    Example
    -------
    >>> import dlfield as dl, numpy as np
    >>> dl.zeros_like(np.ones((4, 3), order="F")).layout
    (1, 0)
    """

def ones_like(
    data: Any,
    dtype: Any = None,
    *,
    backend: str | None = None,
    dims: _Dims | None = None,
    layout: _Ints | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: _IntsByLabel | None = None,
    padding: _Padding | None = None,
    halo: _Halo | None = None,
    origin: _IntsByLabel | None = None,
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
    buffer: Buffer | Any = None,
) -> Tensor:
    """Allocates a field of ones like `data`.

    Element type, dims, layout, alignment, padding, halo, origin and device come from `data` unless given. `data` may be
    any array; the rest is derived from the strides of an array of another library. A preset given as `backend` replaces
    layout, alignment, padding and device. The shape cannot be overridden.

    Parameters
    ----------
    data : array
        An array of any library, or what NumPy can convert to one.
    dtype : str, type or dtype, optional
        As for `empty`; that of `data` if it is not given.
    backend : str, optional
        A preset, such as "gt:cpu_ifirst", whose layout, alignment, padding and device apply.
    dims : str or sequence of str, optional
        Labels of the dimensions: "IJK", "lat lon", or a sequence; integers from 0 for data dimensions.
    layout : sequence of int, optional
        The rank of the stride of each dimension, 0 for the largest.
    alignment_size : int, optional
        Alignment in bytes of the element at `aligned_index`.
    aligned_index : sequence of int or mapping, optional
        An index; by default the lower halo.
    padding : {"none", "row"}, optional
        Whether each row begins at a multiple of the alignment.
    halo : sequence of int or pairs, or mapping, optional
        For each dimension the width on both sides, or `(lower, upper)`; a mapping goes by label.
    origin : sequence of int or mapping, optional
        Index of the first compute point; by default the lower halo.
    device : str or device, optional
        "cpu", "cuda:N", "cuda_host" (pinned), "cuda_managed", or a device object of PyTorch, JAX,
        CuPy, cuda.core or Numba.
    stream : int or stream, optional
        The CUDA stream that orders the work; by default the current one.
    buffer : buffer or array, optional
        Writable, contiguous memory to lay the field into: an object with the buffer protocol, or an array on
        `device`. The field keeps it. `empty` and `empty_like` keep the values that are there; all others
        overwrite them. The field begins at the first address that is aligned as asked for: by an
        `alignment_size` or `aligned_index` that may be after byte 0, and `empty` reads the values from there
        on. `frombuffer` reads them from a given byte.

    Returns
    -------
    Tensor
        In new memory, or in that of `buffer`.

    Raises
    ------
    LayoutError, DimsError, DTypeError, DeviceError
        An argument that does not fit; the message names it.
    TypeError
        An argument of another type, as a number for `halo`.
    MemoryError
        The allocation failed.
    ExchangeError, NotAnArrayError
        The buffer is read-only, or has no memory; a stream for the host.

    Warns
    -----
    LayoutWarning
        `backend` orders strides by I, J and K, and `dims` has several other labels and none of these.

    Example
    -------
    >>> import dlfield as dl
    >>> dl.ones_like(dl.zeros((4, 3), dims="KI")).dims
    ('K', 'I')
    """

def full_like(
    data: Any,
    fill_value: Any,
    dtype: Any = None,
    *,
    backend: str | None = None,
    dims: _Dims | None = None,
    layout: _Ints | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: _IntsByLabel | None = None,
    padding: _Padding | None = None,
    halo: _Halo | None = None,
    origin: _IntsByLabel | None = None,
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
    buffer: Buffer | Any = None,
) -> Tensor:
    """Allocates a field like `data` with every element `fill_value`.

    Element type, dims, layout, alignment, padding, halo, origin and device come from `data` unless given. `data` may be
    any array; the rest is derived from the strides of an array of another library. A preset given as `backend` replaces
    layout, alignment, padding and device. The shape cannot be overridden.

    Parameters
    ----------
    data : array
        An array of any library, or what NumPy can convert to one.
    fill_value : number
        The value of every element, cast as by `numpy.full`, with its bits kept.
    dtype : str, type or dtype, optional
        As for `empty`; that of `data` if it is not given.
    backend : str, optional
        A preset, such as "gt:cpu_ifirst", whose layout, alignment, padding and device apply.
    dims : str or sequence of str, optional
        Labels of the dimensions: "IJK", "lat lon", or a sequence; integers from 0 for data dimensions.
    layout : sequence of int, optional
        The rank of the stride of each dimension, 0 for the largest.
    alignment_size : int, optional
        Alignment in bytes of the element at `aligned_index`.
    aligned_index : sequence of int or mapping, optional
        An index; by default the lower halo.
    padding : {"none", "row"}, optional
        Whether each row begins at a multiple of the alignment.
    halo : sequence of int or pairs, or mapping, optional
        For each dimension the width on both sides, or `(lower, upper)`; a mapping goes by label.
    origin : sequence of int or mapping, optional
        Index of the first compute point; by default the lower halo.
    device : str or device, optional
        "cpu", "cuda:N", "cuda_host" (pinned), "cuda_managed", or a device object of PyTorch, JAX,
        CuPy, cuda.core or Numba.
    stream : int or stream, optional
        The CUDA stream that orders the work; by default the current one.
    buffer : buffer or array, optional
        Writable, contiguous memory to lay the field into: an object with the buffer protocol, or an array on
        `device`. The field keeps it. `empty` and `empty_like` keep the values that are there; all others
        overwrite them. The field begins at the first address that is aligned as asked for: by an
        `alignment_size` or `aligned_index` that may be after byte 0, and `empty` reads the values from there
        on. `frombuffer` reads them from a given byte.

    Returns
    -------
    Tensor
        In new memory, or in that of `buffer`.

    Raises
    ------
    LayoutError, DimsError, DTypeError, DeviceError
        An argument that does not fit; the message names it.
    TypeError
        An argument of another type, as a number for `halo`.
    MemoryError
        The allocation failed.
    ExchangeError, NotAnArrayError
        The buffer is read-only, or has no memory; a stream for the host.

    Warns
    -----
    LayoutWarning
        `backend` orders strides by I, J and K, and `dims` has several other labels and none of these.

    Example
    -------
    >>> import dlfield as dl
    >>> int(dl.full_like(dl.zeros((4, 3), "int32"), 7)[0, 0])
    7
    """

def from_array(
    data: Any,
    dtype: Any = None,
    *,
    backend: str | None = None,
    dims: _Dims | None = None,
    layout: _Ints | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: _IntsByLabel | None = None,
    padding: _Padding | None = None,
    halo: _Halo | None = None,
    origin: _IntsByLabel | None = None,
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
    buffer: Buffer | Any = None,
) -> Tensor:
    """Allocates a field and copies `data` into it, in the layout that `backend` or the keywords ask for.

    `data` is any array, or what NumPy can convert to one. Its element type is kept unless `dtype` is given; then
    elements are cast by NumPy's "same_kind" rule, and integers in lists to any type; `OverflowError` for one that does not
    fit. The other byte order is converted, and `longdouble` if `dtype` is given. Dims, halo and origin come from `data` unless
    given. Errors for `data` are those of `from_dlpack`; `ExchangeError` for a masked point, in lists too, `ValueError` for
    lists of different lengths.

    Parameters
    ----------
    data : array
        An array of any library, or what NumPy can convert to one.
    dtype : str, type or dtype, optional
        As for `empty`; that of `data` if it is not given.
    backend : str, optional
        A preset, such as "gt:cpu_ifirst", whose layout, alignment, padding and device apply.
    dims : str or sequence of str, optional
        Labels of the dimensions: "IJK", "lat lon", or a sequence; integers from 0 for data dimensions.
    layout : sequence of int, optional
        The rank of the stride of each dimension, 0 for the largest.
    alignment_size : int, optional
        Alignment in bytes of the element at `aligned_index`.
    aligned_index : sequence of int or mapping, optional
        An index; by default the lower halo.
    padding : {"none", "row"}, optional
        Whether each row begins at a multiple of the alignment.
    halo : sequence of int or pairs, or mapping, optional
        For each dimension the width on both sides, or `(lower, upper)`; a mapping goes by label.
    origin : sequence of int or mapping, optional
        Index of the first compute point; by default the lower halo.
    device : str or device, optional
        "cpu", "cuda:N", "cuda_host" (pinned), "cuda_managed", or a device object of PyTorch, JAX,
        CuPy, cuda.core or Numba.
    stream : int or stream, optional
        The CUDA stream that orders the work; by default the current one.
    buffer : buffer or array, optional
        Writable, contiguous memory to lay the field into: an object with the buffer protocol, or an array on
        `device`. The field keeps it. `empty` and `empty_like` keep the values that are there; all others
        overwrite them. The field begins at the first address that is aligned as asked for: by an
        `alignment_size` or `aligned_index` that may be after byte 0, and `empty` reads the values from there
        on. `frombuffer` reads them from a given byte.

    Returns
    -------
    Tensor
        In new memory, or in that of `buffer`.

    Raises
    ------
    LayoutError, DimsError, DTypeError, DeviceError
        An argument that does not fit; the message names it.
    TypeError
        An argument of another type, as a number for `halo`.
    MemoryError
        The allocation failed.
    ExchangeError, NotAnArrayError
        The buffer is read-only, or has no memory; a stream for the host.

    Warns
    -----
    LayoutWarning
        `backend` orders strides by I, J and K, and `dims` has several other labels and none of these.

    Example
    -------
    >>> import dlfield as dl
    >>> dl.from_array([[1, 2, 3], [4, 5, 6]], backend="F").strides
    (8, 16)
    """

def from_pointer(
    address: SupportsIndex,
    shape: _Shape,
    dtype: Any,
    *,
    strides: _Ints | None = None,
    device: _DeviceLike = "cpu",
    dims: _Dims | None = None,
    halo: _Halo | None = None,
    origin: _IntsByLabel | None = None,
    owner: object = None,
    readonly: bool = False,
) -> Tensor:
    """Make a tensor of memory that other code has made, by its address.

    Nothing can check what is at the address: the caller promises that all elements can be read, and written unless
    `readonly`, as long as the tensor, a view of it or an export lives. `owner` is the way to keep that promise.

    Parameters
    ----------
    address : int
        The address of the element at index 0, an integer, also with negative strides. It need not be aligned. 0 only for a
        field without elements.
    shape : int or sequence of int
        Elements per dimension.
    dtype : str, type or dtype
        The element type, as for `empty`.
    strides : sequence of int, optional
        In bytes, as in `ndarray.strides`, each a multiple of the element size. None for C order.
    device : str or device, optional
        Where the memory is: "cpu", "cuda:N", "cuda_host" (pinned) or "cuda_managed". CUDA memory needs the driver, which
        checks it. Work on it that is not yet done must be in the current stream of this thread.
    dims, halo, origin : optional
        As for `empty`.
    owner : object, optional
        Any object. It is kept, and released once, by whichever thread drops the last of the tensor, its views and its
        exports; so an owner whose `__del__` frees the memory frees it at the right time. An owner that refers to the tensor
        is never released. None if the memory outlives all of them anyway.
    readonly : bool, optional
        Whether the memory must not be written.

    Returns
    -------
    Tensor
        On this memory. No alignment is promised (`alignment_size` is 1); `alignment()` is that of the address.

    Raises
    ------
    LayoutError, DimsError, DTypeError
        An argument that does not fit the others, or that has a wrong type.
    ExchangeError
        Another number of strides than of dimensions; strides that are not whole elements, elements that leave the address space, address 0 with elements.
    DeviceError
        Memory of another kind of device, no CUDA driver, or memory that is not on `device` according to the driver.

    Example
    -------
    >>> import ctypes, dlfield as dl
    >>> memory = (ctypes.c_double * 6)(1, 2, 3, 4, 5, 6)
    >>> field = dl.from_pointer(ctypes.addressof(memory), (3, 2), "float64", strides=(8, 24), dims="IJ", owner=memory)
    >>> field.to_numpy().tolist()
    [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
    """

def frombuffer(
    buf: Buffer | Any,
    shape: _Shape,
    dtype: Any,
    *,
    strides: _Ints | None = None,
    offset: SupportsIndex = 0,
    dims: _Dims | None = None,
    halo: _Halo | None = None,
    origin: _IntsByLabel | None = None,
) -> Tensor:
    """Make a tensor of the memory of any object with the buffer protocol, without a copy.

    Of the object only its memory counts, not its element type and shape. It is held: a `bytearray` cannot be resized, and a
    `memoryview` or `mmap` not be closed, as long as the tensor, a view of it or an export lives. Read-only memory makes a
    read-only tensor.

    Parameters
    ----------
    buf : buffer or array
        Contiguous memory: `bytes`, `bytearray`, `memoryview`, `array.array`, `mmap.mmap`, `SharedMemory.buf`, a ctypes
        array, or an array of any library.
    shape : int or sequence of int
        Elements per dimension.
    dtype : str, type or dtype
        The element type, as for `empty`.
    strides : sequence of int, optional
        In bytes, as in `ndarray.strides`, each a multiple of the element size. None for C order.
    offset : int, optional
        Bytes from the start of the buffer to the element at index 0.
    dims, halo, origin : optional
        As for `empty`.

    Returns
    -------
    Tensor
        On this memory. No alignment is promised (`alignment_size` is 1); `alignment()` is that of the address.

    Raises
    ------
    NotAnArrayError
        `buf` has no memory to share, or is a pointer of ctypes, whose buffer is the pointer itself.
    LayoutError, DimsError, DTypeError
        An argument that does not fit the others, or that has a wrong type; memory with gaps.
    ExchangeError
        Elements outside the buffer; strides that are not whole elements.

    Example
    -------
    >>> import dlfield as dl
    >>> header_and_data = bytearray(16 + 24)
    >>> field = dl.frombuffer(header_and_data, (2, 3), "int32", strides=(4, 8), offset=16, dims="JI")
    >>> field[1, 2] = 7
    >>> header_and_data[36]
    7
    """

def from_dlpack(
    obj: Any,
    *,
    device: _DeviceLike | None = None,
    copy: bool | None = None,
    dims: _Dims | None = None,
    origin: _IntsByLabel | None = None,
    stream: _StreamLike | None = None,
) -> Tensor:
    """Import any array as a `Tensor` that shares its memory and owns it.

    Read-only memory stays read-only; memory of a legacy DLPack capsule, which has no read-only flag, counts as read-only. The
    tensor gets the dims, origin and halo of the object. The memory stays in place as long as the tensor lives: NumPy
    and PyTorch refuse to resize it meanwhile, and if a `torch.Tensor` is given other memory, this one stays with the tensor.

    Parameters
    ----------
    obj : array
        Any array with one of the protocols that `describe` lists.
    device : str or device, optional
        The device that the memory must be on; None accepts any. A DLPack producer gets it as `dl_device`, other memory is
        copied there. Pinned and managed memory serves as memory of the host or of a CUDA device without a copy. The
        driver checks that CUDA memory is on the device.
    copy : bool, optional
        None copies only if the producer has no memory to share; True always copies, False never.
    dims : str or sequence of str, optional
        Labels of the dimensions, instead of those of `obj`.
    origin : sequence of int or mapping, optional
        Index of the first compute point, instead of that of `obj`. A field of `gt4py.next` begins at the grid's point 0; without
        that point in its domain it needs this argument.
    stream : int or stream, optional
        The CUDA stream that will use the memory: its later work waits for the producer's work. A number as in DLPack, or an
        object with `__cuda_stream__`; -1 for no synchronization. None for the current stream of this thread; the host has
        no streams.

    Returns
    -------
    Tensor
        On the same memory with the same strides, unless the memory had to be copied.

    Raises
    ------
    NotAnArrayError
        No protocol describes `obj`.
    ExchangeError
        A field of the protocol is wrong; `copy=False` and the producer has copied; a stream for host memory; a PyTorch tensor
        that requires grad; a `Descriptor` of memory that was moved since.
    DTypeError
        Elements that no other library supports: of the other byte order, structured, objects, dates, text.
    DeviceError
        The memory is on a device that is absent, or whose memory dlfield cannot own; no such stream.
    MemoryError
        There is no memory for a copy.
    DimsError, LayoutError
        Metadata that does not fit the shape, or that differs between two sources; a field of `gt4py.next` without the grid's
        point 0, and no `origin`.
    Exception
        The producer's own exceptions reach the caller.

    Example
    -------
    >>> import dlfield as dl, numpy as np
    >>> array = np.ones((2, 3))
    >>> field = dl.from_dlpack(array, dims="JI")
    >>> field[0, 0] = 5.0
    >>> float(array[0, 0]), field.dims
    (5.0, ('J', 'I'))
    """

def describe(
    obj: Any,
    *,
    dims: _Dims | None = None,
    device: _DeviceLike | None = None,
    writable: bool = False,
    stream: _StreamLike | None = None,
) -> Descriptor:
    """Describe any array in place: address, shape, strides, element type, device, metadata. Never copies.

    Protocols are tried in this order; the first one that an object has is used, and its errors are final. The value of
    `Descriptor.protocol` is in parentheses:

    - our own types (dlfield), NumPy's arrays (numpy), DLPack's C exchange API (dlpack-c), JAX arrays on the host (jax),
      bytes, bytearray and memoryview (buffer);
    - xarray.DataArray and Variable and gt4py.next fields: the array inside, by its own protocol;
    - `__dlpack__` and raw capsules of both names (dlpack);
    - `__gt_data_interface__` and `__gt_interface__` (gt);
    - `__cuda_array_interface__` (cuda-array-interface), `__hip_array_interface__` (hip-array-interface),
      `__array_interface__` (array-interface), `__array_struct__` (array-struct);
    - the buffer protocol (buffer), and last `__array__` (array).

    Describing memory of a GPU needs neither a driver nor a GPU; the memory is not accessed.

    Parameters
    ----------
    obj : array
        The array. A raw capsule can be described only once: that consumes it.
    dims : str or sequence of str, optional
        Labels of the dimensions, instead of those of `obj`.
    device : str or device, optional
        The device that must be able to access the memory; None accepts any. Pinned and managed memory fits the host, which
        waits for the work on it, and CUDA devices. The CUDA and ROCm interfaces do not name the GPU: this
        argument does, else the driver if there is one, else it is number 0. The driver checks that CUDA memory is on the
        device.
    writable : bool, optional
        Whether the memory must be writable. A legacy DLPack capsule has no read-only flag: its memory counts as read-only
        unless True promises that it is writable. `from_dlpack`, `as_numpy`, `as_torch`, `as_cupy` and `Signature.bind` take the
        description as an array, with that promise. Memory of JAX is always read-only.
    stream : int or stream, optional
        The stream that will use the memory, a number as in DLPack or an object with `__cuda_stream__`: its later work waits
        for the producer's work. -1 for no synchronization. None for the current stream of this thread; the host has no
        streams.

    Returns
    -------
    Descriptor
        Keeps `obj`, and what the producer exported. If `obj` moves its memory afterwards (`resize` of NumPy, `resize_`, `set_`,
        `.data =` of PyTorch), `ptr` is invalid; if dlfield uses the description again, that is an error.

    Raises
    ------
    NotAnArrayError
        No protocol describes `obj`.
    ExchangeError
        A field of the protocol is wrong; the memory is read-only and `writable=True`; the producer offers only a copy; a
        stream that the device does not have or that the protocol of `obj` does not take; a PyTorch tensor that requires grad and
        `writable=True`.
    DTypeError
        Elements that no other library supports: of the other byte order, structured, objects, dates, text.
    DeviceError
        `device` cannot access the memory.
    DimsError, LayoutError
        Metadata that does not fit the shape, or that differs between two sources.
    Exception
        The producer's own exceptions reach the caller.

    Example
    -------
    >>> import dlfield as dl, numpy as np
    >>> seen = dl.describe(np.zeros((2, 3), "float32"))
    >>> seen.shape, seen.strides, seen.protocol
    ((2, 3), (12, 4), 'numpy')
    """

def get_dims(obj: Any, annotation: Any = None) -> tuple[str, ...] | None:
    """Return the dims of an object: the labels of its dimensions, in index order.

    The sources are `__gt_dims__` (attribute or method), the data interface's "dims", and `dims` if that is a sequence of
    strings. If a wrapper has none, those of the array inside are returned.

    Parameters
    ----------
    obj
        Any object; it need not be an array.
    annotation
        What to return if the object has none: labels, as a text ("IJK", "lat lon") or a sequence, or an annotation that
        has labels. That is a `FieldSpec`, `dl.Field[...]`, `Annotated[..., FieldSpec(...)]`, `gtscript.Field[...]` of
        gt4py.cartesian, or an entry of a stencil's `field_info`.

    Returns
    -------
    tuple of str, or None
        None if neither the object nor the annotation has labels.

    Raises
    ------
    DimsError
        Two sources disagree, or a label is repeated or invalid.

    Example
    -------
    >>> import dlfield as dl, numpy as np
    >>> dl.get_dims(dl.zeros((2, 3), dims="JK")), dl.get_dims(np.zeros(2), "K")
    (('J', 'K'), ('K',))
    """

def get_origin(obj: Any, default: _Ints | None = None) -> tuple[int, ...] | None:
    """Return the origin of an object: the index of its first compute point, in index order.

    The sources are `__gt_origin__` and `default_origin` (attributes or methods, in GT4Py's order of dimensions), then the
    data interface's lower halo. If a wrapper has none, those of the array inside are returned.

    Parameters
    ----------
    obj
        Any object; it need not be an array.
    default
        The origin to return if the object has none: a sequence of integers.

    Returns
    -------
    tuple of int, or None
        None if the object has none and there is no default.

    Raises
    ------
    LayoutError
        `__gt_origin__` and `default_origin` disagree, or are not integers; a field of `gt4py.next` whose domain does not have the
        grid's point 0.
    DimsError
        As for `get_dims`: the labels determine the order.

    Example
    -------
    >>> import dlfield as dl, numpy as np
    >>> dl.get_origin(dl.zeros((5, 5), halo=(1, 2))), dl.get_origin(np.zeros(2))
    ((1, 2), None)
    """

def as_numpy(obj: Any, *, copy: bool | None = None) -> npt.NDArray[Any]:
    """Return the `numpy.ndarray` on the memory of any array that the host can read.

    Parameters
    ----------
    obj
        Any array that `from_dlpack` accepts. An exact `numpy.ndarray` of any dtype is returned as it is.
    copy
        None copies only if the producer has no memory to share; True always copies, also from a device; False never.

    Returns
    -------
    numpy.ndarray
        Same shape, strides and dtype as `obj`; read-only if the memory is.

    Raises
    ------
    NoSuchBufferError
        The host cannot read the memory, and `copy` is not True.
    Error
        As for `from_dlpack`.

    Example
    -------
    >>> import dlfield as dl
    >>> field = dl.zeros((2, 3), backend="gt:cpu_ifirst")
    >>> dl.as_numpy(field).ctypes.data == field.ptr
    True
    """

def as_torch(obj: Any, *, copy: bool | None = None) -> torch.Tensor:
    """Return the `torch.Tensor` on the memory of `obj`.

    PyTorch has no read-only tensors, so read-only memory is copied, or rejected with `copy=False`.

    Parameters
    ----------
    obj
        A `Tensor` or anything `from_dlpack` takes. A `torch.Tensor` is returned as it is (`copy=True`: cloned).
    copy
        None copies only if PyTorch can't use the memory; True always; False never.

    Returns
    -------
    torch.Tensor
        Same shape and dtype as `obj`; without a copy also the same strides.

    Raises
    ------
    ExchangeError
        `copy=False` and the memory is read-only or has negative strides; or PyTorch does not have the dtype.
    NotAnArrayError, DTypeError, DeviceError
        As for `from_dlpack`.
    ImportError
        PyTorch is not installed.

    Example
    -------
    >>> import dlfield as dl
    >>> field = dl.zeros((4, 3))
    >>> dl.as_torch(field).data_ptr() == field.ptr
    True
    """

def preflight(obj: Any, target: Literal["numpy", "torch", "jax", "cupy"], *, write: bool = False) -> Preflight:
    """Checks whether a framework can use the memory of an array without a copy; reads no elements.

    Parameters
    ----------
    obj : array
        Any array that `describe` takes. A raw DLPack capsule can be consumed only once: describe it, and pass that.
    target : {"numpy", "torch", "jax", "cupy"}
        "numpy", "torch", "jax" or "cupy".
    write : bool, optional
        Whether the framework's array must be writable.

    Returns
    -------
    Preflight
        "zero-copy": `as_numpy`, `as_torch`, `as_jax` or `as_cupy` share the memory. "copy": they copy, or raise with
        `copy=False`. "impossible": they raise. True if and only if zero-copy.

    Raises
    ------
    NotAnArrayError
        `obj` has no array protocol. Exceptions of its protocol pass through.
    ValueError
        `target` has another value.
    ImportError
        PyTorch or JAX, whose dtypes are tried, is not installed. Without CuPy, only the layout counts.

    Example
    -------
    >>> import dlfield as dl
    >>> dl.preflight(dl.zeros((3, 4), "float32", backend="jax"), "jax")
    Preflight(verdict='zero-copy')
    >>> padded = dl.zeros((3, 4), "float32", alignment_size=64)
    >>> found = dl.preflight(padded, "jax")
    >>> found.verdict, found.reason
    ('copy', 'JAX takes compact strides only, found (64, 4) bytes for shape (3, 4)')
    >>> dl.preflight(padded, "jax", write=True).fix
    'write through NumPy or PyTorch: as_numpy, as_torch'
    """

def presets() -> dict[str, Preset]:
    """All presets by name: the built-in ones, then the registered ones.

    >>> import dlfield as dl
    >>> dl.presets()["gt:cpu_ifirst"].layout
    (2, 1, 0)
    """

def register_preset(
    name: str,
    *,
    alignment: SupportsIndex = 1,
    layout: Literal["C", "F"] | Sequence[SupportsIndex] = (0, 1, 2),
    device: _DeviceLike = "cpu",
) -> Preset:
    """Adds a preset for the rest of the process and returns it.

    Parameters
    ----------
    name : str
        The name that `backend=` will take.
    alignment : int, optional
        In elements.
    layout : {"C", "F"} or sequence of int, optional
        The ranks of I, J and K, 0 for the largest stride; they go by label. "C" and "F" go by index.
    device : str or device, optional
        Where fields are allocated.

    Returns
    -------
    Preset

    Raises
    ------
    LayoutError
        A name in use, an alignment below 1, or ranks that are not a permutation.

    Example
    -------
    >>> import dlfield as dl
    >>> dl.register_preset("mine", alignment=8, layout=(0, 2, 1)).alignment
    8
    >>> dl.zeros((4, 4, 4), backend="mine").layout
    (0, 2, 1)
    """

def set_num_threads(threads: SupportsIndex) -> None:
    """Sets the number of threads among which large copies and fills are divided, for the whole process.

    `threads` is a count; 0 restores the default: one thread per core, or the environment variable `RAYON_NUM_THREADS`.
    Small copies, and copies in the child of a fork, run on the calling thread alone; in such a child the call does nothing.
    Raises `ValueError` for a count below 0 or above the maximum, `RuntimeError` if the system cannot start the threads.

    >>> import dlfield as dl
    >>> dl.set_num_threads(2)
    >>> dl.num_threads()
    2
    >>> dl.set_num_threads(0)
    """

def num_threads() -> int:
    """Returns the number of threads among which large copies and fills are divided; 1 in the child of a fork.

    >>> import dlfield as dl
    >>> dl.num_threads() >= 1
    True
    """

def _rebuild(data: Any, state: tuple[Any, ...]) -> Tensor: ...
def _copy_state(tensor: Tensor) -> tuple[int, tuple[Any, ...]]: ...
def _memory_report() -> tuple[
    list[tuple[int, int, str, int, bool, tuple[int, list[int], str, list[str]] | None]],
    tuple[int, int],
    tuple[int, int],
    int,
]: ...

@final
class _SharedBlock:
    def find(self) -> Tensor | None: ...

def _allocate_shared(like: Tensor, file: int) -> tuple[_SharedBlock, Tensor, bytes, bytes, int]: ...
def _open_shared(uuid: bytes, handle: bytes, nbytes: int, file: int) -> tuple[_SharedBlock, Tensor]: ...
def _wait(tensor: Tensor) -> None: ...
def _block_state(tensor: Tensor) -> tuple[int, tuple[Any, ...]] | None: ...
def _inspect(obj: Any) -> Descriptor: ...
def _tensor(obj: Any, argument: str, *, copy: bool | None = None, origin: Any = None) -> Tensor: ...
def _trace_allocations(on: bool) -> None: ...
def _trace_copies(on: bool) -> None: ...
def _source(obj: Any, near: _DeviceLike) -> Tensor | None: ...
def _key(field: Tensor, key: Any) -> tuple[Any, Literal["basic", "newaxis", "arrays"]]: ...
def _can_access(device: _DeviceLike, memory: _DeviceLike) -> bool: ...
def _jax_takes(obj: object, /) -> bool: ...

@final
class _KernelCall:
    """Binds the fields among the arguments of a kernel, and calls its body with all of them."""

    def __new__(
        cls,
        signature: Signature,
        body: Callable[..., Any],
        names: list[str],
        by_name: int,
        failed: Callable[..., Any],
        within: Callable[..., Any],
    ) -> Self: ...
    def call(self, /, *arguments: Any) -> Any: ...

def _as_optional(spec: FieldSpec) -> FieldSpec: ...
def _register_package(obj: Any) -> None: ...
def _stencil_arguments(
    bound: BoundCall, export: Callable[[Descriptor], Any], export_readonly: Callable[[Descriptor], Any]
) -> tuple[dict[str, Any], bytes]: ...
def _relabelled(obj: Any, dims: tuple[str, ...], device: str) -> Descriptor: ...
def _copy_layout(field: Tensor) -> tuple[tuple[Any, ...], list[int], int]: ...
def _with_metadata(tensor: Tensor, state: tuple[Any, ...]) -> Tensor: ...
def _cuda_unavailable_reason() -> str | None: ...
def _cuda_device_count() -> int: ...
def _cuda_device_name(device: Any) -> str: ...
def _cuda_init(device: Any) -> None: ...
def _cuda_memory_info(device: Any) -> tuple[int, int]: ...
def _cuda_current_stream(device: Any) -> tuple[int, int]: ...
def _cuda_synchronize(device: Any, stream: Any) -> None: ...
def _cuda_push_stream(stream: Any, device: Any) -> tuple[int, int, int]: ...
def _cuda_pop_stream(number: int) -> None: ...
