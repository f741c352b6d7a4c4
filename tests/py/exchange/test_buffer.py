"""Export by the buffer protocol: every request is answered as NumPy answers it for an array on the same memory."""

from __future__ import annotations

import hashlib
import io
import itertools
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import dlfield as dl
import py_buffer
from catalog import ML_CODES, NUMPY_CODES, SUBBYTE_CODES, dtype_named
from childproc import run_python
from py_buffer import requested

KINDS = {
    name: getattr(py_buffer, name)
    for name in ("SIMPLE", "ND", "STRIDES", "C_CONTIGUOUS", "F_CONTIGUOUS", "ANY_CONTIGUOUS", "INDIRECT")
}
FLAGS = [
    pytest.param(kind | writable | format_, id="|".join([name, *"W" * writable, *"F" * (format_ > 0)]))
    for (name, kind), writable, format_ in itertools.product(
        KINDS.items(), (0, py_buffer.WRITABLE), (0, py_buffer.FORMAT)
    )
]
FLAGS.append(pytest.param(py_buffer.C_CONTIGUOUS | py_buffer.F_CONTIGUOUS, id="C|F"))

LAYOUTS: dict[str, Callable[[Any], dl.Tensor]] = {
    "scalar": lambda dtype: dl.ones((), dtype),
    "line": lambda dtype: dl.ones(5, dtype),
    "one element": lambda dtype: dl.ones((1, 1), dtype),
    "C": lambda dtype: dl.ones((2, 3, 4), dtype),
    "F": lambda dtype: dl.ones((2, 3, 4), dtype, backend="F"),
    "neither": lambda dtype: dl.ones((2, 3, 4), dtype, layout=(0, 2, 1)),
    "padded": lambda dtype: dl.ones((3, 5), dtype, alignment_size=64),
    "padded row of one": lambda dtype: dl.ones((1, 5), dtype, alignment_size=64),
    "padded column": lambda dtype: dl.ones((5, 1), dtype, alignment_size=64),
    "extent 1 in C": lambda dtype: dl.ones((4, 6, 5), dtype)[:, 2:3, :][1:2],
    "extent 1 in F": lambda dtype: dl.ones((4, 6, 5), dtype, backend="F")[:, :, 3:4],
    "stepped": lambda dtype: dl.ones((4, 6), dtype)[:, ::2],
    "backwards": lambda dtype: dl.ones(6, dtype)[::-1],
    "one row backwards": lambda dtype: dl.ones((1, 6), dtype)[::-1],
    "empty": lambda dtype: dl.ones((0,), dtype),
    "empty in the middle": lambda dtype: dl.ones((3, 0, 2), dtype),
    "empty in F": lambda dtype: dl.ones((3, 0, 2), dtype, backend="F"),
    "empty backwards": lambda dtype: dl.ones((3, 4), dtype)[::-1, 2:2],
}


class Answer(NamedTuple):
    """The fields of a buffer; `buf` only if the buffer has bytes."""

    buf: int | None
    len: int
    itemsize: int
    readonly: int
    ndim: int
    format: bytes | None
    shape: tuple[int, ...] | None
    strides: tuple[int, ...] | None
    suboffsets: int | None


def answer(value: object, flags: int) -> Answer | None:
    """The answer to a request; None if it was refused."""
    try:
        with requested(value, flags) as view:
            shape = tuple(view.shape[: view.ndim]) if view.shape else None
            strides = tuple(view.strides[: view.ndim]) if view.strides else None
            said = (view.len, view.itemsize, view.readonly, view.ndim, view.format, shape, strides, view.suboffsets)
            return Answer(view.buf if view.len else None, *said)
    except (BufferError, ValueError):
        return None


def numpys(field: dl.Tensor, flags: int) -> Answer | None:
    """NumPy's answer for the same memory; one dimension of bytes if no shape is requested."""
    if flags & py_buffer.ND:
        return answer(field.to_numpy(), flags)
    found = answer(field.to_numpy(), flags & ~py_buffer.FORMAT)
    if found is None:
        return None
    assert found.ndim == 0
    return found._replace(ndim=1, itemsize=1, format=b"B") if flags & py_buffer.FORMAT else found._replace(ndim=1)


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("readonly", [False, True], ids=["writable", "readonly"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_request_is_answered_as_numpy_does(layout: str, readonly: bool, flags: int) -> None:
    for dtype in (*NUMPY_CODES, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.int4):
        field = LAYOUTS[layout](dtype)
        field = field.as_readonly() if readonly else field
        assert answer(field, flags) == numpys(field, flags)


def test_a_request_without_a_shape_is_answered_as_memoryview_does() -> None:
    field = dl.from_array(np.arange(12.0).reshape(3, 4))
    array: Any = field.to_numpy()
    reference = memoryview(array)
    for flags in (py_buffer.SIMPLE, py_buffer.WRITABLE):
        assert answer(field, flags) == answer(reference, flags)


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_testbuffer_reads_the_elements(layout: str, flags: int) -> None:
    """`_testbuffer` uses all fields of a buffer, and reads NULL ones by the rules of the C API's documentation."""
    consumer = pytest.importorskip("_testbuffer")
    field = LAYOUTS[layout]("int16")
    if answer(field, flags) is None:
        return
    seen = consumer.ndarray(field, getbuf=flags)
    assert seen.tobytes() == field.to_numpy().tobytes()
    if flags & py_buffer.FORMAT:
        values = field.to_numpy() if flags & py_buffer.ND else np.frombuffer(field.to_numpy().tobytes(), "u1")
        assert seen.tolist() == values.tolist()
    if flags & py_buffer.FORMAT and flags & py_buffer.STRIDES == py_buffer.STRIDES and field.size:
        assert consumer.get_pointer(seen, [extent - 1 for extent in field.shape]) == 1


def test_a_memoryview_of_any_answer_does_not_crash() -> None:
    """A memoryview of several dimensions without a shape read from address 0."""
    run_python("""
        import ctypes
        import dlfield as dl, py_buffer
        from py_buffer import PyBuffer, _get
        make = ctypes.pythonapi.PyMemoryView_FromBuffer
        make.argtypes, make.restype = [ctypes.POINTER(PyBuffer)], ctypes.py_object
        kept = []
        for field in (dl.ones(()), dl.ones((2, 3)), dl.ones((2, 0)), dl.ones((1, 2, 3, 4))):
            for flags in (py_buffer.SIMPLE, py_buffer.WRITABLE, py_buffer.FORMAT, py_buffer.ND, py_buffer.FULL):
                view = PyBuffer()
                _get(field, ctypes.byref(view), flags)
                seen = make(ctypes.byref(view))
                assert seen.nbytes == field.nbytes, (seen.nbytes, field.nbytes)
                assert seen.tobytes() == field.to_numpy().tobytes()
                kept.append((field, view, seen))
    """)


@pytest.mark.parametrize("dtype", ["float64", "int8", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_consumers_of_bytes_take_contiguous_fields_of_any_rank(dtype: Any) -> None:
    field = dl.from_array(np.arange(24).reshape(2, 3, 4).astype(dtype))
    array: Any = field.to_numpy()
    assert hashlib.sha256(field).digest() == hashlib.sha256(array).digest()
    assert zlib.crc32(field) == zlib.crc32(array)
    target = dl.zeros((2, 3, 4), dtype)
    assert io.BytesIO(array.tobytes()).readinto(target) == field.nbytes
    assert target.to_numpy().tobytes() == array.tobytes()


def test_refused_requests_say_why() -> None:
    padded = dl.ones((3, 5), alignment_size=64)
    with pytest.raises(BufferError, match="C-contiguous"):
        hashlib.sha256(padded)
    for flags in (py_buffer.WRITABLE, py_buffer.FULL):
        with pytest.raises(BufferError, match=r"(?i)read.?only"), requested(padded.as_readonly(), flags):
            pytest.fail("a writable buffer of read-only memory")


@pytest.mark.parametrize("name", [*ML_CODES, *SUBBYTE_CODES])
def test_dtypes_without_a_format_have_no_buffer(name: str) -> None:
    with pytest.raises(BufferError, match=name):
        memoryview(dl.zeros(3, dtype_named(name)))


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
