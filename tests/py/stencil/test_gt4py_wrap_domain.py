"""Origin and domain of wrapped stencils follow the stencil's own rules."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import dlfield as dl
from dlfield.gt4py import wrap
from wrapped import WEIGHTED, Array, Call, climb

pytest.importorskip("gt4py")

from gt4py.cartesian import gtscript


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
        assert "is empty" in str(ours) or "or more, as the stencil reads" in str(ours), ours
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


def test_an_origin_that_is_too_small_in_one_dimension(quick: Any) -> None:
    """GT4Py 1.1 accepts it if another dimension's origin is larger than needed, and reads before the array."""
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
        ({"domain": np.array(4)}, r"domain: array\(4\); allowed is a sequence of integers"),
        ({"origin": np.array(4)}, r"origin: array\(4\); allowed is a sequence of integers"),
        ({"domain": (4, 0, 2)}, "is empty"),
        ({"origin": (1, 2)}, r'origin: \(1, 2\); allowed are three numbers, for I, J and K: field "inp" has'),
        ({"origin": {"level": (1, 2)}}, r'"level": origin: \(1, 2\); allowed is one number'),
        ({"origin": {"level": 1.5}}, "origin of 'level': 1.5; allowed is a sequence of integers"),
        ({"origin": [[1], [2], [0]]}, "allowed is a sequence of integers"),
        ({"origin": (7, 6, 4), "domain": None}, r'"inp": shape: .* is too small for the origin'),
    ],
)
def test_errors_of_origin_and_domain_name_the_field(quick: Any, options: dict[str, Any], message: str) -> None:
    call = Call(quick)
    with pytest.raises(dl.LayoutError, match=message):
        wrap(quick)(**call.arrays, **{**WEIGHTED, **options})
