"""Which methods of a DLPack producer are called, and how; objects with `__dlpack__` that are imported otherwise."""

from __future__ import annotations

import ctypes
import gc
import weakref
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
            self.stated = device
            self.calls: list[Any] = []
            self.dropped = 0
            self._destructor = DESTRUCTOR(self._drop)
            destructors.append(self._destructor)

        def _drop(self, capsule: int) -> None:
            self.dropped += name_at(capsule) == self.tensor.name

        def __dlpack__(self, **keywords: Any) -> object:
            self.calls.append(keywords)
            destructor = ctypes.cast(self._destructor, ctypes.c_void_p)
            return new_capsule(self.tensor.address, self.tensor.name, destructor)

        def __dlpack_device__(self) -> tuple[int, int]:
            self.calls.append("device")
            return self.stated

    return Producer


VERSION = {"max_version": (1, 3)}


class Call(NamedTuple):
    """A call with a producer: which of its methods run, and the error, if there is one."""

    read: Callable[[Any], Any]
    calls: list[Any]
    raises: type[BaseException] | None = None
    # Where the memory is, and where `__dlpack_device__` says that it is.
    device: tuple[int, int] = (1, 0)
    stated: tuple[int, int] | None = None


def taking(**keywords: Any) -> Callable[[Any], Any]:
    return lambda producer: dl.from_dlpack(producer, **keywords)


ASKED = ["device", VERSION]
CALLS: dict[str, Call] = {
    "host": Call(dl.describe, ASKED),
    "CUDA, with its stream": Call(dl.describe, ["device", VERSION | {"stream": 1}], device=(2, 0)),
    "CUDA, with a stream": Call(
        lambda producer: dl.describe(producer, stream=7), ["device", VERSION | {"stream": 7}], device=(2, 0)
    ),
    "pinned": Call(dl.describe, ASKED, device=(3, 0)),
    "memory that cannot be owned": Call(dl.from_dlpack, ["device"], dl.DeviceError, (4, 0)),
    # The capsule counts.
    "the stated device is not that of the capsule": Call(dl.describe, ASKED, device=(2, 0), stated=(1, 0)),
    "device": Call(taking(device="cpu"), ASKED),
    "copy=False": Call(taking(copy=False), ["device", VERSION | {"copy": False}]),
    "copy=True": Call(taking(copy=True), ASKED),
    # An export without `dl_device` would be of the host.
    "another device": Call(taking(device="cuda:0"), ["device", VERSION | {"dl_device": (2, 0)}], dl.DeviceError),
    # A description of moved memory would not be the object's.
    "another device for a description": Call(
        lambda producer: dl.describe(producer, device="cuda:1"),
        ["device", VERSION | {"dl_device": (2, 1), "copy": False}],
        dl.DeviceError,
    ),
    "a stream on the host": Call(taking(stream=1), ["device"], dl.ExchangeError),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_a_producer(name: str) -> None:
    call = CALLS[name]
    producer = producer_type()(call.device)
    producer.stated = call.stated or call.device
    if call.raises is None:
        found = call.read(producer)
        assert found.device == call.device
        assert call.device != (1, 0) or values(found) == ROWS
    else:
        with pytest.raises(call.raises):
            call.read(producer)
    assert (producer.calls, producer.dropped) == (call.calls, 0)


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


class Exporter:
    """Exports an array by `__dlpack__` alone."""

    def __init__(self) -> None:
        self.array = np.arange(3.0)

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_classes_are_never_arrays() -> None:
    class Meta(type):
        __dlpack__ = Exporter.__dlpack__
        __dlpack_device__ = Exporter.__dlpack_device__

    class Made(metaclass=Meta):
        array = np.arange(3.0)

    for kind in (Exporter, Made):
        for _ in range(2):
            with pytest.raises(dl.NotAnArrayError):
                dl.describe(kind)


@pytest.mark.parametrize("base", [int, float, list, dict])
def test_subclasses_of_pythons_types_are_arrays(base: type) -> None:
    kind: Any = type("Array", (base,), {name: vars(Exporter)[name] for name in ("__dlpack__", "__dlpack_device__")})
    array = kind()
    array.array = np.arange(3.0)
    for _ in range(2):
        assert dl.describe(array).protocol == "dlpack"


def test_wrappers_are_peeled_first() -> None:
    xarray = pytest.importorskip("xarray")

    def refuse(_self: Any, **_keywords: Any) -> Any:
        raise AssertionError("the array inside is imported")

    labelled: Any = type("Labelled", (xarray.DataArray,), {"__slots__": (), "__dlpack__": refuse})
    for _ in range(2):
        found = dl.describe(labelled(np.zeros((2, 3)), dims=("J", "I")))
        assert (found.protocol, found.dims) == ("numpy", ("J", "I"))


def test_labels_and_hooks_of_the_object_count() -> None:
    class Labelled(Exporter):
        __gt_dims__ = ("K",)

    calls = []

    class Hooked(Exporter):
        @property
        def __gt_data_interface__(self) -> dict[Any, Any]:
            calls.append("interface")
            return {None: {"data": (self.array.ctypes.data, False), "shape": (3,), "typestr": "<f8", "dims": ("J",)}}

    for _ in range(2):
        assert dl.describe(Labelled()).dims == ("K",)
        assert dl.from_dlpack(Labelled()).dims == ("K",)
        plain: Any = Exporter()
        plain.dims = ("K",)
        assert dl.describe(plain).dims == ("K",)
        assert dl.describe(Hooked()).dims == ("J",)
    assert calls


def test_an_error_before_a_retry_is_freed_at_once() -> None:
    class RefusalError(TypeError):
        pass

    errors: list[weakref.ref[Any]] = []

    class Old(Exporter):
        def __dlpack__(self, **keywords: Any) -> Any:
            if keywords:
                error = RefusalError("no keywords")
                errors.append(weakref.ref(error))
                raise error
            return self.array.__dlpack__()

    for read in (dl.describe, dl.from_dlpack):
        assert read(Old()).shape == (3,)
        gc.collect()
        assert errors
        assert errors[-1]() is None
