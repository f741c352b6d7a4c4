"""`wrap`'s `allow_overlap` and `labels`, wrapping twice, and the stencil's own entries `run` and `freeze`."""

import copy
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield.gt4py import WrappedStencil, wrap
from wrapped import DOMAIN, WEIGHTED, Call, frozen_origin, mix

pytest.importorskip("gt4py")

from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import PARALLEL, computation, interval

SHAPE = (4, 3, 2)
PLAIN = {"idle": None, "weight": 2.0, "offset": 0.5}


def add(inp: gtscript.Field[np.float64], out: gtscript.Field[np.float64]):  # type: ignore[no-untyped-def]  # noqa: ANN201
    with computation(PARALLEL), interval(...):
        out = out + 2.0 * inp


def chain(a: gtscript.Field[np.float64], b: gtscript.Field[np.float64]):  # type: ignore[no-untyped-def]  # noqa: ANN201
    with computation(PARALLEL), interval(...):
        a = a + 1.0
        b = b * 3.0


@pytest.fixture(scope="module")
def adding() -> Any:
    return gtscript.stencil(backend="numpy", definition=add)


@pytest.fixture(scope="module")
def chaining() -> Any:
    return gtscript.stencil(backend="numpy", definition=chain)


def values() -> Any:
    return np.arange(24.0).reshape(SHAPE)


# One array for two fields.


@pytest.mark.parametrize("on_mismatch", ["raise", "copy"])
def test_one_array_for_two_fields(adding: Any, chaining: Any, on_mismatch: Any) -> None:
    for stencil in (adding, chaining):
        theirs, ours = values(), values()
        stencil(theirs, theirs)
        with pytest.raises(dl.LayoutError, match=r"shares memory with field .* or set allow_overlap"):
            wrap(stencil, on_mismatch=on_mismatch)(ours, ours)
        wrap(stencil, on_mismatch=on_mismatch, allow_overlap=True)(ours, ours)
        assert np.array_equal(ours, theirs)


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
@pytest.mark.parametrize("make", [lambda array: array.astype("f4"), np.asfortranarray], ids=["dtype", "layout"])
def test_one_array_for_two_fields_has_one_temporary(adding: Any, chaining: Any, make: Any) -> None:
    """Two would lose what is written to one of them."""
    for stencil in (adding, chaining):
        theirs, ours = values(), make(values())
        stencil(theirs, theirs)
        wrap(stencil, on_mismatch="copy", allow_overlap=True)(ours, ours)
        assert np.array_equal(ours, theirs)


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
def test_fields_that_overlap_in_part_get_no_temporary(adding: Any) -> None:
    wrapped, array = wrap(adding, on_mismatch="copy", allow_overlap=True), np.zeros((5, 3, 2), "f4")
    with pytest.raises(dl.LayoutError, match='field "out": it shares memory with field "inp", and a temporary copy'):
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
    theirs, ours = values(), values()
    inp = np.ascontiguousarray(values().transpose(2, 0, 1))
    adding(np.ascontiguousarray(inp.transpose(1, 2, 0)), theirs)
    labels = {"x": "I", "y": "J", "lev": "K"}
    field = xarray.DataArray(inp, dims=("lev", "x", "y"))
    for value in (field, dl.from_dlpack(inp, dims=("lev", "x", "y")), dl.from_dlpack(inp, dims="KIJ")):
        ours[...] = values()
        with pytest.warns(dl.LayoutWarning):
            wrap(adding, labels=labels)(value, ours)
        assert np.array_equal(ours, theirs)
    with pytest.raises(
        dl.DimsError,
        match=r"field \"inp\": dims: \(lev, x, y\); wanted are \(I, J, K\), in any order; translate other labels with "
        r"wrap\(..., labels={'lev': 'I', 'x': 'J', 'y': 'K'}\)",
    ):
        wrap(adding)(field, ours)


def test_labels_that_cannot_be_translated(adding: Any, xarray: Any) -> None:
    field = xarray.DataArray(values(), dims=("i", "j", "k"))
    with pytest.raises(dl.DimsError, match=r"labels={'i': 'I', 'j': 'J', 'k': 'K'}"):
        wrap(adding)(field, values())
    with pytest.raises(dl.DimsError, match=r'field "inp": dims: .*; labels=.* gives two of them the same label'):
        wrap(adding, labels={"i": "I", "j": "I", "k": "K"})(field, values())
    with pytest.raises(dl.DimsError, match=r'"inp": dims: \(i, j, k\); wanted are \(i, j, K\)'):
        wrap(adding, labels={"i": "I", "j": "J"})(field, values())
    for wrong in ("ijk", {"i": 0}, ["i"]):
        with pytest.raises(TypeError, match="labels: found"):
            wrap(adding, labels=wrong)  # type: ignore[arg-type]


def test_hooks_of_a_field_with_other_labels_are_run(adding: Any) -> None:
    from fakes_interfaces import Exposing, interface_of

    inp, out, log = values(), values(), []
    hooks = {hook: lambda hook=hook: log.append(hook) for hook in ("acquire", "release")}
    interface = {**interface_of(inp), "dims": ("x", "y", "z"), **hooks}
    field = Exposing(kept=inp, __gt_data_interface__={None: interface})
    wrap(adding, labels={"x": "I", "y": "J", "z": "K"})(field, out)
    assert log == ["acquire", "release"]
    assert np.array_equal(out, 3.0 * values())


# The wrapped stencil in place of the plain one.


def test_wrapping_again_replaces_the_options(adding: Any) -> None:
    copying = wrap(wrap(adding), on_mismatch="copy")
    assert copying.__wrapped__ is adding
    inp, out = values().astype("f4"), values()
    with pytest.warns(dl.LayoutWarning, match="float32"):
        copying(inp, out)
    assert np.array_equal(out, 3.0 * values())
    with pytest.raises(dl.DTypeError):
        wrap(copying)(inp, out)
    assert wrap(wrap(adding.freeze(origin={"inp": (0,) * 3, "out": (0,) * 3}, domain=SHAPE))).domain == SHAPE


def test_the_class_has_the_name_of_the_stencils(adding: Any) -> None:
    """GT4Py and models use it as the key of `exec_info`."""
    wrapped = wrap(adding)
    assert isinstance(wrapped, WrappedStencil)
    assert type(wrapped).__name__ == wrapped.__class__.__name__ == type(adding).__name__
    assert (wrapped.__doc__, str(wrapped)) == (adding.__doc__, str(adding))
    info: dict[str, Any] = {"__aggregate_data": True}
    wrapped(values(), values(), exec_info=info)
    assert info[type(wrapped).__name__]["ncalls"] == 1
    assert type(wrap(gtscript.lazy_stencil(backend="numpy", definition=add))).__name__ == "LazyStencil"


def test_a_frozen_stencil_of_a_wrapped_one_is_wrapped(quick: Any) -> None:
    call = Call(quick)
    wanted = call.expected()
    fields = {name: array.transpose().copy().transpose() for name, array in call.arrays.items()}
    labelled = {
        name: dl.from_dlpack(array.transpose(), dims=("KJI" if array.ndim == 3 else "0KJI" if array.ndim == 4 else "K"))
        for name, array in fields.items()
    }
    frozen = wrap(quick, on_mismatch="copy").freeze(origin=frozen_origin(), domain=DOMAIN)
    assert isinstance(frozen, WrappedStencil)
    with pytest.warns(dl.LayoutWarning):
        frozen(**labelled, **PLAIN)
    assert np.array_equal(fields["out"], wanted)
    assert copy.deepcopy(frozen) is frozen
    with pytest.raises(AttributeError, match="freeze"):
        frozen.freeze(origin=frozen_origin(), domain=DOMAIN)
    with pytest.raises(ValueError, match="origin None is not"):
        wrap(quick).freeze(origin={}, domain=DOMAIN)


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
@pytest.mark.parametrize("lazy", [False, True])
def test_run_converts_its_arguments(quick: Any, lazy: bool) -> None:
    """A model calls `run` to avoid GT4Py's checks: without conversion a transposed field gives wrong values."""
    call = Call(quick)
    wanted = call.expected()
    stencil = gtscript.lazy_stencil(backend="numpy", definition=mix) if lazy else quick
    inp = dl.from_dlpack(np.ascontiguousarray(call.arrays["inp"].transpose()), dims="KJI")
    fields = {**call.arrays, "inp": inp}
    theirs: dict[str, Any] = {}
    quick.run(DOMAIN, frozen_origin(), theirs, **Call(quick).arrays, **PLAIN)
    ours: dict[str, Any] = {}
    wrap(stencil).run(_domain_=DOMAIN, _origin_=frozen_origin(), exec_info=ours, **fields, **PLAIN)
    assert np.array_equal(call.arrays["out"], wanted)
    assert ours.keys() == theirs.keys()
    assert (ours["domain"], ours["origin"]) == (theirs["domain"], theirs["origin"])


def test_run_names_what_is_missing(quick: Any) -> None:
    call, run = Call(quick), wrap(quick).run
    where: dict[str, Any] = {"_domain_": DOMAIN, "_origin_": frozen_origin(), "exec_info": None}
    with pytest.raises(TypeError, match='stencil "mix": field "inp" is missing'):
        run(**where, **{name: array for name, array in call.arrays.items() if name != "inp"}, **PLAIN)
    with pytest.raises(TypeError, match=r'stencil "mix": run\(\) lacks the scalar "weight"'):
        run(**where, **call.arrays, idle=None, offset=0.5)
    with pytest.raises(TypeError, match="height"):
        run(**where, **call.arrays, **PLAIN, height=1)
    with pytest.raises(TypeError, match="exec_info"):
        run(DOMAIN, frozen_origin(), **call.arrays, **PLAIN)


def test_a_field_that_is_used_may_not_be_absent(quick: Any) -> None:
    call, wrapped = Call(quick), wrap(quick)
    for _ in range(2):
        with pytest.raises(TypeError, match=r'^stencil "mix": field "level" is missing; allowed is an array'):
            wrapped(**{**call.arrays, "level": None}, **WEIGHTED)
