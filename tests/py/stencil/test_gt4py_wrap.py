"""`dlfield.gt4py.wrap`: compiled stencils take any array, with the plain stencil's results."""

import copy
import inspect
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield.gt4py import WrappedStencil, wrap
from wrapped import (
    DOMAIN,
    ORIGIN,
    PRODUCERS,
    SHAPE,
    WEIGHTED,
    Call,
    as_jax,
    frozen_origin,
    in_strided_memory,
    mix,
)

pytest.importorskip("gt4py")

from gt4py.cartesian import gtscript


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
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


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
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


def test_written_fields_must_be_writable(stencil: Any) -> None:
    call = Call(stencil)
    call.arrays["out"].flags.writeable = False
    with pytest.raises(dl.ExchangeError, match=r'field "out".*read-only'):
        wrap(stencil)(**call.arrays, **WEIGHTED)


# The call: its arguments, and what the wrapper passes on.


def test_arguments_are_the_stencils_own(quick: Any) -> None:
    call, wrapped = Call(quick), wrap(quick)
    inp, level, pair, out = call.arrays.values()
    wanted = call.expected()
    wrapped(inp, level, pair, out, 2.0, domain=DOMAIN, origin=ORIGIN)
    assert np.array_equal(out, wanted)
    wanted = call.expected(offset=3.5)
    wrapped(level=level, inp=inp, pair=pair, out=out, **WEIGHTED, offset=3.5, idle=None)
    assert np.array_equal(out, wanted)
    assert inspect.signature(wrapped) == inspect.signature(quick)
    for args, kwargs in [
        ((inp,), {}),
        ((inp, level, pair, out, 2.0), {"inp": inp}),
        ((inp, level, pair, out, 2.0), {"height": 1}),
        ((inp, level, pair, out, 2.0, 0.5), {}),
    ]:
        with pytest.raises(TypeError) as theirs:
            quick(*args, **kwargs)
        with pytest.raises(TypeError) as ours:
            wrapped(*args, **kwargs)
        assert str(ours.value) == str(theirs.value)


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


def test_attributes_are_the_stencils(quick: Any) -> None:
    wrapped = wrap(quick)
    assert isinstance(wrapped, WrappedStencil)
    assert wrapped.__wrapped__ is quick
    assert wrapped.field_info is quick.field_info
    assert (wrapped.backend, wrapped.parameter_info, wrapped.options) == ("numpy", quick.parameter_info, quick.options)
    assert wrapped.freeze(origin=frozen_origin(), domain=DOMAIN).domain == DOMAIN
    assert "mix" in repr(wrapped)
    with pytest.raises(AttributeError, match="height"):
        _ = wrapped.height
    assert copy.copy(wrapped) is wrapped
    assert copy.deepcopy({"key": wrapped})["key"] is wrapped


def test_frozen_stencils(stencil: Any, torch: Any) -> None:
    call = Call(stencil)
    wanted = call.expected(offset=0.25)
    frozen = stencil.freeze(origin=frozen_origin(), domain=DOMAIN)
    wrapped = wrap(frozen, on_mismatch="copy")
    assert (wrapped.domain, wrapped.origin) == (frozen.domain, frozen.origin)
    out = torch.from_numpy(call.arrays["out"])
    info: dict[str, Any] = {}
    wrapped(**{**call.arrays, "out": out}, idle=None, weight=2.0, offset=0.25, exec_info=info)
    assert np.array_equal(out.numpy(), wanted)
    theirs: dict[str, Any] = {}
    Call(stencil)
    arrays = {name: np.asarray(array) for name, array in call.arrays.items()}
    frozen(**arrays, idle=None, weight=2.0, offset=0.25, exec_info=theirs)
    assert info.keys() == theirs.keys()


def test_frozen_stencils_stay_inside_of_fields(quick: Any) -> None:
    """GT4Py does not check this, and would read foreign memory."""
    call = Call(quick)
    wrapped = wrap(quick.freeze(origin=frozen_origin(), domain=(6, 3, 2)))
    with pytest.raises(dl.LayoutError, match=r"inp.* has room for 5 points in I"):
        wrapped(**call.arrays, idle=None, weight=2.0, offset=0.25)


def test_lazy_stencils_are_compiled_by_the_first_call(torch: Any) -> None:
    lazy = gtscript.lazy_stencil(backend="numpy", definition=mix)
    wrapped = wrap(lazy)
    assert "implementation" not in vars(lazy)
    assert wrapped.backend.name == "numpy"
    call = Call(lazy.implementation)
    wanted = call.expected()
    wrapped(**{name: torch.from_numpy(array) for name, array in call.arrays.items()}, **WEIGHTED)
    assert np.array_equal(call.arrays["out"], wanted)


def test_what_is_no_stencil() -> None:
    for wrong in (mix, None, object()):
        with pytest.raises(TypeError, match="stencil: found"):
            wrap(wrong)
    with pytest.raises(ValueError, match="on_mismatch: found 'ignore'"):
        wrap(gtscript.lazy_stencil(backend="numpy", definition=mix), on_mismatch="ignore")  # type: ignore[arg-type]
