"""The halo that a field states bounds the domain of a wrapped stencil on both sides, unless the call gives a domain."""

from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield.gt4py import wrap

pytest.importorskip("gt4py")

from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import PARALLEL, computation, interval

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


@pytest.mark.parametrize("on_mismatch", ["raise", "copy"])
def test_only_the_inner_points_are_written(copying: Any, on_mismatch: Any) -> None:
    inp, out = dl.ones(SHAPE, halo=HALO), dl.zeros(SHAPE, halo=HALO)
    info: dict[str, Any] = {}
    wrap(copying, on_mismatch=on_mismatch)(inp, out, exec_info=info)
    assert written(out) == np.s_[2:6, 2:6, 0:4]
    assert info["domain"] == dl.Signature(x=dl.FieldSpec("float64", "IJK")).bind(x=inp).domain == (4, 4, 4)


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
def test_also_around_temporaries(copying: Any) -> None:
    inp, out = dl.ones(SHAPE, "float32", halo=HALO), dl.zeros(SHAPE, halo=HALO, layout=(2, 1, 0))
    wrap(copying, on_mismatch="copy")(inp, out)
    assert written(out) == np.s_[2:6, 2:6, 0:4]


def test_a_view_states_what_is_left_of_the_halo(copying: Any) -> None:
    inp, out = dl.ones(SHAPE, halo=HALO), dl.zeros(SHAPE, halo=HALO)
    wrap(copying)(inp[1:, :-2], out[1:, :-2])
    assert written(out) == np.s_[2:6, 2:6, 0:4]


def test_in_another_order_of_dimensions(copying: Any) -> None:
    inp = dl.ones((4, 8, 9), dims="KJI", halo=((0, 0), (1, 3), (2, 0)))
    out = dl.zeros((4, 9, 8), dims="KIJ", halo=((0, 1), (0, 0), (0, 0)))
    with pytest.warns(dl.LayoutWarning):
        wrap(copying)(inp, out)
    assert written(out) == np.s_[0:3, 0:7, 0:4]


def test_beside_fields_without_halo(copying: Any) -> None:
    """Each field starts at its own origin, as with `Signature.bind`."""
    out = np.zeros(SHAPE)
    wrap(copying)(dl.ones(SHAPE, halo=HALO), out)
    assert written(out) == np.s_[0:4, 0:4, 0:4]
    out = np.zeros((3, 9, 9))
    wrap(copying)(dl.ones(SHAPE, halo=HALO), out)
    assert written(out) == np.s_[0:3, 0:4, 0:4]


def test_calls_that_differ_only_in_the_halo_differ_in_the_domain(copying: Any) -> None:
    wrapped = wrap(copying)
    for upper in (2, 1, 0, 2):
        out = dl.zeros(SHAPE, halo=((2, upper), (0, 0), (0, 0)))
        wrapped(dl.ones(SHAPE, halo=((2, upper), (0, 0), (0, 0))), out)
        assert written(out) == np.s_[2 : 8 - upper, 0:8, 0:4]


def test_a_domain_in_the_call_may_reach_into_the_halo(copying: Any) -> None:
    inp, out = dl.ones(SHAPE, halo=HALO), dl.zeros(SHAPE, halo=HALO)
    wrap(copying)(inp, out, domain=(6, 5, 4))
    assert written(out) == np.s_[2:8, 2:7, 0:4]
    out[...] = 0.0
    wrap(copying)(inp, out, origin=(0, 0, 0), domain=SHAPE)
    assert written(out) == np.s_[0:8, 0:8, 0:4]
    out[...] = 0.0
    wrap(copying.freeze(origin={"inp": (1, 1, 0), "out": (1, 1, 0)}, domain=(7, 7, 4)))(inp=inp, out=out)
    assert written(out) == np.s_[1:8, 1:8, 0:4]


def test_an_origin_in_the_call_replaces_the_lower_side_only(copying: Any) -> None:
    inp, out = dl.ones(SHAPE, halo=HALO), dl.zeros(SHAPE, halo=HALO)
    wrap(copying)(inp, out, origin=(1, 3, 0))
    assert written(out) == np.s_[1:6, 3:6, 0:4]


def test_the_stencil_reads_in_the_halo_and_beyond() -> None:
    """What the stencil reads above the domain is in the upper halo; the larger of the two bounds the domain."""
    stencil = gtscript.stencil(backend="numpy", definition=shift)
    for upper, last in [(2, 5), (4, 4)]:
        out = dl.zeros(SHAPE)
        wrap(stencil)(dl.ones(SHAPE, halo=((0, upper), (0, 0), (0, 0))), out)
        assert written(out) == np.s_[0:last, 0:8, 0:4]


def test_a_field_that_is_read_below_only_may_end_before_the_domain() -> None:
    """Unless it states a halo: that bounds the domain."""
    stencil = gtscript.stencil(backend="numpy", definition=below)
    for inp, last in [(np.ones((4, 8, 4)), 4), (dl.ones((4, 8, 4), halo=((1, 0), (0, 0), (0, 0))), 3)]:
        out = dl.zeros(SHAPE)
        wrap(stencil)(inp, out, origin={"inp": (1, 0, 0)})
        assert written(out) == np.s_[0:last, 0:8, 0:4]


def test_a_field_that_is_all_halo_is_named(copying: Any) -> None:
    inp, out = dl.ones((4, 8, 4), halo=HALO), dl.zeros((4, 8, 4), halo=HALO)
    with pytest.raises(dl.LayoutError, match=r"domain: \(0, 4, 4\) is empty"):
        wrap(copying)(inp, out)
    with pytest.raises(
        dl.LayoutError, match=r'"inp": shape: \(4, 8, 4\).* or the halo \(\(2, 2\), \(2, 2\), \(0, 0\)\)'
    ):
        wrap(copying)(inp, out, origin=(3, 0, 0))
