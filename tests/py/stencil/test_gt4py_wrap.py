"""`dlfield.gt4py.wrap` on every backend: compiled stencils take any array, with the plain stencil's results."""

from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield.gt4py import wrap
from fakes_interfaces import cuda
from wrapped import DOMAIN, ORIGIN, PLAIN, PRODUCERS, SHAPE, WEIGHTED, Call, as_jax, frozen_origin, in_strided_memory

# All stencils that need a compiler are compiled in one process.
pytestmark = [
    pytest.mark.xdist_group("gt4py-compiled"),
    pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning"),
]


@pytest.mark.parametrize("order", ["IJK", "KJI", "JKI"])
@pytest.mark.parametrize("producer", PRODUCERS)
def test_any_array_is_used_in_place(stencil: Any, producer: str, order: str) -> None:
    """The result is bit-identical to the plain stencil's, in the caller's memory, for any array and strides."""
    call, make = Call(stencil), PRODUCERS[producer]
    wanted = call.expected()
    memory = {name: in_strided_memory(call.arrays[name], order) for name in ("inp", "out")}
    wrap(stencil)(make(memory["inp"]), call.arrays["level"], call.arrays["pair"], make(memory["out"]), **WEIGHTED)
    assert np.array_equal(memory["out"], wanted)


def test_fields_of_other_dimensions(stencil: Any, torch: Any, xarray: Any) -> None:
    call = Call(stencil)
    wanted = call.expected()
    pair = xarray.DataArray(call.arrays["pair"], dims=("I", "J", "K", "0")).transpose("0", "K", "J", "I")
    level = dl.from_dlpack(torch.from_numpy(call.arrays["level"]), dims="K")
    out = dl.zeros(SHAPE, backend=stencil.backend)
    out[...] = call.arrays["out"]
    wrap(stencil, on_mismatch="copy")(call.arrays["inp"], level, pair, out, **WEIGHTED)
    assert np.array_equal(out.to_numpy(), wanted)


def test_read_only_inputs(stencil: Any, jax: Any) -> None:
    """GT4Py's compiled backends refuse these, though they only read them."""
    call = Call(stencil)
    wanted = call.expected()
    jax.config.update("jax_enable_x64", True)
    try:
        inp = as_jax(call.arrays["inp"])
    finally:
        jax.config.update("jax_enable_x64", False)
    level = call.arrays["level"]
    level.flags.writeable = False
    wrap(stencil)(inp, level, call.arrays["pair"], call.arrays["out"], **WEIGHTED)
    assert np.array_equal(call.arrays["out"], wanted)
    assert not level.flags.writeable


def test_unused_fields_are_not_read(stencil: Any) -> None:
    call = Call(stencil)
    wanted = call.expected()
    wrap(stencil, on_mismatch="copy")(**call.arrays, **WEIGHTED, idle=object())
    assert np.array_equal(call.arrays["out"], wanted)


def test_exec_info_has_the_keys_of_the_plain_call(stencil: Any) -> None:
    call = Call(stencil)
    theirs: dict[str, Any] = {"__aggregate_data": True}
    ours: dict[str, Any] = {"__aggregate_data": True}
    call.expected(exec_info=theirs)
    wrapped = wrap(stencil, on_mismatch="copy")
    for _ in range(2):
        wrapped(**call.arrays, **WEIGHTED, exec_info=ours)
    (name,) = [key for key, value in theirs.items() if isinstance(value, dict) and "ncalls" in value]
    assert ours.keys() == theirs.keys()
    assert ours[name].keys() == theirs[name].keys()
    assert ours[name]["ncalls"] == 2
    assert ours["call_start_time"] <= ours["call_run_start_time"] <= ours["run_start_time"] <= ours["run_end_time"]
    assert ours["domain"] == DOMAIN
    assert ours["origin"]["pair"] == (*ORIGIN, 0)


def test_frozen_stencils(stencil: Any, torch: Any) -> None:
    call = Call(stencil)
    wanted = call.expected(offset=0.25)
    frozen = stencil.freeze(origin=frozen_origin(), domain=DOMAIN)
    wrapped = wrap(frozen, on_mismatch="copy")
    assert (wrapped.domain, wrapped.origin) == (frozen.domain, frozen.origin)
    out = torch.from_numpy(call.arrays["out"])
    ours: dict[str, Any] = {}
    wrapped(**{**call.arrays, "out": out}, **{**PLAIN, "offset": 0.25}, exec_info=ours)
    assert np.array_equal(out.numpy(), wanted)
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
        ("inp", out, dl.LayoutError),
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
    wanted = call.expected()
    slow = (2, 1, 0) if stencil.backend != "gt:cpu_ifirst" else (0, 1, 2)
    out = dl.from_array(call.arrays["out"], layout=slow)
    inp = dl.from_array(call.arrays["inp"], "float32")
    with pytest.warns(dl.LayoutWarning, match='field "out"'):
        wrapped(**{**call.arrays, "out": out}, **WEIGHTED)
    assert out.layout == slow
    assert np.array_equal(out.to_numpy(), wanted)
    call.arrays["inp"] = inp.to_numpy().astype("f8")
    call.arrays["out"] = out.to_numpy().copy()
    wanted = call.expected()
    with pytest.warns(dl.LayoutWarning, match='field "inp": dtype: float32'):
        wrap(stencil, on_mismatch="copy")(**{**call.arrays, "inp": inp, "out": out}, **WEIGHTED)
    assert np.array_equal(out.to_numpy(), wanted)
