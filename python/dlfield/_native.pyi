"""Types of the compiled module: everything in `dlfield` that is not plain Python."""

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Literal, SupportsIndex, TypeAlias, final

import numpy as np
import numpy.typing as npt
from typing_extensions import CapsuleType

__all__ = [
    "Bound",
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
    "Preflight",
    "Preset",
    "Signature",
    "Tensor",
    "__version__",
    "_cuda_current_stream",
    "_cuda_device_count",
    "_cuda_memory_info",
    "_cuda_state",
    "_cuda_synchronize",
    "_cuda_take_back",
    "_cuda_why_not",
    "_rebuild",
    "_restate",
    "as_numpy",
    "as_torch",
    "describe",
    "empty",
    "empty_like",
    "from_array",
    "from_dlpack",
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
_Dims: TypeAlias = str | Sequence[str]
_Ints: TypeAlias = Sequence[SupportsIndex]
_Halo: TypeAlias = Sequence[SupportsIndex | tuple[SupportsIndex, SupportsIndex]]
_Padding: TypeAlias = Literal["none", "row"]
_DeviceLike: TypeAlias = Device | str | tuple[int, int]
# A number as the array API standard has it, or an object of the CUDA stream protocol.
_StreamLike: TypeAlias = int | Any

class Error(Exception): ...
class LayoutWarning(UserWarning): ...
class LayoutError(Error, ValueError): ...
class DTypeError(Error, TypeError): ...
class DimsError(Error, ValueError): ...
class DeviceError(Error, RuntimeError): ...
class ExchangeError(Error, BufferError, ValueError): ...
class NoSuchBufferError(Error, LookupError): ...
class NotAnArrayError(Error, TypeError): ...

@final
class Device:
    def __new__(cls, device: _DeviceLike) -> Device: ...
    @property
    def type(self) -> str: ...
    @property
    def id(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Preset:
    @property
    def name(self) -> str: ...
    @property
    def device(self) -> Device: ...
    @property
    def alignment(self) -> int: ...
    @property
    def layout(self) -> str | tuple[int, int, int]: ...

@final
class Tensor:
    __dlpack_c_exchange_api__: CapsuleType
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def device(self) -> Device: ...
    @property
    def dims(self) -> tuple[str, ...]: ...
    @property
    def origin(self) -> tuple[int, ...]: ...
    @property
    def halo(self) -> tuple[tuple[int, int], ...]: ...
    @property
    def layout(self) -> tuple[int, ...]: ...
    @property
    def alignment_size(self) -> int: ...
    @property
    def aligned_index(self) -> tuple[int, ...]: ...
    @property
    def ptr(self) -> int: ...
    @property
    def readonly(self) -> bool: ...
    @property
    def T(self) -> Tensor: ...
    @property
    def domain_view(self) -> Tensor: ...
    def alignment(self) -> int: ...
    def is_contiguous(self, order: Literal["C", "F", "A"] = "C") -> bool: ...
    def copy(self) -> Tensor: ...
    def transpose(self, *axes: Any) -> Tensor: ...
    def as_readonly(self) -> Tensor: ...
    def to_device(self, device: _DeviceLike, *, stream: _StreamLike | None = None) -> Tensor: ...
    def to_numpy(self) -> npt.NDArray[Any]: ...
    def to_cupy(self) -> Any: ...
    def to_ndarray(self) -> Any: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __setitem__(self, key: Any, value: Any, /) -> None: ...
    def __bool__(self) -> bool: ...
    def __index__(self) -> int: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> complex: ...
    def __copy__(self) -> Tensor: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> Tensor: ...
    def __reduce_ex__(self, protocol: SupportsIndex, /) -> tuple[Any, ...]: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]: ...
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
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def device(self) -> Device: ...
    @property
    def dims(self) -> tuple[str, ...] | None: ...
    @property
    def origin(self) -> tuple[int, ...] | None: ...
    @property
    def halo(self) -> tuple[tuple[int, int], ...] | None: ...
    @property
    def layout(self) -> tuple[int, ...]: ...
    @property
    def ptr(self) -> int: ...
    @property
    def readonly(self) -> bool: ...
    @property
    def owner(self) -> Any: ...
    @property
    def protocol(self) -> str: ...
    def alignment(self) -> int: ...
    def is_contiguous(self, order: Literal["C", "F", "A"] = "C") -> bool: ...

@final
class Preflight:
    @property
    def verdict(self) -> Literal["zero-copy", "copy", "impossible"]: ...
    @property
    def reason(self) -> str: ...
    @property
    def fix(self) -> str: ...
    def __bool__(self) -> bool: ...

@final
class FieldSpec:
    def __new__(
        cls,
        dtype: Any,
        dims: _Dims,
        *,
        access: Literal["r", "w", "rw"] = "r",
        layout: _Ints | None = None,
        alignment_size: SupportsIndex | None = None,
        shape: Sequence[SupportsIndex | None] | None = None,
        optional: bool = False,
    ) -> FieldSpec: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def dims(self) -> tuple[str, ...]: ...
    @property
    def access(self) -> Literal["r", "w", "rw"]: ...
    @property
    def layout(self) -> tuple[int, ...] | None: ...
    @property
    def alignment_size(self) -> int: ...
    @property
    def shape(self) -> tuple[int | None, ...] | None: ...
    @property
    def optional(self) -> bool: ...

@final
class Signature:
    def __new__(
        cls,
        *,
        device: _DeviceLike = "cpu",
        on_mismatch: Literal["raise", "copy"] = "raise",
        **fields: FieldSpec,
    ) -> Signature: ...
    @property
    def fields(self) -> dict[str, FieldSpec]: ...
    @property
    def device(self) -> Device: ...
    @property
    def on_mismatch(self) -> Literal["raise", "copy"]: ...
    def bind(self, /, **fields: Any) -> Bound: ...

@final
class Bound:
    @property
    def domain(self) -> tuple[int, ...]: ...
    def __getattr__(self, name: str, /) -> Any: ...
    def __getitem__(self, name: str, /) -> Any: ...
    def __contains__(self, name: str, /) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __enter__(self) -> Bound: ...
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
    aligned_index: _Ints | None = None,
    padding: _Padding | None = None,
    halo: _Halo | None = None,
    origin: _Ints | None = None,
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> Tensor: ...
def zeros(
    shape: _Shape,
    dtype: Any = "float64",
    *,
    backend: str | None = None,
    dims: _Dims | None = None,
    layout: _Ints | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: _Ints | None = None,
    padding: _Padding | None = None,
    halo: _Halo | None = None,
    origin: _Ints | None = None,
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> Tensor: ...
def ones(
    shape: _Shape,
    dtype: Any = "float64",
    *,
    backend: str | None = None,
    dims: _Dims | None = None,
    layout: _Ints | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: _Ints | None = None,
    padding: _Padding | None = None,
    halo: _Halo | None = None,
    origin: _Ints | None = None,
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> Tensor: ...
def full(
    shape: _Shape,
    fill_value: Any,
    dtype: Any = "float64",
    *,
    backend: str | None = None,
    dims: _Dims | None = None,
    layout: _Ints | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: _Ints | None = None,
    padding: _Padding | None = None,
    halo: _Halo | None = None,
    origin: _Ints | None = None,
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> Tensor: ...
def empty_like(
    data: Any,
    dtype: Any = None,
    *,
    backend: str | None = None,
    dims: _Dims | None = None,
    layout: _Ints | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: _Ints | None = None,
    padding: _Padding | None = None,
    halo: _Halo | None = None,
    origin: _Ints | None = None,
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> Tensor: ...
def zeros_like(
    data: Any,
    dtype: Any = None,
    *,
    backend: str | None = None,
    dims: _Dims | None = None,
    layout: _Ints | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: _Ints | None = None,
    padding: _Padding | None = None,
    halo: _Halo | None = None,
    origin: _Ints | None = None,
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> Tensor: ...
def ones_like(
    data: Any,
    dtype: Any = None,
    *,
    backend: str | None = None,
    dims: _Dims | None = None,
    layout: _Ints | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: _Ints | None = None,
    padding: _Padding | None = None,
    halo: _Halo | None = None,
    origin: _Ints | None = None,
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> Tensor: ...
def full_like(
    data: Any,
    fill_value: Any,
    dtype: Any = None,
    *,
    backend: str | None = None,
    dims: _Dims | None = None,
    layout: _Ints | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: _Ints | None = None,
    padding: _Padding | None = None,
    halo: _Halo | None = None,
    origin: _Ints | None = None,
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> Tensor: ...
def from_array(
    data: Any,
    dtype: Any = None,
    *,
    backend: str | None = None,
    dims: _Dims | None = None,
    layout: _Ints | None = None,
    alignment_size: SupportsIndex | None = None,
    aligned_index: _Ints | None = None,
    padding: _Padding | None = None,
    halo: _Halo | None = None,
    origin: _Ints | None = None,
    device: _DeviceLike | None = None,
    stream: _StreamLike | None = None,
) -> Tensor: ...
def from_dlpack(
    obj: Any,
    *,
    device: _DeviceLike | None = None,
    copy: bool | None = None,
    dims: _Dims | None = None,
    origin: _Ints | None = None,
    stream: _StreamLike | None = None,
) -> Tensor: ...
def describe(
    obj: Any,
    *,
    dims: _Dims | None = None,
    device: _DeviceLike | None = None,
    writable: bool = False,
    stream: _StreamLike | None = None,
) -> Descriptor: ...
def get_dims(obj: Any, annotation: _Dims | None = None) -> tuple[str, ...] | None: ...
def get_origin(obj: Any, default: _Ints | None = None) -> tuple[int, ...] | None: ...
def as_numpy(obj: Any, *, copy: bool | None = None) -> npt.NDArray[Any]: ...
def as_torch(obj: Any, *, copy: bool | None = None) -> Any: ...
def preflight(obj: Any, target: Literal["numpy", "torch", "jax", "cupy"], *, write: bool = False) -> Preflight: ...
def presets() -> dict[str, Preset]: ...
def register_preset(
    name: str,
    *,
    alignment: SupportsIndex = 1,
    layout: Literal["C", "F"] | Sequence[SupportsIndex] = (0, 1, 2),
    device: _DeviceLike = "cpu",
) -> Preset: ...
def set_num_threads(threads: SupportsIndex) -> None: ...
def num_threads() -> int: ...
def _rebuild(data: Any, state: tuple[Any, ...]) -> Tensor: ...
def _restate(tensor: Tensor, state: tuple[Any, ...]) -> Tensor: ...
def _cuda_why_not() -> str | None: ...
def _cuda_device_count() -> int: ...
def _cuda_memory_info(device: Any) -> tuple[int, int]: ...
def _cuda_current_stream(device: Any) -> tuple[int, int]: ...
def _cuda_synchronize(device: Any, stream: Any) -> None: ...
def _cuda_state(stream: Any, device: Any) -> tuple[int, int, int]: ...
def _cuda_take_back(number: int) -> None: ...
