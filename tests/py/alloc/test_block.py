"""`t.block`: the whole memory block of a tensor, padding included."""

from typing import Any

import numpy as np
import pytest

import dlfield as dl
from catalog import CODES, CPU_PRESETS, dtype_named


@pytest.mark.parametrize("preset", CPU_PRESETS)
def test_all_views_of_an_allocation_have_its_block(preset: str) -> None:
    field = dl.zeros((3, 4, 5), "f4", backend=preset, halo=((1, 0), 1, (0, 2)), alignment_size=128)
    block = field.block
    assert (block.dtype, block.strides, block.readonly, block.halo) == (field.dtype, (4,), False, ((0, 0),))
    assert block.ptr <= field.ptr
    assert field.ptr + field.strides[0] * 2 < block.ptr + block.nbytes
    assert block.nbytes >= field.nbytes
    for view in (field.T, field[1:, ::-2], field[2, 3, 4, ...], field[1:1], field.domain_view, block, block[3:]):
        assert (view.block.ptr, view.block.shape) == (block.ptr, block.shape)


def test_it_is_the_memory_with_its_padding() -> None:
    field = dl.zeros((3, 5), alignment_size=64)
    field[...] = np.arange(15.0).reshape(3, 5)
    assert field.block.shape == (24,)
    rows = np.asarray(field.block).reshape(3, 8)
    assert (rows[:, :5] == np.arange(15.0).reshape(3, 5)).all()
    assert not rows[:, 5:].any()
    rows[1, 2] = 70.0
    assert field[1, 2] == 70.0


def test_it_keeps_the_memory_and_its_access() -> None:
    block = dl.ones((3, 5)).block
    assert (block.to_numpy() == 1).all()
    readonly = dl.ones((3, 5)).as_readonly().block
    assert readonly.readonly
    assert not readonly.to_numpy().flags.writeable


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1), (7,)])
def test_scalars_and_empties(shape: tuple[int, ...]) -> None:
    field = dl.full(shape, 2.5)
    assert field.block.to_numpy().tolist() == [2.5] * field.size
    assert field.block.dims == ("I",)


@pytest.mark.parametrize("name", CODES)
def test_elements_are_those_of_every_dtype(name: str) -> None:
    field = dl.zeros((3, 5), dtype_named(name), alignment_size=64)
    row = max(1, 64 // field.itemsize)
    assert field.block.shape == (3 * -(-5 // row) * row,)
    assert field.block.dtype == field.dtype


def test_memory_that_went_through_numpy_is_the_allocation_still() -> None:
    field = dl.zeros((3, 5), alignment_size=64)
    back = dl.from_dlpack(np.asarray(field)[1:, 2:])
    assert (back.block.ptr, back.block.shape) == (field.block.ptr, (24,))
    # A view with other elements has blocks on its own grid: 24 doubles are 192 bytes, 2 before the first whole element.
    other = dl.from_dlpack(np.asarray(field.block).view("u1")[2:-2].view("f4"))
    assert other.block.dtype == np.float32
    assert (other.block.ptr, other.block.shape) == (field.block.ptr + 2, (47,))


@pytest.mark.parametrize(
    "key", [np.s_[:], np.s_[::-1], np.s_[:, ::-1, :], np.s_[1:2, 1:2, 1:2], np.s_[2:, :, :], np.s_[1, 2], np.s_[1:1]]
)
@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_memory_of_others_between_its_elements(axes: tuple[int, ...], key: Any) -> None:
    array = np.arange(24.0).reshape(2, 3, 4)
    part = array[key] if array[key].ndim < 3 else array[key].transpose(axes)
    block = dl.from_dlpack(part).block
    assert sorted(part.ravel()) == block.to_numpy().tolist()
    if part.size:
        assert block.ptr == np.lib.array_utils.byte_bounds(part)[0]


@pytest.mark.parametrize(
    ("array", "found"),
    [
        (np.zeros((4, 6))[:, :5], r"160 bytes, shape \[4, 5\] and strides \[6, 1\] in 184 bytes"),
        (np.zeros(9)[::2], r"40 bytes, shape \[5\] and strides \[2\] in 72 bytes"),
        (np.broadcast_to(np.zeros(3), (2, 3)), r"48 bytes, shape \[2, 3\] and strides \[0, 1\] in 24 bytes"),
        # As many elements as the memory between them has room for, but not all of that.
        (np.lib.stride_tricks.as_strided(np.zeros(4), (2, 2), (0, 24)), r"32 bytes, .* in 32 bytes"),
    ],
)
def test_memory_of_others_with_gaps_has_none(array: Any, found: str) -> None:
    with pytest.raises(dl.ExchangeError, match=rf"block: expected .*, got elements of {found}.*pass a copy"):
        _ = dl.from_dlpack(array).block
    assert dl.from_dlpack(array).copy().block.size == array.size
