"""Cached lookups on types: patched types are read as they are now, and freed types leave nothing behind."""

import gc
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from fakes_interfaces import interface_of


class Holding:
    """Keeps an array that each subclass exports in its own way."""

    array: Any

    def __init__(self, size: int = 3) -> None:
        self.array = np.arange(float(size))


def export(self: Any, **keywords: Any) -> Any:
    return self.array.__dlpack__(**keywords)


def device(_self: Any) -> tuple[int, int]:
    return (1, 0)


def shown(self: Any) -> dict[str, Any]:
    return interface_of(self.array)


DLPACK = {"__dlpack__": export, "__dlpack_device__": device}
SHOWN = {"__array_interface__": property(shown)}


def class_of(bases: tuple[type, ...] = (Holding,), /, **members: Any) -> Any:
    """A new class."""
    return type("Array", bases, members)


def protocol_of(obj: Any) -> str | None:
    try:
        return dl.describe(obj).protocol
    except dl.NotAnArrayError:
        return None


def test_a_protocol_is_added_and_taken_away() -> None:
    kind = class_of()
    array = kind()
    for _ in range(3):
        assert protocol_of(array) is None
        kind.__array_interface__ = property(shown)
        assert protocol_of(array) == "array-interface"
        kind.__dlpack__ = export
        kind.__dlpack_device__ = device
        assert protocol_of(array) == "dlpack"
        del kind.__dlpack__
        assert protocol_of(array) == "array-interface"
        del kind.__array_interface__, kind.__dlpack_device__


def test_a_base_is_patched() -> None:
    base = class_of()
    array = class_of((class_of((base,)),))()
    assert protocol_of(array) is None
    base.__array_interface__ = property(shown)
    assert protocol_of(array) == "array-interface"
    del base.__array_interface__
    assert protocol_of(array) is None


def test_bases_are_exchanged() -> None:
    plain, showing = class_of(), class_of(**SHOWN)
    kind = class_of((plain,))
    array = kind()
    assert protocol_of(array) is None
    kind.__bases__ = (showing,)
    assert protocol_of(array) == "array-interface"
    kind.__bases__ = (plain,)
    assert protocol_of(array) is None


def test_an_object_changes_its_class() -> None:
    first, second = class_of(**SHOWN), class_of(**DLPACK)
    array = first()
    assert protocol_of(array) == "array-interface"
    array.__class__ = second
    assert protocol_of(array) == "dlpack"


def test_an_object_hides_a_method_of_its_type() -> None:
    kind = class_of(**DLPACK)
    array, other = kind(), np.arange(7.0)
    for _ in range(2):
        array.__dlpack__ = other.__dlpack__
        assert dl.describe(array).shape == (7,)
        del array.__dlpack__
        assert dl.describe(array).shape == (3,)


def test_attributes_are_found_by_getattr() -> None:
    """`__getattr__` is added to the type and removed again."""
    kind = class_of()
    array = kind()

    def find(self: Any, name: str) -> Any:
        if name == "__array_interface__":
            return interface_of(self.array)
        raise AttributeError(name)

    assert protocol_of(array) is None
    kind.__getattr__ = find
    assert protocol_of(array) == "array-interface"
    del kind.__getattr__
    assert protocol_of(array) is None


def test_labels_come_and_go() -> None:
    kind = class_of(**SHOWN)
    array = kind()
    assert dl.describe(array).dims is None
    kind.dims = ("K",)
    assert (dl.describe(array).dims, dl.from_dlpack(array).dims) == (("K",), ("K",))
    kind.dims = ("J",)
    assert dl.describe(array).dims == ("J",)
    del kind.dims
    assert dl.describe(array).dims is None
    array.dims = ("I",)
    assert dl.describe(array).dims == ("I",)


def test_pytorch_is_patched(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tensor, parameter = torch.zeros(2, 3), torch.nn.Parameter(torch.zeros(2, 3), requires_grad=False)
    for each in (tensor, parameter):
        assert dl.describe(each).dims is None
        with monkeypatch.context() as patch:
            patch.setattr(torch.Tensor, "__gt_dims__", ("J", "I"), raising=False)
            assert (dl.describe(each).dims, dl.from_dlpack(each).dims) == (("J", "I"), ("J", "I"))
        assert dl.describe(each).dims is None
        each.dims = ("K", "I")
        assert dl.describe(each).dims == ("K", "I")
        del each.dims
        assert dl.describe(each).dims is None


def absent() -> Iterator[tuple[str, Any]]:
    """Classes with an attribute of a protocol that turns out to be absent; each exports its array otherwise."""

    def raises(_self: Any) -> Any:
        raise AttributeError("not for this one")

    def hides(self: Any, name: str) -> Any:
        if name in ("__dlpack__", "__array__"):
            raise AttributeError(name)
        return object.__getattribute__(self, name)

    class Meta(type):
        def __getattr__(cls, name: str) -> Any:
            return lambda *_args, **_keywords: name

    for name in ("__dlpack__", "__array__"):
        yield f"property {name}", class_of(**{name: property(raises)}, **SHOWN)
        yield f"slot {name}", class_of(__slots__=(name,), **SHOWN)
    yield "__getattribute__", class_of(**DLPACK, **SHOWN, __getattribute__=hides)
    yield "metaclass", Meta("Array", (Holding,), SHOWN)


ABSENT = dict(absent())


@pytest.mark.parametrize("name", ABSENT)
def test_absent_protocols_are_skipped(name: str) -> None:
    array = ABSENT[name]()
    for _ in range(2):
        assert protocol_of(array) == "array-interface"
        assert dl.from_dlpack(array).shape == (3,)


def test_descriptors_that_refuse_class_access() -> None:
    class Shy:
        def __get__(self, obj: Any, _kind: type | None = None) -> Any:
            if obj is None:
                raise RuntimeError("the class has no array")
            return interface_of(obj.array)

    assert protocol_of(class_of(__array_interface__=Shy())()) == "array-interface"
    dynamic = types.DynamicClassAttribute(shown)
    slotted = class_of((Holding,), __slots__=(), __array_interface__=dynamic)
    assert protocol_of(slotted()) == "array-interface"


@pytest.mark.parametrize("module", [None, 5, "jaxlib.fake"])
def test_a_module_may_be_anything(module: Any) -> None:
    kind = class_of(**SHOWN)
    kind.__module__ = module
    assert protocol_of(kind()) == "array-interface"


def test_a_type_changes_during_its_lookup() -> None:
    """Lookups from before the change must not be cached."""

    class Patching:
        def __get__(self, obj: Any, kind: Any) -> Any:
            kind.dims = ("K",)
            raise AttributeError

    for name in ("__dlpack_c_exchange_api__", "__dlpack__", "__gt_dims__"):
        array = class_of(**SHOWN, **{name: Patching()})()
        dl.describe(array)
        assert dl.describe(array).dims == ("K",)


def test_types_are_freed() -> None:
    """Of a thousand types, many at the address of a freed one, none is confused with another or kept alive."""
    gone = []
    members: list[dict[str, Any]] = [{}, DLPACK, SHOWN, {**SHOWN, "dims": ("K",)}]
    expected = [(None, None), ("dlpack", None), ("array-interface", None), ("array-interface", ("K",))]
    for turn in range(1000):
        kind = class_of(**members[turn % 4])
        array = kind()
        protocol, dims = expected[turn % 4]
        assert protocol_of(array) == protocol
        if protocol:
            assert dl.describe(array).dims == dims
        gone.append(weakref.ref(kind))
        del kind, array
        if turn % 100 == 0:
            gc.collect()
    gc.collect()
    assert sum(reference() is not None for reference in gone) <= 1


def test_types_change_more_often_than_they_have_versions() -> None:
    """From Python 3.13 on a type has no version after a thousand changes, and nothing is cached then."""
    kind = class_of(**SHOWN)
    array = kind()
    for turn in range(1500):
        kind.dims = ("K",) if turn % 2 else ("J",)
        assert dl.describe(array).dims == kind.dims
    del kind.dims
    assert dl.describe(array).dims is None


def test_the_cache_of_the_interpreter_is_cleared() -> None:
    clear: Callable[[], None] | None = getattr(sys, "_clear_type_cache", None)
    if clear is None:
        pytest.skip("this interpreter has no such call")
    kind = class_of(**SHOWN)
    array = kind()
    assert protocol_of(array) == "array-interface"
    clear()
    assert protocol_of(array) == "array-interface"
    other = class_of()()
    assert (protocol_of(other), protocol_of(array)) == (None, "array-interface")
    kind.dims = ("K",)
    clear()
    assert dl.describe(array).dims == ("K",)


def test_more_types_than_are_cached() -> None:
    kinds = [class_of(**(SHOWN if turn % 2 else DLPACK)) for turn in range(300)]
    arrays = [kind() for kind in kinds]
    expected = ["array-interface" if turn % 2 else "dlpack" for turn in range(300)]
    for _ in range(3):
        assert [protocol_of(array) for array in arrays] == expected


def test_memory_is_checked_again_without_a_lookup_on_the_class(torch: Any) -> None:
    """A lookup could run code of the metaclass, which could move the memory again."""
    looked_up = []

    class Watching(type(torch.Tensor)):  # type: ignore[misc]
        def __getattribute__(cls, name: str) -> Any:
            if name == "__dlpack_c_exchange_api__":
                looked_up.append(name)
            return super().__getattribute__(name)

    class Patched(torch.Tensor, metaclass=Watching):  # type: ignore[misc]
        @property
        def default_origin(self) -> None:
            # The last attribute of the metadata. The class gets a new version, with which nothing is cached.
            type(self).patched = object()
            looked_up.clear()

    tensor = torch.ones(3).as_subclass(Patched)
    for _ in range(2):
        assert dl.describe(tensor).shape == (3,)
        assert not looked_up


def test_code_of_a_metaclass_is_not_asked_for_protocols() -> None:
    class Failing(type):
        def __getattr__(cls, name: str) -> Any:
            raise RuntimeError(name)

    class Shown(metaclass=Failing):
        def __init__(self) -> None:
            self.array = np.arange(3.0)

        @property
        def __array_interface__(self) -> Any:
            return self.array.__array_interface__

    assert dl.from_dlpack(Shown()).tolist() == [0, 1, 2]
