"""Producers whose type was on the host before: `__dlpack__` is called at once, as its capsule says where the memory is.

Each test has a class of its own, as what is remembered belongs to the class.
"""

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


def known_type() -> type[Any]:
    """Such a class, after an object of it was read on the host."""
    made = producer_type()
    dl.describe(made())
    return made


VERSION = {"max_version": (1, 3)}


@pytest.mark.parametrize("version", [(1, 0), None])
def test_the_device_is_asked_for_once_a_class(read: Callable[..., Any], version: tuple[int, int] | None) -> None:
    made = producer_type()
    first, second = made(version=version), made(version=version)
    assert values(read(first)) == values(read(second)) == ROWS
    assert (first.calls, second.calls) == (["device", VERSION], [VERSION])


@pytest.mark.parametrize("device", [(2, 0), (2, 1), (3, 0), (13, 0)])
def test_memory_of_cuda_is_exported_again_with_its_stream(device: tuple[int, int]) -> None:
    """Also pinned and managed memory. What was exported without the stream is released."""
    made = known_type()
    producer = made(device)
    found = dl.describe(producer)
    with_stream = [] if device == (3, 0) else [VERSION | {"stream": 1}]
    assert producer.calls == [VERSION, "device", *with_stream]
    assert found.device == device
    assert producer.dropped == len(with_stream)
    next_one = made(device)
    dl.describe(next_one)
    assert next_one.calls[0] == "device"
    on_host = made()
    assert values(dl.describe(on_host)) == ROWS
    assert on_host.calls == ["device", VERSION]


class Call(NamedTuple):
    """A call with a producer of a known class: which of its methods run, and the error, if there is one."""

    read: Callable[[Any], Any]
    calls: list[Any]
    raises: type[BaseException] | None = None
    # Where the memory is, where `__dlpack_device__` says it is or what it raises, what `__dlpack__` raises.
    device: tuple[int, int] = (1, 0)
    stated: Any = None
    error: BaseException | None = None
    # Capsules that are released unused.
    dropped: int = 0


def taking(**keywords: Any) -> Callable[[Any], Any]:
    return lambda producer: dl.from_dlpack(producer, **keywords)


ASKED = [VERSION, "device"]
KNOWN: dict[str, Call] = {
    **{
        f"memory of {device} cannot be owned": Call(dl.from_dlpack, ASKED, dl.DeviceError, device, dropped=1)
        for device in ((4, 0), (8, 0), (10, 0))
    },
    # As without a known type, the capsule counts.
    "the stated device is not that of the capsule": Call(dl.describe, ASKED, device=(2, 0), stated=(1, 0)),
    "device": Call(taking(device="cpu"), [VERSION]),
    "copy=False": Call(taking(copy=False), ["device", VERSION | {"copy": False}]),
    "copy=True": Call(taking(copy=True), [VERSION]),
    # An export without `dl_device` would be of the host.
    "another device": Call(taking(device="cuda:0"), ["device", VERSION | {"dl_device": (2, 0)}], dl.DeviceError),
    "a stream on the host": Call(taking(stream=1), ["device"], dl.ExchangeError),
    "both raise": Call(
        dl.describe, ASKED, RuntimeError, stated=RuntimeError("which device?"), error=BufferError("deleted")
    ),
    "the export raises": Call(dl.describe, ASKED, BufferError, error=BufferError("mine")),
    "an interrupt": Call(dl.describe, [VERSION], KeyboardInterrupt, error=KeyboardInterrupt("now")),
}


@pytest.mark.parametrize("name", KNOWN)
def test_calls_of_a_producer_of_a_known_class(name: str) -> None:
    call = KNOWN[name]
    producer = known_type()(call.device)
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
    assert (producer.calls, producer.dropped) == (call.calls, call.dropped)


def test_memory_that_was_moved_to_the_host_is_not_of_the_host() -> None:
    made = producer_type()
    moved, on_cuda = made(), made((2, 0))
    moved.stated = (2, 0)
    assert values(dl.from_dlpack(moved, device="cpu")) == ROWS
    dl.describe(on_cuda)
    assert on_cuda.calls[0] == "device"


def test_after_an_error_without_a_stream_device_memory_is_exported_with_it() -> None:
    made = known_type()

    class Strict(made):  # type: ignore[misc, valid-type]
        def __dlpack__(self, **keywords: Any) -> object:
            self.error = BufferError("a stream, please") if self.stated == (2, 0) and "stream" not in keywords else None
            return super().__dlpack__(**keywords)

    dl.describe(Strict())
    producer = Strict((2, 0))
    assert dl.describe(producer).device == (2, 0)
    assert producer.calls == [VERSION, "device", VERSION | {"stream": 1}]


def test_a_producer_without_keywords_is_called_again(read: Callable[..., Any]) -> None:
    class Old(producer_type()):  # type: ignore[misc]
        def __dlpack__(self, *args: Any, **keywords: Any) -> object:
            if keywords:
                self.calls.append("refused")
                raise TypeError("no keywords")
            return super().__dlpack__()

    first, second = Old(version=None), Old(version=None)
    assert values(read(first)) == values(read(second)) == ROWS
    assert first.calls == ["device", "refused", {}]
    assert second.calls == ["refused", "device", {}]


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
    made = known_type()
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
