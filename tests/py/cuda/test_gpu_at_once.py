"""A class of producers whose objects are on the host and on a GPU: which streams its `__dlpack__` gets."""

from typing import Any

import dlfield as dl
from driver import LEGACY, Driver
from stream_producers import Memory, Producer


class Either(Producer):
    """On the host without memory of a GPU; `streams` holds the streams that it got, None without one."""

    def __init__(self, memory: Memory | None) -> None:
        if memory is not None:
            super().__init__(memory)
        self.on_host = memory is None

    def __dlpack__(self, **keywords: Any) -> object:
        return dl.zeros(3).__dlpack__(**keywords) if self.on_host else super().__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0) if self.on_host else super().__dlpack_device__()


def new_type() -> type[Either]:
    """A class of which an object was on the host before."""

    class New(Either):
        pass

    dl.describe(New(None))
    return New


def test_with_a_current_stream_nothing_is_exported_without_it(driver: Driver) -> None:
    """Another stream, such as the legacy default one, may be forbidden during graph capture."""
    made = new_type()
    with driver.stream() as ours, dl.cuda.stream(ours):
        producer = made(Memory(driver))
        dl.describe(producer)
        assert producer.streams == [ours]


def test_without_one_the_legacy_stream_is_what_a_producer_assumes(driver: Driver) -> None:
    producer = new_type()(Memory(driver))
    found = dl.describe(producer)
    assert producer.streams == [None, LEGACY]
    assert found.device == (2, 0)
