"""Wrapped stencils check every call; GT4Py checks only the first call with given shapes."""

import warnings
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield.gt4py import wrap
from fakes_interfaces import Exposing, cuda, interface_of
from wrapped import DOMAIN, SHAPE, WEIGHTED, Call, frozen_origin


@pytest.mark.parametrize("on_mismatch", ["raise", "copy"])
def test_later_calls_are_checked_too(stencil: Any, on_mismatch: Any, recwarn: pytest.WarningsRecorder) -> None:
    call, wrapped = Call(stencil), wrap(stencil, on_mismatch=on_mismatch)
    wrapped(**call.arrays, **WEIGHTED)
    before = call.arrays["out"].copy()
    short = call.arrays["inp"][:5]
    for name, wrong, error in [
        ("inp", call.arrays["inp"].astype("c16"), dl.DTypeError),
        ("inp", call.arrays["inp"][0], dl.DimsError),
        ("inp", short, dl.LayoutError),
        ("inp", dl.from_dlpack(call.arrays["inp"], dims="IJX"), dl.DimsError),
        ("inp", call.arrays["out"], dl.LayoutError),
        ("pair", call.arrays["out"].repeat(3).reshape(*SHAPE, 3), dl.LayoutError),
        ("out", np.broadcast_to(call.arrays["level"], SHAPE), dl.ExchangeError),
        ("level", object(), dl.NotAnArrayError),
        ("level", cuda(shape=(4,), strides=None, typestr="<f8"), dl.DeviceError),
    ]:
        with pytest.raises(error, match=name):
            wrapped(**{**call.arrays, name: wrong}, **WEIGHTED)
    for weight in (2, np.float32(2.0), "2"):
        with pytest.raises(dl.DTypeError, match=r'scalar "weight": \w+; wanted is float64'):
            wrapped(**call.arrays, **{**WEIGHTED, "weight": weight})
    assert np.array_equal(call.arrays["out"], before)
    wrapped(**call.arrays, **{**WEIGHTED, "weight": np.float64(2.0)})
    assert np.array_equal(call.arrays["out"], before)
    recwarn.clear()


def test_validate_args_false_skips_the_checks_of_values(quick: Any) -> None:
    """Arrays are still checked; a call that skips validation does not count as a validated one."""
    call, wrapped = Call(quick), wrap(quick)
    wanted = call.expected()
    wrapped(**call.arrays, **{**WEIGHTED, "weight": 2}, validate_args=False)
    assert np.array_equal(call.arrays["out"], wanted)
    with pytest.raises(dl.DTypeError, match="weight"):
        wrapped(**call.arrays, **{**WEIGHTED, "weight": 2})
    with pytest.raises(dl.DTypeError, match="inp"):
        wrapped(**{**call.arrays, "inp": call.arrays["inp"].astype("f4")}, **WEIGHTED, validate_args=False)


def test_a_slow_layout_is_warned_of_once_at_the_call(quick: Any) -> None:
    call, wrapped = Call(quick), wrap(quick)
    call.arrays["pair"] = np.ascontiguousarray(call.arrays["pair"].transpose(3, 0, 1, 2)).transpose(1, 2, 3, 0)
    call.arrays["inp"] = np.asfortranarray(call.arrays["inp"])
    with pytest.warns(dl.LayoutWarning, match=r'"inp": layout: \(2, 1, 0\) .*; fast is \(0, 1, 2\)') as caught:
        wrapped(**call.arrays, **WEIGHTED)
    assert [warning.filename for warning in caught] == [__file__]
    # GT4Py's text, for callers that look for it.
    quick.clean_call_args_cache()
    with pytest.warns(UserWarning, match="The layout of the field 'inp' is not recommended") as theirs:
        quick(**call.arrays, **WEIGHTED)
    assert str(theirs[0].message) in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wrapped(**call.arrays, **WEIGHTED)
        wrapped(**{**call.arrays, "inp": np.ascontiguousarray(call.arrays["inp"])}, **WEIGHTED)
    frozen = wrap(quick.freeze(origin=frozen_origin(), domain=DOMAIN))
    with pytest.warns(dl.LayoutWarning, match="inp") as caught:
        frozen(**call.arrays, idle=None, weight=2.0, offset=0.5)
    assert [warning.filename for warning in caught] == [__file__]


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


@pytest.mark.parametrize("frozen", [False, True])
def test_copies_are_warned_of_at_the_call(quick: Any, frozen: bool) -> None:
    """Between the call and the check lie frames of dlfield, of GT4Py, and generated ones."""
    call = Call(quick)
    call.arrays["inp"] = call.arrays["inp"].astype("f4")
    stencil, others = quick, WEIGHTED
    if frozen:
        stencil = quick.freeze(origin=frozen_origin(), domain=DOMAIN)
        others = {"idle": None, "weight": 2.0, "offset": 0.5}
    wrapped = wrap(stencil, on_mismatch="copy")
    with pytest.warns(dl.LayoutWarning, match='field "inp": dtype: float32') as caught:
        wrapped(**call.arrays, **others)
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
def test_the_cache_of_calls_is_bounded(quick: Any) -> None:
    call, wrapped = Call(quick), wrap(quick)
    most = 0
    for gap in range(600):
        call.arrays["inp"] = np.zeros((*SHAPE[:2], SHAPE[2] + gap))[..., : SHAPE[2]]
        wrapped(**call.arrays, **WEIGHTED)
        most = max(most, len(wrapped._call.args[0]._resolved))  # type: ignore[union-attr]
    assert 100 < most < 300
    call.arrays["inp"] = np.random.default_rng(1).random(SHAPE)
    wanted = call.expected()
    wrapped(**call.arrays, **WEIGHTED)
    assert np.array_equal(call.arrays["out"], wanted)


def test_hooks_are_run(quick: Any) -> None:
    """GDP 3: `acquire` before the stencil runs, `touch` if written, `release`, also if the stencil could not run."""
    call, log = Call(quick), []

    def hooked(name: str) -> Exposing:
        interface = {
            **interface_of(call.arrays[name]),
            **{hook: lambda hook=hook: log.append(f"{hook} {name}") for hook in ("acquire", "touch", "release")},
        }
        return Exposing(kept=call.arrays[name], __gt_data_interface__={None: interface})

    fields = {name: hooked(name) if name in ("inp", "out") else array for name, array in call.arrays.items()}
    wanted = call.expected()
    wrapped = wrap(quick)
    wrapped(**fields, **WEIGHTED)
    assert log[:2] == ["acquire inp", "acquire out"]
    assert log[2] == "touch out"
    assert sorted(log[3:]) == ["release inp", "release out"]
    assert np.array_equal(call.arrays["out"], wanted)
    log.clear()
    with pytest.raises(dl.LayoutError, match="domain"):
        wrapped(**fields, **{**WEIGHTED, "domain": (99, 1, 1)})
    assert {"release inp", "release out"} <= set(log)
