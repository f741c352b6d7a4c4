"""Origin and domain of wrapped stencils: the stencil's own rules, and the halo that a field states."""

import re
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import dlfield as dl
from calls import Array
from dlfield.gt4py import wrap
from wrapped import ORIGIN, WEIGHTED, Call, climb

pytest.importorskip("gt4py")

from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import PARALLEL, computation, interval


@pytest.fixture(scope="module")
def climbing() -> Any:
    return gtscript.stencil(backend="numpy", definition=climb)


_SIZES = st.integers(4, 9)
# Mostly values that some fields allow.
_NUMBERS = st.sampled_from([1, 1, 1, 1, 1, 2, 2, 3, 0, -1])
_TRIPLES = st.tuples(_NUMBERS, _NUMBERS, _NUMBERS)
_FIELDS = {"inp": "IJK", "plane": "IJ", "level": "K", "pair": "IJK0", "idle": "IJK", "out": "IJK"}


@st.composite
def origins(draw: st.DrawFn) -> Any:
    """An origin in each form: none, for all fields, by name, an integer."""
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
    """The domain and the origins of the used fields, or the error."""
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
    """A call that GT4Py accepts within the fields runs on the same points; one that GT4Py refuses is refused."""
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
        assert "domain: expected 1 or more" in str(ours) or "or more, as the stencil reads" in str(ours), ours
        assert 0 in theirs[0] or any(
            found < lower
            for name, info in climbing.field_info.items()
            for found, lower in zip(theirs[1][name], _lower(info), strict=False)
        )
    else:
        # GT4Py returns the sequence in the type that it was passed.
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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"domain": (7, 3, 2)}, r'"inp": shape: \(7, 6, 4\) .* 5 points in I, the domain is \(7, 3, 2\)'),
        ({"domain": (4, 3)}, r"domain: expected three sizes .*, got \(4, 3\)"),
        ({"domain": "IJK"}, "domain: expected a sequence of integers, got 'IJK'"),
        ({"domain": 4.5}, "domain: expected a sequence of integers, got 4.5"),
        ({"domain": np.array(4)}, r"domain: expected a sequence of integers, got array\(4\)"),
        ({"origin": np.array(4)}, r"origin: expected a sequence of integers, got array\(4\)"),
        ({"domain": (4, 0, 2)}, "domain: expected 1 or more in each of I, J and K"),
        ({"origin": (1, 2)}, r'origin: expected three numbers, for I, J and K, got \(1, 2\); field "inp" has'),
        ({"origin": {"level": (1, 2)}}, r'"level": origin: expected one number .*, got \(1, 2\)'),
        ({"origin": {"level": 1.5}}, "origin of 'level': expected a sequence of integers, got 1.5"),
        ({"origin": [[1], [2], [0]]}, "expected a sequence of integers"),
        ({"origin": (7, 6, 4), "domain": None}, r'"inp": shape: .* is too small for the origin'),
        # GT4Py 1.1 accepts it, as another dimension's origin is larger than needed, and reads before the array.
        ({"origin": (3, 0, 0), "domain": (1, 1, 1)}, r'"inp": origin: expected \(1, 1, 0\) or more'),
        ({"origin": {"_all_": ORIGIN, "pair": (1, 1, 0, 1)}}, '"pair": origin: expected 0 in data dimensions'),
    ],
)
def test_errors_of_origin_and_domain_name_the_field(quick: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(dl.LayoutError, match=message):
        wrap(quick)(**Call(quick).arrays, **{**WEIGHTED, **options})


# A halo bounds the domain on both sides, unless the call gives a domain.

SHAPE = (8, 8, 4)
HALO = (2, 2, 0)


def copy_field(inp: gtscript.Field[np.float64], out: gtscript.Field[np.float64]):  # type: ignore[no-untyped-def]  # noqa: ANN201
    with computation(PARALLEL), interval(...):
        out = inp  # noqa: F841


def shift(inp: gtscript.Field[np.float64], out: gtscript.Field[np.float64]):  # type: ignore[no-untyped-def]  # noqa: ANN201
    with computation(PARALLEL), interval(...):
        out = inp[3, 0, 0]  # noqa: F841


def below(inp: gtscript.Field[np.float64], out: gtscript.Field[np.float64]):  # type: ignore[no-untyped-def]  # noqa: ANN201
    with computation(PARALLEL), interval(...):
        out = inp[-1, 0, 0]  # noqa: F841


@pytest.fixture(scope="module")
def copying() -> Any:
    return gtscript.stencil(backend="numpy", definition=copy_field)


def written(out: Any) -> set[tuple[slice, ...]] | Any:
    """The box of points that are not 0, as slices; fails if there are others inside of it."""
    values = np.asarray(out)
    points = np.argwhere(values)
    box = tuple(slice(int(low), int(high) + 1) for low, high in zip(points.min(0), points.max(0), strict=True))
    assert values[box].all()
    return box


def fields(halo: Any = HALO, **options: Any) -> tuple[dl.Tensor, dl.Tensor]:
    return dl.ones(SHAPE, halo=halo), dl.zeros(SHAPE, halo=halo, **options)


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
@pytest.mark.parametrize("on_mismatch", ["raise", "copy"])
def test_only_the_inner_points_are_written(copying: Any, on_mismatch: Any) -> None:
    wrapped, inner = wrap(copying, on_mismatch=on_mismatch), np.s_[2:6, 2:6, 0:4]
    inp, out = fields()
    info: dict[str, Any] = {}
    wrapped(inp, out, exec_info=info)
    assert written(out) == inner
    assert info["domain"] == dl.Signature(x=dl.FieldSpec("float64", "IJK")).bind(x=inp).domain == (4, 4, 4)
    # A view states what is left of the halo.
    _, out = fields()
    wrapped(inp[1:, :-2], out[1:, :-2])
    assert written(out) == inner
    # Also around temporaries.
    _, out = fields(layout=(2, 1, 0))
    wrapped(inp.astype("float32") if on_mismatch == "copy" else inp, out)
    assert written(out) == inner


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
@pytest.mark.parametrize(
    ("inp", "out", "box"),
    [
        # In another order of dimensions.
        (
            dl.ones((4, 8, 9), dims="KJI", halo=((0, 0), (1, 3), (2, 0))),
            dl.zeros((4, 9, 8), dims="KIJ", halo=((0, 1), (0, 0), (0, 0))),
            np.s_[0:3, 0:7, 0:4],
        ),
        # Each field starts at its own origin, as with `Signature.bind`.
        (dl.ones(SHAPE, halo=HALO), np.zeros(SHAPE), np.s_[0:4, 0:4, 0:4]),
        (dl.ones(SHAPE, halo=HALO), np.zeros((3, 9, 9)), np.s_[0:3, 0:4, 0:4]),
    ],
)
def test_a_halo_of_some_fields(copying: Any, inp: Any, out: Any, box: Any) -> None:
    wrap(copying)(inp, out)
    assert written(out) == box


@pytest.mark.parametrize(
    ("inp", "out", "origins"),
    [
        (dl.ones(SHAPE, halo=HALO), np.zeros(SHAPE), r"\(0, 0, 0\), .* \(2, 2, 0\)"),
        (dl.ones(SHAPE), dl.zeros(SHAPE, halo=HALO), r"\(2, 2, 0\), .* \(0, 0, 0\)"),
        (dl.ones(SHAPE, origin=(0, 2, 0)), dl.zeros(SHAPE, halo=HALO), r"\(2, 2, 0\), .* \(0, 2, 0\)"),
        (Stating(np.ones(SHAPE), (2, 2, 0)), dl.zeros(SHAPE, dims="IJK"), r"\(0, 0, 0\), .* \(2, 2, 0\)"),
        (dl.ones(SHAPE, halo=HALO), np.zeros((8, 9, 4)), None),
        (dl.ones((4, 8, 8), dims="KJI", halo=(0, 2, 2)), dl.zeros(SHAPE, halo=HALO), None),
    ],
)
def test_origins_that_differ_in_fields_of_one_shape_are_warned_of(
    copying: Any, inp: Any, out: Any, origins: str | None, recwarn: pytest.WarningsRecorder
) -> None:
    wrapped = wrap(copying)
    wrapped(inp, out)
    texts = [str(each.message) for each in recwarn if "fast is" not in str(each.message)]
    assert len(texts) == (origins is not None)
    if origins is not None:
        assert re.match(f'field "out": origin: {origins}; .* origin=\\(2, 2, 0\\)$', texts[0])
        recwarn.clear()
        wrapped(inp, out, origin=(2, 2, 0), validate_args=True)
        wrapped(inp, out, origin={"inp": (2, 2, 0), "out": (1, 1, 0)})
        assert not recwarn.list


@pytest.mark.parametrize(
    ("options", "box"),
    [
        ({"domain": (6, 5, 4)}, np.s_[2:8, 2:7, 0:4]),
        ({"origin": (0, 0, 0), "domain": SHAPE}, np.s_[0:8, 0:8, 0:4]),
        # An origin alone replaces the lower side only.
        ({"origin": (1, 3, 0)}, np.s_[1:6, 3:6, 0:4]),
    ],
)
def test_a_domain_in_the_call_may_reach_into_the_halo(copying: Any, options: dict[str, Any], box: Any) -> None:
    inp, out = fields()
    wrap(copying)(inp, out, **options)
    assert written(out) == box


def test_a_frozen_domain_may_reach_into_the_halo(copying: Any) -> None:
    inp, out = fields()
    wrap(copying.freeze(origin={"inp": (1, 1, 0), "out": (1, 1, 0)}, domain=(7, 7, 4)))(inp=inp, out=out)
    assert written(out) == np.s_[1:8, 1:8, 0:4]


@pytest.mark.parametrize(
    ("definition", "inp", "origin", "last"),
    [
        # What the stencil reads above the domain is in the upper halo; the larger of the two bounds the domain.
        (shift, dl.ones(SHAPE, halo=((0, 2), (0, 0), (0, 0))), None, 5),
        (shift, dl.ones(SHAPE, halo=((0, 4), (0, 0), (0, 0))), None, 4),
        # A field that is read below only may end before the domain, unless it states a halo: that bounds the domain.
        (below, np.ones((4, 8, 4)), {"inp": (1, 0, 0)}, 4),
        (below, dl.ones((4, 8, 4), halo=((1, 0), (0, 0), (0, 0))), {"inp": (1, 0, 0)}, 3),
    ],
)
def test_stencils_that_read_beside_the_point(definition: Any, inp: Any, origin: Any, last: int) -> None:
    out = dl.zeros(SHAPE)
    wrap(gtscript.stencil(backend="numpy", definition=definition))(inp, out, origin=origin)
    assert written(out) == np.s_[0:last, 0:8, 0:4]


def test_a_field_that_is_all_halo_is_named(copying: Any) -> None:
    inp, out = dl.ones((4, 8, 4), halo=HALO), dl.zeros((4, 8, 4), halo=HALO)
    with pytest.raises(dl.LayoutError, match=r"domain: expected 1 or more .*, got \(0, 4, 4\)"):
        wrap(copying)(inp, out)
    with pytest.raises(dl.LayoutError, match=r'"inp": shape: \(4, 8, 4\).* the halo \(\(2, 2\), \(2, 2\), \(0, 0\)\)'):
        wrap(copying)(inp, out, origin=(3, 0, 0))


def test_origin_and_halo_of_fields_of_equal_shape_are_told_apart(copying: Any) -> None:
    wrapped = wrap(copying)
    for stated, origin, domain in [
        ({}, (0, 0, 0), (8, 8, 4)),
        ({"origin": (1, 1, 0)}, (1, 1, 0), (7, 7, 4)),
        ({"halo": (1, 1, 0)}, (1, 1, 0), (6, 6, 4)),
        ({"halo": (1, 1, 0), "origin": (2, 1, 0)}, (2, 1, 0), (5, 6, 4)),
        ({"halo": ((2, 1), (0, 0), (0, 0))}, (2, 0, 0), (5, 8, 4)),
        ({"halo": ((2, 0), (0, 0), (0, 0))}, (2, 0, 0), (6, 8, 4)),
    ] * 2:
        info: dict[str, Any] = {}
        wrapped(dl.ones(SHAPE, **stated), np.zeros(SHAPE), exec_info=info)  # type: ignore[arg-type]
        assert (tuple(info["origin"]["inp"]), tuple(info["domain"])) == (origin, domain)
