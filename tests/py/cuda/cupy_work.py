"""Streams, memory and kernels of `cupy_double`, on the test double of the driver."""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import c_size_t, c_ulonglong, c_void_p
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

import fake_cupy
from driver import DRIVER, NON_BLOCKING, Driver
from fake_cupy import Device

MEMORY_TYPE, IS_MANAGED, DEVICE_ORDINAL = 2, 8, 9
HOST = 1


def driver() -> Driver:
    assert DRIVER is not None
    return DRIVER


class ExternalStream:
    """A stream that CuPy did not create."""

    null: ClassVar[ExternalStream]
    _thread: Any = threading.local()

    def __init__(self, ptr: int, device_id: int = -1) -> None:
        self.ptr = ptr
        self.device_id = Device.current() if device_id == -1 else device_id
        self._previous: list[ExternalStream] = []

    @classmethod
    def current(cls, device_id: int = -1) -> ExternalStream:
        number = Device.current() if device_id == -1 else device_id
        return cls._currents().get(number) or ExternalStream(0, number)

    @classmethod
    def _currents(cls) -> dict[int, ExternalStream]:
        """The thread's current stream of each device."""
        found: dict[int, ExternalStream] = cls._thread.__dict__.setdefault("currents", {})
        return found

    def use(self) -> Self:
        self._currents()[Device.current()] = self
        return self

    def __enter__(self) -> Self:
        self._previous.append(self.current())
        return self.use()

    def __exit__(self, *_error: object) -> None:
        self._currents()[Device.current()] = self._previous.pop()

    def synchronize(self) -> None:
        driver().synchronize(self.ptr, self.device_id)


ExternalStream.null = ExternalStream(0, 0)


class Stream(ExternalStream):
    """A stream of CuPy's own."""

    def __init__(self, *, non_blocking: bool = False) -> None:
        handle = c_void_p()
        with driver().on(Device.current()):
            driver().call("cuStreamCreate", ctypes.byref(handle), NON_BLOCKING if non_blocking else 0)
        assert handle.value is not None
        super().__init__(handle.value)

    def __del__(self) -> None:
        with driver().on(self.device_id):
            driver().call("cuStreamDestroy_v2", c_void_p(self.ptr))


class Memory:
    """Memory of CuPy's own, freed in the order of the stream that was current at its allocation."""

    def __init__(self, size: int) -> None:
        self.size, self.device_id = size, Device.current()
        self.stream = ExternalStream.current()
        self.ptr = driver().allocate(size, self.device_id, self.stream.ptr) if size else 0

    def __del__(self) -> None:
        if self.size:
            driver().free(self.ptr, self.device_id, self.stream.ptr)


class UnownedMemory(fake_cupy.UnownedMemory):
    """Memory of another library, on the device that the driver reports."""

    def __init__(self, ptr: int, size: int, owner: object, device_id: int = -1) -> None:
        super().__init__(ptr, size, owner, _attribute(DEVICE_ORDINAL, ptr) if device_id == -1 else device_id)


class _Mirror:
    """A second block of memory for an array, of the same kind and in the same layout.

    A kernel's reads and writes become copies to and from this block in its stream: the test double runs them when it
    would run the kernel, reports their races, and does not count them as copies to or from the host.
    """

    def __init__(self, array: npt.NDArray[Any], stream: ExternalStream) -> None:
        self.array, self.stream = array, stream
        self.low, self.runs = _runs(array)
        self.span = sum(self.runs[-1]) if self.runs else 0
        self.near_host = bool(self.runs) and _is_near_host(self.low)
        self.address = self._allocate() if self.runs else 0

    def _allocate(self) -> int:
        if not self.near_host:
            return driver().allocate(self.span, self.stream.device_id, self.stream.ptr)
        address = c_ulonglong()
        with driver().on(self.stream.device_id):
            driver().call("cuMemAllocManaged", ctypes.byref(address), c_size_t(self.span), 1)
        return address.value

    def fetch(self) -> None:
        """Queue a copy from the array."""
        for offset, nbytes in self.runs:
            self._copy(self.address + offset, self.low + offset, nbytes)

    def store(self, values: npt.NDArray[Any]) -> None:
        """Queue a copy of the values to the array."""
        if not self.runs:
            return
        image = bytearray(self.span)
        self._on(image)[...] = values
        driver().poke(self.address, bytes(image))
        for offset, nbytes in self.runs:
            self._copy(self.low + offset, self.address + offset, nbytes)

    def values(self) -> npt.NDArray[Any]:
        """The fetched values, once the stream has done the copy."""
        return self._on(driver().peek(self.address, self.span)) if self.runs else np.empty_like(self.array)

    def on_host(self) -> npt.NDArray[Any]:
        """The fetched values, copied to the host."""
        if not self.runs:
            return np.empty_like(self.array)
        return self._on(bytearray(driver().read(self.address, self.span, self.stream.ptr, self.stream.device_id)))

    def free(self) -> None:
        if self.runs:
            driver().free(self.address, self.stream.device_id, None if self.near_host else self.stream.ptr)

    def _on(self, image: bytearray) -> npt.NDArray[Any]:
        array = self.array
        return np.ndarray(array.shape, array.dtype, image, _address(array) - self.low, array.strides)

    def _copy(self, to: int, source: int, nbytes: int) -> None:
        with driver().on(self.stream.device_id):
            queued = c_ulonglong(to), c_ulonglong(source), c_size_t(nbytes), c_void_p(self.stream.ptr)
            driver().call("cuMemcpyDtoDAsync_v2", *queued)


def _runs(array: npt.NDArray[Any]) -> tuple[int, list[tuple[int, int]]]:
    """The lowest address of an array, and its gap-free pieces as offset from there and bytes."""
    if array.size == 0:
        return 0, []
    steps = [(stride, size) for stride, size in zip(array.strides, array.shape, strict=True) if stride and size > 1]
    low = _address(array) + sum(stride * (size - 1) for stride, size in steps if stride < 0)
    nbytes = array.itemsize
    gaps: list[range] = []
    for stride, size in sorted((abs(stride), size) for stride, size in steps):
        if stride == nbytes and not gaps:
            nbytes *= size
        else:
            gaps.append(range(0, stride * size, stride))
    return low, sorted((sum(offsets), nbytes) for offsets in itertools.product(*gaps))


def _address(array: npt.NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _is_near_host(address: int) -> bool:
    """Whether it is pinned or managed memory."""
    return bool(_attribute(IS_MANAGED, address)) or _attribute(MEMORY_TYPE, address) == HOST


def _attribute(number: int, address: int) -> int:
    found = ctypes.c_int()
    driver().call("cuPointerGetAttribute", ctypes.byref(found), number, c_ulonglong(address))
    return found.value


@contextmanager
def reading(arrays: Sequence[npt.NDArray[Any]]) -> Iterator[list[npt.NDArray[Any]]]:
    """Yield the values that a kernel queued on the current stream now would read.

    The NumPy arrays here have device addresses: they give shape and strides, and must not be read.
    """
    stream = ExternalStream.current()
    mirrors = [_Mirror(array, stream) for array in arrays]
    try:
        for mirror in mirrors:
            mirror.fetch()
        stream.synchronize()
        yield [mirror.values() for mirror in mirrors]
        # CuPy does not wait for its kernels, but the host has waited above. The host does not wait for this second
        # read, so the test double reports a write here that does not wait for the kernel.
        for mirror in mirrors:
            mirror.fetch()
    finally:
        for mirror in mirrors:
            mirror.free()


def write(array: npt.NDArray[Any], values: npt.NDArray[Any]) -> None:
    """Queue a write of the values on the current stream, and return before it has run."""
    mirror = _Mirror(array, ExternalStream.current())
    mirror.store(values)
    mirror.free()


def to_host(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The values after the current stream's work: one copy, in C order."""
    mirror = _Mirror(array, ExternalStream.current())
    mirror.fetch()
    values = mirror.on_host()
    mirror.free()
    return np.ascontiguousarray(values).reshape(array.shape)


def to_device(address: int, values: npt.NDArray[Any]) -> None:
    """Copy compact host values to memory of the current device."""
    stream = ExternalStream.current()
    with driver().on(stream.device_id):
        source, nbytes = c_void_p(_address(values)), c_size_t(values.nbytes)
        driver().call("cuMemcpyHtoDAsync_v2", c_ulonglong(address), source, nbytes, c_void_p(stream.ptr))
    stream.synchronize()
