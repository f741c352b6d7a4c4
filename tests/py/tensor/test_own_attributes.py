"""Labels and protocols among an object's own attributes, looked for by their names' hashes, and what a label is."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from childproc import run_cases
from fakes_interfaces import Exposing

FIELD = np.zeros((2, 3))
DIMS = ("x", "y")


class Producer:
    """Has the methods of DLPack, and nothing else until a test sets it."""

    def __dlpack__(self, **keywords: Any) -> Any:
        return FIELD.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def computed(name: str) -> str:
    """The same text in another object, not interned."""
    return "".join(name)


class Text(str):
    """A string with a hash of its own class."""

    def __hash__(self) -> int:
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other)


class Alias(str):
    """A string of another text that a dictionary takes for `dims`."""

    def __hash__(self) -> int:
        return hash("dims")

    def __eq__(self, other: object) -> bool:
        return other == "dims"


def under_another_text(obj: Any) -> None:
    alias = Alias("another text")
    # The hash of the text is computed too: it is stored in the string, and is not that of the alias.
    assert str.__hash__(alias) != hash(alias)
    obj.__dict__[alias] = DIMS


def among_many(obj: Any) -> None:
    for number in range(40):
        setattr(obj, f"name{number}", number)
    obj.dims = DIMS


def after_others_were_deleted(obj: Any) -> None:
    obj.first, obj.second = 1, 2
    del obj.first
    obj.dims = DIMS


class Slotted(Producer):
    __slots__ = ("dims",)


class Computed(Producer):
    def __getattr__(self, name: str) -> Any:
        if name == "dims" and "labelled" in self.__dict__:
            return DIMS
        raise AttributeError(name)


# The class of an object, and how it gets its labels.
WAYS: dict[str, tuple[type[Any], Callable[[Any], object]]] = {
    "object.__setattr__": (Producer, lambda obj: object.__setattr__(obj, computed("dims"), DIMS)),
    "in the dictionary": (Producer, lambda obj: obj.__dict__.update({computed("dims"): DIMS})),
    "under a subclass of str": (Producer, lambda obj: obj.__dict__.update({Text("dims"): DIMS})),
    "under another text": (Producer, under_another_text),
    "among many": (Producer, among_many),
    "after others were deleted": (Producer, after_others_were_deleted),
    "in another dictionary": (Producer, lambda obj: setattr(obj, "__dict__", {"dims": DIMS})),
    "with keys that are not strings": (Producer, lambda obj: obj.__dict__.update({7: 8, "dims": DIMS})),
    "in a slot": (Slotted, lambda obj: setattr(obj, "dims", DIMS)),
    "by code of the class": (Computed, lambda obj: setattr(obj, "labelled", True)),
}


@pytest.mark.parametrize("name", WAYS)
def test_labels_are_found(name: str) -> None:
    base, label = WAYS[name]
    made: Any = type("Labelled", (base,), {})
    plain, labelled = made(), made()
    label(labelled)
    for _ in range(2):
        assert dl.describe(labelled).dims == DIMS
        assert dl.describe(plain).dims is None
    made.dims = DIMS
    assert dl.describe(plain).dims == DIMS


@pytest.mark.parametrize("base", [dict, tuple, BaseException])
def test_labels_of_objects_of_any_layout_are_found(base: type) -> None:
    """Variable size, and a `__dict__` that the interpreter does not manage."""

    class Mixed(base, Producer):  # type: ignore[misc]
        pass

    mixed = Mixed()
    assert dl.describe(mixed).dims is None
    mixed.dims = DIMS
    assert dl.describe(mixed).dims == DIMS


@pytest.mark.parametrize("name", ["__array_interface__", "__array_struct__", "__dlpack__", "__array__"])
def test_an_object_gets_and_loses_a_protocol(name: str) -> None:
    class Bare:
        pass

    obj = Bare()
    for _ in range(2):
        with pytest.raises(dl.NotAnArrayError):
            dl.describe(obj)
        setattr(obj, name, getattr(FIELD, name))
        assert dl.describe(obj).shape == (2, 3)
        delattr(obj, name)


def test_a_protocol_that_the_look_up_of_another_adds_is_found() -> None:
    class Shy:
        @property
        def __dlpack__(self) -> Any:
            self.__array_interface__ = FIELD.__array_interface__
            raise AttributeError("not here")

    for _ in range(2):
        assert dl.describe(Shy()).protocol == "array-interface"


@pytest.mark.parametrize("read", [dl.describe, dl.from_dlpack])
def test_labels_and_hooks_that_the_look_up_of_the_interface_adds_are_found(read: Callable[[Any], Any]) -> None:
    calls = []

    class Shy:
        @property
        def __array_interface__(self) -> Any:
            self.dims = DIMS
            self.__gt_data_interface__ = {
                None: FIELD.__array_interface__ | {"acquire": lambda: calls.append("acquire")}
            }
            return FIELD.__array_interface__

    assert read(Shy()).dims == DIMS
    assert calls == ["acquire"]


def test_an_interface_of_the_object_comes_after_dlpack_of_the_class() -> None:
    class Array(np.ndarray):
        pass

    for obj, protocol in ((Producer(), "dlpack"), (FIELD.view(Array), "numpy")):
        # A subclass has a `__dict__`, but the attribute of NumPy's class comes before its entries.
        obj.__dict__["__array_interface__"] = np.ones(5).__array_interface__
        for _ in range(2):
            assert (dl.describe(obj).protocol, dl.describe(obj).shape) == (protocol, (2, 3))


def test_an_interface_of_numpys_scalars_and_of_classes_is_not_read() -> None:
    class Scalar(np.float64):
        pass

    class Meta(type):
        __array_interface__ = FIELD.__array_interface__

    class Made(metaclass=Meta):
        pass

    scalar: Any = Scalar(1.0)
    with pytest.raises(AttributeError):
        scalar.__array_interface__ = FIELD.__array_interface__
    scalar.__dict__["__array_interface__"] = FIELD.__array_interface__
    for _ in range(2):
        assert dl.describe(scalar).protocol == "buffer"
        with pytest.raises(dl.NotAnArrayError):
            dl.describe(Made)


def test_attributes_that_were_deleted_leave_no_name() -> None:
    """The dictionary's table keeps entries without key and value. Reading these would crash the process."""
    cases = {
        f"{name}, {dictionary}": f"""
obj = Producer()
attributes = {dictionary}
attributes.update(first=1, {name}=2, last=3, __array_interface__=np.ones(5).__array_interface__)
obj.__dict__ = attributes
for name in ("first", {name!r}):
    delattr(obj, name)
    assert dl.describe(obj).shape == (2,) and dl.describe(obj).dims is None
"""
        for name in ("dims", "other")
        for dictionary in ("{}", "dict.fromkeys(map(str, range(99)))")
    }
    prelude = """
import numpy as np
import dlfield as dl
class Producer:
    def __dlpack__(self, **_): return dl.zeros(2).__dlpack__()
    def __dlpack_device__(self): return (1, 0)
"""
    run_cases(prelude, cases)


def test_the_first_protocol_counts_wherever_it_is() -> None:
    class Both:
        @property
        def __array_interface__(self) -> Any:
            return FIELD.__array_interface__

    obj: Any = Both()
    assert dl.describe(obj).protocol == "array-interface"
    obj.__gt_data_interface__ = {None: np.ones(5).__array_interface__}
    assert dl.describe(obj).protocol == "gt"


class Entries(dict[str, Any]):
    """A subclass of dict."""


def attributes_of_an_object(entries: Any) -> Any:
    """All objects of the class share the keys, and each has its values elsewhere."""
    plain = type("Plain", (), {})
    first, second = plain(), plain()
    for obj, shape in ((first, (7, 7)), (second, (2, 2))):
        for key, value in (entries | {"shape": shape}).items():
            setattr(obj, key, value)
    return second.__dict__


CHANGES: dict[str, Callable[[Any], Any]] = {
    "computed keys": lambda entries: {computed(key): value for key, value in entries.items()},
    "another key": lambda entries: entries | {"of mine": 7},
    "a number as key": lambda entries: entries | {7: 8},
    "a subclass of str": lambda entries: {Text(key): value for key, value in entries.items()},
    "None": lambda entries: entries | {"mask": None, "stream": None, "offset": None},
    "a subclass of dict": Entries,
    "deleted keys": lambda entries: {key: entries[key] for key in entries.keys() - {"descr", "version"}},
    "the attributes of an object": attributes_of_an_object,
}


@pytest.mark.parametrize("name", CHANGES)
def test_dictionaries_with_unusual_keys_are_read(name: str) -> None:
    class Owner:
        __array_interface__ = CHANGES[name](dict(FIELD[:, ::2].__array_interface__))
        array = FIELD

    found = dl.describe(Owner())
    assert (found.ptr, found.shape, found.strides) == (FIELD.ctypes.data, (2, 2), (24, 16))


NO_LABELS = [1.0, True, False, -1, None, b"I", 1j, 1 << 40, np.float64(1), np.int8(-1), np.True_]


def stating(**labels: Any) -> Any:
    array = np.zeros((2, 3))
    return Exposing(kept=array, __array_interface__=array.__array_interface__, **labels)


CALLS: dict[str, Callable[[Any], Any]] = {
    "zeros": lambda dims: dl.zeros((2, 3), dims=dims).dims,
    "from_dlpack": lambda dims: dl.from_dlpack(np.zeros((2, 3)), dims=dims).dims,
    "get_dims": lambda dims: dl.get_dims(np.zeros((2, 3)), dims),
    "FieldSpec": lambda dims: dl.FieldSpec("f8", dims).dims,
    "an attribute": lambda dims: dl.get_dims(stating(__gt_dims__=dims)),
    "a method": lambda dims: dl.from_dlpack(stating(__gt_dims__=lambda: dims)).dims,
}


@pytest.mark.parametrize("dims", [("I", 0), ["I", np.int64(0)], ("I", "0"), "I0"])
def test_integers_are_data_dimensions(dims: Any) -> None:
    for name, call in CALLS.items():
        assert call(dims) == ("I", "0"), name


@pytest.mark.parametrize("label", NO_LABELS, ids=repr)
def test_other_values_are_refused(label: Any) -> None:
    for call in CALLS.values():
        with pytest.raises(dl.DimsError, match=r"^(__gt_)?dims(__)?: expected a label, "):
            call(("I", label))


def test_objects_state_numbers_and_axes() -> None:
    gtscript = pytest.importorskip("gt4py.cartesian.gtscript")
    assert dl.get_dims(stating(__gt_dims__=("K", 0))) == ("K", "0")
    assert dl.get_dims(stating(__gt_dims__=(gtscript.K, gtscript.I))) == ("K", "I")
    # Any object with a text, such as an axis of an unknown library.
    axis: Any = type("Axis", (SimpleNamespace,), {"__str__": lambda self: self.name})
    assert dl.get_dims(stating(__gt_dims__=(axis(name="cell"), axis(name="K")))) == ("cell", "K")
    with pytest.raises(dl.DimsError, match="empty"):
        dl.get_dims(stating(__gt_dims__=(axis(name=""), "K")))
