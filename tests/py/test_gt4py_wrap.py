"""`dlfield.gt4py.wrap`: compiled stencils take any array, compute what they compute, and refuse what leaves a field."""

import copy
import inspect
import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import dlfield as dl
from dlfield.gt4py import WrappedStencil, wrap
from fakes_interfaces import Exposing, cuda, host, interface_of

pytest.importorskip("gt4py")

from gt4py import next as gtx
from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import FORWARD, PARALLEL, computation, interval

Array = npt.NDArray[Any]
DOMAIN = (4, 3, 2)
SHAPE = (7, 6, 4)
ORIGIN = (1, 2, 1)


def mix(  # type: ignore[no-untyped-def]  # noqa: ANN201 (GTScript allows no return type)
    inp: gtscript.Field[np.float64],
    level: gtscript.Field[gtscript.K, np.float64],
    pair: gtscript.Field[(np.float64, (2,))],
    out: gtscript.Field[np.float64],
    weight: np.float64,
    *,
    idle: gtscript.Field[np.float32] = None,  # noqa: ARG001 (it is there not to be used)
    offset: np.float64 = 0.5,  # type: ignore[assignment]
):
    with computation(PARALLEL), interval(...):
        out = (  # noqa: F841 (GTScript assigns to the field)
            inp[1, 0, 0]
            + weight * inp[-1, 0, 0]
            + 3.0 * inp[0, -1, 0]
            + level
            + offset
            + pair[0, 0, 0][0] / pair[0, 0, 0][1]
        )


def climb(  # type: ignore[no-untyped-def]  # noqa: ANN201 (GTScript allows no return type)
    inp: gtscript.Field[np.float64],
    plane: gtscript.Field[gtscript.IJ, np.float64],
    level: gtscript.Field[gtscript.K, np.float64],
    pair: gtscript.Field[(np.float64, (2,))],
    idle: gtscript.Field[np.float64],  # noqa: ARG001 (it is there not to be used)
    out: gtscript.Field[np.float64],
):
    with computation(FORWARD):
        with interval(0, 1):
            out = inp[1, 0, 0] + plane[0, -1] + pair[-1, 0, 0][1]
        with interval(1, None):
            out = out[0, 0, -1] + inp[2, 0, -1] + level[1]


@pytest.fixture(scope="module", params=["numpy", "debug", "gt:cpu_kfirst", "gt:cpu_ifirst"])
def stencil(request: pytest.FixtureRequest) -> Any:
    return gtscript.stencil(backend=request.param, definition=mix)


@pytest.fixture(scope="module")
def quick() -> Any:
    """Of a backend that needs no compiler."""
    return gtscript.stencil(backend="numpy", definition=mix)


@pytest.fixture(scope="module")
def climbing() -> Any:
    return gtscript.stencil(backend="numpy", definition=climb)


class Call:
    """Fresh NumPy arrays for a call of `mix`, and what the plain stencil makes of them."""

    def __init__(self, stencil: Any) -> None:
        generator = np.random.default_rng(7)
        self.stencil = stencil
        self.arrays: dict[str, Any] = {
            "inp": generator.random(SHAPE),
            "level": generator.random(SHAPE[2]),
            "pair": generator.random((*SHAPE, 2)),
            "out": generator.random(SHAPE),
        }

    def expected(self, **options: Any) -> Array:
        """Return all of `out` after a call of the plain stencil with copies in its own layout."""
        copies = {
            name: dl.from_array(array, backend=self.stencil.backend, dims=("IJK0"[: array.ndim], "K")[array.ndim == 1])
            for name, array in self.arrays.items()
        }
        self.stencil(**{name: copy.to_numpy() for name, copy in copies.items()}, **{**_WEIGHTED, **options})
        return copies["out"].to_numpy()


_WEIGHTED: dict[str, Any] = {"weight": 2.0, "origin": ORIGIN, "domain": DOMAIN}


def in_strided_memory(array: Array, order: str) -> Array:
    """A copy whose dimensions come in `order` in memory, with gaps; the index order is that of `array`."""
    axes = ["IJK".index(label) for label in order]
    memory = np.full([array.shape[axis] + 1 for axis in axes], np.nan)
    view = memory[tuple(slice(0, array.shape[axis]) for axis in axes)].transpose(np.argsort(axes))
    view[...] = array
    return view


def as_torch(array: Array) -> Any:
    return pytest.importorskip("torch").from_numpy(array)


def as_jax(array: Array) -> Any:
    return dl.as_jax(array.copy(), copy=True)


def as_xarray(array: Array) -> Any:
    """The dimensions in another order, on the same memory."""
    return pytest.importorskip("xarray").DataArray(array, dims=("I", "J", "K")).transpose("K", "I", "J")


def as_tensor(array: Array) -> Any:
    return dl.from_dlpack(array, dims="IJK").transpose("J", "K", "I")


def as_field(array: Array) -> Any:
    dims = [gtx.Dimension(label) for label in "IJ"] + [gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)]
    return gtx.common._field(array, domain=gtx.common.domain(dict(zip(dims, array.shape, strict=True))))


def as_interface(array: Array) -> Any:
    """GDP 3's, with its dimensions in another order."""
    turned = array.transpose(2, 1, 0)
    return Exposing(kept=array, __gt_data_interface__={None: {**interface_of(turned), "dims": ("K", "J", "I")}})


class OnlyDLPack:
    """An array of a library that has nothing else."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __dlpack__(self, **keywords: Any) -> object:
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


PRODUCERS: dict[str, Callable[[Array], Any]] = {
    "numpy": lambda array: array,
    "torch": as_torch,
    "xarray": as_xarray,
    "tensor": as_tensor,
    "gt4py.next": as_field,
    "dlpack": OnlyDLPack,
    "data interface": as_interface,
    "array interface": host,
}


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
@pytest.mark.parametrize("order", ["IJK", "KJI", "JKI"])
@pytest.mark.parametrize("producer", PRODUCERS)
def test_any_array_is_used_in_place(stencil: Any, producer: str, order: str) -> None:
    """The same bits as the plain stencil's, in the caller's own memory, whatever the array and its strides."""
    call, make = Call(stencil), PRODUCERS[producer]
    wanted = call.expected()
    memory = {name: in_strided_memory(call.arrays[name], order) for name in ("inp", "out")}
    wrap(stencil)(make(memory["inp"]), call.arrays["level"], call.arrays["pair"], make(memory["out"]), **_WEIGHTED)
    assert np.array_equal(memory["out"], wanted)


def test_fields_of_other_dimensions(stencil: Any, torch: Any, xarray: Any) -> None:
    call = Call(stencil)
    wanted = call.expected()
    pair = xarray.DataArray(call.arrays["pair"], dims=("I", "J", "K", "0")).transpose("0", "K", "J", "I")
    level = dl.from_dlpack(torch.from_numpy(call.arrays["level"]), dims="K")
    out = dl.zeros(SHAPE, backend=stencil.backend)
    out[...] = call.arrays["out"]
    wrap(stencil, on_mismatch="copy")(call.arrays["inp"], level, pair, out, **_WEIGHTED)
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
    wrap(stencil)(inp, level, call.arrays["pair"], call.arrays["out"], **_WEIGHTED)
    assert np.array_equal(call.arrays["out"], wanted)
    assert not level.flags.writeable


def test_written_fields_must_be_writable(stencil: Any) -> None:
    call = Call(stencil)
    call.arrays["out"].flags.writeable = False
    with pytest.raises(dl.ExchangeError, match=r'field "out".*read-only'):
        wrap(stencil)(**call.arrays, **_WEIGHTED)


# The call: its arguments, and what it passes on.


def test_arguments_are_the_stencils_own(quick: Any) -> None:
    call, wrapped = Call(quick), wrap(quick)
    inp, level, pair, out = call.arrays.values()
    wanted = call.expected()
    wrapped(inp, level, pair, out, 2.0, domain=DOMAIN, origin=ORIGIN)
    assert np.array_equal(out, wanted)
    wanted = call.expected(offset=3.5)
    wrapped(level=level, inp=inp, pair=pair, out=out, **_WEIGHTED, offset=3.5, idle=None)
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


def test_fields_that_are_not_used_are_not_looked_at(stencil: Any) -> None:
    call = Call(stencil)
    wanted = call.expected()
    wrap(stencil, on_mismatch="copy")(**call.arrays, **_WEIGHTED, idle=object())
    assert np.array_equal(call.arrays["out"], wanted)


def test_a_field_that_is_used_may_not_be_absent(quick: Any) -> None:
    call = Call(quick)
    with pytest.raises(TypeError, match="level"):
        wrap(quick)(**{**call.arrays, "level": None}, **_WEIGHTED)


def test_exec_info_has_the_keys_of_the_plain_call(stencil: Any) -> None:
    call = Call(stencil)
    theirs: dict[str, Any] = {"__aggregate_data": True}
    ours: dict[str, Any] = {"__aggregate_data": True}
    call.expected(exec_info=theirs)
    wrapped = wrap(stencil, on_mismatch="copy")
    for _ in range(2):
        wrapped(**call.arrays, **_WEIGHTED, exec_info=ours)
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
    assert wrapped.freeze(origin=_frozen_origin(), domain=DOMAIN).domain == DOMAIN
    assert "mix" in repr(wrapped)
    with pytest.raises(AttributeError, match="height"):
        _ = wrapped.height
    assert copy.copy(wrapped) is wrapped
    assert copy.deepcopy({"key": wrapped})["key"] is wrapped


def _frozen_origin() -> dict[str, tuple[int, ...]]:
    i, j, k = ORIGIN
    return {"inp": ORIGIN, "level": (k,), "pair": (i, j, k, 0), "out": ORIGIN, "idle": ORIGIN}


def test_frozen_stencils(stencil: Any, torch: Any) -> None:
    call = Call(stencil)
    wanted = call.expected(offset=0.25)
    frozen = stencil.freeze(origin=_frozen_origin(), domain=DOMAIN)
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
    """GT4Py does not look; it is memory of others that it would read."""
    call = Call(quick)
    wrapped = wrap(quick.freeze(origin=_frozen_origin(), domain=(6, 3, 2)))
    with pytest.raises(dl.LayoutError, match=r"inp.* has room for 5 points in I"):
        wrapped(**call.arrays, idle=None, weight=2.0, offset=0.25)


def test_lazy_stencils_are_compiled_by_the_first_call(torch: Any) -> None:
    lazy = gtscript.lazy_stencil(backend="numpy", definition=mix)
    wrapped = wrap(lazy)
    assert "implementation" not in vars(lazy)
    assert wrapped.backend.name == "numpy"
    call = Call(lazy.implementation)
    wanted = call.expected()
    wrapped(**{name: torch.from_numpy(array) for name, array in call.arrays.items()}, **_WEIGHTED)
    assert np.array_equal(call.arrays["out"], wanted)


def test_what_is_no_stencil() -> None:
    for wrong in (mix, None, object()):
        with pytest.raises(TypeError, match="stencil: found"):
            wrap(wrong)
    with pytest.raises(ValueError, match="on_mismatch: found 'ignore'"):
        wrap(gtscript.lazy_stencil(backend="numpy", definition=mix), on_mismatch="ignore")  # type: ignore[arg-type]
    with pytest.raises(dl.DeviceError, match=r"gt:gpu.*cuda"):
        wrap(gtscript.lazy_stencil(backend="gt:gpu", definition=mix))


# Origin and domain: the stencil's own rules.

_SIZES = st.integers(4, 9)
# Mostly those that some fields allow.
_NUMBERS = st.sampled_from([1, 1, 1, 1, 1, 2, 2, 3, 0, -1])
_TRIPLES = st.tuples(_NUMBERS, _NUMBERS, _NUMBERS)
_FIELDS = {"inp": "IJK", "plane": "IJ", "level": "K", "pair": "IJK0", "idle": "IJK", "out": "IJK"}


@st.composite
def origins(draw: st.DrawFn) -> Any:
    """Each form there is: none, for all, by name, an integer."""
    named = {
        name: st.tuples(*[_NUMBERS] * len(dims.replace("0", "")))
        if draw(st.booleans())
        else st.tuples(*[_NUMBERS] * (len(dims) - dims.count("0")), *[st.just(0)] * dims.count("0"))
        for name, dims in _FIELDS.items()
        if draw(st.booleans())
    }
    if draw(st.booleans()):
        named["_all_"] = _TRIPLES
    return draw(st.one_of(st.none(), _TRIPLES, _TRIPLES.map(list), _NUMBERS, st.fixed_dictionaries(named)))


def outcome(call: Callable[..., None], fields: dict[str, Any], **options: Any) -> Any:
    """The domain and the origins of the fields that are used, or the error."""
    info: dict[str, Any] = {}
    try:
        call(**fields, exec_info=info, **options)
    except Exception as error:
        return error
    return info["domain"], {name: tuple(info["origin"][name]) for name in _FIELDS}


@given(
    sizes=st.fixed_dictionaries({name: st.tuples(_SIZES, _SIZES, _SIZES) for name in _FIELDS}),
    stated=st.dictionaries(st.sampled_from(sorted(_FIELDS)), st.tuples(*[st.integers(0, 3)] * 3)),
    origin=origins(),
    domain=st.one_of(st.none(), st.tuples(*[st.integers(0, 3)] * 3), st.lists(st.integers(-1, 4), max_size=4)),
)
def test_origin_and_domain_are_the_stencils(
    climbing: Any, sizes: dict[str, Any], stated: dict[str, Any], origin: Any, domain: Any
) -> None:
    """Whatever GT4Py takes and stays inside the fields runs on the same points; whatever it refuses is refused."""
    fields = {}
    for name, dims in _FIELDS.items():
        size = {**dict(zip("IJK", sizes[name], strict=True)), "0": 2}
        array = np.ones([size[label] for label in dims])
        first = {**dict(zip("IJK", stated.get(name, (0, 0, 0)), strict=True)), "0": 0}
        fields[name] = Stating(array, tuple(first[label] for label in dims)) if name in stated else array
    climbing.clean_call_args_cache()
    theirs = outcome(climbing, fields, origin=origin, domain=domain)
    ours = outcome(wrap(climbing), fields, origin=origin, domain=domain)
    event(f"GT4Py: {type(theirs).__name__}, dlfield: {type(ours).__name__}")
    if isinstance(ours, Exception):
        assert isinstance(ours, dl.LayoutError), ours
    if isinstance(theirs, Exception):
        assert isinstance(ours, dl.LayoutError), theirs
    elif isinstance(ours, Exception):
        assert "is without points" in str(ours) or "or more, as far as" in str(ours), ours
        assert 0 in theirs[0] or any(
            found < lower
            for name, info in climbing.field_info.items()
            for found, lower in zip(theirs[1][name], _lower(info), strict=False)
        )
    else:
        # GT4Py gives back whatever sequence it was given.
        assert (ours[0], {name: ours[1][name] for name in _FIELDS if name != "idle"}) == (
            tuple(theirs[0]),
            {name: theirs[1][name] for name in _FIELDS if name != "idle"},
        )


def _lower(info: Any) -> list[int]:
    return [lower for (lower, _), present in zip(info.boundary, info.domain_mask, strict=True) if present]


class Stating(np.ndarray[Any, Any]):
    """An array that states its origin."""

    __gt_origin__: tuple[int, ...]

    def __new__(cls, array: Array, origin: tuple[int, ...]) -> Self:
        made = array.view(cls)
        made.__gt_origin__ = origin
        return made


def test_an_origin_that_is_too_small_in_one_dimension(quick: Any) -> None:
    """GT4Py 1.1 lets it pass where it is larger than it must be in another, and reads before the array."""
    call = Call(quick)
    with pytest.raises(dl.LayoutError, match=r'"inp": origin: \(3, 0, 0\); allowed is \(1, 1, 0\) or more'):
        wrap(quick)(**call.arrays, weight=2.0, origin=(3, 0, 0), domain=(1, 1, 1))
    with pytest.raises(dl.LayoutError, match=r'"pair": origin: .* allowed is 0 in data dimensions'):
        wrap(quick)(**call.arrays, weight=2.0, origin={"_all_": (1, 1, 0), "pair": (1, 1, 0, 1)}, domain=(1, 1, 1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"domain": (7, 3, 2)},
            r'"inp": shape: \(7, 6, 4\) with .* has room for 5 points in I, the domain is \(7, 3, 2\)',
        ),
        ({"domain": (4, 3)}, r"domain: \(4, 3\); allowed are three sizes"),
        ({"domain": "IJK"}, "domain: 'IJK'; allowed is a sequence of integers"),
        ({"domain": 4.5}, "domain: 4.5"),
        ({"domain": (4, 0, 2)}, "is without points"),
        ({"origin": (1, 2)}, r'origin: \(1, 2\); allowed are three numbers, for I, J and K: field "inp" has'),
        ({"origin": {"level": (1, 2)}}, r'"level": origin: \(1, 2\); allowed is one number'),
        ({"origin": {"level": 1.5}}, "origin of 'level': 1.5; allowed is a sequence of integers"),
        ({"origin": [[1], [2], [0]]}, "allowed is a sequence of integers"),
        ({"origin": (7, 6, 4), "domain": None}, r'"inp": shape: .* has no room for the origin'),
    ],
)
def test_errors_of_origin_and_domain_name_the_field(quick: Any, options: dict[str, Any], message: str) -> None:
    call = Call(quick)
    with pytest.raises(dl.LayoutError, match=message):
        wrap(quick)(**call.arrays, **{**_WEIGHTED, **options})


# Checks: at every call, not only at the first with the same shapes as in GT4Py.


@pytest.mark.parametrize("on_mismatch", ["raise", "copy"])
def test_later_calls_are_checked_too(stencil: Any, on_mismatch: Any, recwarn: pytest.WarningsRecorder) -> None:
    call, wrapped = Call(stencil), wrap(stencil, on_mismatch=on_mismatch)
    wrapped(**call.arrays, **_WEIGHTED)
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
            wrapped(**{**call.arrays, name: wrong}, **_WEIGHTED)
    for weight in (2, np.float32(2.0), "2"):
        with pytest.raises(dl.DTypeError, match=r'scalar "weight": \w+; wanted is float64'):
            wrapped(**call.arrays, **{**_WEIGHTED, "weight": weight})
    assert np.array_equal(call.arrays["out"], before)
    wrapped(**call.arrays, **{**_WEIGHTED, "weight": np.float64(2.0)})
    assert np.array_equal(call.arrays["out"], before)
    recwarn.clear()


def test_validate_args_leaves_out_the_checks_of_values(quick: Any) -> None:
    """Arrays are checked all the same; what was not validated is validated by the next call that asks for it."""
    call, wrapped = Call(quick), wrap(quick)
    wanted = call.expected()
    wrapped(**call.arrays, **{**_WEIGHTED, "weight": 2}, validate_args=False)
    assert np.array_equal(call.arrays["out"], wanted)
    with pytest.raises(dl.DTypeError, match="weight"):
        wrapped(**call.arrays, **{**_WEIGHTED, "weight": 2})
    with pytest.raises(dl.DTypeError, match="inp"):
        wrapped(**{**call.arrays, "inp": call.arrays["inp"].astype("f4")}, **_WEIGHTED, validate_args=False)


def test_a_slow_layout_is_told_once_where_the_call_is(quick: Any) -> None:
    call, wrapped = Call(quick), wrap(quick)
    call.arrays["pair"] = np.ascontiguousarray(call.arrays["pair"].transpose(3, 0, 1, 2)).transpose(1, 2, 3, 0)
    call.arrays["inp"] = np.asfortranarray(call.arrays["inp"])
    with pytest.warns(dl.LayoutWarning, match=r'"inp": layout: \(2, 1, 0\) .*; fast is \(0, 1, 2\)') as caught:
        wrapped(**call.arrays, **_WEIGHTED)
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wrapped(**call.arrays, **_WEIGHTED)
        wrapped(**{**call.arrays, "inp": np.ascontiguousarray(call.arrays["inp"])}, **_WEIGHTED)
    frozen = wrap(quick.freeze(origin=_frozen_origin(), domain=DOMAIN))
    with pytest.warns(dl.LayoutWarning, match="inp") as caught:
        frozen(**call.arrays, idle=None, weight=2.0, offset=0.5)
    assert [warning.filename for warning in caught] == [__file__]


def test_copies_stand_in_and_go_back(stencil: Any) -> None:
    """Also the points around the domain, which the stencil leaves alone."""
    call, wrapped = Call(stencil), wrap(stencil, on_mismatch="copy")
    wanted = call.expected()
    slow = (2, 1, 0) if stencil.backend != "gt:cpu_ifirst" else (0, 1, 2)
    out = dl.from_array(call.arrays["out"], layout=slow)
    inp = dl.from_array(call.arrays["inp"], "float32")
    with pytest.warns(dl.LayoutWarning, match='field "out"'):
        wrapped(**{**call.arrays, "out": out}, **_WEIGHTED)
    assert out.layout == slow
    assert np.array_equal(out.to_numpy(), wanted)
    call.arrays["inp"] = inp.to_numpy().astype("f8")
    call.arrays["out"] = out.to_numpy().copy()
    wanted = call.expected()
    with pytest.warns(dl.LayoutWarning, match='field "inp": dtype: float32'):
        wrap(stencil, on_mismatch="copy")(**{**call.arrays, "inp": inp, "out": out}, **_WEIGHTED)
    assert np.array_equal(out.to_numpy(), wanted)


def test_objects_are_told(quick: Any) -> None:
    """GDP 3: acquired before the stencil runs, touched if written, released; released also when it could not run."""
    call, told = Call(quick), []

    def telling(name: str) -> Exposing:
        interface = {
            **interface_of(call.arrays[name]),
            **{hook: lambda hook=hook: told.append(f"{hook} {name}") for hook in ("acquire", "touch", "release")},
        }
        return Exposing(kept=call.arrays[name], __gt_data_interface__={None: interface})

    fields = {name: telling(name) if name in ("inp", "out") else array for name, array in call.arrays.items()}
    wanted = call.expected()
    wrapped = wrap(quick)
    wrapped(**fields, **_WEIGHTED)
    assert told[:2] == ["acquire inp", "acquire out"]
    assert told[2] == "touch out"
    assert sorted(told[3:]) == ["release inp", "release out"]
    assert np.array_equal(call.arrays["out"], wanted)
    told.clear()
    with pytest.raises(dl.LayoutError, match="domain"):
        wrapped(**fields, **{**_WEIGHTED, "domain": (99, 1, 1)})
    assert {"release inp", "release out"} <= set(told)
