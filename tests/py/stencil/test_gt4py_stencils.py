"""Compiled stencils take dlfield's tensors, DataArrays and arrays of `dlfield.gt4py` as they are."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from calls import Array
from dlfield import gt4py as ours

pytestmark = [
    pytest.mark.xdist_group("gt4py-compiled"),
    pytest.mark.filterwarnings("error:The layout of the field"),
]

DOMAIN = (6, 5, 4)
HALOS = {"I": (2, 1), "J": (1, 2), "K": (0, 3), "0": (0, 0)}
SIZES = {"I": 9, "J": 8, "K": 7, "0": 2}
NAMES = ("inp", "level", "pair", "out")


def fields(backend: str, inp: str = "IJK", pair: str = "IJK0", out: str = "IJK") -> list[dl.Tensor]:
    """The fields of `mix` with dimensions in these orders, a halo for each label, and values that differ everywhere."""
    made = []
    for first, labels in zip((1, 1000, 2000, 5000), (inp, "K", pair, out), strict=True):
        halo = [HALOS[label] for label in labels]
        made.append(dl.zeros([SIZES[label] for label in labels], backend=backend, dims=labels, halo=halo))
        values = in_order(made[-1])
        values[...] = np.arange(first, first + values.size).reshape(values.shape)
    return made


def in_order(field: dl.Tensor) -> Array:
    """The memory of `field` with its dimensions in the order I, J, K, 0."""
    return field.transpose(*sorted(field.dims, key="IJK0".index)).to_numpy()


def expected(inp: dl.Tensor, level: dl.Tensor, pair: dl.Tensor, out: dl.Tensor) -> Array:
    """The result of `mix` computed by NumPy: all values of `out`, with its halo unchanged."""
    (i, j, k), (ni, nj, nk) = (tuple(HALOS[label][0] for label in "IJK"), DOMAIN)

    def at(field: dl.Tensor, by_i: int = 0, by_j: int = 0) -> Array:
        return in_order(field)[i + by_i : i + by_i + ni, j + by_j : j + by_j + nj, k : k + nk]

    result = in_order(out).copy()
    result[i : i + ni, j : j + nj, k : k + nk] = (
        at(inp, 1)
        + 2.0 * at(inp, -1)
        + 3.0 * at(inp, 0, -1)
        + in_order(level)[k : k + nk]
        + 0.5
        + at(pair)[..., 0] / at(pair)[..., 1]
    )
    return result


def as_data_arrays(*tensors: dl.Tensor) -> list[Any]:
    convert = pytest.importorskip("dlfield.xarray", exc_type=ImportError).to_xarray
    return [convert(tensor) for tensor in tensors]


def without_dims(*tensors: dl.Tensor) -> list[Any]:
    xarray = pytest.importorskip("xarray")
    return [xarray.DataArray(tensor.to_numpy()) for tensor in tensors]


def views(inp: dl.Tensor, level: dl.Tensor, pair: dl.Tensor, out: dl.Tensor) -> list[Any]:
    return [inp[1:, :, :5], level[:6], pair.domain_view, out.domain_view]


def cut_in_i(*tensors: dl.Tensor) -> list[Any]:
    return [tensor[1:] if "I" in tensor.dims else tensor for tensor in tensors]


def unchanged(*tensors: dl.Tensor) -> list[Any]:
    return list(tensors)


OWN = "the origins of the tensors"
# The orders of the dimensions of inp, pair and out; how the arguments are made of the fields; the origin of the call.
CASES: list[tuple[str, Callable[..., list[Any]], Any]] = [
    # Without an origin each field's own is used, the lower halo, for any order of its dimensions.
    ("IJK IJK0 IJK", unchanged, None),
    ("KJI IJK0 IJK", unchanged, None),
    ("IJK 0KJI JKI", unchanged, None),
    ("JIK I0JK KIJ", unchanged, None),
    ("KIJ KIJ0 KIJ", unchanged, None),
    ("IJK IJK0 KJI", views, None),
    # The origin of the call wins.
    ("IJK IJK0 IJK", cut_in_i, {"_all_": (1, 1, 0)}),
    # The dims of DataArrays count once `dlfield.xarray` is imported; they have no origin.
    ("IJK IJK0 IJK", as_data_arrays, OWN),
    ("KJI 0KJI JKI", as_data_arrays, OWN),
    ("KIJ I0JK KIJ", as_data_arrays, OWN),
    # Dims that GT4Py does not know go by position.
    ("IJK IJK0 IJK", without_dims, OWN),
]


@pytest.mark.parametrize(("orders", "make", "origin"), CASES)
def test_fields_go_straight_into_stencils(stencil: Any, orders: str, make: Any, origin: Any) -> None:
    tensors = fields(stencil.backend, *orders.split())
    wanted = expected(*tensors)
    if origin is OWN:
        origin = {name: tensor.__gt_origin__ for name, tensor in zip(NAMES, tensors, strict=True)}
    stencil(*make(*tensors), weight=2.0, domain=DOMAIN, origin=origin)
    assert np.allclose(in_order(tensors[3]), wanted, rtol=1e-15)


def test_arrays_of_dlfield_gt4py_go_into_stencils(stencil: Any) -> None:
    tensors = fields(stencil.backend)
    arrays = [
        ours.from_array(in_order(tensor), backend=stencil.backend, dimensions=sorted(tensor.dims, key="IJK0".index))
        for tensor in tensors
    ]
    stencil(*arrays, weight=2.0, domain=DOMAIN, origin={"_all_": (2, 1, 0)})
    assert np.allclose(arrays[3], expected(*tensors), rtol=1e-15)
