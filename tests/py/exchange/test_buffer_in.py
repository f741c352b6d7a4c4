"""`describe` and `from_dlpack` through the buffer protocol: Python's exporters, and every defect of `FakeBuffer`."""

import array
import ctypes
import gc
import mmap
import struct
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from catalog import READERS
from childproc import run_python
from dlpack_structs import release, take
from fakes_interfaces import FakeBuffer, double_matrix
from matrix import view_of
from oracle import values

ROWS = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


class Point(ctypes.Structure):
    _fields_ = [("x", ctypes.c_int), ("y", ctypes.c_float)]


PRODUCERS: dict[str, tuple[Callable[[], Any], Any]] = {
    "bytes": (lambda: b"abc", [97, 98, 99]),
    "bytes empty": (lambda: b"", []),
    "bytearray": (lambda: bytearray(b"\0\xff"), [0, 255]),
    "bytearray empty": (bytearray, []),
    "mmap": (lambda: mmap.mmap(-1, 3), [0, 0, 0]),
    "mmap read-only": (lambda: mmap.mmap(-1, 3, access=mmap.ACCESS_READ), [0, 0, 0]),
    "memoryview": (lambda: memoryview(b"abc"), [97, 98, 99]),
    "memoryview cast": (lambda: memoryview(struct.pack("2d", 1, 2)).cast("d"), [1.0, 2.0]),
    "memoryview cast to 2-d": (lambda: memoryview(bytes(range(6))).cast("B", (2, 3)), [[0, 1, 2], [3, 4, 5]]),
    "memoryview sliced": (lambda: memoryview(bytes(range(9)))[1:8:3], [1, 4, 7]),
    "memoryview backwards": (lambda: memoryview(bytes(range(4)))[::-1], [3, 2, 1, 0]),
    "memoryview of NumPy": (lambda: view_of(double_matrix()[::-1, ::2]), [[3.0, 5.0], [0.0, 2.0]]),
    "memoryview of NumPy in F order": (lambda: view_of(np.asfortranarray(double_matrix())), ROWS),
    "memoryview broadcast": (lambda: view_of(np.broadcast_to(np.float32(2), (2, 2))), [[2.0, 2.0], [2.0, 2.0]]),
    "memoryview 0-d": (lambda: view_of(np.array(2.5)), 2.5),
    "memoryview without elements": (lambda: view_of(np.zeros((2, 0, 3))), [[], []]),
    "memoryview read-only": (lambda: view_of(double_matrix()).toreadonly(), ROWS),
    "a tensor's memoryview": (lambda: view_of(dl.ones((2, 2), "i2")), [[1, 1], [1, 1]]),
    "ctypes": (lambda: (ctypes.c_double * 2)(1, 2), [1.0, 2.0]),
    "ctypes 2-d": (
        lambda: ((ctypes.c_int * 3) * 2).from_buffer_copy(struct.pack("6i", *range(6))),
        [[0, 1, 2], [3, 4, 5]],
    ),
    "ctypes long": (lambda: (ctypes.c_long * 2)(-1, 2), [-1, 2]),
    "ctypes unsigned": (lambda: (ctypes.c_ulonglong * 1)((1 << 64) - 1), [(1 << 64) - 1]),
    "ctypes bool": (lambda: (ctypes.c_bool * 2)(True, False), [True, False]),
    "ctypes one number": (lambda: ctypes.c_float(1.5), 1.5),
    "NumPy scalar": (lambda: np.float64(2.5), 2.5),
    "NumPy bool": (lambda: np.bool_(True), True),
    "NumPy complex": (lambda: np.complex64(1 + 2j), 1 + 2j),
}


def test_an_exporter_that_fails_without_an_exception_is_named(read: Callable[..., Any]) -> None:
    with pytest.raises(dl.ExchangeError, match=r"^the buffer protocol: .*FakeBuffer.* set no exception"):
        read(FakeBuffer(double_matrix(), silent=True))


@pytest.mark.parametrize("name", PRODUCERS)
def test_exporters_of_a_buffer_are_read(read: Callable[..., Any], name: str) -> None:
    make, expected = PRODUCERS[name]
    found = read(make())
    assert values(found) == expected
    assert found.device == "cpu"
    with memoryview(make()) as view:
        assert (found.shape, found.readonly) == (view.shape, view.readonly)
    if isinstance(found, dl.Descriptor):
        assert found.protocol == "buffer"


@pytest.mark.parametrize("code", "bBhHiIlLqQfd")
def test_every_array_of_the_standard_library(code: str) -> None:
    source = array.array(code, [1, 2, 3])
    found = dl.describe(source)
    assert (found.ptr, found.dtype, found.readonly) == (source.buffer_info()[0], np.dtype(code), False)
    assert values(found) == [1, 2, 3]


@pytest.mark.parametrize("code", "?bBhHiIlLqQnNfd")
def test_every_format_of_a_memoryview(code: str) -> None:
    found = dl.describe(memoryview(bytearray(struct.calcsize(code) * 2)).cast(code))  # type: ignore[call-overload]
    assert (found.dtype, found.shape) == (np.dtype(code if code not in "nN" else {"n": "i8", "N": "u8"}[code]), (2,))


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "structure": (lambda: (Point * 2)(), "structured"),
    "one structure": (Point, "structured"),
    "sub-arrays": (lambda: view_of(np.zeros(2, [("a", "f8", (2,))])), "structured"),
    "big-endian": (lambda: (ctypes.c_int.__ctype_be__ * 2)(), "byte order"),
    "characters": (lambda: (ctypes.c_char * 2)(), "text"),
    "wide characters": (lambda: (ctypes.c_wchar * 2)(), "text"),
    "text of array": (lambda: array.array("u", "ab"), "text"),
    "objects": (lambda: (ctypes.py_object * 2)(), "objects"),
    "addresses": (lambda: (ctypes.c_void_p * 2)(), "addresses"),
    "long double": (lambda: (ctypes.c_longdouble * 2)(), "width"),
    "date scalar": (lambda: np.datetime64("2020-01-01"), "date"),
    "text scalar": (lambda: np.str_("ab"), "text"),
    "void scalar": (lambda: np.void(b"ab"), "structured"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_elements_that_are_no_numbers_are_refused_by_name(read: Callable[..., Any], name: str) -> None:
    make, named = REFUSED[name]
    with pytest.raises(dl.DTypeError, match=named):
        read(make())


def test_a_buffer_is_held_and_released(read: Callable[..., Any]) -> None:
    data = bytearray(8)
    found = read(data)
    with pytest.raises(BufferError):
        data.append(1)
    del found
    data.append(1)
    mapped = mmap.mmap(-1, 8)
    found = read(mapped)
    with pytest.raises(BufferError):
        mapped.close()
    del found
    mapped.close()
    view = memoryview(bytearray(8))
    found = read(view)
    with pytest.raises(BufferError):
        view.release()
    del found
    view.release()


def test_a_failed_description_holds_nothing() -> None:
    data = bytearray(8)
    for refuse in (
        lambda: dl.describe(memoryview(data).cast("c")),
        lambda: dl.describe(data, device="cuda:0"),
        lambda: dl.describe(data, stream=1),
        lambda: dl.describe(data, dims="IJ"),
        lambda: dl.from_dlpack(data, origin=(9,)),
    ):
        with pytest.raises(dl.Error):
            refuse()
    gc.collect()
    data.append(1)


def test_the_producers_exception_is_the_callers() -> None:
    released = memoryview(b"abc")
    released.release()
    closed = mmap.mmap(-1, 3)
    closed.close()
    for read in READERS:
        with pytest.raises(ValueError, match="released"):
            read(released)
        with pytest.raises(ValueError, match="closed"):
            read(closed)


DEFECTS: dict[str, tuple[dict[str, Any], str]] = {
    "rows behind pointers": ({"suboffsets": (0, -1)}, "suboffsets: .* got 0 at axis 0"),
    "rows behind pointers further on": ({"suboffsets": (-1, 8)}, "suboffsets: .* got 8 at axis 1"),
    "len too small": ({"len": 40}, "len: .* got 40"),
    "len too large": ({"len": 56}, "len: .* got 56"),
    "len negative": ({"len": -48}, "len: .* got -48"),
    "itemsize of another format": ({"itemsize": 4}, "format.*4 bytes"),
    "itemsize zero": ({"itemsize": 0}, "format.*0 bytes"),
    "itemsize negative": ({"itemsize": -8}, "format.*-8 bytes"),
    "format unknown": ({"format": b"y"}, "format"),
    "format empty": ({"format": b""}, "format"),
    "format no text": ({"format": b"\xff\xfe"}, "format"),
    "format counted": ({"format": b"2f"}, "several"),
    "format missing": ({"format": None}, "format"),
    "ndim negative": ({"ndim": -1}, "ndim"),
    "ndim too large": ({"ndim": 1000, "shape": (1,) * 1000, "strides": (8,) * 1000}, "ndim"),
    "shape negative": ({"shape": (2, -3)}, "shape.*-3"),
    "shape overflows": ({"shape": (1 << 40, 1 << 40)}, "shape|span|strides"),
    "shape missing": ({"null_shape": True}, "shape"),
    "strides of part of an element": ({"strides": (24, 4)}, "strides: .* got 4 bytes at axis 1"),
    "strides overflow": ({"strides": ((1 << 63) - 8, 8)}, "strides"),
    "no memory": ({"buf": None}, "data"),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_defects_are_refused_by_name_and_released(read: Callable[..., Any], name: str) -> None:
    fields, named = DEFECTS[name]
    fake = FakeBuffer(double_matrix(), **fields)
    with pytest.raises(dl.Error, match=named):
        read(fake)
    gc.collect()
    assert (fake.requested, fake.released) == (1, 1)


LEGAL: dict[str, tuple[dict[str, Any], Any]] = {
    "all fields": ({}, ROWS),
    "no strides": ({"null_strides": True}, ROWS),
    "direct suboffsets": ({"suboffsets": (-1, -1)}, ROWS),
    "no shape of one dimension": (
        {"ndim": 1, "null_shape": True, "null_strides": True},
        [0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
    ),
    "no dimension": ({"ndim": 0, "null_shape": True, "null_strides": True, "len": 8}, 0.0),
    "strides of one element": ({"shape": (1, 3), "strides": (3, 8), "len": 24}, [[0.0, 1.0, 2.0]]),
    "no elements": ({"shape": (0, 3), "strides": (1, 1), "len": 0, "buf": None}, []),
    "standard size": ({"format": b"<d"}, ROWS),
}


@pytest.mark.parametrize("name", LEGAL)
def test_optional_fields_may_be_missing(read: Callable[..., Any], name: str) -> None:
    fields, expected = LEGAL[name]
    fake = FakeBuffer(double_matrix(), **fields)
    found = read(fake)
    assert values(found) == expected
    assert (fake.requested, fake.released) == (1, 0)
    del found
    assert (fake.requested, fake.released) == (1, 1)


def test_a_view_keeps_the_buffer_and_the_last_one_releases_it_on_any_thread() -> None:
    fake = FakeBuffer(double_matrix())
    gone = weakref.ref(fake)
    managed = take(dl.from_dlpack(fake)[1:].__dlpack__(max_version=(1, 3)))
    assert fake.released == 0
    thread = threading.Thread(target=release, args=(managed,))
    thread.start()
    thread.join()
    assert fake.released == 1
    del fake
    assert gone() is None


def test_buffers_may_outlive_the_interpreter() -> None:
    output = run_python("""
        import ctypes
        import dlfield as dl
        from dlpack_structs import take

        kept = [dl.describe(bytearray(9)), dl.from_dlpack(memoryview(b"abc"))]
        managed = take(dl.from_dlpack(bytearray(1000)).__dlpack__(max_version=(1, 3)))
        at_exit = ctypes.CDLL(None).__cxa_atexit
        at_exit.argtypes = [ctypes.c_void_p] * 3
        assert at_exit(managed.deleter, ctypes.addressof(managed), None) == 0
        print("end")
    """)
    assert output == "end\n"
