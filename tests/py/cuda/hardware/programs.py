"""Runs programs in processes of their own, because a driver crashes at the handle of a destroyed stream.

Also the functions that the programs share.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import dlfield as dl
from childproc import run_python
from driver import DRIVER, LEGACY, MISUSE, Driver
from stream_producers import NBYTES

# Bytes of a field, as of the memory of `stream_producers`.
SIZE = NBYTES // 8
GPU = "cuda:0"
# What must not be left behind, by the name of its counter.
KEPT = ["leaks", "live_events", "live_graphs", "live_executables", "captures"]


def run(program: Callable[..., None], *arguments: object, warm: bool = True, ends: bool = True) -> None:
    """Run a function of a module in a new process, and check there what it leaves behind.

    Without `warm`, dlfield has not used the device before. Without `ends`, the interpreter exits right after the
    function, with the objects that are still alive.
    """
    call = "check(program, *arguments)" if warm and ends else "program(*arguments)"
    module, name = program.__module__, program.__name__
    run_python(f"from programs import check\nfrom {module} import {name} as program\narguments = {arguments!r}\n{call}")


def check(program: Callable[..., None], *arguments: object) -> None:
    """Run a program; it has to leave nothing behind, and to misuse nothing, as far as the test double counts."""
    use_first()
    before = driver().report()
    program(*arguments)
    gc.collect()
    # The next release also performs deferred ones.
    use_first()
    after = driver().report()
    wrong = {name: after[name] for name in MISUSE if after.get(name)}
    assert not wrong, after["messages"]
    assert [after.get(name) for name in KEPT] == [before.get(name) for name in KEPT], after["messages"]


def use_first() -> None:
    """Have dlfield create what it keeps per device, and wait for all work."""
    dl.ones(1, device=GPU)
    driver().wait_for_work()


def driver() -> Driver:
    assert DRIVER is not None
    return DRIVER


class OwnStream:
    """A stream object, as those of cuda.core: closing it destroys the stream, and the object lives on."""

    def __init__(self, *, blocking: bool = False) -> None:
        self._living = driver().stream(blocking=blocking)
        self.handle = self._living.__enter__()

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

    def close(self) -> None:
        self._living.__exit__(None, None, None)


def use(address: int, byte: int, stream: int, *, finish: bool = True) -> None:
    """Write to memory on a stream, as a consumer does that dlfield knows nothing of."""
    driver().fill(address, byte, NBYTES, stream)
    if finish:
        driver().synchronize(stream)


def values(field: Any) -> list[float]:
    result: list[float] = field.to_device("cpu").tolist()
    return result


def holds(address: int, byte: int, stream: int = LEGACY) -> bool:
    return driver().read(address, NBYTES, stream) == bytes([byte]) * NBYTES
