"""Which methods of a DLPack producer are called, and how: `__dlpack_device__` comes first, for each object."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import dlfield as dl
from dlpack_structs import LEGACY, kept_for_good, new_capsule
from fakes import FakeTensor, int_matrix
from oracle import values

ROWS = int_matrix().tolist()
DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
# Takes an address: a capsule that is being destroyed must not get another reference.
name_at = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_GetName", ctypes.pythonapi))
# The destructors: a capsule in a cycle may be destroyed after the producer that made it, or at the interpreter's end.
destructors: list[Any] = kept_for_good([])


def producer_type(base: type = object) -> type[Any]:
    """A new class of producers.

    `calls` holds what was called, and with which keywords; `dropped` counts capsules that were destroyed unconsumed.
    """

    class Producer(base):  # type: ignore[misc]
        def __init__(self, device: tuple[int, int] = (1, 0), **options: Any) -> None:
            self.tensor = FakeTensor(int_matrix(), device=device, **options)
            self.stated: tuple[int, int] | Exception = device
            self.error: BaseException | None = None
            self.calls: list[Any] = []
            self.dropped = 0
            self._destructor = DESTRUCTOR(self._drop)
            destructors.append(self._destructor)

        def _drop(self, capsule: int) -> None:
            self.dropped += name_at(capsule) == self.tensor.name

        def __dlpack__(self, **keywords: Any) -> object:
            self.calls.append(keywords)
            if self.error is not None:
                raise self.error
            destructor = ctypes.cast(self._destructor, ctypes.c_void_p)
            return new_capsule(self.tensor.address, self.tensor.name, destructor)

        def __dlpack_device__(self) -> tuple[int, int]:
            self.calls.append("device")
            if isinstance(self.stated, Exception):
                raise self.stated
            return self.stated

    return Producer


VERSION = {"max_version": (1, 3)}


class Call(NamedTuple):
    """A call with a producer: which of its methods run, and the error, if there is one."""

    read: Callable[[Any], Any]
    calls: list[Any]
    raises: type[BaseException] | None = None
    # Where the memory is, where `__dlpack_device__` says it is or what it raises, what `__dlpack__` raises.
    device: tuple[int, int] = (1, 0)
    stated: Any = None
    error: BaseException | None = None


def taking(**keywords: Any) -> Callable[[Any], Any]:
    return lambda producer: dl.from_dlpack(producer, **keywords)


ASKED = ["device", VERSION]
CALLS: dict[str, Call] = {
    "host": Call(dl.describe, ASKED),
    "CUDA, with its stream": Call(dl.describe, ["device", VERSION | {"stream": 1}], device=(2, 0)),
    "pinned": Call(dl.describe, ASKED, device=(3, 0)),
    "memory that cannot be owned": Call(dl.from_dlpack, ["device"], dl.DeviceError, (4, 0)),
    # The capsule counts.
    "the stated device is not that of the capsule": Call(dl.describe, ASKED, device=(2, 0), stated=(1, 0)),
    "device": Call(taking(device="cpu"), ASKED),
    "copy=False": Call(taking(copy=False), ["device", VERSION | {"copy": False}]),
    "copy=True": Call(taking(copy=True), ASKED),
    # An export without `dl_device` would be of the host.
    "another device": Call(taking(device="cuda:0"), ["device", VERSION | {"dl_device": (2, 0)}], dl.DeviceError),
    "a stream on the host": Call(taking(stream=1), ["device"], dl.ExchangeError),
    "the device raises": Call(dl.describe, ["device"], RuntimeError, stated=RuntimeError("which device?")),
    "the export raises": Call(dl.describe, ASKED, BufferError, error=BufferError("mine")),
    "an interrupt": Call(dl.describe, ASKED, KeyboardInterrupt, error=KeyboardInterrupt("now")),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_a_producer(name: str) -> None:
    call = CALLS[name]
    made = producer_type()
    # The second object of a class is asked as the first one was.
    for _ in range(2):
        producer = made(call.device)
        producer.stated, producer.error = call.stated or call.device, call.error
        if call.raises is None:
            found = call.read(producer)
            assert found.device == call.device
            assert call.device != (1, 0) or values(found) == ROWS
        else:
            with pytest.raises(call.raises) as caught:
                call.read(producer)
            expected = call.stated if isinstance(call.stated, Exception) else call.error
            assert expected in (None, caught.value)
        assert (producer.calls, producer.dropped) == (call.calls, 0)


def test_a_producer_without_keywords_is_called_again(read: Callable[..., Any]) -> None:
    class Old(producer_type()):  # type: ignore[misc]
        def __dlpack__(self, *args: Any, **keywords: Any) -> object:
            if keywords:
                self.calls.append("refused")
                raise TypeError("no keywords")
            return super().__dlpack__()

    first, second = Old(version=None), Old(version=None)
    assert values(read(first)) == values(read(second)) == ROWS
    assert first.calls == second.calls == ["device", "refused", {}]


def test_what_is_no_capsule_is_refused_by_name() -> None:
    class Wrong(producer_type()):  # type: ignore[misc]
        def __dlpack__(self, **keywords: Any) -> object:
            return 7 if self.tensor is None else super().__dlpack__(**keywords)

    dl.describe(Wrong())
    producer = Wrong()
    producer.tensor = None
    with pytest.raises(dl.ExchangeError, match="__dlpack__: 7"):
        dl.describe(producer)


def test_a_capsule_that_was_consumed_before_is_refused() -> None:
    capsules: dict[object, object] = {}

    class Reused(producer_type()):  # type: ignore[misc]
        def __dlpack__(self, **keywords: Any) -> object:
            if self not in capsules:
                capsules[self] = super().__dlpack__(**keywords)
            return capsules[self]

    dl.describe(Reused())
    producer = Reused()
    dl.describe(producer)
    with pytest.raises(dl.ExchangeError, match="it was consumed already"):
        dl.describe(producer)


def test_methods_may_change() -> None:
    made = producer_type()
    producer, other = made(), made()
    other.tensor = FakeTensor(np.arange(3))
    made.__dlpack__ = lambda _self, **_keywords: new_capsule(other.tensor.address, other.tensor.name, None)
    assert dl.describe(producer).shape == (3,)
    del made.__dlpack__, made.__dlpack_device__
    with pytest.raises(dl.NotAnArrayError):
        dl.describe(producer)


def test_a_method_that_replaces_itself_is_kept_while_it_runs() -> None:
    class Fickle(producer_type()):  # type: ignore[misc]
        def __dlpack__(self, **keywords: Any) -> object:
            if self.tensor.name == LEGACY:
                del Fickle.__dlpack__
            return super().__dlpack__(**keywords)

    dl.describe(Fickle())
    assert values(dl.describe(Fickle(version=None))) == ROWS
    assert "__dlpack__" not in vars(Fickle)


def test_labels_that_the_call_sets_are_found() -> None:
    class Late(producer_type()):  # type: ignore[misc]
        def __dlpack__(self, **keywords: Any) -> object:
            self.dims = ("x", "y")
            return super().__dlpack__(**keywords)

    assert [dl.describe(Late()).dims for _ in range(2)] == [("x", "y")] * 2
