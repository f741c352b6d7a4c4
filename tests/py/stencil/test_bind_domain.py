"""The first compute point of a field, and the largest common domain of several, as in GT4Py."""

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlfield as dl
from calls import F8, cube, signature
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
            len(
                [
                    at
                    for at in range(field.shape[axis])
                    if field.origin[axis] <= at < field.shape[axis] - field.halo[axis][1]
                ]
            )
            for field in fields
            for axis, label in enumerate(field.dims)
            if label == dim
        ]
        domain += [min(points)] if points else []
    return tuple(domain)


@given(st.lists(ghosts(), max_size=4))
def test_the_domain_is_common_to_all_fields(fields: list[Ghosts]) -> None:
    sig = signature({f"f{n}": dl.FieldSpec("float64", sorted(field.dims)) for n, field in enumerate(fields)})
    arrays = {
        f"f{n}": dl.zeros(field.shape, dims=field.dims, halo=field.halo, origin=field.origin)
        for n, field in enumerate(fields)
    }
    assert sig.bind(**arrays).domain == counted_domain(fields)


@given(st.lists(ghosts(), min_size=1, max_size=4))
def test_the_domain_is_gt4pys(fields: list[Ghosts]) -> None:
    gt4py = pytest.importorskip("gt4py.cartesian.definitions")
    stencil_object = pytest.importorskip("gt4py.cartesian.stencil_object")
    infos, arguments, origins = {}, {}, {}
    bound = signature({f"f{n}": dl.FieldSpec("float64", sorted(f.dims)) for n, f in enumerate(fields)}).bind(
        **{f"f{n}": dl.zeros(f.shape, dims=f.dims, halo=f.halo, origin=f.origin) for n, f in enumerate(fields)}
    )
    for n, field in enumerate(fields):
        name = f"f{n}"
        grid = [dim for dim in "IJK" if dim in field.dims]
        pick: Callable[[Any], tuple[Any, ...]] = lambda all_, field=field, grid=grid: tuple(  # type: ignore[misc]  # noqa: E731
            all_[field.dims.index(dim)] for dim in grid
        )
        upper = {dim: field.halo[field.dims.index(dim)][1] for dim in grid}
        mask = tuple(dim in grid for dim in "IJK")
        boundary = gt4py.Boundary(tuple((0, upper.get(dim, 0)) for dim in "IJK"))
        infos[name] = SimpleNamespace(
            access=gt4py.AccessKind.READ, domain_mask=mask, domain_ndim=len(grid), boundary=boundary
        )
        arguments[name] = SimpleNamespace(array=np.empty(pick(field.shape)))
        origins[name] = pick(field.origin)
        if any(
            size - at - ghost < 0
            for size, at, ghost in zip(pick(field.shape), pick(field.origin), upper.values(), strict=True)
        ):
            return  # GT4Py has no answer if no point is left
    found = stencil_object.StencilObject._get_max_domain(
        arguments, SimpleNamespace(ndim=3), infos, origins, squeeze=False
    )
    assert bound.domain == tuple(extent for extent in found if extent != sys.maxsize)


def test_the_domain_has_users_labels_last_and_no_data_dimensions() -> None:
    sig = dl.Signature(a=dl.FieldSpec("float64", ("cell", "0", "K")), b=dl.FieldSpec("float64", ("edge", "J", "cell")))
    bound = sig.bind(a=cube(5, 3, 4), b=cube(7, 2, 6))
    assert bound.domain == (2, 4, 5, 7)
    assert dl.Signature().bind().domain == ()
    assert dl.Signature(x=dl.FieldSpec("float64", "0")).bind(x=np.zeros(3)).domain == ()
