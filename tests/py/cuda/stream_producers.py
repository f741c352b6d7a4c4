"""Producers for tests that queue work on a stream and state the stream through each protocol."""

from __future__ import annotations

from typing import Any

import numpy as np

from dlpack_structs import DELETER
from driver import LEGACY, Driver
from fakes import FakeTensor, address_of

SHAPE = (4, 8)
NBYTES = 4 * 8 * 8
CUDA = 2


class Memory:
    """Device memory that its own stream is to fill with the byte 1, and that is freed in the order of that stream."""

    def __init__(self, driver: Driver, device: int = 0) -> None:
        self.driver, self.device = driver, device
        self._living = driver.stream(device)
        self.stream = self._living.__enter__()
        self.address = driver.allocate(NBYTES, device, self.stream)
        driver.fill(self.address, 1, NBYTES, self.stream, device)

    def wait_for_work(self) -> None:
        """Wait for all work of the stream."""
        self.driver.synchronize(self.stream, self.device)

    def free(self) -> None:
        self.driver.free(self.address, self.device, self.stream)
        self._living.__exit__(None, None, None)


class Producer:
    """`__dlpack__` by the rules: the consumer's stream waits for the producer's, and the free waits for the consumer's.

    `streams` holds the streams that consumers passed.
    """

    def __init__(self, memory: Memory, version: tuple[int, int] | None = (1, 0)) -> None:
        self.memory = memory
        self.streams: list[Any] = []
        numbers = np.lib.stride_tricks.as_strided(np.empty(1), SHAPE, (64, 8))
        self.tensor = FakeTensor(numbers, version=version, device=(CUDA, memory.device))
        self.tensor.managed.dl_tensor.data = memory.address
        self._deleter = DELETER(self._release)
        self.tensor.managed.deleter = address_of(self._deleter)

    def _release(self, _address: int) -> None:
        self.tensor.deleted += 1
        for stream in self.streams:
            if stream != -1:
                self.memory.driver.wait(self.memory.stream, LEGACY if stream is None else stream, self.memory.device)
        self.memory.free()

    def __dlpack__(self, *, stream: int | None = None, **_: Any) -> object:
        self.streams.append(stream)
        if stream != -1:
            self.memory.driver.wait(LEGACY if stream is None else stream, self.memory.stream, self.memory.device)
        return self.tensor.capsule()

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.memory.device


class Forgetful(Producer):
    """Like most producers, frees the memory in the order of its own stream only, not of consumers' streams."""

    def _release(self, _address: int) -> None:
        self.tensor.deleted += 1
        self.memory.free()


class Interface:
    """`__cuda_array_interface__` with the stream that a consumer has to wait for."""

    def __init__(self, memory: Memory, *, version: int = 3, **entries: Any) -> None:
        self.memory = memory
        self.entries = {"version": version, "shape": SHAPE, "typestr": "<f8", "data": (memory.address, False)}
        if version == 3:
            self.entries["stream"] = memory.stream
        self.entries.update(entries)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return dict(self.entries)

    def __del__(self) -> None:
        self.memory.free()


class Exporter:
    """An object with the DLPack protocol of a tensor, which is not asked for a copy of memory that a device reaches."""

    def __init__(self, field: Any) -> None:
        self.field = field

    def __dlpack__(self, **keywords: Any) -> object:
        assert "dl_device" not in keywords
        return self.field.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        return self.field.__dlpack_device__()
