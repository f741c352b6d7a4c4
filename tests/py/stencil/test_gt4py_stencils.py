"""Stencils on every backend: plain ones take dlfield's fields as they are, wrapped ones any array."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from calls import Array
from dlfield import gt4py as ours
from dlfield.gt4py import wrap
from fakes_interfaces import cuda
from wrapped import DOMAIN, PLAIN, PRODUCERS, SHAPE, WEIGHTED, Call, frozen_origin, in_strided_memory

pytestmark = pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning", "error:The layout of the field")


# Fields of dlfield in plain stencils.

GRID = (6, 5, 4)
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
    (i, j, k), (ni, nj, nk) = (tuple(HALOS[label][0] for label in "IJK"), GRID)

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
    right = expected(*tensors)
    if origin is OWN:
        origin = {name: tensor.__gt_origin__ for name, tensor in zip(NAMES, tensors, strict=True)}
    stencil(*make(*tensors), weight=2.0, domain=GRID, origin=origin)
    assert np.allclose(in_order(tensors[3]), right, rtol=1e-15)


def test_arrays_of_dlfield_gt4py_go_into_stencils(stencil: Any) -> None:
    tensors = fields(stencil.backend)
    arrays = [
        ours.from_array(in_order(tensor), backend=stencil.backend, dimensions=sorted(tensor.dims, key="IJK0".index))
        for tensor in tensors
    ]
    stencil(*arrays, weight=2.0, domain=GRID, origin={"_all_": (2, 1, 0)})
    assert np.allclose(arrays[3], expected(*tensors), rtol=1e-15)


# Any array in wrapped stencils.


@pytest.mark.parametrize("order", ["IJK", "KJI", "JKI"])
@pytest.mark.parametrize("producer", PRODUCERS)
def test_any_array_is_used_in_place(stencil: Any, producer: str, order: str) -> None:
    """The result is bit-identical to the plain stencil's, in the caller's memory, for any array and strides."""
    call, make = Call(stencil), PRODUCERS[producer]
    expected = call.expected()
    memory = {name: in_strided_memory(call.arrays[name], order) for name in ("inp", "out")}
    wrap(stencil)(make(memory["inp"]), call.arrays["level"], call.arrays["pair"], make(memory["out"]), **WEIGHTED)
    assert np.array_equal(memory["out"], expected)


def test_fields_of_other_dimensions(stencil: Any, torch: Any, xarray: Any) -> None:
    call = Call(stencil)
    expected = call.expected()
    pair = xarray.DataArray(call.arrays["pair"], dims=("I", "J", "K", "0")).transpose("0", "K", "J", "I")
    level = dl.from_dlpack(torch.from_numpy(call.arrays["level"]), dims="K")
    out = dl.zeros(SHAPE, backend=stencil.backend)
    out[...] = call.arrays["out"]
    wrap(stencil, on_mismatch="copy")(call.arrays["inp"], level, pair, out, **WEIGHTED)
    assert np.array_equal(out.to_numpy(), expected)


def test_read_only_inputs(stencil: Any, jax: Any) -> None:
    """GT4Py's compiled backends refuse these, though they only read them."""
    call = Call(stencil)
    expected = call.expected()
    jax.config.update("jax_enable_x64", True)
    try:
        inp = dl.as_jax(call.arrays["inp"], copy=True)
    finally:
        jax.config.update("jax_enable_x64", False)
    level = call.arrays["level"]
    level.flags.writeable = False
    wrap(stencil)(inp, level, call.arrays["pair"], call.arrays["out"], **WEIGHTED)
    assert np.array_equal(call.arrays["out"], expected)
    assert not level.flags.writeable


def test_unused_fields_are_not_read(stencil: Any) -> None:
    call = Call(stencil)
    expected = call.expected()
    wrap(stencil, on_mismatch="copy")(**call.arrays, **WEIGHTED, idle=object())
    assert np.array_equal(call.arrays["out"], expected)


def test_exec_info_has_the_keys_of_the_plain_call(stencil: Any) -> None:
    call = Call(stencil)
    theirs: dict[str, Any] = {"__aggregate_data": True}
    ours: dict[str, Any] = {"__aggregate_data": True}
    call.expected(exec_info=theirs)
    wrap(stencil, on_mismatch="copy")(**call.arrays, **WEIGHTED, exec_info=ours)
    assert ours.keys() == theirs.keys()
    assert ours["call_start_time"] <= ours["call_run_start_time"] <= ours["run_start_time"] <= ours["run_end_time"]


def test_frozen_stencils(stencil: Any, torch: Any) -> None:
    call = Call(stencil)
    expected = call.expected(offset=0.25)
    frozen = stencil.freeze(origin=frozen_origin(), domain=DOMAIN)
    wrapped = wrap(frozen, on_mismatch="copy")
    assert (wrapped.domain, wrapped.origin) == (frozen.domain, frozen.origin)
    out = torch.from_numpy(call.arrays["out"])
    ours: dict[str, Any] = {}
    wrapped(**{**call.arrays, "out": out}, **{**PLAIN, "offset": 0.25}, exec_info=ours)
    assert np.array_equal(out.numpy(), expected)
    theirs: dict[str, Any] = {}
    frozen(**call.arrays, **PLAIN, exec_info=theirs)
    assert ours.keys() == theirs.keys()


@pytest.mark.parametrize("on_mismatch", ["raise", "copy"])
def test_later_calls_are_checked_too(stencil: Any, on_mismatch: Any) -> None:
    """GT4Py checks only the first call with given shapes."""
    call, wrapped = Call(stencil), wrap(stencil, on_mismatch=on_mismatch)
    wrapped(**call.arrays, **WEIGHTED)
    inp, level, _, out = call.arrays.values()
    before = out.copy()
    for name, wrong, error in [
        ("inp", inp.astype("c16"), dl.DTypeError),
        ("inp", inp[0], dl.DimsError),
        ("inp", inp[:5], dl.LayoutError),
        ("inp", dl.from_dlpack(inp, dims="IJX"), dl.DimsError),
        ("inp", out, dl.OverlapError),
        ("pair", out.repeat(3).reshape(*SHAPE, 3), dl.LayoutError),
        ("out", np.broadcast_to(level, SHAPE), dl.ExchangeError),
        ("level", object(), dl.NotAnArrayError),
        ("level", cuda(shape=(4,), strides=None, typestr="<f8"), dl.DeviceError),
    ]:
        with pytest.raises(error, match=name):
            wrapped(**{**call.arrays, name: wrong}, **WEIGHTED)
    for weight in (2, np.float32(2.0), "2"):
        with pytest.raises(dl.DTypeError, match='scalar "weight": '):
            wrapped(**call.arrays, **{**WEIGHTED, "weight": weight})
    assert np.array_equal(out, before)
    wrapped(**call.arrays, **{**WEIGHTED, "weight": np.float64(2.0)})
    assert np.array_equal(out, before)


def test_temporaries_are_copied_back(stencil: Any) -> None:
    """The points around the domain, which the stencil does not write, keep their values."""
    call, wrapped = Call(stencil), wrap(stencil, on_mismatch="copy")
    expected = call.expected()
    slow = (2, 1, 0) if stencil.backend != "gt:cpu_ifirst" else (0, 1, 2)
    out = dl.from_array(call.arrays["out"], layout=slow)
    inp = dl.from_array(call.arrays["inp"], "float32")
    with pytest.warns(dl.LayoutWarning, match='field "out"'):
        wrapped(**{**call.arrays, "out": out}, **WEIGHTED)
    assert out.layout == slow
    assert np.array_equal(out.to_numpy(), expected)
    call.arrays["inp"] = inp.to_numpy().astype("f8")
    call.arrays["out"] = out.to_numpy().copy()
    expected = call.expected()
    with pytest.warns(dl.LayoutWarning, match='field "inp": dtype: expected float64, got float32'):
        wrap(stencil, on_mismatch="copy")(**{**call.arrays, "inp": inp, "out": out}, **WEIGHTED)
    assert np.array_equal(out.to_numpy(), expected)
