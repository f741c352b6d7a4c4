"""`FieldSpec(boundary=...)`: how far a kernel reads outside of its domain."""

import copy
import pickle
from typing import Annotated, Any

import numpy as np
import pytest

import dlfield as dl

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

    with pytest.raises(dl.LayoutError, match=r"origin=\(1, 1, 0\)\)"):
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
