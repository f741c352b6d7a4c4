"""A test double of CuPy with what `as_cupy` uses, on host memory: its arrays wrap NumPy arrays.

`calls` lists every operation that would reach a GPU.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Self

import ml_dtypes
import numpy as np


class UnownedMemory:
    """Memory of another library, which `owner` keeps alive."""

    def __init__(self, ptr: int, size: int, owner: object, device_id: int = -1) -> None:
        self.ptr, self.size, self.owner = ptr, size, owner
        self.device_id = Device.current() if device_id == -1 else device_id


class MemoryPointer:
    """An address, `offset` bytes into memory."""

    def __init__(self, mem: Any, offset: int) -> None:
        self.mem, self.offset = mem, offset

    @property
    def ptr(self) -> int:
        return int(self.mem.ptr + self.offset)

    @property
    def device_id(self) -> int:
        return int(self.mem.device_id)


class Device:
    """The device that is current inside a `with` statement of a thread; without a number the one that is now."""

    # The module of CuPy's own class.
    __module__ = "cupy.cuda.device"

    _thread = threading.local()

    def __init__(self, number: int | None = None) -> None:
        self.id = self.current() if number is None else number
        self._previous: list[int] = []

    def __int__(self) -> int:
        return self.id

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"

    @classmethod
    def current(cls) -> int:
        return getattr(cls._thread, "number", 0)

    def __enter__(self) -> Self:
        self._previous.append(self.current())
        self._thread.number = self.id
        return self

    def __exit__(self, *_error: object) -> None:
        self._thread.number = self._previous.pop()


class FakeCuPy:
    """The module. `streams` holds the handles of the devices' current streams; `gpu` is whether there is a GPU."""

    def __init__(self, *, gpu: bool = True) -> None:
        calls: list[str] = []
        self.calls = calls
        self.streams = {0: 0, 1: 0x1234}
        self.gpu = gpu

        class ndarray:  # noqa: N801, what CuPy calls it
            def __init__(
                self, shape: Sequence[int], dtype: np.dtype[Any], memptr: MemoryPointer, *, strides: Sequence[int]
            ) -> None:
                calls.append("ndarray")
                self.data, self.device = memptr, Device(memptr.device_id)
                memory: Any = (ctypes.c_char * memptr.mem.size).from_address(memptr.mem.ptr)
                self.values = np.ndarray(shape, dtype, memory, memptr.offset, strides)

            @classmethod
            def holding(cls, values: np.ndarray[Any, Any]) -> ndarray:
                array = cls.__new__(cls)
                array.values, array.device = values, Device(Device.current())
                return array

            @property
            def nbytes(self) -> int:
                return self.values.nbytes

            def copy(self, order: str = "C") -> ndarray:
                calls.append(f"copy {order}")
                return self.holding(self.values.copy("K" if order == "K" else "C"))

        self.ndarray = ndarray
        self.cuda = SimpleNamespace(
            UnownedMemory=UnownedMemory,
            MemoryPointer=MemoryPointer,
            Device=Device,
            get_current_stream=lambda: SimpleNamespace(ptr=self.streams[Device.current()]),
        )

    def empty(self, shape: Any, dtype: np.dtype[Any]) -> Any:
        """A new array in CuPy's own memory."""
        if not self.gpu:
            raise RuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
        if dtype == ml_dtypes.bfloat16:
            raise TypeError("dtype bfloat16 is not supported")
        self.calls.append("empty")
        return SimpleNamespace(dtype=dtype, shape=shape)

    def asarray(self, values: np.ndarray[Any, Any]) -> Any:
        """A copy on the GPU."""
        self.calls.append("asarray")
        return self.ndarray.holding(values.copy())
