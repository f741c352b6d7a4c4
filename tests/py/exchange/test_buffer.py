"""Export by the buffer protocol: formats, flags, strides and lifetime of the memory."""

import ctypes
import hashlib
from typing import Any

import numpy as np
import pytest

import dlfield as dl
import py_buffer
from catalog import CPU_PRESETS, ML_CODES, NUMPY_CODES, SUBBYTE_CODES, dtype_named
from py_buffer import requested


@pytest.mark.parametrize("name", NUMPY_CODES)
def test_memoryview_equals_numpys(name: str) -> None:
    field = dl.ones((3, 4), name, alignment_size=64)
    view, reference = memoryview(field), memoryview(np.ones((3, 4), name).data)
    assert view.format == reference.format
    assert (view.itemsize, view.ndim, view.shape) == (reference.itemsize, 2, (3, 4))
    assert view.strides == field.strides
    assert not view.readonly
    assert np.asarray(view).dtype == np.dtype(name)
    assert (np.asarray(view) == 1).all()


@pytest.mark.parametrize("preset", CPU_PRESETS)
def test_numpy_sees_the_same_memory_through_the_buffer(preset: str) -> None:
    field = dl.zeros((3, 4, 5), "i4", backend=preset, dims="KIJ")
    array = np.asarray(memoryview(field))
    assert (array.ctypes.data, array.strides) == (field.ptr, field.strides)
    array[2, 1, 0] = 7
    assert field[2, 1, 0] == 7


@pytest.mark.parametrize("name", [*ML_CODES, *SUBBYTE_CODES])
def test_dtypes_without_a_format_have_no_buffer(name: str) -> None:
    with pytest.raises(BufferError, match=name):
        memoryview(dl.zeros(3, dtype_named(name)))


def test_contiguity_seen_by_memoryview() -> None:
    c, f = memoryview(dl.zeros((3, 4))), memoryview(dl.zeros((3, 4), layout=(1, 0)))
    padded = memoryview(dl.zeros((3, 5), alignment_size=64))
    assert (c.c_contiguous, c.f_contiguous) == (True, False)
    assert (f.c_contiguous, f.f_contiguous) == (False, True)
    assert (padded.c_contiguous, padded.contiguous) == (False, False)
    assert c.nbytes == f.nbytes == 96


def test_readonly_buffer() -> None:
    field = dl.ones(3).as_readonly()
    view = memoryview(field)
    assert view.readonly
    with pytest.raises(TypeError):
        view[0] = 2
    for flags in (py_buffer.WRITABLE, py_buffer.FULL):
        with pytest.raises(BufferError, match=r"(?i)read.?only"), requested(field, flags):
            pytest.fail("a writable buffer of read-only memory")
    with requested(field, py_buffer.FULL_RO) as buffer:
        assert buffer.readonly


C_ORDER = dl.zeros((3, 5))
F_ORDER = dl.zeros((3, 5), layout=(1, 0))
PADDED = dl.zeros((3, 5), alignment_size=64)
SCALAR = dl.zeros(())
LINE = dl.zeros(5)
EMPTY = dl.zeros((3, 0, 2))
STEPPED = dl.zeros(10)[::2]


@pytest.mark.parametrize(
    ("field", "flags"),
    [
        (C_ORDER, py_buffer.SIMPLE),
        (C_ORDER, py_buffer.ND),
        (C_ORDER, py_buffer.C_CONTIGUOUS),
        (F_ORDER, py_buffer.F_CONTIGUOUS),
        *((field, py_buffer.ANY_CONTIGUOUS) for field in (C_ORDER, F_ORDER, SCALAR, LINE, EMPTY)),
        *((field, py_buffer.STRIDES) for field in (C_ORDER, F_ORDER, PADDED, STEPPED, SCALAR)),
        *((LINE, flags) for flags in (py_buffer.SIMPLE, py_buffer.C_CONTIGUOUS, py_buffer.F_CONTIGUOUS)),
        *((EMPTY, flags) for flags in (py_buffer.SIMPLE, py_buffer.C_CONTIGUOUS, py_buffer.F_CONTIGUOUS)),
        (SCALAR, py_buffer.SIMPLE),
        (PADDED, py_buffer.FULL),
    ],
)
def test_requests_that_are_granted(field: dl.Tensor, flags: int) -> None:
    with requested(field, flags) as view:
        assert view.buf == field.ptr or field.size == 0
        assert view.len == field.nbytes
        assert view.itemsize == 8
        assert not view.readonly
        assert not view.suboffsets
        assert view.format == (b"d" if flags & py_buffer.FORMAT else None)
        if flags & py_buffer.ND:
            assert tuple(view.shape[: view.ndim]) == field.shape
        else:
            assert not view.shape
        if flags & py_buffer.STRIDES == py_buffer.STRIDES:
            assert field.size == 0 or tuple(view.strides[: view.ndim]) == field.strides
        else:
            assert not view.strides


@pytest.mark.parametrize(
    ("field", "flags"),
    [
        *((F_ORDER, flags) for flags in (py_buffer.SIMPLE, py_buffer.ND, py_buffer.C_CONTIGUOUS)),
        (C_ORDER, py_buffer.F_CONTIGUOUS),
        *(
            (field, flags)
            for field in (PADDED, STEPPED)
            for flags in (
                py_buffer.SIMPLE,
                py_buffer.ND,
                py_buffer.C_CONTIGUOUS,
                py_buffer.F_CONTIGUOUS,
                py_buffer.ANY_CONTIGUOUS,
            )
        ),
    ],
)
def test_requests_that_strides_do_not_allow_are_refused(field: dl.Tensor, flags: int) -> None:
    with pytest.raises(BufferError, match=r"contiguous|strides"), requested(field, flags):
        pytest.fail("a buffer whose consumer would read the wrong elements")


def test_negative_strides_begin_at_element_zero() -> None:
    field = dl.from_array(np.arange(6.0))[::-2]
    with requested(field, py_buffer.RECORDS_RO) as view:
        assert view.buf == field.ptr
        assert tuple(view.strides[:1]) == (-16,)
        assert view.buf is not None
        assert ctypes.c_double.from_address(view.buf).value == 5.0
    assert memoryview(field).tolist() == [5.0, 3.0, 1.0]


def test_consumers_of_plain_bytes() -> None:
    field = dl.from_array(np.arange(12, dtype="i2").reshape(3, 4))
    expected = np.arange(12, dtype="i2").tobytes()
    assert bytes(memoryview(field)) == expected
    assert hashlib.sha256(memoryview(field)).digest() == hashlib.sha256(expected).digest()
    assert np.frombuffer(memoryview(field), "i2").tolist() == list(range(12))


@pytest.mark.parametrize("field", [SCALAR, EMPTY])
def test_scalars_and_empties(field: dl.Tensor) -> None:
    view = memoryview(field)
    assert (view.shape, view.nbytes) == (field.shape, field.nbytes)
    assert np.asarray(view).tolist() == field.to_numpy().tolist()


def test_view_keeps_the_memory() -> None:
    field = dl.full((1000,), 1.5)
    view = memoryview(field)
    del field
    others = [dl.zeros((1000,)) for _ in range(8)]
    assert view.tolist() == [1.5] * 1000
    assert not any(other[0] for other in others)


def test_requests_of_either_order_may_be_open_at_once() -> None:
    """Both orders fit; the strides of the extent of 1 are those of the order that was requested."""
    field = dl.zeros((1, 5))
    with (
        requested(field, py_buffer.C_CONTIGUOUS) as c,
        requested(field, py_buffer.F_CONTIGUOUS) as f,
        requested(field, py_buffer.STRIDES) as any_order,
    ):
        assert tuple(c.strides[:2]) == tuple(any_order.strides[:2]) == (40, 8)
        assert tuple(f.strides[:2]) == (8, 8)


def test_recycled_tensors_export_their_own_shape_and_strides() -> None:
    """A view of one field is freed and its memory reused for the next view, with the same number of dimensions."""
    field = dl.from_array(np.arange(24.0).reshape(4, 6))
    for rows, columns in [(4, 6), (2, 3), (1, 6), (4, 1), (3, 2)] * 50:
        part = field[:rows, ::-1][:, :columns]
        expected = field.to_numpy()[:rows, ::-1][:, :columns]
        assert memoryview(part).shape == (rows, columns)
        np.testing.assert_array_equal(np.asarray(part), expected)
        del part


def test_exported_numbers_live_as_long_as_the_export() -> None:
    views = [memoryview(dl.zeros((2, 3, n), "i2")) for n in range(1, 200)]
    assert [view.shape for view in views] == [(2, 3, n) for n in range(1, 200)]
    assert [view.strides for view in views] == [(6 * n, 2 * n, 2) for n in range(1, 200)]


def test_writes_go_through() -> None:
    field = dl.zeros(3, "i4")
    memoryview(field)[1] = 9
    assert field.to_numpy().tolist() == [0, 9, 0]


def test_readinto(tmp_path: Any) -> None:
    path = tmp_path / "data"
    path.write_bytes(np.arange(6.0).tobytes())
    field = dl.zeros((2, 3))
    with path.open("rb") as file:
        assert file.readinto(memoryview(field).cast("B")) == 48
    assert field.to_numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
