"""The keyword `buffer` of the allocation functions: a preset's field in memory that is given."""

import mmap
import pickle
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from fakes import Meddling

# Allocation function, first arguments, and the value that its elements get; None for none.
CREATORS: list[tuple[Any, tuple[Any, ...], float | None]] = [
    (dl.empty, ((6, 7),), None),
    (dl.zeros, ((6, 7),), 0.0),
    (dl.ones, ((6, 7),), 1.0),
    (dl.full, ((6, 7), 2.5), 2.5),
    (dl.empty_like, (np.ones((6, 7)),), None),
    (dl.zeros_like, (np.ones((6, 7)),), 0.0),
    (dl.ones_like, (np.zeros((6, 7)),), 1.0),
    (dl.full_like, (np.zeros((6, 7)), 2.5), 2.5),
    (dl.from_array, (np.full((6, 7), 2.5),), 2.5),
]

PRESETS: list[dict[str, Any]] = [
    {},
    {"backend": "F"},
    {"backend": "gtmc", "halo": (1, 2)},
    {"backend": "jax"},
    {"alignment_size": 64, "aligned_index": (1, 3)},
    {"alignment_size": 24, "padding": "row"},
    {"backend": "gt:cpu_ifirst", "dims": "JK", "halo": (2, 1), "origin": (3, 3)},
]


def address(memory: bytearray) -> int:
    """Return the address of the first byte."""
    return np.frombuffer(memory, "uint8").ctypes.data


@pytest.mark.parametrize("keywords", PRESETS, ids=repr)
@pytest.mark.parametrize(("create", "args", "value"), CREATORS, ids=lambda case: getattr(case, "__name__", ""))
def test_the_field_is_that_of_an_allocation(
    create: Any, args: tuple[Any, ...], value: float | None, keywords: dict[str, Any]
) -> None:
    own = create(*args, **keywords)
    memory = bytearray(b"\xa5" * 2000)
    field = create(*args, **keywords, buffer=memory)
    for name in ("shape", "dtype", "strides", "dims", "halo", "origin", "layout", "alignment_size", "aligned_index"):
        assert getattr(field, name) == getattr(own, name), name
    start = address(memory)
    aligned = field.ptr + sum(np.multiply(field.aligned_index, field.strides))
    assert aligned % field.alignment_size == 0
    assert 0 <= field.ptr - start < np.lcm(field.alignment_size, 8)
    assert not field.readonly
    if value is None:
        assert memory == b"\xa5" * 2000
        field[...] = value = 3.0
    assert (np.asarray(field) == value).all()
    inside = np.asarray(field)
    assert np.frombuffer(memory, "uint8").ctypes.data <= inside.ctypes.data
    assert memory[: field.ptr - start] == b"\xa5" * (field.ptr - start)
    with pytest.raises(BufferError):
        memory.extend(b"x")


@pytest.mark.parametrize("keywords", PRESETS, ids=repr)
def test_the_error_says_how_many_bytes_are_missing(keywords: dict[str, Any]) -> None:
    """With as many bytes more it fits, with one less it does not."""
    memory = np.zeros(3000, "uint8")
    for offset in (0, 1, 8, 13):
        given = memory[offset : offset + 100]
        with pytest.raises(dl.LayoutError, match=r"^buffer: .* got 100: ") as raised:
            dl.zeros((6, 7), **keywords, buffer=given)
        missing = int(str(raised.value).split("got 100: ")[1].split()[0])
        with pytest.raises(dl.LayoutError, match=" 1 are missing"):
            dl.zeros((6, 7), **keywords, buffer=memory[offset : offset + 99 + missing])
        dl.zeros((6, 7), **keywords, buffer=memory[offset : offset + 100 + missing])


def test_padding_of_zeros_is_zero_and_bytes_around_stay() -> None:
    memory = bytearray(b"\xa5" * 400)
    field = dl.zeros((3, 5), "float32", alignment_size=32, buffer=memoryview(memory)[7:])
    first = field.ptr - address(memory)
    assert memory[first : first + 96] == bytes(96)
    assert set(memory[:first] + memory[first + 96 :]) == {0xA5}


def test_every_kind_of_memory() -> None:
    torch = pytest.importorskip("torch")
    for memory in (
        mmap.mmap(-1, 4096),
        torch.zeros(100),
        dl.empty((200,)),
        np.zeros((10, 20), order="F"),
        bytearray(800),
    ):
        whole = dl.frombuffer(memory, (400,), "uint8")
        whole[...] = np.uint8(0)
        assert dl.ones((5, 5), buffer=memory).sum() == 25.0
        # The last two bytes of a one.
        assert int(np.asarray(whole, "int64").sum()) == 25 * (0xF0 + 0x3F)


def test_wrong_buffers_are_refused_by_name() -> None:
    cases: list[tuple[Any, type[Exception], str]] = [
        (dl.zeros((100,)).as_readonly(), dl.ExchangeError, "buffer: the memory is read-only"),
        (np.zeros((20, 20))[:, 3], dl.LayoutError, "buffer: expected contiguous memory, got elements with gaps"),
        (
            memoryview(bytearray(800))[::-1],
            dl.LayoutError,
            "buffer: expected contiguous memory, got elements with gaps",
        ),
    ]
    for buffer, error, message in cases:
        with pytest.raises(error, match=message):
            dl.zeros((10,), buffer=buffer)
    with pytest.raises(
        dl.DeviceError, match="buffer: expected memory on cuda_host, as the field is, got cpu; pass device='cpu'"
    ):
        dl.empty((10,), device="cuda_host", buffer=bytearray(800), stream=-1 if dl.cuda.is_available() else None)


def test_a_copy_may_overlap_the_memory_it_comes_from() -> None:
    data = np.arange(12.0).reshape(3, 4)
    expected = data.copy()
    turned = dl.from_array(data, backend="F", buffer=data)
    assert turned.ptr == data.ctypes.data
    np.testing.assert_array_equal(np.asarray(turned), expected)
    assert data.ravel().tolist() == expected.ravel(order="F").tolist()


def test_copies_cast_as_without_a_buffer() -> None:
    # The last one is NumPy's.
    for source, dtype in (("float64", "float32"), ("int16", "float64"), ("bool", "int8"), ("float64", "float8_e5m2")):
        data = np.ones((2, 3), source)
        made = dl.from_array(data, dtype, buffer=bytearray(400))
        assert made.dtype == dl.zeros((1,), dtype).dtype
        assert made.tolist() == dl.from_array(data, dtype).tolist()
    with pytest.raises(TypeError, match="same_kind"):
        dl.from_array(np.ones(3), "int32", buffer=bytearray(400))


def test_fields_without_elements_need_no_bytes() -> None:
    for creator in (dl.empty, dl.zeros, dl.ones):
        assert creator((0, 3), alignment_size=64, buffer=bytearray()).shape == (0, 3)


def test_memory_that_goes_while_a_shape_is_read_is_not_used() -> None:
    memory = bytearray(64)
    with pytest.raises(dl.LayoutError, match=r"buffer: expected 64 bytes .* got 0: "):
        dl.zeros((Meddling(memory.clear, 8),), buffer=memory)


def test_the_block_is_the_field_s_part_of_the_memory() -> None:
    memory = bytearray(b"\xa5" * 2000)
    field = dl.ones((3, 5), alignment_size=64, buffer=memory)
    assert (field.block.ptr, field.block.shape) == (field.ptr, (24,))
    assert field[1, 2:].block.shape == (24,)
    # In memory that dlfield has allocated, and in a field in it.
    for buffer in (dl.zeros((100,)), dl.zeros((100,), buffer=dl.zeros((200,)))):
        field = dl.ones((3, 5), alignment_size=64, buffer=buffer)
        assert (field.block.ptr, field.block.shape) == (field.ptr, (24,))
        assert buffer.block.shape != (24,)


def test_pickles_have_nothing_of_what_was_in_the_memory() -> None:
    field = dl.ones((3, 5), alignment_size=64, buffer=bytearray(b"\xa5" * 2000))
    for protocol in (2, 5):
        data = pickle.dumps(field, protocol)
        assert b"\xa5\xa5" not in data
        assert pickle.loads(data).tolist() == field.tolist()


def test_fields_in_fields_make_no_chain() -> None:
    field = dl.zeros((100_000,), "int8")
    for _ in range(50_000):
        field = dl.empty((field.size - 1,), "int8", buffer=field)
    assert field.size == 50_000
    del field
