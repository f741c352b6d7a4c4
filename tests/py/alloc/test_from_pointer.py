"""`from_pointer`: memory by its address, as ctypes, C and Fortran code hand it over, and the life of its owner."""

import ctypes
import gc
import sys
import sysconfig
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from fakes import Meddling

HAS_GIL = not sysconfig.get_config_var("Py_GIL_DISABLED")
libc = ctypes.CDLL(None)
libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
libc.free.argtypes, libc.free.restype = [ctypes.c_void_p], None


class Malloced:
    """Memory of the C library, freed with this object."""

    def __init__(self, size: int) -> None:
        self.address = libc.malloc(size)
        self.freed_in: list[int] = []

    def __del__(self) -> None:
        self.freed_in.append(threading.get_ident())
        libc.free(self.address)


def test_memory_of_malloc_in_fortran_order_is_freed_in_another_thread() -> None:
    memory = Malloced(24 * 8)
    freed = memory.freed_in
    (ctypes.c_double * 24).from_address(memory.address)[:] = [*range(24)]
    fields = [
        dl.from_pointer(
            memory.address, (3, 4, 2), "float64", strides=(8, 24, 96), dims="IJK", halo=(1, 1, 0), owner=memory
        )
    ]
    del memory
    assert fields[0].to_numpy().ravel("F").tolist() == list(range(24))
    assert (fields[0].layout, fields[0].halo, fields[0].origin) == ((2, 1, 0), ((1, 1), (1, 1), (0, 0)), (1, 1, 0))
    assert freed == []
    thread = threading.Thread(target=fields.clear)
    thread.start()
    thread.join()
    assert len(freed) == 1
    # Without the GIL Python has the thread that made an object free it.
    assert (freed[0] == threading.get_ident()) == (not HAS_GIL)


def memory_of(count: int) -> Any:
    """Return an array of ctypes with the numbers from 0 on."""
    return (ctypes.c_double * count)(*range(count))


def test_negative_strides_start_at_the_last_element() -> None:
    memory = memory_of(6)
    field = dl.from_pointer(ctypes.addressof(memory) + 40, (6,), "float64", strides=(-8,), owner=memory)
    assert field.tolist() == [5.0, 4.0, 3.0, 2.0, 1.0, 0.0]
    field[0] = 9.0
    assert memory[5] == 9.0


def test_readonly_and_sub_arrays_and_gaps() -> None:
    memory = memory_of(12)
    start = ctypes.addressof(memory)
    fixed = dl.from_pointer(start, (2, 3), "float64", owner=memory, readonly=True)
    assert fixed.readonly
    with pytest.raises(dl.ExchangeError, match="read-only"):
        fixed[0, 0] = 1.0
    vectors = dl.from_pointer(start, (2,), np.dtype((np.float64, (3,))), strides=(48,), dims="K", owner=memory)
    assert (vectors.shape, vectors.strides, vectors.dims) == ((2, 3), (48, 8), ("K", "0"))
    assert vectors.tolist() == [[0.0, 1.0, 2.0], [6.0, 7.0, 8.0]]
    column = dl.from_pointer(start + 8, (4,), "float64", strides=(24,), owner=memory)
    assert column.tolist() == [1.0, 4.0, 7.0, 10.0]


def test_unaligned_elements_are_read_and_written() -> None:
    memory = ctypes.create_string_buffer(8 * 40 + 1)
    field = dl.from_pointer(ctypes.addressof(memory) + 1, (5, 8), "float64", owner=memory)
    field[...] = np.arange(40.0).reshape(5, 8)
    assert field.alignment() == 1
    assert float(field.sum()) == 780.0
    assert dl.from_array(field, backend="F").tolist() == field.tolist()


def test_empty_fields_may_be_at_address_0() -> None:
    assert dl.from_pointer(0, (3, 0), "float32").shape == (3, 0)
    for shape in ((3, 1), ()):
        with pytest.raises(dl.ExchangeError, match=r"^address: .* got 0$"):
            dl.from_pointer(0, shape, "float32")


BIG = 2**63
VECTOR = np.dtype(("f8", (1,)))

# The error, its words, and the arguments that are not those of two doubles at address 2**20.
WRONG: list[tuple[type[Exception], str, dict[str, Any]]] = [
    (dl.LayoutError, "^shape: .*axis 1", {"shape": (2, -1)}),
    (dl.LayoutError, "^shape: expected one entry for each dimension, got more than 64", {"shape": (1,) * 65}),
    (dl.LayoutError, "^shape: .* got 65$", {"shape": (1,) * 64, "dtype": VECTOR}),
    (dl.LayoutError, "^shape: .* 64 bits", {"shape": (BIG,)}),
    (dl.LayoutError, r"^shape: expected less than 2\*\*63 bytes", {"shape": (BIG - 1, 2)}),
    (dl.LayoutError, r"^shape: expected less than 2\*\*63 bytes", {"shape": (2**40, 2**40), "strides": (0, 0)}),
    (dl.ExchangeError, "^strides: .* got 1 entry for 2", {"shape": (2, 3), "strides": (8,)}),
    (dl.ExchangeError, "^strides: .* got 4 bytes at axis 1", {"shape": (2, 3), "strides": (24, 4)}),
    (dl.LayoutError, "^strides: .* 64 bits", {"shape": (2, 3), "strides": (BIG, 8)}),
    (dl.ExchangeError, "address space", {"shape": (3, 3), "strides": (BIG - 8, 8)}),
    (dl.ExchangeError, "address space", {"address": 64, "shape": (20,), "strides": (-8,)}),
    (dl.ExchangeError, "address space", {"address": 2**64 - 64, "shape": (9,)}),
    (dl.ExchangeError, "address space", {"address": 2**64 - 8, "shape": (2, 2)}),
    (dl.LayoutError, "^address: .* got -8$", {"address": -8}),
    (dl.LayoutError, "^address: ", {"address": 2**64}),
    (dl.ExchangeError, "^address: .*from 0x10000 on.* got 64$", {"address": 64}),
    (dl.ExchangeError, "^address: .* got 65544$", {"address": 2**16 + 8, "strides": (-16,)}),
    (TypeError, "^address: .* got True$", {"address": True}),
    (TypeError, "^address: .*c_void_p", {"address": ctypes.c_void_p(64)}),
    (dl.DTypeError, "object", {"dtype": "O"}),
    (dl.DimsError, "^dims: .* got 1 label", {"shape": (2, 3), "dims": "I"}),
    (dl.LayoutError, "^halo: ", {"shape": (2, 3), "halo": (2, 0)}),
    (dl.LayoutError, "^origin: .* at axis 1 .* got 4$", {"shape": (2, 3), "origin": (0, 4)}),
    (dl.DeviceError, "rocm:0", {"device": "rocm:0"}),
    (dl.DeviceError, "moon", {"device": "moon"}),
    (TypeError, "^readonly: .* got 1$", {"readonly": 1}),
]
if not dl.cuda.is_available():
    WRONG += [(dl.DeviceError, "driver", {"device": name}) for name in ("cuda:0", "cuda_host", "cuda_managed")]


@pytest.mark.parametrize(("error", "words", "arguments"), WRONG)
def test_a_wrong_argument_is_named(error: type[Exception], words: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(error, match=words):
        dl.from_pointer(**dict[str, Any]({"address": 2**20, "shape": (2,), "dtype": "f8", **arguments}))


class Owner:
    """An owner that can be watched."""


def doubles(count: int, owner: Any) -> dl.Tensor:
    """A field over an array of ctypes with the numbers from 0 on, which lives as long as the tests."""
    MEMORY.append(memory_of(count))
    return dl.from_pointer(ctypes.addressof(MEMORY[-1]), (count,), "float64", owner=owner)


MEMORY: list[Any] = []


@pytest.mark.parametrize("place", ["address", "shape", "strides", "halo", "origin"])
def test_exceptions_of_index_reach_the_caller(place: str) -> None:
    def fail() -> None:
        raise KeyError("of the caller")

    number = Meddling(fail)
    part = number if place == "address" else (number,)
    arguments: dict[str, Any] = {"address": 2**20, "shape": (2,), "dtype": "f8", place: part}
    owner = Owner()
    with pytest.raises(KeyError, match="of the caller"):
        dl.from_pointer(**arguments, owner=owner)
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None


class Shrinking(list[int]):
    """A shape that changes while it is read."""

    def __iter__(self) -> Any:
        yield self.pop()
        self.clear()


def test_a_shape_that_changes_is_read_once() -> None:
    memory = memory_of(6)
    field = dl.from_pointer(ctypes.addressof(memory), Shrinking([1, 2, 6]), "float64", owner=memory)
    assert field.shape == (6,)


def test_the_owner_lives_as_long_as_views_and_exports() -> None:
    owner = Owner()
    alive = weakref.ref(owner)
    field = doubles(6, owner)
    del owner
    held: list[Any] = [field, field[1:], np.asarray(field), field.__dlpack__(max_version=(1, 0)), memoryview(field)]
    held.append(dl.from_dlpack(np.from_dlpack(field)))
    del field
    while held:
        assert alive() is not None
        del held[0]
        gc.collect()
    assert alive() is None


def test_an_owner_may_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    class Angry:
        def __del__(self) -> None:
            raise RuntimeError("in __del__")

    seen: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda raised: seen.append(str(raised.exc_value)))
    field = doubles(2, Angry())
    del field
    assert seen == ["in __del__"]
    # Also while an exception is under way, which stays.
    with pytest.raises(ZeroDivisionError):
        [doubles(2, Angry()), 1 / 0]
    gc.collect()
    assert seen == ["in __del__"] * 2


def test_an_owner_may_use_fields_while_it_goes() -> None:
    made = []

    class Busy:
        def __init__(self, depth: int) -> None:
            self.depth = depth

        def __del__(self) -> None:
            if self.depth:
                made.append(doubles(4, Busy(self.depth - 1)).tolist())
            made.append(dl.zeros((3,)).tolist())
            gc.collect()

    field = doubles(4, Busy(3))
    del field
    gc.collect()
    assert made.count([0.0, 1.0, 2.0, 3.0]) == 3
    assert made.count([0.0, 0.0, 0.0]) == 4


def test_an_owner_may_come_back_to_life() -> None:
    kept: list[Any] = []

    class Phoenix:
        def __del__(self) -> None:
            kept.append(self)

    for _ in range(3):
        assert doubles(2, Phoenix()).T.shape == (2,)
    gc.collect()
    assert len(kept) == 3
