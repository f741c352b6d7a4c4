"""The conformance matrix as data: who takes dlfield's tensors, and each framework's own functions.

`test_matrix_out.py` checks every consumer with tensors of every layout and dtype.
"""

import ctypes
import importlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

import dlfield as dl
from catalog import CODES, NUMPY_CODES
from exchange_api import adopt, export
from fakes_interfaces import Exposing
from matrix import LAYOUTS, SHARED_BY_JAX, SHARED_BY_TORCH, TORCH_CODES, WITHOUT_SUBBYTE, Array

# The arrays that these versions of `np.from_dlpack` return are always read-only.
READONLY_FROM_DLPACK = np.lib.NumpyVersion(np.__version__) < "2.2.5"


class Consumer(NamedTuple):
    """What takes a tensor of dlfield without a copy, which tensors it takes, and what becomes of read-only memory.

    "dropped": the consumer would write into it. "any": that depends on the version.
    """

    take: Callable[[dl.Tensor], Any]
    dtypes: Collection[str] = tuple(CODES)
    layouts: Collection[str] = tuple(LAYOUTS)
    readonly: Literal["kept", "refused", "dropped", "any"] = "kept"
    # Whether what it returns is read-only for writable memory, too.
    never_writes: bool = False


def imported(module: str, name: str) -> Callable[[Any], Any]:
    """A function of a library, which is imported when the function is called."""
    return lambda field: getattr(importlib.import_module(module), name)(field)


def interface_alone(field: dl.Tensor) -> Any:
    return np.asarray(Exposing(__array_interface__=field.__array_interface__, kept=field))


CONSUMERS: dict[str, Consumer] = {
    "np.asarray": Consumer(np.asarray),
    "np.array": Consumer(lambda field: np.array(field, copy=False)),
    "np.from_dlpack": Consumer(np.from_dlpack, NUMPY_CODES, never_writes=READONLY_FROM_DLPACK),
    "np.from_dlpack, not copied": Consumer(
        lambda field: np.from_dlpack(field, copy=False, device="cpu"), NUMPY_CODES, never_writes=READONLY_FROM_DLPACK
    ),
    "as_numpy": Consumer(dl.as_numpy),
    "__array__": Consumer(lambda field: field.__array__()),
    "to_numpy": Consumer(lambda field: field.to_numpy()),
    "to_ndarray": Consumer(lambda field: field.to_ndarray()),
    "__array_interface__": Consumer(interface_alone, NUMPY_CODES),
    "memoryview": Consumer(memoryview, NUMPY_CODES),
    "versioned capsule": Consumer(lambda field: field.__dlpack__(max_version=(1, 3))),
    "legacy capsule": Consumer(lambda field: field.__dlpack__(), WITHOUT_SUBBYTE, readonly="refused"),
    "exchange table": Consumer(lambda field: adopt(ctypes.addressof(export(field))), readonly="refused"),
    "description": Consumer(dl.describe),
    "torch.from_dlpack": Consumer(imported("torch", "from_dlpack"), TORCH_CODES, SHARED_BY_TORCH, "dropped"),
    "torch of a versioned capsule": Consumer(
        lambda field: imported("torch.utils.dlpack", "from_dlpack")(field.__dlpack__(max_version=(1, 3))),
        TORCH_CODES,
        SHARED_BY_TORCH,
        "dropped",
    ),
    "torch of a legacy capsule": Consumer(
        lambda field: imported("torch.utils.dlpack", "from_dlpack")(field.__dlpack__()),
        TORCH_CODES,
        SHARED_BY_TORCH,
        "refused",
    ),
    "torch.as_tensor": Consumer(imported("torch", "as_tensor"), TORCH_CODES, SHARED_BY_TORCH, "dropped"),
    "as_torch": Consumer(lambda field: dl.as_torch(field, copy=False), TORCH_CODES, SHARED_BY_TORCH, "refused"),
    "as_jax": Consumer(lambda field: dl.as_jax(field, copy=False), NUMPY_CODES, SHARED_BY_JAX, "any"),
    "jax.numpy.from_dlpack": Consumer(
        imported("jax.numpy", "from_dlpack"), ("float32", "int32", "bfloat16", "bool"), SHARED_BY_JAX, "any"
    ),
    "tvm_ffi.from_dlpack": Consumer(imported("tvm_ffi", "from_dlpack"), NUMPY_CODES, readonly="refused"),
}


@dataclass(frozen=True)
class Framework:
    """A framework: `convert` is dlfield's function, the rest are the framework's own."""

    name: Literal["numpy", "torch", "jax"]
    convert: Callable[..., Any]
    # Sets every element to 1; None where arrays are never written to.
    fill: Callable[[Any], object] | None
    # The framework's own conversion of a tensor; may raise.
    alone: Callable[[dl.Tensor], Any]
    # The framework's own conversion of a NumPy array.
    alone_numpy: Callable[[Array], Any]


def numpy_framework() -> Framework:
    return Framework("numpy", dl.as_numpy, lambda array: array.fill(1), np.asarray, np.asarray)


def torch_framework(torch: Any) -> Framework:
    raises = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 15)

    def alone(tensor: dl.Tensor) -> Any:
        if not raises and any(stride < 0 < size - 1 for stride, size in zip(tensor.strides, tensor.shape, strict=True)):
            raise ValueError("before PyTorch 2.15, from_dlpack ends the process where it should raise")
        return torch.from_dlpack(tensor)

    return Framework("torch", dl.as_torch, lambda tensor: tensor.fill_(1), alone, torch.from_numpy)


def jax_framework(jax: Any) -> Framework:
    """JAX, with its 64-bit types."""

    def alone(tensor: dl.Tensor) -> Any:
        with jax.enable_x64(True):
            if tensor.readonly:
                return jax.device_put(tensor.to_numpy(), jax.local_devices(backend="cpu")[0], may_alias=True)
            return jax.numpy.from_dlpack(tensor)

    return Framework("jax", dl.as_jax, None, alone, jax.numpy.asarray)
