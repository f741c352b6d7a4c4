"""The driver through ctypes, for the tests' own producers and consumers, and the counters of its test double."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_ulonglong, c_void_p
from typing import Any

LEGACY, PER_THREAD = 1, 2
NON_BLOCKING = 1
POOLS_SUPPORTED = 115
IS_FAKE = os.environ.get("DLFIELD_FAKE_CUDA") == "1"
# What a program must not do, by the name of its counter.
MISUSE = [
    "double_frees",
    "bad_frees",
    "use_after_free",
    "out_of_bounds",
    "races",
    "bad_handles",
    "opened_at_home",
    "bad_closes",
    "no_context",
    "foreign_context",
    "no_peer_access",
    "lost_with_context",
    "host_memory_gone",
    "calls_in_host_functions",
    "panics",
]
HOST_FUNCTION = ctypes.CFUNCTYPE(None, c_void_p)


class Driver:
    """The driver's functions, each checked."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        if IS_FAKE:
            # Loaded before PyTorch, so that PyTorch finds this test double of the runtime.
            ctypes.CDLL("libfakecudart.so", mode=ctypes.RTLD_GLOBAL)
        self.call("cuInit", 0)
        count = c_int()
        self.call("cuDeviceGetCount", byref(count))
        self.device_count = count.value
        has_pools = c_int()
        self.call("cuDeviceGetAttribute", byref(has_pools), POOLS_SUPPORTED, 0)
        self.has_pools = bool(has_pools.value)
        self.contexts = [self._context(number) for number in range(count.value)]

    def call(self, name: str, *arguments: Any) -> None:
        code = getattr(self.library, name)(*arguments)
        assert code == 0, f"{name} returned {code}"

    def _context(self, number: int) -> c_void_p:
        context = c_void_p()
        self.call("cuDevicePrimaryCtxRetain", byref(context), number)
        return context

    def device_name(self, number: int) -> str:
        """The driver's name for a device."""
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, len(name), number)
        return name.value.decode()

    def context(self) -> int | None:
        """The thread's current context."""
        context = c_void_p()
        self.call("cuCtxGetCurrent", byref(context))
        return context.value

    def push(self, device: int) -> None:
        self.call("cuCtxPushCurrent_v2", self.contexts[device])

    def pop(self) -> None:
        self.call("cuCtxPopCurrent_v2", byref(c_void_p()))

    @contextmanager
    def on(self, device: int) -> Iterator[None]:
        """Make the device's context current."""
        self.push(device)
        try:
            yield
        finally:
            self.pop()

    @contextmanager
    def stream(self, device: int = 0, *, blocking: bool = False) -> Iterator[int]:
        """A stream; the legacy default stream waits for those that are blocking."""
        stream = c_void_p()
        with self.on(device):
            self.call("cuStreamCreate", byref(stream), 0 if blocking else NON_BLOCKING)
        assert stream.value is not None
        try:
            yield stream.value
        finally:
            with self.on(device):
                self.call("cuStreamDestroy_v2", stream)

    def allocate(self, nbytes: int, device: int = 0, stream: int | None = None) -> int:
        address = c_ulonglong()
        with self.on(device):
            if stream is None or not self.has_pools:
                self.call("cuMemAlloc_v2", byref(address), c_size_t(nbytes))
            else:
                self.call("cuMemAllocAsync", byref(address), c_size_t(nbytes), c_void_p(stream))
        return address.value

    def free(self, address: int, device: int = 0, stream: int | None = None) -> None:
        with self.on(device):
            if stream is None or not self.has_pools:
                self.call("cuMemFree_v2", c_ulonglong(address))
            else:
                self.call("cuMemFreeAsync", c_ulonglong(address), c_void_p(stream))

    def fill(self, address: int, byte: int, nbytes: int, stream: int = LEGACY, device: int = 0) -> None:
        """Queue a memset on a stream, and return before it has run."""
        with self.on(device):
            self.call("cuMemsetD8Async", c_ulonglong(address), ctypes.c_ubyte(byte), c_size_t(nbytes), c_void_p(stream))

    def read(self, address: int, nbytes: int, stream: int = LEGACY, device: int = 0) -> bytes:
        """Read the memory after the stream's work so far."""
        out = ctypes.create_string_buffer(nbytes)
        with self.on(device):
            self.call("cuMemcpyDtoHAsync_v2", out, c_ulonglong(address), c_size_t(nbytes), c_void_p(stream))
            self.call("cuStreamSynchronize", c_void_p(stream))
        return out.raw

    def wait(self, later: int, earlier: int, device: int = 0) -> None:
        """Make work queued on `later` from now on wait for the work queued on `earlier` so far."""
        event = c_void_p()
        with self.on(device):
            self.call("cuEventCreate", byref(event), c_uint(2))
            self.call("cuEventRecord", event, c_void_p(earlier))
            self.call("cuStreamWaitEvent", c_void_p(later), event, c_uint(0))
            self.call("cuEventDestroy_v2", event)

    def synchronize(self, stream: int = LEGACY, device: int = 0) -> None:
        with self.on(device):
            self.call("cuStreamSynchronize", c_void_p(stream))

    @contextmanager
    def capturing(self, stream: int, device: int = 0) -> Iterator[None]:
        """Capture the stream's work as a graph, which is then destroyed."""
        graph = c_void_p()
        with self.on(device):
            self.call("cuStreamBeginCapture_v2", c_void_p(stream), c_int(0))
        try:
            yield
        finally:
            with self.on(device):
                self.call("cuStreamEndCapture", c_void_p(stream), byref(graph))
                self.call("cuGraphDestroy", graph)

    def record(self, stream: int, work: Callable[[], object], mode: int = 0) -> c_void_p:
        """Capture the work that a function submits to the stream; the graph is ready to be launched."""
        graph, executable = c_void_p(), c_void_p()
        with self.on(0):
            self.call("cuStreamBeginCapture_v2", c_void_p(stream), c_int(mode))
            try:
                work()
            finally:
                code = self.library.cuStreamEndCapture(c_void_p(stream), byref(graph))
            assert code == 0, f"the capture is invalid: {code}"
            self.call("cuGraphInstantiateWithFlags", byref(executable), graph, c_ulonglong(0))
            self.call("cuGraphDestroy", graph)
        return executable

    def launch(self, executable: c_void_p, stream: int) -> None:
        with self.on(0):
            self.call("cuGraphLaunch", executable, c_void_p(stream))

    def destroy_graph(self, executable: c_void_p) -> None:
        self.call("cuGraphExecDestroy", executable)

    def memory_info(self, device: int = 0) -> tuple[int, int]:
        free, total = c_size_t(), c_size_t()
        with self.on(device):
            self.call("cuMemGetInfo_v2", byref(free), byref(total))
        return free.value, total.value

    def launch_host_function(self, function: Any, stream: int) -> None:
        with self.on(0):
            self.call("cuLaunchHostFunc", c_void_p(stream), function, None)

    # The rest is for the test double.

    def wait_for_work(self) -> None:
        """Wait for all work of all devices."""
        for device in range(self.device_count):
            with self.on(device):
                self.call("cuCtxSynchronize")

    def report(self) -> dict[str, Any]:
        """The counters of the test double; empty on a GPU."""
        if not IS_FAKE:
            return {}
        room = self.library.fakecuda_report(None, c_size_t(0)) + 4096
        out = ctypes.create_string_buffer(room)
        self.library.fakecuda_report(out, c_size_t(room))
        counters: dict[str, Any] = json.loads(out.value)
        return counters

    def peek(self, address: int, nbytes: int) -> bytearray:
        """Read memory now, without waiting for queued work."""
        out = bytearray(nbytes)
        place = (ctypes.c_char * nbytes).from_buffer(out)
        self.call("fakecuda_peek", c_ulonglong(address), place, c_size_t(nbytes))
        return out

    def poke(self, address: int, values: bytes) -> None:
        self.call("fakecuda_poke", c_ulonglong(address), c_char_p(values), c_size_t(len(values)))

    def reset(self) -> None:
        if IS_FAKE:
            self.call("fakecuda_reset")

    def fail(self, function: str, code: int) -> None:
        """Make the next call of a function return this code."""
        self.call("fakecuda_fail", c_char_p(function.encode()), c_int(code))

    def fail_allocations(self, after: int) -> None:
        self.library.fakecuda_fail_allocations(ctypes.c_int64(after))


DRIVER = Driver() if IS_FAKE or os.environ.get("DLFIELD_REAL_CUDA") else None
