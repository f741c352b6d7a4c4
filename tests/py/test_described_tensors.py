"""Descriptions of our own tensors state all metadata, also what is the default."""

from collections.abc import Callable
from typing import Any

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
