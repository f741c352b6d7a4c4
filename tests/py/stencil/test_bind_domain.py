"""The points of a call: each field's origin, the largest common domain, boundaries, and sizes by name."""

import copy
import pickle
import re
import sys
import warnings
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import dlfield as dl
from calls import F8, cube, signature, spec
from fakes_interfaces import Exposing, Hooked, interface_of


def test_the_origin_is_explicit_or_the_lower_halo_or_0() -> None:
    sig = dl.Signature(x=F8)
    array = cube(6, 6, 6)
    halo = ((1, 2), (0, 1), (3, 0))
    cases: list[tuple[Any, tuple[int, ...], Any]] = [
        (array, (0, 0, 0), None),
        (Hooked(array, [], halo=halo), (1, 0, 3), halo),
        (Exposing(__array_interface__=interface_of(array), __gt_origin__=(4, 5, 6)), (4, 5, 6), None),
        (Exposing(__array_interface__=interface_of(array), default_origin=(4, 5, 6)), (4, 5, 6), None),
        (dl.zeros((6, 6, 6), halo=halo), (1, 0, 3), halo),
        (dl.zeros((6, 6, 6), halo=halo, origin=(2, 2, 2)), (2, 2, 2), halo),
        (dl.zeros((6, 6, 6)), (0, 0, 0), ((0, 0),) * 3),
    ]
    for argument, origin, ghosts in cases:
        found = sig.bind(x=argument).x
        assert (found.origin, found.halo) == (origin, ghosts)
    both = Hooked(array, [], halo=halo)
    vars(both)["__gt_origin__"] = (2, 2, 2)
    assert sig.bind(x=both).x.origin == (2, 2, 2)


class Ghosts(NamedTuple):
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    origin: tuple[int, ...]
    halo: tuple[tuple[int, int], ...]


@st.composite
def ghosts(draw: st.DrawFn) -> Ghosts:
    dims = draw(st.lists(st.sampled_from(["I", "J", "K", "0", "1"]), unique=True))
    shape = tuple(draw(st.integers(0, 9)) for _ in dims)
    lower = [draw(st.integers(0, extent)) for extent in shape]
    halo = tuple((low, draw(st.integers(0, extent - low))) for low, extent in zip(lower, shape, strict=True))
    origin = tuple(draw(st.integers(0, extent)) for extent in shape)
    return Ghosts(tuple(dims), shape, draw(st.sampled_from([origin, tuple(lower)])), halo)


def counted_domain(fields: list[Ghosts]) -> tuple[int, ...]:
    """The domain, counted point by point from the origin, over all fields that have the dimension."""
    domain = []
    for dim in "IJK":
        points = [
            sum(field.origin[axis] <= at < field.shape[axis] - field.halo[axis][1] for at in range(field.shape[axis]))
            for field in fields
            for axis, label in enumerate(field.dims)
            if label == dim
        ]
        domain += [min(points)] if points else []
    return tuple(domain)


def bound_domain(fields: list[Ghosts]) -> tuple[int, ...]:
    sig = signature({f"f{n}": dl.FieldSpec("float64", sorted(field.dims)) for n, field in enumerate(fields)})
    arrays = {
        f"f{n}": dl.zeros(field.shape, dims=field.dims, halo=field.halo, origin=field.origin)
        for n, field in enumerate(fields)
    }
    with warnings.catch_warnings():
        # Of different origins.
        warnings.simplefilter("ignore", dl.LayoutWarning)
        return sig.bind(**arrays).domain


@given(st.lists(ghosts(), max_size=4))
def test_the_domain_is_common_to_all_fields(fields: list[Ghosts]) -> None:
    assert bound_domain(fields) == counted_domain(fields)


@given(st.lists(ghosts(), max_size=4))
def test_the_domain_is_that_of_gt4py(fields: list[Ghosts]) -> None:
    """For a stencil that reads as far above each point as the upper halo of the field reaches."""
    definitions = pytest.importorskip("gt4py.cartesian.definitions")
    stencil_object = pytest.importorskip("gt4py.cartesian.stencil_object").StencilObject
    arrays, infos, origins = {}, {}, {}
    for name, field in enumerate(fields):
        axes = {dim: field.dims.index(dim) for dim in "IJK" if dim in field.dims}
        shape = [field.shape[axis] for axis in axes.values()]
        upper = {dim: field.halo[axis][1] for dim, axis in axes.items()}
        arrays[name] = SimpleNamespace(array=np.empty(shape))
        origins[name] = tuple(field.origin[axis] for axis in axes.values())
        infos[name] = SimpleNamespace(
            access=definitions.AccessKind.READ,
            domain_mask=tuple(dim in axes for dim in "IJK"),
            domain_ndim=len(axes),
            boundary=definitions.Boundary(tuple((0, upper.get(dim, 0)) for dim in "IJK")),
        )
        # GT4Py has no negative sizes.
        assume(all(np.subtract(shape, origins[name]) >= list(upper.values())))
    found = stencil_object._get_max_domain(arrays, SimpleNamespace(ndim=3), infos, origins, squeeze=False)
    assert bound_domain(fields) == tuple(extent for extent in found if extent != sys.maxsize)


def test_a_field_without_a_halo_beside_one_with_a_halo_is_warned_of() -> None:
    spec = dl.FieldSpec("float64", "IJ")
    sig = dl.Signature(inp=spec, out=spec, column=dl.FieldSpec("float64", "I"))
    inp, out, column = dl.zeros((5, 6), halo=(1, 2)), np.zeros((5, 6)), np.zeros(5)
    bound = sig.bind(inp=inp, out=out, column=column)
    expected = r'field "out": origin: \(0, 0\), and field "inp" of the same extents has \(1, 2\); .*'
    expected += r": write (dl.asarray\(.*\)) if"
    with pytest.warns(dl.LayoutWarning, match=expected) as caught:
        assert bound.domain == (3, 2)
    fix = re.search(expected, str(caught[0].message))
    assert fix
    assert caught[0].filename == __file__
    same = sig.bind(inp=inp, out=eval(fix[1], {"dl": dl, "inp": inp, "out": out}), column=column)
    smaller = sig.bind(inp=inp, out=np.zeros((3, 2)), column=column)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (same.domain, smaller.domain, repr(bound)[:10]) == ((3, 2), (3, 2), "BoundCall(")


def test_the_domain_has_users_labels_last_and_no_data_dimensions() -> None:
    sig = dl.Signature(a=dl.FieldSpec("float64", ("cell", "0", "K")), b=dl.FieldSpec("float64", ("edge", "J", "cell")))
    bound = sig.bind(a=cube(5, 3, 4), b=cube(7, 2, 6))
    assert bound.domain == (2, 4, 5, 7)
    assert dl.Signature().bind().domain == ()
    assert dl.Signature(x=dl.FieldSpec("float64", "0")).bind(x=np.zeros(3)).domain == ()


# Sizes by name: extents on which all fields of a call agree.


def sized(*shape: Any, **keywords: Any) -> dl.FieldSpec:
    return spec(None, shape=shape, **keywords)


@pytest.mark.parametrize(
    ("first", "second", "extents", "message"),
    [
        (("I", "J"), ("I", "J"), ((4, 5), (5, 5)), 'expected I = 4, as in field "a", got 5'),
        (("I - 1",), ("I+2",), ((4,), (4,)), r'expected I = 5, as in field "a", got 2, as 4 points are I\+2'),
        (("I - 1",), ("I+2",), ((0,), (1,)), r"shape: expected 2 or more points in axis 0, for I\+2, got 1"),
        ((3,), ("n", "n"), ((3,), (3, 4)), 'expected n = 3, as in field "b", got 4'),
    ],
)
def test_fields_agree_on_named_sizes(first: Any, second: Any, extents: Any, message: str) -> None:
    sig = dl.Signature(a=sized(*first), b=sized(*second))
    a, b = map(np.zeros, extents)
    with pytest.raises(dl.LayoutError, match=f'^field "b": {message}'):
        sig.bind(b=b, a=a)


def test_the_extents_are_those_in_the_order_of_dims() -> None:
    sig = dl.Signature(a=spec("IJ", shape=("n", "m")), b=spec("JI", shape=("m", "n")))
    field = dl.zeros((3, 4), dims="IJ")
    assert sig.bind(a=field, b=field).b.shape == (4, 3)
    with pytest.raises(dl.LayoutError, match=r'"b": expected m = 4, as in field "a", got 3'):
        sig.bind(a=field, b=np.zeros((3, 4)))


@pytest.mark.parametrize("on_mismatch", ["raise", "copy"])
def test_an_absent_field_states_no_size_and_a_copied_one_does(on_mismatch: Any) -> None:
    dtype = "float64" if on_mismatch == "raise" else "float32"
    sig = dl.Signature(on_mismatch=on_mismatch, a=sized("n", optional=True), b=sized("n"), c=sized("n"))
    sig.bind(b=np.zeros(3), c=np.zeros(3))
    with pytest.raises(dl.LayoutError, match=r'^field "c": expected n = 3, as in field "b", got 4'):
        sig.bind(b=np.zeros(3), c=np.zeros(4, dtype))


sizes = st.one_of(st.none(), st.integers(0, 3), st.tuples(st.sampled_from("IJ"), st.integers(-2, 2)))


@given(st.lists(st.lists(st.tuples(sizes, st.integers(0, 3)), max_size=3), min_size=1, max_size=4))
def test_fields_are_accepted_if_one_assignment_of_the_names_fits_all(fields: list[list[tuple[Any, int]]]) -> None:
    def text(size: Any) -> Any:
        return f"{size[0]}{size[1]:+}" if isinstance(size, tuple) else size

    def extent(size: Any, point: dict[str, int], found: int) -> int:
        return found if size is None else size if isinstance(size, int) else point[size[0]] + size[1]

    points = [{"I": i, "J": j} for i in range(6) for j in range(6)]
    fits = any(all(extent(size, point, got) == got for field in fields for size, got in field) for point in points)
    names = [f"f{number}" for number in range(len(fields))]
    sig = signature({name: sized(*(text(s) for s, _ in field)) for name, field in zip(names, fields, strict=True)})
    arrays = {name: np.zeros([got for _, got in field]) for name, field in zip(names, fields, strict=True)}
    if fits:
        assert all(sig.bind(**arrays)[name].shape == array.shape for name, array in arrays.items())
    else:
        with pytest.raises(dl.LayoutError, match=r'^field "f'):
            sig.bind(**arrays)


@given(st.text(alphabet="IJx_1 +-0é٣", max_size=6))
def test_the_text_of_a_size_is_a_name_with_an_offset(text: str) -> None:
    matched = re.fullmatch(r"\s*([^\W\d]\w*)\s*(?:([+-])\s*([0-9]+)\s*)?", text)
    if matched:
        name, sign, digits = matched.groups()
        offset = int(f"{sign}{digits}") if sign else 0
        assert sized(text).shape == (f"{name}{offset:+}" if offset else name,)
    else:
        with pytest.raises(dl.LayoutError) as caught:
            sized(text)
        assert re.match(r"shape: expected None, an integer, or a size's name", str(caught.value), re.DOTALL)


def test_offsets_out_of_range_are_refused() -> None:
    assert sized("I+4294967295").shape == ("I+4294967295",)
    with pytest.raises(dl.LayoutError, match=r'shape: .* got "I\+4294967296"'):
        sized("I+4294967296")
    huge = np.lib.stride_tricks.as_strided(np.zeros(1), (2**59,), (0,))
    assert dl.Signature(a=sized("I-4294967295")).bind(a=huge).a.shape == (2**59,)


SPEC = dl.FieldSpec("float64", "IJK", boundary=((1, 2), 1, 0))


@pytest.mark.parametrize(
    ("boundary", "expected"),
    [
        ((1, 1, 0), ((1, 1), (1, 1), (0, 0))),
        (((1, 2), 3, (0, 4)), ((1, 2), (3, 3), (0, 4))),
        ({"I": 1}, ((1, 1), (0, 0), (0, 0))),
        ({"K": (0, 1), "J": 2}, ((0, 0), (2, 2), (0, 1))),
        ({}, ((0, 0), (0, 0), (0, 0))),
        (np.ones((3, 2), int), ((1, 1), (1, 1), (1, 1))),
        (None, None),
    ],
)
def test_boundaries_are_stated_like_halos(boundary: Any, expected: Any) -> None:
    spec = dl.FieldSpec("float64", "IJK", boundary=boundary)
    assert spec.boundary == expected
    for again in (pickle.loads(pickle.dumps(spec)), copy.copy(spec), eval(repr(spec), {"FieldSpec": dl.FieldSpec})):
        assert again.boundary == expected


@pytest.mark.parametrize(
    ("dims", "boundary", "error"),
    [
        ("IJ", (1, 1, 0), dl.LayoutError),
        ("IJ", {"K": 1}, dl.DimsError),
        ("IJ", (-1, 0), dl.LayoutError),
        ("IJ", 1, TypeError),
        ("IJ", "IJ", TypeError),
        (None, {"I": 1}, TypeError),
    ],
)
def test_wrong_boundaries_name_the_argument(dims: Any, boundary: Any, error: Any) -> None:
    with pytest.raises(error, match=r"^boundary: "):
        dl.FieldSpec("float64", dims, boundary=boundary)


@pytest.mark.parametrize(
    ("field", "domain"),
    [
        (dl.zeros((10, 10, 4), halo=(2, 2, 0)), (6, 6, 4)),
        (dl.zeros((4, 10, 10), dims="KJI", halo=(0, 1, ((1, 1)))), (7, 8, 4)),
        (dl.zeros((10, 10, 4), origin=(3, 1, 1)), (5, 8, 3)),
        (dl.zeros((2, 10, 4), origin=(1, 1, 0)), (0, 8, 4)),
    ],
)
def test_the_domain_leaves_out_what_is_read_above_it(field: dl.Tensor, domain: tuple[int, ...]) -> None:
    other = dl.zeros((20, 20, 20))
    for out in (other, other.to_numpy()):
        sig = dl.Signature(inp=SPEC, out=dl.FieldSpec("float64", "IJK", access="w"))
        with sig.bind(inp=field, out=out) as fields:
            assert fields.domain == domain


@pytest.mark.parametrize("on_mismatch", ["raise", "copy"])
@pytest.mark.parametrize(
    "field", [np.zeros((10, 10, 4)), dl.zeros((10, 10, 4), halo=(1, 0, 0)), dl.zeros((10, 10, 4), "f4")]
)
def test_a_field_without_the_points_below_is_refused(field: Any, on_mismatch: Any) -> None:
    sig = dl.Signature(on_mismatch=on_mismatch, inp=SPEC)
    with pytest.raises(dl.LayoutError, match=r'^field "inp": origin: .* state origin=\(1, 1, 0\)$'):
        sig.bind(inp=field)

    @dl.kernel(on_mismatch=on_mismatch)
    def step(inp: Annotated[dl.Descriptor, SPEC]) -> Any:
        return inp.origin

    with pytest.raises(dl.LayoutError, match=r"origin=\(1, 1, 0\)"):
        step(field)
    assert dl.Signature(inp=dl.FieldSpec(None, "IJK", boundary=SPEC.boundary)).bind(
        inp=dl.from_dlpack(field, origin=(1, 1, 0))
    ).domain == (7, 8, 4)


def test_signatures_of_stencils_have_their_boundaries() -> None:
    gtscript: Any = pytest.importorskip("gt4py.cartesian.gtscript")

    def shift(inp: gtscript.Field[np.float64], out: gtscript.Field[np.float64]):  # type: ignore[no-untyped-def]  # noqa: ANN202
        with computation(PARALLEL), interval(...):  # type: ignore[name-defined]  # noqa: F821
            out = inp[-1, 2, 0] + inp[1, 1, 0]  # noqa: F841

    fields = dl.Signature.from_stencil(gtscript.stencil(backend="numpy", definition=shift)).fields
    assert (fields["inp"].boundary, fields["out"].boundary) == (((1, 1), (0, 2), (0, 0)), None)
