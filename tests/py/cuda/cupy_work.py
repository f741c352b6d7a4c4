"""How the stand-in for CuPy works on the driver's double: streams, memory, and what a kernel does in a stream."""

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
    """A stream that somebody else has made."""

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

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.ptr

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
    """Memory of CuPy's own: it goes back in the order of the stream that was current when it was made."""

    def __init__(self, size: int) -> None:
        self.size, self.device_id = size, Device.current()
        self.stream = ExternalStream.current()
        self.ptr = driver().allocate(size, self.device_id, self.stream.ptr) if size else 0

    def __del__(self) -> None:
        if self.size:
            driver().free(self.ptr, self.device_id, self.stream.ptr)


class UnownedMemory(fake_cupy.UnownedMemory):
    """Foreign memory, on the device that the driver says."""

    def __init__(self, ptr: int, size: int, owner: object, device_id: int = -1) -> None:
        super().__init__(ptr, size, owner, _attribute(DEVICE_ORDINAL, ptr) if device_id == -1 else device_id)


class _Mirror:
    """Memory beside that of an array, of the same kind and in the same layout.

    What a kernel would read and write is copied here and from here, in its stream: the double does it when it would
    have the kernel run, sees races for it, and counts no copy to or from the host.
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
        """Queue the reading of the array."""
        for offset, nbytes in self.runs:
            self._copy(self.address + offset, self.low + offset, nbytes)

    def store(self, values: npt.NDArray[Any]) -> None:
        """Queue the writing of the array."""
        if not self.runs:
            return
        image = bytearray(self.span)
        self._on(image)[...] = values
        driver().poke(self.address, bytes(image))
        for offset, nbytes in self.runs:
            self._copy(self.low + offset, self.address + offset, nbytes)

    def values(self) -> npt.NDArray[Any]:
        """What was fetched, when the stream has done it."""
        return self._on(driver().peek(self.address, self.span)) if self.runs else np.empty_like(self.array)

    def on_host(self) -> npt.NDArray[Any]:
        """What was fetched, copied to the host."""
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
    """The lowest address of an array, and the pieces without a gap that it has from there: distance and bytes."""
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
    """The values of arrays when it is the turn of a kernel that is asked of the current stream now.

    NumPy's arrays here have addresses of a device: for their shape and strides, not to be read.
    """
    stream = ExternalStream.current()
    mirrors = [_Mirror(array, stream) for array in arrays]
    try:
        for mirror in mirrors:
            mirror.fetch()
        stream.synchronize()
        yield [mirror.values() for mirror in mirrors]
        # The host has waited, which CuPy does not: this one it knows nothing of, so that who writes here without
        # waiting for the kernel is seen.
        for mirror in mirrors:
            mirror.fetch()
    finally:
        for mirror in mirrors:
            mirror.free()


def write(array: npt.NDArray[Any], values: npt.NDArray[Any]) -> None:
    """Ask the current stream to write values; it has not done so when this returns."""
    mirror = _Mirror(array, ExternalStream.current())
    mirror.store(values)
    mirror.free()


def to_host(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The values after the work of the current stream: one copy, in C order."""
    mirror = _Mirror(array, ExternalStream.current())
    mirror.fetch()
    values = mirror.on_host()
    mirror.free()
    return np.ascontiguousarray(values).reshape(array.shape)


def to_device(address: int, values: npt.NDArray[Any]) -> None:
    """Copy compact values of the host to memory of the current device."""
    stream = ExternalStream.current()
    with driver().on(stream.device_id):
        source, nbytes = c_void_p(_address(values)), c_size_t(values.nbytes)
        driver().call("cuMemcpyHtoDAsync_v2", c_ulonglong(address), source, nbytes, c_void_p(stream.ptr))
    stream.synchronize()
