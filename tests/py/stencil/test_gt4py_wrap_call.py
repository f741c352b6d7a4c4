"""The call of a wrapped stencil: its arguments, the arrays that it passes on, and `run`, `freeze` and attributes."""

import copy
import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield.gt4py import WrappedStencil, wrap
from wrapped import DOMAIN, ORIGIN, PLAIN, WEIGHTED, Call, add, frozen_origin, mix

pytest.importorskip("gt4py")

from gt4py.cartesian import gtscript
from gt4py.storage import layout_registry


def test_arguments_are_the_stencils_own(quick: Any) -> None:
    call, wrapped = Call(quick), wrap(quick)
    inp, level, pair, out = call.arrays.values()
    expected = call.expected()
    wrapped(inp, level, pair, out, 2.0, domain=DOMAIN, origin=ORIGIN)
    assert np.array_equal(out, expected)
    expected = call.expected(offset=3.5)
    wrapped(level=level, inp=inp, pair=pair, out=out, **WEIGHTED, offset=3.5, idle=None)
    assert np.array_equal(out, expected)
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


def test_attributes_are_the_stencils(quick: Any) -> None:
    wrapped = wrap(quick)
    assert isinstance(wrapped, WrappedStencil)
    assert wrapped.__wrapped__ is quick
    assert wrapped.field_info is quick.field_info
    assert (wrapped.backend, wrapped.parameter_info, wrapped.options) == ("numpy", quick.parameter_info, quick.options)
    assert "mix" in repr(wrapped)
    with pytest.raises(AttributeError, match="height"):
        _ = wrapped.height
    assert copy.copy(wrapped) is wrapped
    assert copy.deepcopy({"key": wrapped})["key"] is wrapped


def test_the_class_has_the_name_of_the_stencils(adding: Any) -> None:
    """GT4Py and models use it as the key of `exec_info`."""
    wrapped = wrap(adding)
    assert type(wrapped).__name__ == wrapped.__class__.__name__ == type(adding).__name__
    assert (wrapped.__doc__, str(wrapped)) == (adding.__doc__, str(adding))
    info: dict[str, Any] = {"__aggregate_data": True}
    wrapped(np.ones(DOMAIN), np.ones(DOMAIN), exec_info=info)
    assert info[type(wrapped).__name__]["ncalls"] == 1
    assert type(wrap(gtscript.lazy_stencil(backend="numpy", definition=add))).__name__ == "LazyStencil"


def test_frozen_stencils_stay_inside_of_fields(quick: Any) -> None:
    """GT4Py does not check this, and would read memory outside the array."""
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
    expected = call.expected()
    wrapped(**{name: torch.from_numpy(array) for name, array in call.arrays.items()}, **WEIGHTED)
    assert np.array_equal(call.arrays["out"], expected)


def test_what_is_no_stencil() -> None:
    for wrong in (mix, None, object()):
        with pytest.raises(TypeError, match="stencil: expected"):
            wrap(wrong)
    with pytest.raises(ValueError, match="on_mismatch: found 'ignore'"):
        wrap(gtscript.lazy_stencil(backend="numpy", definition=mix), on_mismatch="ignore")  # type: ignore[arg-type]


def test_wrapping_again_replaces_the_options(adding: Any) -> None:
    copying = wrap(wrap(adding), on_mismatch="copy")
    assert copying.__wrapped__ is adding
    inp, out = np.ones(DOMAIN, "f4"), np.ones(DOMAIN)
    with pytest.warns(dl.LayoutWarning, match="float32"):
        copying(inp, out)
    assert (out == 3.0).all()
    with pytest.raises(dl.DTypeError):
        wrap(copying)(inp, out)
    assert wrap(wrap(adding.freeze(origin={"inp": (0,) * 3, "out": (0,) * 3}, domain=DOMAIN))).domain == DOMAIN


def test_a_frozen_stencil_of_a_wrapped_one_is_wrapped(quick: Any) -> None:
    call = Call(quick)
    expected = call.expected()
    fields = {name: array.transpose().copy().transpose() for name, array in call.arrays.items()}
    labelled = {
        name: dl.from_dlpack(array.transpose(), dims=("KJI" if array.ndim == 3 else "0KJI" if array.ndim == 4 else "K"))
        for name, array in fields.items()
    }
    frozen = wrap(quick, on_mismatch="copy").freeze(origin=frozen_origin(), domain=DOMAIN)
    assert isinstance(frozen, WrappedStencil)
    with pytest.warns(dl.LayoutWarning):
        frozen(**labelled, **PLAIN)
    assert np.array_equal(fields["out"], expected)
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
    expected = call.expected()
    stencil = gtscript.lazy_stencil(backend="numpy", definition=mix) if lazy else quick
    inp = dl.from_dlpack(np.ascontiguousarray(call.arrays["inp"].transpose()), dims="KJI")
    fields = {**call.arrays, "inp": inp}
    theirs: dict[str, Any] = {}
    quick.run(DOMAIN, frozen_origin(), theirs, **Call(quick).arrays, **PLAIN)
    ours: dict[str, Any] = {}
    wrap(stencil).run(_domain_=DOMAIN, _origin_=frozen_origin(), exec_info=ours, **fields, **PLAIN)
    assert np.array_equal(call.arrays["out"], expected)
    assert ours.keys() == theirs.keys()
    assert (ours["domain"], ours["origin"]) == (theirs["domain"], theirs["origin"])


def test_missing_arguments_are_named(quick: Any) -> None:
    call, wrapped = Call(quick), wrap(quick)
    where: dict[str, Any] = {"_domain_": DOMAIN, "_origin_": frozen_origin(), "exec_info": None}
    arguments: dict[str, Any] = {**where, **call.arrays, **PLAIN}
    for name, message in [
        ("inp", 'stencil "mix": field "inp" is missing'),
        ("weight", r'stencil "mix": the scalar "weight" of run\(\) is missing'),
        ("exec_info", "exec_info"),
    ]:
        with pytest.raises(TypeError, match=message):
            wrapped.run(**{key: value for key, value in arguments.items() if key != name})
    with pytest.raises(TypeError, match="height"):
        wrapped.run(**arguments, height=1)
    for _ in range(2):
        with pytest.raises(TypeError, match=r'^stencil "mix": field "level" is missing; pass an array'):
            wrapped(**{**call.arrays, "level": None}, **WEIGHTED)


# The arrays that the compiled stencil gets.


@pytest.fixture
def passed(adding: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that calls the wrapped stencil, and returns the arrays that the compiled one gets."""

    def call(*arrays: Any, **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        with monkeypatch.context() as patch:
            patch.setattr(type(adding), "run", lambda _, **arguments: found.update(arguments))
            wrap(adding, **options)(*arrays)
        return found

    return call


def test_numpy_arrays_are_passed_as_they_are(passed: Any) -> None:
    inp, out = np.ones(DOMAIN), np.zeros(DOMAIN)
    found = passed(inp, out[:, ::-1])
    assert found["inp"] is inp
    assert np.shares_memory(found["out"], out)
    assert found["out"].strides == (48, -16, 8)


def test_other_arrays_become_plain_writable_ones_in_the_stencils_order(passed: Any, xarray: Any) -> None:
    """GT4Py's C++ takes writable arrays only, also for fields that it only reads."""
    tensor = dl.ones((2, 3, 4), dims="KJI").as_readonly()
    labelled = xarray.DataArray(np.ones((2, 3, 4)), dims=("K", "J", "I"))
    readonly = np.ones(DOMAIN)
    readonly.flags.writeable = False
    out = dl.zeros((6, 3, 2))[1:5]
    for inp, strides in [
        (tensor, (8, 32, 96)),
        (labelled, (8, 32, 96)),
        (readonly, (48, 16, 8)),
        (np.ones(DOMAIN).view(Subclass), (48, 16, 8)),
    ]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dl.LayoutWarning)
            found = passed(inp, out)
        for array, argument, steps in [(found["inp"], inp, strides), (found["out"], out, (48, 16, 8))]:
            assert type(array) is np.ndarray
            assert (array.shape, array.strides, array.ctypes.data) == (DOMAIN, steps, dl.describe(argument).ptr)
            assert array.flags.writeable
        assert found["out"].base is out


class Subclass(np.ndarray[Any, Any]):
    pass


def test_empty_fields_are_not_a_crash(passed: Any) -> None:
    with pytest.raises(dl.LayoutError, match="domain: expected 1 or more"):
        passed(dl.zeros((0, 3, 2)), np.zeros((0, 3, 2)))


def test_the_fast_layout_is_the_one_that_gt4py_has_registered(adding: Any) -> None:
    """A newer GT4Py has other layouts than dlfield's presets."""
    before: Any = layout_registry.from_name("numpy")
    inp, out = dl.ones(DOMAIN, layout=(2, 1, 0)), dl.ones(DOMAIN, layout=(2, 1, 0))
    layout_registry.register("numpy", {**before, "layout_map": lambda _: (2, 1, 0)})
    try:
        wrap(adding)(inp, out)
        with pytest.warns(dl.LayoutWarning, match=r"fast is \(2, 1, 0\)"):
            wrap(adding)(inp, np.zeros(DOMAIN))
        assert dl.Signature.from_stencil(adding).fields["inp"].layout == (2, 1, 0)
    finally:
        layout_registry.register("numpy", before)
