"""`describe` and `from_dlpack` through `__array__`, the last resort, and of objects without any protocol."""

import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from catalog import dtype_named
from fakes_interfaces import Arrays, Exposing, Raising, double_matrix
from oracle import values

READERS: list[Callable[..., Any]] = [dl.describe, dl.from_dlpack]
SHARING: list[Callable[..., Any]] = [dl.describe, lambda value: dl.from_dlpack(value, copy=False)]
TAKING: list[Callable[..., Any]] = [dl.from_dlpack, lambda value: dl.from_dlpack(value, copy=True)]
ROWS = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]

MATRIX = double_matrix()
BYTES = bytearray(MATRIX.tobytes())
BIG_ENDIAN = np.zeros(3, ">f8")
OBJECTS = np.zeros(3, object)
MASKED: Any = np.ma.masked_equal(np.arange(3), 1)

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


class Plain(np.ndarray[Any, np.dtype[Any]]):
    """Inherits its base's export."""


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize("read", READERS)
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


def test_readonly_and_labels_are_kept() -> None:
    array = double_matrix()
    array.flags.writeable = False
    producer = Exposing(__array__=lambda **_: array, __gt_dims__=("K", "I"), default_origin=(1, 1))
    for read in READERS:
        found = read(producer)
        assert (found.readonly, found.dims, found.origin) == (True, ("K", "I"), (1, 1))
    with pytest.raises(dl.ExchangeError, match=r"read.?only"):
        dl.describe(producer, writable=True)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "int4", "complex64"])
def test_types_beyond_numpy(name: str) -> None:
    array = np.zeros(3, dtype_named(name))
    assert dl.describe(Arrays(lambda: array)).dtype == array.dtype


@pytest.mark.parametrize("value", [None, 3, [1, 2], "array", dl.zeros(2), memoryview(b"ab"), np.float64(1)])
@pytest.mark.parametrize("read", READERS)
def test_what_is_no_array_is_refused(read: Callable[..., Any], value: Any) -> None:
    with pytest.raises(dl.ExchangeError, match="__array__"):
        read(Arrays(lambda: value))


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: BIG_ENDIAN, dl.DTypeError),
        (lambda: OBJECTS, dl.DTypeError),
        (lambda: MASKED, dl.ExchangeError),
    ],
)
@pytest.mark.parametrize("read", READERS)
def test_arrays_are_checked_like_others(read: Callable[..., Any], make: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        read(Arrays(make))


def raising(error: BaseException) -> Callable[[], Any]:
    def make() -> Any:
        raise error

    return make


@pytest.mark.parametrize("error", [KeyError("mine"), ValueError("mine"), TypeError("mine"), KeyboardInterrupt()])
@pytest.mark.parametrize("read", READERS)
def test_the_producers_exception_is_the_callers(read: Callable[..., Any], error: BaseException) -> None:
    for producer in (Raising("__array__", error), Arrays(raising(error))):
        with pytest.raises(type(error)) as caught:
            read(producer)
        assert caught.value is error


@pytest.mark.parametrize("read", READERS)
def test_the_object_and_its_array_are_kept_and_released(read: Callable[..., Any]) -> None:
    array = double_matrix()
    kept = [array]
    producer = Exposing(__array__=lambda **_: kept[0])
    gone, array_gone = weakref.ref(producer), weakref.ref(array)
    found = read(producer)
    del producer, array
    kept.clear()
    assert gone() is not None
    assert array_gone() is not None
    assert values(found) == ROWS
    del found
    gc.collect()
    assert gone() is None
    assert array_gone() is None


def test_reading_leaves_no_reference_behind() -> None:
    array = double_matrix()
    producer = Arrays(lambda: array)
    before = sys.getrefcount(array), sys.getrefcount(producer)
    for _ in range(100):
        dl.describe(producer)
        dl.from_dlpack(producer)
        producer.calls.clear()
    assert (sys.getrefcount(array), sys.getrefcount(producer)) == before


@pytest.mark.parametrize(
    "value",
    [None, 1, 1.5, 1j, True, "text", [1.0], (1.0,), {}, {1}, object(), range(3), np.ndarray, Exposing, len, ...],
)
@pytest.mark.parametrize("read", READERS)
def test_objects_without_a_protocol(read: Callable[..., Any], value: Any) -> None:
    with pytest.raises(dl.NotAnArrayError, match="__array_interface__") as caught:
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
