"""Descriptions of our own tensors state all metadata, also what is the default."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from fakes_interfaces import cuda


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


def test_numpy_takes_a_description_as_an_array() -> None:
    field = dl.zeros((3, 4), "float32", backend="F")
    with dl.Signature(x=dl.FieldSpec("float32", "IJ", access="w")).bind(x=field) as bound:
        array = np.asarray(bound.x)
        assert (array.ctypes.data, array.strides) == (field.ptr, field.strides)
        array[...] = 2
        np.add(bound.x, 1, out=array)
    assert (field.to_numpy() == 3).all()
    seen = dl.describe(field)
    assert np.array(seen).ctypes.data != field.ptr
    assert np.asarray(seen, "float64").dtype == "float64"
    with pytest.raises(dl.ExchangeError, match="dtype float64 is requested and the memory holds float32"):
        np.asarray(seen, "float64", copy=False)
    with pytest.raises((dl.NoSuchBufferError, dl.DeviceError), match=r"^device: cuda:0"):
        np.asarray(dl.describe(cuda(shape=(2, 3), typestr="<f4")))


def test_no_array_is_made_of_memory_that_was_moved() -> None:
    array = np.ones(1000)
    seen = dl.describe(array)
    array.resize(100_000, refcheck=False)
    with pytest.raises(dl.ExchangeError, match=r"^moved: "):
        np.asarray(seen)
