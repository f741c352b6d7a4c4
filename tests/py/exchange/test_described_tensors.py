"""Descriptions of our own tensors state all metadata, also what is the default."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl


def metadata(field: Any) -> tuple[Any, ...]:
    return (field.dims, field.halo, field.origin)


@pytest.mark.parametrize("ndim", [*range(9), 64])
def test_defaults_are_stated(ndim: int) -> None:
    field = dl.zeros((1,) * ndim, "float32")
    for _ in range(2):
        seen = dl.describe(field)
        assert metadata(seen) == metadata(field)
        assert (seen.halo, seen.origin) == (((0, 0),) * ndim, (0,) * ndim)


@pytest.mark.parametrize(
    "make",
    [
        lambda: dl.zeros((6, 5, 4), halo=(1, 0, 2)),
        lambda: dl.zeros((6, 5, 4), dims="KJI"),
        lambda: dl.zeros((6, 5, 4), dims="KJI", halo=(1, 0, 2)),
        lambda: dl.from_dlpack(dl.zeros((6, 5, 4)), origin=(3, 2, 1)),
        lambda: dl.from_dlpack(dl.zeros((6, 5, 4), dims="KJI", halo=(1, 0, 2)), origin=(3, 2, 1)),
        lambda: dl.zeros((6, 5, 4), halo=(1, 0, 2))[1:],
        lambda: dl.zeros((6, 5, 4), halo=(1, 0, 2)).domain_view,
    ],
)
def test_what_was_set_is_stated_with_the_rest(make: Callable[[], Any]) -> None:
    field = make()
    for _ in range(2):
        assert metadata(dl.describe(field)) == metadata(field)


def test_descriptions_change_nothing_for_others() -> None:
    field, other = dl.zeros((6, 5, 4)), dl.zeros((3, 3, 3))
    before = dl.describe(field)
    assert dl.describe(field, dims="KJI").dims == ("K", "J", "I")
    assert dl.from_dlpack(dl.describe(field), origin=(1, 1, 1)).origin == (1, 1, 1)
    field.halo = (1, 1, 0)
    assert dl.describe(field).origin == (1, 1, 0)
    for seen in (before, dl.describe(other)):
        assert metadata(seen) == (("I", "J", "K"), ((0, 0),) * 3, (0, 0, 0))


ALIGNED: dict[str, Callable[[], dl.Tensor]] = {
    "halo": lambda: dl.zeros((6, 5, 4), halo=(1, 0, 2), alignment_size=64),
    "index": lambda: dl.zeros((6, 5), "float32", aligned_index=(2, 3), alignment_size=32),
    "view": lambda: dl.zeros((6, 5, 4), halo=(1, 0, 2), alignment_size=64)[1:, 1:],
    "square": lambda: dl.zeros((5, 5), halo=(1, 2), alignment_size=64),
    "small": lambda: dl.zeros((1, 3), aligned_index=(0, 2), alignment_size=64),
    "no dimensions": lambda: dl.zeros((), alignment_size=64),
}


def numbers(field: Any) -> tuple[Any, ...]:
    """What says where the elements are, and how they are aligned."""
    places = (field.shape, field.strides, field.layout, field.ptr, field.size, field.dtype)
    return (*places, field.alignment_size, field.aligned_index, field.alignment(), field.device, field.readonly)


@pytest.mark.parametrize("name", ALIGNED)
def test_a_description_has_the_alignment_of_its_tensor(name: str) -> None:
    field = ALIGNED[name]()
    assert numbers(dl.describe(field)) == numbers(field)
    assert numbers(dl.describe(dl.describe(field))) == numbers(field)


@pytest.mark.parametrize("name", ALIGNED)
def test_the_reverse_of_a_description_describes_the_reversed_tensor(name: str) -> None:
    field = ALIGNED[name]()
    seen = dl.describe(field).T
    assert seen.owner is field
    same = dl.describe(field.T)
    assert (numbers(seen), metadata(seen)) == (numbers(same), metadata(same))
    assert (numbers(seen.T), metadata(seen.T)) == (numbers(field), metadata(field))


@pytest.mark.parametrize("order", ["".join(order) for order in itertools.permutations("IJK")])
@pytest.mark.parametrize("shape", [(4, 5, 6), (4, 4, 4), (3, 1, 6)])
def test_bound_fields_state_the_alignment_of_their_dimensions(order: str, shape: tuple[int, ...]) -> None:
    index = tuple(min(place, extent - 1) for place, extent in zip((1, 2, 3), shape, strict=True))
    field = dl.zeros(shape, aligned_index=index, alignment_size=64)
    with dl.Signature(x=dl.FieldSpec("float64", order)).bind(x=field) as bound:
        address = bound.x.ptr + sum(at * step for at, step in zip(bound.x.aligned_index, bound.x.strides, strict=True))
        assert (bound.x.alignment_size, address % 64) == (64, 0)
        assert bound.x.aligned_index == field.transpose(*order).aligned_index


def test_the_reverse_of_another_object_shares_its_memory() -> None:
    array = np.arange(6).reshape(2, 3)
    seen = dl.describe(array, dims="JI").T
    assert (seen.alignment_size, seen.aligned_index, seen.dims, seen.owner is array) == (1, (0, 0), ("I", "J"), True)
    shared = dl.from_dlpack(seen)
    assert shared.dims == ("I", "J")
    assert np.array_equal(shared, array.T)
    shared[2, 1] = -1
    assert array[1, 2] == -1


def test_the_reverse_notices_memory_that_moved() -> None:
    array = np.zeros((2, 3))
    seen = dl.describe(array).T
    array.resize((200, 300), refcheck=False)
    with pytest.raises(dl.ExchangeError, match=r"was float64 of shape \[3, 2\]"):
        dl.from_dlpack(seen)
