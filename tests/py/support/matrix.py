"""Arrays of every layout and dtype by name, and access to each framework's own arrays.

`build` creates an array on aligned memory that the test can inspect; a `Framework` gives address and values of its
arrays, and its own conversion of a tensor.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

import dlfield as dl
from catalog import CODES, dtype_named

Array = npt.NDArray[Any]

BLOCK = 4096


class Row(NamedTuple):
    """How to arrange elements, and whether PyTorch, JAX, and JAX for read-only memory share that layout."""

    lay_out: Callable[[Array], Array]
    torch: bool
    jax: bool
    jax_readonly: bool


# Each function gets the elements of a block that starts at a multiple of 64 bytes.
LAYOUTS = {
    "C": Row(lambda flat: flat[:60].reshape(3, 4, 5), True, True, True),
    "F": Row(lambda flat: flat[:60].reshape(5, 4, 3).T, True, True, False),
    "K first": Row(lambda flat: flat[:60].reshape(5, 3, 4).transpose(1, 2, 0), True, True, False),
    "row-padded": Row(lambda flat: flat[:96].reshape(12, 8)[:, :5], True, False, False),
    "sliced": Row(lambda flat: flat[:120].reshape(12, 10)[::2], True, False, False),
    "negative": Row(lambda flat: flat[:60].reshape(12, 5)[::-1], False, False, False),
    "size 1": Row(lambda flat: flat[:60].reshape(10, 6)[:1][::-1, None], True, True, True),
    "size 0": Row(lambda flat: flat[:60].reshape(12, 5)[::-1, :0], True, True, True),
    "0-d": Row(lambda flat: flat[:1].reshape(()), True, True, True),
    "offset": Row(lambda flat: flat[1:61].reshape(3, 4, 5), True, False, False),
    "at 16 bytes": Row(lambda flat: behind(flat, 16), True, False, False),
    "at 64 bytes": Row(lambda flat: behind(flat, 64), True, True, True),
}

DTYPES = (
    "bool",
    "int32",
    "float16",
    "float32",
    "float64",
    "complex128",
    "bfloat16",
    "float8_e4m3fn",
    "float8_e5m2",
    ">f8",
)


def behind(flat: Array, distance: int) -> Array:
    """3 x 4 x 5 elements that begin `distance` bytes into the block."""
    start = distance // flat.itemsize
    return flat[start : start + 60].reshape(3, 4, 5)


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


def build(layout: str, dtype: str, *, readonly: bool) -> Case:
    """Create the array in a block that starts at a multiple of 64 bytes."""
    raw = np.zeros(BLOCK + 64, np.uint8)
    start = -raw.ctypes.data % 64
    block = raw[start : start + BLOCK].view(dtype_named(dtype) if dtype in CODES else dtype)
    case = Case(LAYOUTS[layout].lay_out(block), block)
    case.renew()
    case.array.flags.writeable = not readonly
    return case


@dataclass(frozen=True)
class Framework:
    """A framework: `convert` is dlfield's function, the rest are the framework's own."""

    name: Literal["numpy", "torch", "jax"]
    convert: Callable[..., Any]
    pointer: Callable[[Any], int]
    dtype: Callable[[Any], str]
    # The elements in index order, last index fastest.
    content: Callable[[Any], bytes]
    # Sets every element to 1; None where arrays are never written to.
    fill: Callable[[Any], None] | None
    # The framework's own conversion of a tensor; may raise.
    alone: Callable[[dl.Tensor], Any]
    # The framework's own conversion of a NumPy array.
    alone_numpy: Callable[[Array], Any]


def numpy_framework() -> Framework:
    """NumPy."""

    def fill(array: Array) -> None:
        array[...] = 1

    return Framework(
        name="numpy",
        convert=dl.as_numpy,
        pointer=lambda array: int(array.ctypes.data),
        dtype=lambda array: array.dtype.name,
        content=lambda array: array.tobytes(),
        fill=fill,
        alone=np.asarray,
        alone_numpy=np.asarray,
    )


def torch_framework(torch: Any) -> Framework:
    """PyTorch."""

    raises = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 15)

    def alone(tensor: dl.Tensor) -> Any:
        if not raises and any(stride < 0 < size - 1 for stride, size in zip(tensor.strides, tensor.shape, strict=True)):
            raise ValueError("before PyTorch 2.15, from_dlpack ends the process where it should raise")
        return torch.from_dlpack(tensor)

    def content(tensor: Any) -> bytes:
        flat = tensor.contiguous().reshape(-1).view(torch.uint8)
        return bytes(flat.numpy().tobytes())

    return Framework(
        name="torch",
        convert=dl.as_torch,
        pointer=lambda tensor: int(tensor.data_ptr()),
        dtype=lambda tensor: str(tensor.dtype).removeprefix("torch."),
        content=content,
        fill=lambda tensor: tensor.fill_(1),
        alone=alone,
        alone_numpy=torch.from_numpy,
    )


def jax_framework(jax: Any) -> Framework:
    """JAX, with its 64-bit types."""

    def alone(tensor: dl.Tensor) -> Any:
        with jax.enable_x64(True):
            if tensor.readonly:
                return jax.device_put(tensor.to_numpy(), jax.local_devices(backend="cpu")[0], may_alias=True)
            return jax.numpy.from_dlpack(tensor)

    return Framework(
        name="jax",
        convert=dl.as_jax,
        pointer=lambda array: int(array.unsafe_buffer_pointer()),
        dtype=lambda array: str(array.dtype),
        content=lambda array: np.asarray(array).tobytes(),
        fill=None,
        alone=alone,
        alone_numpy=jax.numpy.asarray,
    )
