"""The checks and warnings of a wrapped stencil's call, its hooks, and `wrap`'s `allow_overlap` and `labels`."""

import warnings
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from calls import cube
from dlfield.gt4py import wrap
from fakes_interfaces import Hooked
from wrapped import DOMAIN, PLAIN, SHAPE, WEIGHTED, Call, add, frozen_origin

pytest.importorskip("gt4py")

from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import PARALLEL, computation, interval


def chain(a: gtscript.Field[np.float64], b: gtscript.Field[np.float64]):  # type: ignore[no-untyped-def]  # noqa: ANN201
    with computation(PARALLEL), interval(...):
        a = a + 1.0
        b = b * 3.0


@pytest.fixture(scope="module", params=[add, chain])
def stencil_of_two(request: pytest.FixtureRequest) -> Any:
    return gtscript.stencil(backend="numpy", definition=request.param)


def test_validate_args_false_skips_the_checks_of_values(quick: Any) -> None:
    """Arrays are still checked; a call that skips validation does not count as a validated one."""
    call, wrapped = Call(quick), wrap(quick)
    expected = call.expected()
    wrapped(**call.arrays, **{**WEIGHTED, "weight": 2}, validate_args=False)
    assert np.array_equal(call.arrays["out"], expected)
    with pytest.raises(dl.DTypeError, match="weight"):
        wrapped(**call.arrays, **{**WEIGHTED, "weight": 2})
    with pytest.raises(dl.DTypeError, match="inp"):
        wrapped(**{**call.arrays, "inp": call.arrays["inp"].astype("f4")}, **WEIGHTED, validate_args=False)


def test_the_error_of_an_array_that_can_be_described_only_once_is_that_of_bind(adding: Any) -> None:
    with pytest.raises(dl.DimsError, match=r'^field "inp": dims: .* got 2 dimensions without labels'):
        wrap(adding)(np.zeros((4, 3)).__dlpack__(), cube(*DOMAIN))


def test_a_slow_layout_is_warned_of_once_at_the_call(quick: Any) -> None:
    call, wrapped = Call(quick), wrap(quick)
    call.arrays["pair"] = np.ascontiguousarray(call.arrays["pair"].transpose(3, 0, 1, 2)).transpose(1, 2, 3, 0)
    call.arrays["inp"] = np.asfortranarray(call.arrays["inp"])
    with pytest.warns(dl.LayoutWarning, match=r'"inp": layout: \(2, 1, 0\) .*; fast is \(0, 1, 2\)') as caught:
        wrapped(**call.arrays, **WEIGHTED)
    assert [warning.filename for warning in caught] == [__file__]
    assert "recommended" not in str(caught[0].message), "not GT4Py's sentence, which says the same"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wrapped(**call.arrays, **WEIGHTED)
        wrapped(**{**call.arrays, "inp": np.ascontiguousarray(call.arrays["inp"])}, **WEIGHTED)
    frozen = wrap(quick.freeze(origin=frozen_origin(), domain=DOMAIN))
    with pytest.warns(dl.LayoutWarning, match="inp") as caught:
        frozen(**call.arrays, idle=None, weight=2.0, offset=0.5)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("frozen", [False, True])
def test_copies_are_warned_of_at_the_call(quick: Any, frozen: bool) -> None:
    """Between the call and the check lie frames of dlfield, of GT4Py, and generated ones."""
    call = Call(quick)
    call.arrays["inp"] = call.arrays["inp"].astype("f4")
    stencil = quick.freeze(origin=frozen_origin(), domain=DOMAIN) if frozen else quick
    with pytest.warns(dl.LayoutWarning, match=r'^field "inp": dtype: expected float64, got float32') as caught:
        wrap(stencil, on_mismatch="copy")(**call.arrays, **(PLAIN if frozen else WEIGHTED))
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
    expected = call.expected()
    wrapped(**call.arrays, **WEIGHTED)
    assert np.array_equal(call.arrays["out"], expected)


def test_hooks_are_run(quick: Any) -> None:
    """GDP 3: `acquire` before the stencil runs, `touch` if written, `release`, also if the stencil could not run."""
    call = Call(quick)
    log: list[str] = []
    fields: dict[str, Any] = {name: Hooked(call.arrays[name], log, name) for name in ("inp", "out")}
    expected = call.expected()
    wrapped = wrap(quick)
    wrapped(**{**call.arrays, **fields}, **WEIGHTED)
    assert log[:3] == ["acquire inp", "acquire out", "touch out"]
    assert sorted(log[3:]) == ["release inp", "release out"]
    assert np.array_equal(call.arrays["out"], expected)
    log.clear()
    with pytest.raises(dl.LayoutError, match="domain"):
        wrapped(**{**call.arrays, **fields}, **{**WEIGHTED, "domain": (99, 1, 1)})
    assert {"release inp", "release out"} <= set(log)


# One array for two fields.


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
@pytest.mark.parametrize(
    ("on_mismatch", "make"),
    [("raise", np.copy), ("copy", np.copy), ("copy", lambda array: array.astype("f4")), ("copy", np.asfortranarray)],
)
def test_one_array_for_two_fields(stencil_of_two: Any, on_mismatch: Any, make: Any) -> None:
    """It has one temporary: two would lose what is written to one of them."""
    theirs, ours = cube(*DOMAIN), make(cube(*DOMAIN))
    stencil_of_two(theirs, theirs)
    with pytest.raises(dl.OverlapError, match=r"shares memory with field .* or set allow_overlap"):
        wrap(stencil_of_two, on_mismatch=on_mismatch)(ours, ours)
    wrap(stencil_of_two, on_mismatch=on_mismatch, allow_overlap=True)(ours, ours)
    assert np.array_equal(ours, theirs)


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
def test_fields_that_overlap_in_part_get_no_temporary(adding: Any) -> None:
    wrapped, array = wrap(adding, on_mismatch="copy", allow_overlap=True), np.zeros((5, 3, 2), "f4")
    with pytest.raises(dl.OverlapError, match='field "out": it shares memory with field "inp", and a temporary copy'):
        wrapped(array[:4], array[1:])
    theirs, ours = np.ones((5, 3, 2)), np.ones((5, 3, 2))
    adding(theirs[:4], theirs[1:])
    wrapped(ours[:4], ours[1:])
    assert np.array_equal(ours, theirs)
    # Fields that are only read need no common temporary.
    array = np.ones(SHAPE, "f4")
    other = np.zeros(SHAPE)
    wrapped(array, other)
    assert (other == 2.0).all()


# Labels of other conventions.


def test_labels_are_translated(adding: Any, xarray: Any) -> None:
    inp = np.ascontiguousarray(cube(*DOMAIN).transpose(2, 0, 1))
    theirs = cube(*DOMAIN)
    adding(np.ascontiguousarray(inp.transpose(1, 2, 0)), theirs)
    labels = {"x": "I", "y": "J", "lev": "K"}
    log: list[str] = []
    for field in (
        xarray.DataArray(inp, dims=("lev", "x", "y")),
        dl.from_dlpack(inp, dims=("lev", "x", "y")),
        dl.from_dlpack(inp, dims="KIJ"),
        Hooked(inp, log, dims=("lev", "x", "y")),
    ):
        ours = cube(*DOMAIN)
        with pytest.warns(dl.LayoutWarning):
            wrap(adding, labels=labels)(field, ours)
        assert np.array_equal(ours, theirs)
    assert log == ["acquire x", "release x"]


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
@pytest.mark.parametrize("attribute", ["__gt_origin__", "default_origin"])
@pytest.mark.parametrize("labels", ["xyz", "zyx", "ijk", "JKI"])
def test_an_origin_is_in_the_order_of_the_translated_labels(adding: Any, attribute: str, labels: str) -> None:
    """GT4Py's order of dimensions, I, J, K, is that of what the labels mean."""

    class Stating:
        dims = tuple(reversed(labels))
        array = np.arange(8 * 7 * 6, dtype="f8").reshape(6, 7, 8)
        __array_interface__ = array.__array_interface__

    setattr(Stating, attribute, (3, 2, 0))
    plain, stated = np.zeros((8, 7, 6)), np.zeros((8, 7, 6))
    translation = dict(zip(labels, "IJK", strict=True))
    wrap(adding)(dl.from_dlpack(Stating.array, dims="KJI"), plain, origin={"inp": (3, 2, 0), "out": (0, 0, 0)})
    wrap(adding, labels=translation)(Stating(), stated)
    assert np.array_equal(stated, plain)
    assert stated[0, 0, 0] == 2.0 * Stating.array[0, 2, 3]


def test_labels_that_cannot_be_translated(adding: Any, xarray: Any) -> None:
    field = xarray.DataArray(cube(*DOMAIN), dims=("i", "j", "k"))
    turned = xarray.DataArray(cube(*DOMAIN), dims=("lev", "x", "y"))
    for argument, options, message in [
        (field, {}, r"dims: .* got \(i, j, k\); .* wrap\(..., labels={'i': 'I', 'j': 'J', 'k': 'K'}\)"),
        # Nothing pairs these labels by position.
        (
            turned,
            {},
            r".*got \(lev, x, y\); .* labels={'lev': \.{3}, 'x': \.{3}, 'y': \.{3}}\), where each .* \('I', 'J', 'K'\)",
        ),
        (turned, {"labels": {"x": "I"}}, r".*got \(lev, I, y\); .* labels={'x': 'I', 'lev': \.\.\., 'y': \.\.\.}\)"),
        (field, {"labels": {"i": "I", "j": "I", "k": "K"}}, "dims: expected each label once, .* by labels="),
        (field, {"labels": {"i": "I", "j": "J"}}, r".*got \(I, J, k\); .* labels={'i': 'I', 'j': 'J', 'k': 'K'}\)"),
    ]:
        with pytest.raises(dl.DimsError, match=f'^field "inp": {message}'):
            wrap(adding, **options)(argument, cube(*DOMAIN))  # type: ignore[arg-type]
    for wrong in ("ijk", {"i": 0}, ["i"]):
        with pytest.raises(TypeError, match="labels: found"):
            wrap(adding, labels=wrong)  # type: ignore[arg-type]
