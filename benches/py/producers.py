"""One producer of each kind: the same shape and element type, every protocol."""

from typing import Any

import jax
import numpy as np
import numpy.typing as npt
import torch
import tvm_ffi

import dlfield as dl

SHAPE = (8, 8, 8)
DTYPE = "float32"  # the widest float of JAX by default


class DLPackOnly:
    """An object that has only the two methods of DLPack; NumPy implements them."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self._array = array

    def __dlpack__(self, **keywords: Any) -> object:
        return self._array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


class InterfaceOnly:
    """An object that has only `__array_interface__`, made once, because NumPy needs a microsecond to make one."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self._array = array
        self.__array_interface__ = array.__array_interface__


def producers() -> dict[str, Any]:
    """Return an array of each kind, by its name in the tables."""
    array = np.zeros(SHAPE, DTYPE)
    return {
        "ndarray": array,
        "sliced ndarray": np.zeros([2 * size for size in SHAPE], DTYPE)[::2, ::2, ::2],
        "torch.Tensor": torch.zeros(SHAPE),
        "jax.Array": jax.numpy.zeros(SHAPE),
        "tvm_ffi.Tensor": tvm_ffi.from_dlpack(array),
        "tensor": dl.zeros(SHAPE, DTYPE),
        "DLPack only": DLPackOnly(array),
        "array interface only": InterfaceOnly(array),
    }


def threes() -> dict[str, tuple[Any, ...]]:
    """Return three arrays of one float32 of each kind."""
    return {
        "NumPy": tuple(np.ones(1, DTYPE) for _ in range(3)),
        "PyTorch": tuple(torch.ones(1) for _ in range(3)),
        "JAX": tuple(jax.numpy.ones(1) for _ in range(3)),
        "dlfield": tuple(dl.ones(1, DTYPE) for _ in range(3)),
    }
