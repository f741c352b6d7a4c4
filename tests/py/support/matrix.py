"""The conformance matrix as data: layouts, objects that show an array by each protocol, and what takes them.

`test_matrix_in.py` checks every producer with every entrance; `matrix_out.py` has the other direction. A new
protocol, entry point or framework is a row in one of the tables.
"""

import importlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

import dlfield as dl
from catalog import CODES, ML_CODES, NUMPY_CODES, SUBBYTE_CODES, dtype_named
from dlpack_structs import LEGACY, READ_ONLY, SUBBYTE_PADDED, capsule_name, legacy, shape_of, strides_of, versioned
from fakes import DevicelessProducer, FakeTensor, OldProducer, Producer, exchange_type
from fakes_interfaces import Arrays, Exposing, FakeBuffer, interface_of

Array = npt.NDArray[Any]

BLOCK = 4096


class Layout(NamedTuple):
    """How to arrange elements, and whether PyTorch, JAX, and JAX for read-only memory share that layout."""

    lay_out: Callable[[Array], Array]
    torch: bool
    jax: bool
    jax_readonly: bool


# Each function gets the elements of a block that starts at a multiple of 64 bytes.
LAYOUTS = {
    "C": Layout(lambda flat: flat[:60].reshape(3, 4, 5), True, True, True),
    "F": Layout(lambda flat: flat[:60].reshape(5, 4, 3).T, True, True, False),
    "K first": Layout(lambda flat: flat[:60].reshape(5, 3, 4).transpose(1, 2, 0), True, True, False),
    "row-padded": Layout(lambda flat: flat[:96].reshape(12, 8)[:, :5], True, False, False),
    "sliced": Layout(lambda flat: flat[:120].reshape(12, 10)[::2], True, False, False),
    "negative": Layout(lambda flat: flat[:60].reshape(12, 5)[::-1], False, False, False),
    "size 1": Layout(lambda flat: flat[:60].reshape(10, 6)[:1][::-1, None], True, True, True),
    "size 0": Layout(lambda flat: flat[:60].reshape(12, 5)[::-1, :0], True, True, True),
    "0-d": Layout(lambda flat: flat[:1].reshape(()), True, True, True),
    "offset": Layout(lambda flat: flat[1:61].reshape(3, 4, 5), True, False, False),
    "at 16 bytes": Layout(lambda flat: behind(flat, 16), True, False, False),
    "broadcast": Layout(
        lambda flat: np.ndarray((3, 5), flat.dtype, flat.view("u1"), strides=(0, flat.itemsize)), True, False, False
    ),
    "at 64 bytes": Layout(lambda flat: behind(flat, 64), True, True, True),
}


def behind(flat: Array, distance: int) -> Array:
    """3 x 4 x 5 elements that begin `distance` bytes into the block."""
    start = distance // flat.itemsize
    return flat[start : start + 60].reshape(3, 4, 5)


def repeated(row: Array, count: int) -> Array:
    """A writable array whose rows are all the same memory."""
    return np.ndarray((count, row.size), row.dtype, row.view("u1"), strides=(0, row.itemsize))


@dataclass(frozen=True)
class Case:
    """An array, and all elements of its block, which stay writable."""

    array: Array
    block: Array

    def renew(self) -> None:
        """Reset the elements to 0 to 6, repeated."""
        self.block[...] = (np.arange(self.block.size) % 7).astype(self.block.dtype)

    def state(self) -> bytes:
        """All bytes of the block."""
        return self.block.tobytes()

    def holds(self, address: int) -> bool:
        """Whether an address lies in the block."""
        return 0 <= address - self.block.ctypes.data < BLOCK


def build(layout: str, dtype: str, *, readonly: bool = False) -> Case:
    """Create the array in a block that starts at a multiple of 64 bytes."""
    raw = np.zeros(BLOCK + 64, np.uint8)
    start = -raw.ctypes.data % 64
    block = raw[start : start + BLOCK].view(dtype_named(dtype) if dtype in CODES else dtype)
    case = Case(LAYOUTS[layout].lay_out(block), block)
    case.renew()
    if readonly:
        case.array.flags.writeable = False
    return case


class Seen(NamedTuple):
    """Where the elements are, by somebody's account; strides in bytes. `readonly` None: it cannot say."""

    ptr: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    readonly: bool | None

    def memory(self) -> Array:
        """The elements, which NumPy finds by address, shape and strides alone."""
        dtype = dtype_named(self.dtype)
        data = np.zeros(1) if 0 in self.shape else (self.ptr, False)
        interface = {"version": 3, "shape": self.shape, "typestr": f"|V{dtype.itemsize}", "data": data}
        return np.asarray(Exposing(__array_interface__={**interface, "strides": self.strides})).view(dtype)


def seen(found: Any) -> Seen:
    """What an array, tensor, description or capsule of any library says of its memory."""
    if isinstance(found, (dl.Tensor, dl.Descriptor)):
        return Seen(found.ptr, found.shape, found.strides, found.dtype.name, found.readonly)
    if isinstance(found, memoryview):
        return seen(np.asarray(found))
    if isinstance(found, np.ndarray):
        return Seen(found.ctypes.data, found.shape, found.strides, found.dtype.name, not found.flags.writeable)
    if type(found).__name__ == "PyCapsule":
        is_legacy = capsule_name(found) == LEGACY
        tensor = (legacy(found) if is_legacy else versioned(found)).dl_tensor
        [dtype] = [name for name, code in CODES.items() if code == (tensor.dtype.code, tensor.dtype.bits)]
        strides = tuple(step * dtype_named(dtype).itemsize for step in strides_of(tensor)) if tensor.ndim else ()
        readonly = None if is_legacy else bool(versioned(found).flags & READ_ONLY)
        return Seen(tensor.data or 0, shape_of(tensor) if tensor.ndim else (), strides, dtype, readonly)
    if hasattr(found, "element_size"):
        strides = tuple(step * found.element_size() for step in found.stride())
        return Seen(found.data_ptr(), tuple(found.shape), strides, str(found.dtype).removeprefix("torch."), None)
    if hasattr(found, "unsafe_buffer_pointer"):
        return seen(np.asarray(found))._replace(ptr=found.unsafe_buffer_pointer(), readonly=None)
    return seen(np.from_dlpack(found))._replace(readonly=None)


class Shown(NamedTuple):
    """How an object shows an array by one protocol, and what cannot be shown so.

    `readonly`: whether it says so, is always taken as read-only ("assumed" if the caller may overrule that), or has no
    read-only arrays.
    """

    show: Callable[[Array], Any]
    protocol: str
    dtypes: Collection[str] = tuple(CODES)
    layouts: Collection[str] = tuple(LAYOUTS)
    readonly: Literal["stated", "assumed", "always", "never"] = "stated"
    has_labels: bool = False

    def is_readonly(self, array: Array) -> bool:
        """What a consumer has to take the memory for."""
        return self.readonly in ("assumed", "always") or not array.flags.writeable

    def can_show(self, array: Array) -> bool:
        return self.readonly not in ("never", "always") or array.flags.writeable


class Plain(np.ndarray[Any, np.dtype[Any]]):
    """Inherits its base's export."""


class Own(np.ndarray[Any, np.dtype[Any]]):
    """Defines its own export."""

    def __dlpack__(self, **keywords: Any) -> Any:
        return np.asarray(self).__dlpack__(**keywords)


def tensor_on(array: Array, **fields: Any) -> FakeTensor:
    """A managed tensor on the memory of an array of any dtype."""
    name = array.dtype.name
    flags = (0 if array.flags.writeable else READ_ONLY) | (SUBBYTE_PADDED if name in SUBBYTE_CODES else 0)
    return FakeTensor(array, dtype=(*CODES[name], 1), flags=flags, **fields)


def showing(array: Array, name: str, wrap: Callable[[Any], Any] = lambda interface: interface) -> Exposing:
    """An object with an array interface as the attribute `name`; NumPy's type strings know no dtypes of ml_dtypes."""
    typestr = f"|V{array.itemsize}" if array.dtype.name in (*ML_CODES, *SUBBYTE_CODES) else array.dtype.str
    return Exposing(dtype=array.dtype, kept=array, **{name: wrap(interface_of(array, typestr=typestr))})


def view_of(array: Any) -> memoryview:
    """NumPy arrays have the buffer protocol, but type checkers see it from Python 3.12 on only."""
    return memoryview(array)


def wrapped(array: Array) -> Any:
    return importlib.import_module("xarray").DataArray(array, dims=tuple("IJK"[: array.ndim]))


TORCH_CODES = ("bool", "int8", "int64", "uint8", "uint16", "float16", "float32", "float64", "complex64", "bfloat16")
WITHOUT_SUBBYTE = (*NUMPY_CODES, *ML_CODES)
# NumPy writes float8_e5m2 as a float of one byte in its structs.
IN_STRUCTS = tuple(name for name in CODES if name != "float8_e5m2")
SHARED_BY_TORCH = tuple(name for name, layout in LAYOUTS.items() if layout.torch)
SHARED_BY_JAX = tuple(name for name, layout in LAYOUTS.items() if layout.jax_readonly)

PRODUCERS: dict[str, Shown] = {
    "dlfield": Shown(dl.from_dlpack, "dlfield", has_labels=True),
    "dlfield description": Shown(dl.describe, "dlfield"),
    "numpy": Shown(lambda array: array, "numpy"),
    "numpy subclass": Shown(lambda array: array.view(Plain), "numpy"),
    "numpy subclass with an export": Shown(lambda array: array.view(Own), "dlpack", NUMPY_CODES),
    "dlpack-c": Shown(lambda array: exchange_type(tensor_on(array))(), "dlpack-c"),
    "dlpack 1.0": Shown(lambda array: Producer(tensor_on(array)), "dlpack"),
    "dlpack 1.3": Shown(lambda array: Producer(tensor_on(array, version=(1, 3))), "dlpack"),
    "dlpack legacy": Shown(
        lambda array: Producer(tensor_on(array, version=None)), "dlpack", WITHOUT_SUBBYTE, readonly="assumed"
    ),
    "dlpack without keywords": Shown(
        lambda array: OldProducer(tensor_on(array, version=None)), "dlpack", WITHOUT_SUBBYTE, readonly="assumed"
    ),
    "dlpack without device": Shown(lambda array: DevicelessProducer(tensor_on(array)), "dlpack"),
    "dlpack capsule": Shown(lambda array: tensor_on(array).capsule(), "dlpack"),
    "dlpack legacy capsule": Shown(
        lambda array: tensor_on(array, version=None).capsule(), "dlpack", WITHOUT_SUBBYTE, readonly="assumed"
    ),
    "gt": Shown(lambda array: showing(array, "__gt_data_interface__", lambda buffer: {None: buffer}), "gt"),
    "gt of old": Shown(lambda array: showing(array, "__gt_interface__", lambda buffer: {"cpu": lambda: buffer}), "gt"),
    "array-interface": Shown(lambda array: showing(array, "__array_interface__"), "array-interface"),
    "array-struct": Shown(
        lambda array: Exposing(__array_struct__=array.__array_struct__, dtype=array.dtype), "array-struct", IN_STRUCTS
    ),
    "buffer": Shown(view_of, "buffer", NUMPY_CODES),
    "buffer of C": Shown(FakeBuffer, "buffer", NUMPY_CODES),
    "array": Shown(lambda array: Arrays(lambda: array), "array"),
    "array without copy": Shown(lambda array: Arrays(lambda: array, modern=False), "array"),
    "xarray": Shown(wrapped, "numpy", has_labels=True),
    "torch": Shown(dl.as_torch, "dlpack-c", TORCH_CODES, SHARED_BY_TORCH, readonly="never"),
    "jax": Shown(lambda array: dl.as_jax(array, copy=False), "jax", ("float64",), SHARED_BY_JAX, readonly="always"),
    "tvm-ffi": Shown(
        lambda array: importlib.import_module("tvm_ffi").from_dlpack(array), "dlpack", NUMPY_CODES, readonly="never"
    ),
}


def skip_without_library(row: str) -> None:
    """Skip the test if the library that a row names is not installed."""
    for library in ("torch", "jax", "tvm_ffi", "xarray"):
        if library in row.replace("-", "_"):
            pytest.importorskip(library)


def assigned(obj: Any, array: Array) -> dl.Tensor:
    field = dl.zeros(array.shape, array.dtype)
    field[...] = obj
    return field


def bound(obj: Any, array: Array) -> dl.Descriptor:
    signature = dl.Signature(x=dl.FieldSpec(array.dtype, tuple("IJK"[: array.ndim])))
    field: dl.Descriptor = signature.bind(x=obj).x
    return field


class Entrance(NamedTuple):
    """A function of dlfield that takes an object, and its array. `shares`: the result is on the same memory."""

    enter: Callable[[Any, Array], Any]
    shares: bool


ENTRANCES: dict[str, Entrance] = {
    "describe": Entrance(lambda obj, _: dl.describe(obj), True),
    "from_dlpack": Entrance(lambda obj, _: dl.from_dlpack(obj), True),
    "as_numpy": Entrance(lambda obj, _: dl.as_numpy(obj), True),
    "bind": Entrance(bound, True),
    "from_dlpack, copied": Entrance(lambda obj, _: dl.from_dlpack(obj, copy=True), False),
    "from_array": Entrance(lambda obj, _: dl.from_array(obj), False),
    "t[...] =": Entrance(assigned, False),
}
