"""Programs that capture the work of fields as graphs, and replay those with other inputs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

import dlfield as dl
from driver import LEGACY
from programs import GPU, SIZE, OwnStream, driver, holds, values
from stream_producers import NBYTES

GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
MODES = {"global": GLOBAL, "thread-local": THREAD_LOCAL, "relaxed": RELAXED}
REPLAYS = 10


def fields(count: int) -> list[Any]:
    """Fields of zeros, which no work still writes to."""
    made = [dl.zeros(SIZE, device=GPU) for _ in range(count)]
    driver().wait_for_work()
    return made


def replay(stream: OwnStream, graph: Any, source: Any, check: Callable[[int], None]) -> None:
    """Launch a graph ten times with other contents of `source`."""
    for byte in range(REPLAYS):
        driver().fill(source.ptr, byte, NBYTES, stream.handle)
        driver().launch(graph, stream.handle)
        driver().synchronize(stream.handle)
        check(byte)
    driver().destroy_graph(graph)


def filled_and_copied(mode: str) -> None:
    """A fill and copies between fields are captured."""
    stream, (source, target, filled) = OwnStream(), fields(3)

    def work() -> None:
        with dl.cuda.stream(stream.handle):
            target[...] = source
            filled[...] = 2.5

    graph = driver().record(stream.handle, work, MODES[mode])
    assert holds(target.ptr, 0), "it was captured, and has not run"

    def check(byte: int) -> None:
        assert holds(target.ptr, byte)
        assert values(filled) == [2.5] * SIZE
        driver().fill(filled.ptr, byte, NBYTES)
        driver().synchronize()

    replay(stream, graph, source, check)
    stream.close()


def transposed(mode: str) -> None:
    """A kernel that turns axes is captured."""
    stream = OwnStream()
    source, target = dl.zeros((4, 8), device=GPU), dl.zeros((4, 8), backend="F", device=GPU)
    driver().wait_for_work()

    def work() -> None:
        with dl.cuda.stream(stream.handle):
            target[...] = source

    graph = driver().record(stream.handle, work, MODES[mode])
    for number in range(REPLAYS):
        numbers = np.arange(32.0).reshape(4, 8) + number
        source[...] = numbers
        driver().wait_for_work()
        driver().launch(graph, stream.handle)
        driver().synchronize(stream.handle)
        assert np.array_equal(np.asarray(target.to_device("cpu")), numbers)
    driver().destroy_graph(graph)
    stream.close()


def allocated(mode: str) -> None:
    """A field is created during the capture, and lives while the graph is replayed."""
    stream, (source, target) = OwnStream(), fields(2)
    made: list[Any] = []

    def work() -> None:
        with dl.cuda.stream(stream.handle):
            made.append(dl.empty(SIZE, device=GPU))
            made[0][...] = source
            target[...] = made[0]

    graph = driver().record(stream.handle, work, MODES[mode])

    def check(byte: int) -> None:
        assert holds(target.ptr, byte)

    replay(stream, graph, source, check)
    made.clear()
    stream.close()


def dropped(mode: str) -> None:
    """A field is dropped during a capture that does not use it."""
    stream, (source, target, unrelated) = OwnStream(), fields(3)
    living = [unrelated]
    del unrelated

    def work() -> None:
        with dl.cuda.stream(stream.handle):
            target[...] = source
            living.clear()

    graph = driver().record(stream.handle, work, MODES[mode])

    def check(byte: int) -> None:
        assert holds(target.ptr, byte)

    replay(stream, graph, source, check)
    stream.close()


def stream_goes_before_the_replay(kind: str) -> None:
    """The captured stream is destroyed; the graph is replayed on another one."""
    captured, stream, (source, target) = OwnStream(), OwnStream(), fields(2)

    def work() -> None:
        with dl.cuda.stream(captured if kind == "object" else captured.handle):
            target[...] = source

    graph = driver().record(captured.handle, work)
    captured.close()

    def check(byte: int) -> None:
        assert holds(target.ptr, byte)

    replay(stream, graph, source, check)
    stream.close()
    target[...] = 1.5
    assert values(target) == [1.5] * SIZE


def exported_and_imported(mode: str) -> None:
    """A field is exported to the captured stream and imported on it."""
    stream, (source, target) = OwnStream(), fields(2)

    def work() -> None:
        with dl.cuda.stream(stream.handle):
            capsule = source.__dlpack__(stream=stream.handle)
            taken = dl.from_dlpack(source, stream=stream.handle)
            target[...] = taken
            del capsule, taken

    graph = driver().record(stream.handle, work, MODES[mode])

    def check(byte: int) -> None:
        assert holds(target.ptr, byte)

    replay(stream, graph, source, check)
    stream.close()


def is_refused(work: Callable[[], object]) -> bool:
    try:
        work()
    except dl.DeviceError:
        return True
    return False


def refused(mode: str) -> None:
    """What waits for the host is refused with an error, and the capture goes on."""
    stream, (source, target) = OwnStream(), fields(2)
    host = np.zeros(SIZE)

    def assign() -> None:
        target[...] = host

    def work() -> None:
        with dl.cuda.stream(stream.handle):
            assert is_refused(lambda: source.to_device("cpu"))
            assert is_refused(lambda: dl.cuda.synchronize(0, stream.handle))
            assert is_refused(assign)
            assert "float64" in repr(source)
            target[...] = source

    graph = driver().record(stream.handle, work, MODES[mode])

    def check(byte: int) -> None:
        assert holds(target.ptr, byte)

    replay(stream, graph, source, check)
    stream.close()


def first_use(mode: str, name: str) -> None:
    """The first use of a device is in the captured stream: it is refused with an error, and the capture goes on."""
    stream, address = OwnStream(), driver().allocate(NBYTES)
    uses: dict[str, Callable[[], object]] = {
        "zeros": lambda: dl.zeros(SIZE, device=GPU, stream=stream.handle),
        "empty": lambda: dl.empty(SIZE, device=GPU),
        "from_pointer": lambda: dl.from_pointer(address, (SIZE,), "float64", device=GPU, owner=None),
        "memory_info": lambda: dl.cuda.memory_info(0),
    }
    refusals: list[bool] = []

    def work() -> None:
        driver().fill(address, 1, NBYTES, stream.handle)
        refusals.append(is_refused(lambda: use_within(stream, uses[name]) if name != "zeros" else uses[name]()))
        driver().fill(address, 2, NBYTES, stream.handle)

    graph = driver().record(stream.handle, work, MODES[mode])
    driver().launch(graph, stream.handle)
    assert holds(address, 2, stream.handle)
    driver().destroy_graph(graph)
    assert refusals == [True]
    # Afterwards it works.
    uses[name]()
    assert values(dl.ones(SIZE, device=GPU)) == [1.0] * SIZE
    driver().free(address)
    stream.close()


def use_within(stream: OwnStream, work: Callable[[], object]) -> object:
    with dl.cuda.stream(stream.handle):
        return work()


def legacy_stream_is_current(mode: str) -> None:
    """A non-blocking stream is captured while dlfield works on the legacy stream, which that does not disturb."""
    stream, (source, target) = OwnStream(), fields(2)

    def work() -> None:
        driver().fill(target.ptr, 3, NBYTES, stream.handle)
        # Refused or not: the capture is valid.
        with suppress(dl.DeviceError):
            source[...] = 1.0
        with suppress(dl.DeviceError):
            dl.empty(SIZE, device=GPU, stream=LEGACY)

    graph = driver().record(stream.handle, work, MODES[mode])
    driver().launch(graph, stream.handle)
    assert holds(target.ptr, 3, stream.handle)
    driver().destroy_graph(graph)
    stream.close()
