"""`describe` and `from_dlpack` through `__array__`, the last resort, and `__array_struct__`, and of other objects."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from fakes_interfaces import Arrays, Exposing, double_matrix, interface_of
from matrix import Plain
from oracle import values

SHARING: list[Callable[..., Any]] = [dl.describe, lambda value: dl.from_dlpack(value, copy=False)]
TAKING: list[Callable[..., Any]] = [dl.from_dlpack, lambda value: dl.from_dlpack(value, copy=True)]

MATRIX = double_matrix()
BYTES = bytearray(MATRIX.tobytes())

FRESH: dict[str, Callable[[], Any]] = {
    "an array": double_matrix,
    "a view of an array": lambda: double_matrix()[:],
    "a view of a view": lambda: double_matrix().reshape(6)[::2],
    "a subclass": lambda: double_matrix().view(Plain),
}

SHARED: dict[str, Callable[[], Any]] = {
    "an array": lambda: MATRIX,
    "a view": lambda: MATRIX[::-1],
    "a view of a view": lambda: MATRIX[::-1].T[1:],
    "a view of a buffer": lambda: np.frombuffer(BYTES),
    "a subclass": lambda: MATRIX.view(Plain),
}


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("modern", [False, True])
def test_memory_that_the_object_has_is_shared(read: Callable[..., Any], modern: bool, name: str) -> None:
    array = SHARED[name]()
    producer = Arrays(SHARED[name], modern=modern)
    found = read(producer)
    assert (found.ptr, found.shape, found.strides) == (array.ctypes.data, array.shape, array.strides)
    assert (values(found), found.readonly, found.device) == (array.tolist(), False, "cpu")
    if isinstance(found, dl.Descriptor):
        assert (found.protocol, found.owner) == ("array", producer)


@pytest.mark.parametrize("name", FRESH)
@pytest.mark.parametrize("modern", [False, True])
def test_an_array_made_for_the_call_is_a_copy(modern: bool, name: str) -> None:
    producer = Arrays(FRESH[name], modern=modern)
    for refuse in SHARING:
        with pytest.raises(dl.ExchangeError, match=r"(copy: False, but|obj:) __array__ returned"):
            refuse(producer)
    assert dl.from_dlpack(producer).to_numpy().tolist() == FRESH[name]().tolist()
    assert dl.from_dlpack(producer, copy=True).to_numpy().tolist() == FRESH[name]().tolist()
    assert dl.from_array(producer).to_numpy().tolist() == FRESH[name]().tolist()


def test_copy_false_is_passed_on_when_sharing() -> None:
    for modern, calls in ((True, [{"copy": False}]), (False, [{"copy": False}, {}])):
        for share in SHARING:
            producer = Arrays(lambda: MATRIX, modern=modern)
            share(producer)
            assert producer.calls == calls
        for take in TAKING:
            producer = Arrays(lambda: MATRIX, modern=modern)
            take(producer)
            assert producer.calls == [{}]


@pytest.mark.parametrize("value", [None, 3, [1, 2], "array", dl.zeros(2), memoryview(b"ab"), np.float64(1)])
def test_what_is_no_array_is_refused(read: Callable[..., Any], value: Any) -> None:
    with pytest.raises(dl.ExchangeError, match="__array__"):
        read(Arrays(lambda: value))


@pytest.mark.parametrize(
    "value",
    [None, 1, 1.5, 1j, True, "text", [1.0], (1.0,), {}, {1}, object(), range(3), np.ndarray, Exposing, len, ...],
)
def test_objects_without_a_protocol(read: Callable[..., Any], value: Any) -> None:
    with pytest.raises(dl.NotAnArrayError, match="obj: expected an array, got ") as caught:
        read(value)
    assert str(type(value)) in str(caught.value)


def test_unrelated_attributes_are_ignored() -> None:
    class Anything:
        """Has every attribute, as mocks do, but none of a protocol."""

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return self

    with pytest.raises(dl.NotAnArrayError):
        dl.describe(Anything())


def test_pandas_series_are_shared() -> None:
    pandas = pytest.importorskip("pandas")
    series = pandas.Series([1.0, 2.0, 3.0])
    found = dl.describe(series)
    assert (values(found), found.protocol) == ([1.0, 2.0, 3.0], "array")
    with pytest.raises(ValueError, match="copy"):
        dl.describe(pandas.DataFrame({"a": [1.0], "b": [2]}))


NOTSWAPPED, WRITEABLE, HAS_DESCR = 0x200, 0x400, 0x800


class ArrayInterface(ctypes.Structure):
    """NumPy's `PyArrayInterface`."""

    _fields_ = [
        ("two", ctypes.c_int),
        ("nd", ctypes.c_int),
        ("typekind", ctypes.c_char),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("data", ctypes.c_void_p),
        ("descr", ctypes.c_void_p),
    ]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def made(name: bytes | None = None, **fields: Any) -> Exposing:
    """An object with a struct for two rows of three float64, except for the given fields."""
    array = np.arange(6.0).reshape(2, 3)
    shape, strides = (ctypes.c_ssize_t * 2)(2, 3), (ctypes.c_ssize_t * 2)(24, 8)
    sound = {
        "two": 2,
        "nd": 2,
        "typekind": b"f",
        "itemsize": 8,
        "flags": NOTSWAPPED | WRITEABLE,
        "shape": shape,
        "strides": strides,
        "data": array.ctypes.data,
    }
    struct = ArrayInterface(**(sound | fields))
    capsule = new_capsule(ctypes.addressof(struct), name, None)
    return Exposing(__array_struct__=capsule, kept=(array, struct, shape, strides))


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"two": 3}, r'__array_struct__\["two"\]: .* got 3'),
        ({"nd": -1}, r'\["nd"\]: .* got -1'),
        ({"nd": 65}, r'\["nd"\]: .* got 65'),
        ({"itemsize": 0}, r'\["itemsize"\]: .* got 0'),
        ({"itemsize": -8}, r'\["itemsize"\]: .* got -8'),
        ({"itemsize": 7}, "f7"),
        ({"typekind": b"\xff"}, "typestr"),
        ({"shape": None}, r'\["shape"\]: .* got a null pointer'),
        ({"data": None}, r"data: .* got NULL"),
        ({"shape": (ctypes.c_ssize_t * 2)(2, -3)}, "-3"),
        ({"shape": (ctypes.c_ssize_t * 2)(2**62, 2**62)}, "address space"),
        ({"strides": (ctypes.c_ssize_t * 2)(12, 8)}, "12 bytes"),
        ({"flags": WRITEABLE}, "byte order"),
        ({"name": b"dltensor_of_another"}, "__array_struct__.*capsule without a name"),
    ],
)
def test_malformed_structs(read: Callable[..., Any], fields: dict[str, Any], match: str) -> None:
    with pytest.raises(dl.Error, match=match):
        read(made(**fields))


def test_optional_fields() -> None:
    assert dl.describe(made(strides=None)).strides == (24, 8)
    assert dl.describe(made(nd=0, shape=None, strides=None)).shape == ()
    # Without the flag, `descr` may be anything.
    assert dl.describe(made(descr=1)).shape == (2, 3)


@pytest.mark.parametrize("wrong", [None, 3, "text", {}, object()])
def test_other_objects_than_capsules(wrong: object) -> None:
    with pytest.raises(dl.ExchangeError, match=r"__array_struct__.*capsule"):
        dl.describe(Exposing(__array_struct__=wrong))


def test_the_dictionary_comes_first() -> None:
    array = np.zeros(3)
    both = Exposing(__array_struct__=array.__array_struct__, __array_interface__=interface_of(array))
    assert dl.describe(both).protocol == "array-interface"
    assert dl.describe(np.float64(3)).protocol != "array-struct", "that of a scalar is a temporary"
