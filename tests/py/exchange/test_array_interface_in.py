"""`describe` and `from_dlpack` through `__array_interface__`."""

import ctypes
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from catalog import NUMPY_CODES, READERS, dtype_named
from fakes_interfaces import MISSING, Exposing, double_matrix, host, interface_of
from oracle import values

ROWS = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_void_elements_of_another_size_are_refused() -> None:
    bfloat16 = np.zeros((2, 3), dtype_named("bfloat16"))
    wrong = Exposing(__array_interface__=interface_of(bfloat16, typestr="|V4"), dtype=bfloat16.dtype)
    with pytest.raises(dl.DTypeError, match=r"bfloat16.*V4"):
        dl.describe(wrong)
    with pytest.raises(dl.DTypeError, match=r"void|structured"):
        dl.describe(host(bfloat16))
    structured = np.zeros(2, [("a", "f4")])
    with pytest.raises(dl.DTypeError, match="structured"):
        dl.describe(Exposing(__array_interface__=interface_of(structured), dtype=structured.dtype))


def byte_order_left_out(name: str) -> str:
    return np.dtype(name).str[1:]


@pytest.mark.parametrize("name", NUMPY_CODES)
def test_without_a_byte_order_it_is_the_native_one(read: Callable[..., Any], name: str) -> None:
    array = np.ones((2, 3), name)
    producer = host(array, typestr=byte_order_left_out(name))
    found, seen = read(producer), np.asarray(producer)
    assert (found.dtype, found.strides, found.ptr) == (seen.dtype, seen.strides, seen.ctypes.data)
    assert found.dtype == array.dtype


@pytest.mark.parametrize("changes", [{"version": MISSING}, {"version": None}, {"version": MISSING, "typestr": "f8"}])
def test_the_version_may_be_left_out(read: Callable[..., Any], changes: dict[str, Any]) -> None:
    producer = host(double_matrix(), **changes)
    found, seen = read(producer), np.asarray(producer)
    assert (values(found), found.dtype, found.ptr) == (seen.tolist(), seen.dtype, seen.ctypes.data)


def test_void_elements_without_a_byte_order() -> None:
    bfloat16 = np.zeros((2, 3), dtype_named("bfloat16"))
    interface = interface_of(bfloat16, typestr="V2")
    assert dl.describe(Exposing(__array_interface__=interface, dtype=bfloat16.dtype)).dtype == bfloat16.dtype


@pytest.mark.parametrize(
    "typestr", ["O", "S8", "U2", "M8[s]", "m8", "V8", "f16", ">f8", "f", "d", "float64", "f8 ", ""]
)
def test_type_strings_that_are_still_refused(typestr: str) -> None:
    """Rejects NumPy's letters and names, which are not in the interface, and types that are not numbers."""
    with pytest.raises(dl.DTypeError, match=r"^typestr: "):
        dl.describe(host(double_matrix(), typestr=typestr))


def test_values_of_keys_may_be_left_out_or_of_other_types() -> None:
    for strides in (None, MISSING):
        assert dl.describe(host(double_matrix(), strides=strides)).strides == (24, 8)
    assert dl.describe(host(double_matrix(), shape=[2, 3])).shape == (2, 3)
    memory = double_matrix()
    assert dl.describe(host(memory, data=(memory.ctypes.data, 1))).readonly


class Fresh:
    """Keeps its memory alive only through the dictionary that it returns, as NumPy's scalars do."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        array = double_matrix()
        self.alive = weakref.ref(array)
        return {**interface_of(array), "__ref": array}


def test_the_dictionary_is_kept_too(read: Callable[..., Any]) -> None:
    producer = Fresh()
    found = read(producer)
    assert producer.alive() is not None
    assert values(found) == ROWS
    del found
    assert producer.alive() is None


def buffered(data: Any, **changes: Any) -> Exposing:
    return Exposing(__array_interface__=interface_of(double_matrix(), data=data, strides=None, **changes))


def test_data_may_be_a_buffer_which_is_held(read: Callable[..., Any]) -> None:
    data = bytearray(double_matrix().tobytes())
    found = read(buffered(data))
    assert (values(found), found.readonly) == (ROWS, False)
    with pytest.raises(BufferError):
        data.append(1)
    del found
    data.append(1)
    shifted = read(buffered(bytearray(8) + double_matrix().tobytes(), offset=8))
    assert values(shifted) == ROWS
    constant = double_matrix().tobytes()
    assert read(buffered(constant)).readonly
    assert values(read(buffered(memoryview(constant)))) == ROWS


class OwnBuffer(bytearray):
    """A bytearray that also has an array interface."""

    __array_interface__: Any


@pytest.mark.parametrize("data", [None, MISSING])
def test_without_data_the_buffer_is_the_objects_own(read: Callable[..., Any], data: Any) -> None:
    producer = OwnBuffer(double_matrix().tobytes())
    producer.__array_interface__ = interface_of(double_matrix(), data=data, strides=(-24, 8), offset=24)
    found = read(producer)
    assert values(found) == ROWS[::-1]
    with pytest.raises(BufferError):
        producer.append(1)
    with pytest.raises(dl.ExchangeError, match=r'__array_interface__\["data"\]'):
        read(host(double_matrix(), data=data))


@pytest.mark.parametrize(
    "changes",
    [
        {"offset": 1},
        {"offset": 8},
        {"offset": -8},
        {"offset": 1 << 62},
        {"shape": (2, 4)},
        {"strides": (32, 8)},
        {"strides": (-24, 8)},
        {"strides": (1 << 62, 8)},
        {"shape": (0,), "strides": (8,), "offset": 49},
    ],
)
def test_elements_outside_the_buffer_are_refused(changes: dict[str, Any]) -> None:
    interface = {**interface_of(double_matrix(), data=bytearray(48), strides=None), **changes}
    for read in READERS:
        with pytest.raises(dl.ExchangeError, match=r"bytes 0 to 48 of the buffer|strides"):
            read(Exposing(__array_interface__=interface))


def test_a_buffer_with_gaps_is_refused() -> None:
    with pytest.raises(dl.ExchangeError, match="contiguous"):
        dl.describe(buffered(memoryview(bytes(96))[::2]))


def test_bytes_made_for_the_call_are_a_copy() -> None:
    class Picture:
        @property
        def __array_interface__(self) -> dict[str, Any]:
            return interface_of(double_matrix(), data=double_matrix().tobytes(), strides=None)

    for refuse in (dl.describe, lambda producer: dl.from_dlpack(producer, copy=False)):
        with pytest.raises(dl.ExchangeError, match="copied"):
            refuse(Picture())
    made = dl.from_dlpack(Picture())
    assert (made.to_numpy().tolist(), made.readonly) == (ROWS, True)


def test_numpy_scalars_are_described_themselves() -> None:
    """A scalar's own interface points at a temporary."""
    scalar = np.float64(2.5)
    found = dl.describe(scalar)
    assert (found.protocol, found.readonly, values(found)) == ("buffer", True, 2.5)
    assert found.ptr == dl.describe(scalar).ptr


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn"])
def test_scalars_of_types_beyond_numpy_have_no_memory_to_share(name: str) -> None:
    scalar = dtype_named(name).type(2.5)
    with pytest.raises(dl.ExchangeError, match="copy"):
        dl.describe(scalar)
    made = dl.from_dlpack(scalar)
    assert (made.dtype, float(made[()])) == (dtype_named(name), 2.5)
    field = dl.zeros(2, dtype_named(name))
    field[1] = scalar
    assert float(field[1]) == 2.5


def test_ctypes_arrays_have_no_other_memory_through_numpy() -> None:
    source = (ctypes.c_int * 3)(1, 2, 3)
    found = dl.describe(host(np.ctypeslib.as_array(source)))
    assert (found.ptr, values(found)) == (ctypes.addressof(source), [1, 2, 3])


def test_masks_and_structures_are_refused_by_name() -> None:
    for changes, named in (
        ({"mask": host(np.ones((2, 3), bool))}, "mask"),
        ({"typestr": "|V16", "descr": [("a", "<f8"), ("b", "<f8")]}, "descr"),
        ({"descr": [("a", "<f8")]}, "descr"),
        ({"descr": [("", "<i8")]}, "descr"),
        ({"offset": 8}, "offset"),
        ({"version": 2}, "version"),
    ):
        with pytest.raises(dl.Error, match=named):
            dl.describe(host(double_matrix(), **changes))
    assert values(dl.describe(host(double_matrix(), descr=[("", "<f8")], mask=None, offset=0))) == ROWS


def test_addresses_have_64_bits() -> None:
    class Owner:
        def __init__(self, address: Any) -> None:
            self.__array_interface__ = {"data": (address, False), "shape": (2,), "typestr": "<f8"}

    for address in (2**20, 2**63 - 64, 2**63, 2**64 - 64):
        assert dl.describe(Owner(address)).ptr == address
    for address in (-1, -(2**63) - 1, 2**64):
        with pytest.raises(dl.ExchangeError, match=r'"data"'):
            dl.describe(Owner(address))


def test_the_index_of_an_address_is_asked_once() -> None:
    calls: list[Any] = []

    class Address(int):
        def __index__(self) -> int:
            calls.append(self)
            raise OSError("no address")

    class Number:
        def __index__(self) -> int:
            calls.append(self)
            raise OSError("no address")

    class Owner:
        def __init__(self, address: Any) -> None:
            self.__array_interface__ = {"data": (address, False), "shape": (2,), "typestr": "<f8"}

    assert dl.describe(Owner(Address(1 << 20))).ptr == 1 << 20
    with pytest.raises(OSError, match="no address"):
        dl.describe(Owner(Number()))
    assert len(calls) == 1
