"""Programs whose streams are destroyed while fields that were used on them live."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import dlfield as dl
from driver import LEGACY
from programs import GPU, SIZE, OwnStream, driver, holds, use, values
from stream_producers import Exporter, Forgetful, Interface, Memory

# What makes a `with` block's stream current: its handle, or an object with the stream protocol.
KINDS: dict[str, Callable[[OwnStream], Any]] = {
    "handle": lambda stream: stream.handle,
    "object": lambda stream: stream,
    "dlfield's object": lambda stream: dl.cuda.Stream(stream.handle, 0),
}
ORDERS = ["capsule stream field", "stream capsule field", "stream field capsule", "field stream capsule"]
ORDERS += ["field capsule stream", "capsule field stream"]


def exported(order: str, finish: bool) -> None:
    """A consumer takes a field on its stream; capsule, stream and field go in this order.

    It finishes its work before it releases the field, or its stream is a blocking one.
    """
    field, stream = dl.zeros(SIZE, device=GPU), OwnStream(blocking=not finish)
    capsule = field.__dlpack__(stream=stream.handle)
    use(field.ptr, 7, stream.handle, finish=finish)
    things: dict[str, list[Any]] = {"capsule": [capsule], "field": [field]}
    del capsule, field
    for name in order.split():
        if name == "stream":
            stream.close()
        else:
            things[name].clear()


def exported_again() -> None:
    """A field is exported to many streams, each of which is destroyed before the next export."""
    field = dl.zeros(SIZE, device=GPU)
    for byte in range(10):
        stream = OwnStream()
        capsule = field.__dlpack__(stream=stream.handle)
        use(field.ptr, byte, stream.handle)
        stream.close()
        assert holds(field.ptr, byte)
        if byte % 2:
            del capsule
    assert field.__cuda_array_interface__["stream"] == LEGACY


SOURCES: dict[str, Callable[[], Any]] = {
    "field": lambda: dl.ones(SIZE, device=GPU),
    "exporter": lambda: Exporter(dl.ones(SIZE, device=GPU)),
    "dlpack": lambda: Forgetful(Memory(driver())),
    "interface": lambda: Interface(Memory(driver())),
}


def imported(source: str, drop_source_first: bool) -> None:
    """A field is imported on a stream, which is destroyed before the field."""
    producer, stream = SOURCES[source](), OwnStream()
    field = dl.from_dlpack(producer, stream=stream.handle)
    if drop_source_first:
        del producer
    stream.close()
    expected = 1.0 if source in ("field", "exporter") else float(np.frombuffer(b"\1" * 8)[0])
    assert np.asarray(values(field)).ravel().tolist() == [expected] * field.size
    del field


def imported_from_a_stream_that_goes() -> None:
    """The stream that an interface states is destroyed after the import."""
    memory, stream = Memory(driver()), OwnStream()
    memory.wait_for_work()
    producer = Interface(memory, stream=stream.handle)
    use(producer.memory.address, 3, stream.handle, finish=False)
    field = dl.from_dlpack(producer)
    stream.close()
    assert holds(field.ptr, 3)
    field[...] = 1.0
    del field, producer


def used_within(kind: str) -> None:
    """Fields are used in a `with` block whose stream is destroyed after it, and then on the default stream."""
    field, target, stream = dl.zeros(SIZE, device=GPU), dl.zeros(SIZE, device=GPU), OwnStream()
    with dl.cuda.stream(KINDS[kind](stream)):
        field[...] = 2.5
        target[...] = field
        copy = dl.from_array(field, device=GPU)
    driver().synchronize(stream.handle)
    stream.close()
    assert values(target) == values(copy) == [2.5] * SIZE
    field[...] = 1.5
    target[...] = field
    assert values(target) == [1.5] * SIZE
    del field, target, copy


def dropped_after(kind: str) -> None:
    """Nothing waits for the work of the block before its stream is destroyed; the fields are freed after that work."""
    stream = OwnStream()
    field, target = dl.zeros(SIZE, device=GPU), dl.zeros(SIZE, device=GPU)
    with dl.cuda.stream(KINDS[kind](stream)):
        field[...] = 2.5
        target[...] = field
        made = dl.from_array(field, device=GPU)
    stream.close()
    del field, target, made


def allocated_within(kind: str) -> None:
    """A field of a stream that was destroyed is exported, copied, written and dropped."""
    stream = OwnStream()
    with dl.cuda.stream(KINDS[kind](stream)):
        field, other = dl.full(SIZE, 2.5, device=GPU), dl.empty(SIZE, device=GPU)
    stream.close()
    capsule = field.__dlpack__(stream=LEGACY)
    use(field.ptr, 7, LEGACY)
    copy = dl.from_array(field, device=GPU)
    assert holds(copy.ptr, 7)
    other[...] = copy
    assert holds(other.ptr, 7)
    later = OwnStream()
    second = other.__dlpack__(stream=later.handle)
    later.close()
    del field, capsule, copy, other, second


def allocated_on(kind: str) -> None:
    """The stream that `zeros` got as an argument is destroyed."""
    stream = OwnStream()
    field = dl.zeros(SIZE, device=GPU, stream=KINDS[kind](stream))
    stream.close()
    assert values(field) == [0.0] * SIZE
    del field


def destroyed_by_another_thread(order: str) -> None:
    """Each step is in a thread of its own: export, destruction of the stream, release."""
    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second, ThreadPoolExecutor(1) as third:
        stream = first.submit(OwnStream).result()
        things = {"field": [first.submit(dl.zeros, SIZE, device=GPU).result()], "capsule": list[Any]()}
        address = things["field"][0].ptr

        def export() -> None:
            with dl.cuda.stream(stream.handle):
                things["field"][0][...] = 1.0
            things["capsule"].append(things["field"][0].__dlpack__(stream=stream.handle))
            use(address, 7, stream.handle)

        second.submit(export).result()
        steps: dict[str, Callable[[], None]] = {name: kept.clear for name, kept in things.items()}
        for name in order.split():
            (third if name == "stream" else first).submit({**steps, "stream": stream.close}[name]).result()


def many_streams(count: int) -> None:
    """A field is written, and every tenth time exported, on streams that are destroyed at once."""
    field = dl.zeros(SIZE, device=GPU)
    for number in range(count):
        stream = OwnStream()
        with dl.cuda.stream(stream.handle):
            field[...] = float(number)
        if number % 10 == 0:
            capsule = field.__dlpack__(stream=stream.handle)
            del capsule
        driver().synchronize(stream.handle)
        stream.close()
        if number % 1000 == 0:
            assert values(field) == [float(number)] * SIZE
    assert values(field) == [count - 1.0] * SIZE
    del field


def two_threads() -> None:
    """Two threads with a stream each use fields of their own and one of both; their streams end with them."""
    shared = dl.full(SIZE, 0.5, device=GPU)
    driver().wait_for_work()

    def work(number: int) -> list[Any]:
        stream, kept = OwnStream(), []
        with dl.cuda.stream(stream.handle):
            for step in range(50):
                field = dl.full(SIZE, float(step + number), device=GPU)
                source = dl.from_dlpack(shared, stream=stream.handle)
                copy = dl.from_array(source, device=GPU)
                assert values(copy) == [0.5] * SIZE
                copy[...] = field
                assert values(copy) == [float(step + number)] * SIZE
                kept += [field, source, copy]
        stream.close()
        return kept[-6:]

    with ThreadPoolExecutor(2) as pool:
        left = list(pool.map(work, (0, 100)))
    assert [values(fields[-1])[0] for fields in left] == [49.0, 149.0]


LIVING: list[Any] = []


def exit_with_living_fields(finish: bool) -> None:
    """The interpreter exits while fields, capsules and imports live whose streams are gone."""
    for kind in KINDS:
        stream = OwnStream()
        with dl.cuda.stream(KINDS[kind](stream)):
            field = dl.ones(SIZE, device=GPU)
        LIVING.extend([field, field.__dlpack__(stream=stream.handle), dl.from_dlpack(field, stream=stream.handle)])
        use(field.ptr, 7, stream.handle, finish=finish)
        LIVING.append(stream)
        stream.close()
    # In a cycle, which only the garbage collector ends.
    LIVING.append(LIVING)


def exit_within_a_block() -> None:
    """The interpreter exits while a stream is current, which is never destroyed."""
    stream = OwnStream()
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(stream))
    block = dl.cuda.stream(stream.handle)
    block.__enter__()
    LIVING.extend([dl.ones(SIZE, device=GPU), block])
