"""Memory of ctypes as fields, and fields as arguments of C functions."""

import ctypes
import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from fortran_modules import shared_library

SOURCE = """
#include <stddef.h>
#include <stdint.h>

typedef void visitor(double *level, int k);

void for_each_level(double *u, size_t points, int levels, visitor *visit)
{
    for (int k = 0; k < levels; k++)
        visit(u + k * points, k);
}

intptr_t add_one(double *a, size_t count)
{
    for (size_t i = 0; i < count; i++)
        a[i] += 1.0;
    return (intptr_t)a;
}

double table[2][3] = {{0.0, 1.0, 2.0}, {3.0, 4.0, 5.0}};
const double constants[2] = {3.14, 2.72};
double *nothing(void) { return NULL; }
double *second_row(void) { return table[1]; }
"""


class Particle(ctypes.Structure):
    _fields_ = (("x", ctypes.c_double), ("cell", ctypes.c_int32), ("velocity", ctypes.c_float * 3))


class Packed(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("flag", ctypes.c_char), ("x", ctypes.c_double))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder: Path = tmp_path_factory.mktemp("library")
    (folder / "library.c").write_text(SOURCE)
    library = ctypes.CDLL(str(shared_library(folder, folder / "library.c", "library.so")))
    library.add_one.restype = ctypes.c_ssize_t
    library.nothing.restype = ctypes.c_void_p
    library.second_row.restype = ctypes.POINTER(ctypes.c_double)
    return library


def test_arrays_are_fields_of_their_shape_and_type() -> None:
    memory: Any = (ctypes.c_double * 3 * 4)()
    for field in (dl.from_dlpack(memory, dims="KI"), dl.frombuffer(memory, (4, 3), "float64", dims="KI")):
        assert (field.ptr, field.shape, field.dims) == (ctypes.addressof(memory), (4, 3), ("K", "I"))
        field[3, 2] += 2.0
    assert memory[3][2] == 4.0
    numbers = (ctypes.c_int16 * 5)(1, 2, 3)
    assert dl.describe(numbers).dtype == np.int16
    room = dl.ones((2, 2), backend="F", buffer=memory)
    assert room.ptr == ctypes.addressof(memory)
    assert [memory[0][0], memory[1][0], memory[1][1]] == [1.0, 1.0, 0.0]


def test_an_array_lives_as_long_as_its_field() -> None:
    memory = (ctypes.c_double * 3)(1.0, 2.0, 3.0)
    gone = weakref.ref(memory)
    held: list[Any] = [dl.from_dlpack(memory), dl.frombuffer(memory, (3,), "float64")]
    held.append(dl.from_pointer(ctypes.addressof(memory), (3,), "float64", owner=memory))
    held.append(dl.zeros((1,), buffer=memory))
    del memory
    while held:
        assert gone() is not None
        held.pop(0)
        gc.collect()
    assert gone() is None


def test_members_of_structures_are_fields() -> None:
    particles = (Particle * 5)()
    size = ctypes.sizeof(Particle)
    x = dl.frombuffer(particles, (5,), "float64", strides=(size,), offset=Particle.x.offset)
    velocity = dl.frombuffer(particles, (5, 3), "float32", strides=(size, 4), offset=Particle.velocity.offset)
    x[...] = np.arange(5.0)
    velocity[3, ...] = np.float32(2.5)
    assert particles[4].x == 4.0
    assert list(particles[3].velocity) == [2.5] * 3
    cell = dl.frombuffer(particles[2], (1,), "int32", offset=Particle.cell.offset)
    cell[0] = np.int32(7)
    assert particles[2].cell == 7
    with pytest.raises(dl.DTypeError, match=r"structured.* take one field of it"):
        dl.from_dlpack(particles)
    with pytest.raises(dl.ExchangeError, match="bytes 0 to 120 of the buffer, got 0 to 128"):
        dl.frombuffer(particles, (6,), "float64", strides=(size,))
    packed = (Packed * 5)()
    with pytest.raises(dl.ExchangeError, match=r"strides: .* got 9 bytes"):
        dl.frombuffer(packed, (5,), "float64", strides=(9,), offset=1)
    with pytest.raises(dl.ExchangeError, match=r"strides: .* got 9 bytes"):
        dl.from_pointer(ctypes.addressof(packed) + 1, (5,), "float64", strides=(9,), owner=packed)


def test_variables_of_a_library_are_fields(library: ctypes.CDLL) -> None:
    table = (ctypes.c_double * 3 * 2).in_dll(library, "table")
    field = dl.from_pointer(ctypes.addressof(table), (2, 3), "float64", dims="KI", owner=table)
    assert field.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    row = library.second_row()
    address = ctypes.cast(row, ctypes.c_void_p).value
    assert address is not None
    again = dl.from_pointer(address, (3,), "float64", owner=library)
    again[0] = 30.0
    assert (field[1, 0], again.ptr) == (30.0, field.ptr + 24)
    again[0] = 3.0
    constants = ctypes.addressof((ctypes.c_double * 2).in_dll(library, "constants"))
    fixed = dl.from_pointer(constants, (2,), "float64", owner=library, readonly=True)
    with pytest.raises(dl.ExchangeError, match="read-only"):
        fixed[0] = 3.0
    assert np.asarray(fixed).flags.writeable is False


def test_a_callback_gets_levels_as_fields(library: ctypes.CDLL) -> None:
    field = dl.zeros((4, 3, 2), backend="F")
    seen: list[int] = []

    def visit(level: Any, k: int) -> None:
        address = ctypes.cast(level, ctypes.c_void_p).value
        plane = dl.from_pointer(address, (4, 3), "float64", strides=field.strides[:2])  # type: ignore[arg-type]
        plane[...] = float(k + 1)
        seen.append(plane.ptr)

    visitor = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_double), ctypes.c_int)
    library.for_each_level(ctypes.c_void_p(field.ptr), ctypes.c_size_t(12), 2, visitor(visit))
    assert seen == [field.ptr, field.ptr + field.strides[2]]
    assert np.asarray(field)[0, 0].tolist() == [1.0, 2.0]


def test_fields_are_arguments_in_every_way_of_ctypes(library: ctypes.CDLL) -> None:
    field = dl.zeros((4, 3))
    array = np.asarray(field)
    checked = np.ctypeslib.ndpointer("float64", ndim=2, flags=["C_CONTIGUOUS", "WRITEABLE"])
    count = ctypes.c_size_t(12)
    arguments = [
        ctypes.c_void_p(field.ptr),
        array.ctypes.data_as(ctypes.POINTER(ctypes.c_double)),
        checked.from_param(array),
        np.ctypeslib.as_ctypes(array),
        (ctypes.c_double * 12).from_buffer(field),
        ctypes.byref(ctypes.c_double.from_buffer(field)),
    ]
    for number, argument in enumerate(arguments):
        assert library.add_one(argument, count) == field.ptr
        assert (np.asarray(field) == number + 1.0).all()
    with pytest.raises(TypeError, match="must be an ndarray"):
        checked.from_param(field)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="WRITEABLE"):
        checked.from_param(np.asarray(field.as_readonly()))
    with pytest.raises(ctypes.ArgumentError, match="convert parameter 1"):
        library.add_one(field, count)
    padded = dl.zeros((4, 3), alignment_size=64)
    for other, message in ((padded, "not C contiguous"), (field.as_readonly(), "not writable")):
        with pytest.raises(TypeError, match=message):
            (ctypes.c_double * 12).from_buffer(other)
    # The block is contiguous always.
    block = padded.block
    assert library.add_one((ctypes.c_double * block.size).from_buffer(block), ctypes.c_size_t(block.size)) == padded.ptr
    assert (np.asarray(padded) == 1.0).all()


MEMORY = (ctypes.c_double * 3)(1.0, 2.0, 3.0)
POINTERS: list[Any] = [
    ctypes.cast(MEMORY, ctypes.POINTER(ctypes.c_double)),
    ctypes.cast(MEMORY, ctypes.c_void_p),
    ctypes.pointer(MEMORY),
    ctypes.c_char_p(b"text"),
    ctypes.c_wchar_p("text"),
    ctypes.CFUNCTYPE(None)(print),
    ctypes.POINTER(ctypes.c_double)(),
]


@pytest.mark.parametrize("pointer", POINTERS, ids=lambda pointer: type(pointer).__name__)
def test_pointers_are_not_taken_for_the_memory_they_point_to(pointer: Any) -> None:
    """A pointer's buffer is the pointer itself: a field there would read the address, or overwrite it."""
    before = bytes(pointer)
    with pytest.raises(dl.NotAnArrayError, match=r"^buf: .* whose buffer is the pointer itself"):
        dl.frombuffer(pointer, (1,), "float64")
    with pytest.raises(dl.NotAnArrayError, match=r"^buffer: .* whose buffer is the pointer itself"):
        dl.zeros((1,), buffer=pointer)
    assert bytes(pointer) == before
    with pytest.raises(dl.DTypeError, match=r"holds addresses; .* from_pointer"):
        dl.from_dlpack(pointer)
    with pytest.raises(TypeError, match=r"address: expected an integer, got .*; .*c_void_p\)\.value"):
        dl.from_pointer(pointer, (1,), "float64")


def test_arrays_of_pointers_are_memory() -> None:
    table = (ctypes.c_void_p * 2)(ctypes.addressof(MEMORY))
    assert dl.frombuffer(table, (2,), "uint64").tolist() == [ctypes.addressof(MEMORY), 0]


def test_null_pointers_are_refused(library: ctypes.CDLL) -> None:
    null = library.nothing()
    assert null is None
    with pytest.raises(TypeError, match=r"^address: .* got None, "):
        dl.from_pointer(null, (3,), "float64")  # type: ignore[arg-type]
    with pytest.raises(dl.ExchangeError, match=r"^address: .* got 0$"):
        dl.from_pointer(0, (3,), "float64")


def test_arrays_of_other_types_are_refused_by_name() -> None:
    for kind, message in (
        (ctypes.c_int16.__ctype_be__, "byte order"),
        (ctypes.c_longdouble, "width"),
        (ctypes.c_char, "text"),
        (ctypes.py_object, "Python objects"),
    ):
        with pytest.raises(dl.DTypeError, match=message):
            dl.from_dlpack((kind * 3)())
