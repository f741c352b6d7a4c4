"""Enumerations as scalars of a wrapped stencil; GT4Py 1.2 replaces those of `gtscript.enum` by integers."""

from enum import IntEnum
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield.gt4py import wrap

pytest.importorskip("gt4py")

from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import PARALLEL, computation, interval

marked = getattr(gtscript, "enum", None)


class Unit(IntEnum):
    ONE = 1
    THREE = 3


if marked is not None:
    marked(Unit)


def scale(out: gtscript.Field[np.float64], unit: np.int64):  # type: ignore[no-untyped-def]  # noqa: ANN201
    with computation(PARALLEL), interval(...):
        out = out * unit


@pytest.fixture(scope="module", params=["numpy", "debug"])
def scaling(request: pytest.FixtureRequest) -> Any:
    return gtscript.stencil(backend=request.param, definition=scale)


def test_an_enumerator_is_its_integer(scaling: Any) -> None:
    """Also in a second call, which reuses the first one's checks, and after a call with a plain integer."""
    out, wrapped = np.ones((3, 2, 2)), wrap(scaling)
    for unit, wanted in [(Unit.THREE, 3), (Unit.THREE, 9), (2, 18), (Unit.ONE, 18), (np.int64(2), 36)]:
        wrapped(out, unit)
        assert (out == wanted).all()
    wrapped(out, Unit.THREE, validate_args=False)
    wrap(scaling.freeze(origin={"out": (0, 0, 0)}, domain=(3, 2, 2)))(out=out, unit=Unit.THREE)
    assert (out == 324).all()


def test_the_stencil_gets_its_integer_type(monkeypatch: pytest.MonkeyPatch) -> None:
    stencil = gtscript.stencil(backend="numpy", definition=scale, rebuild=True)
    passed: list[object] = []
    monkeypatch.setattr(type(stencil), "run", lambda _self, *, unit, **_: passed.append(unit))
    wrap(stencil)(np.ones((3, 2, 2)), Unit.THREE)
    assert passed == [3]
    assert type(passed[0]) is np.int64


def test_an_enumerator_for_a_scalar_of_another_type_is_refused() -> None:
    def damp(out: gtscript.Field[np.float64], weight: np.float64):  # type: ignore[no-untyped-def]  # noqa: ANN202
        with computation(PARALLEL), interval(...):
            out = out * weight

    wrapped = wrap(gtscript.stencil(backend="numpy", definition=damp))
    for _ in range(2):
        with pytest.raises(dl.DTypeError, match='scalar "weight": Unit; wanted is float64'):
            wrapped(np.ones((3, 2, 2)), Unit.ONE)


@pytest.mark.skipif(marked is None, reason="GT4Py has gtscript.enum since 1.2")
def test_a_scalar_that_is_annotated_with_the_enumeration() -> None:
    """The result equals the plain stencil's."""

    def convert(out: gtscript.Field[np.float64], unit: Unit):  # type: ignore[no-untyped-def]  # noqa: ANN202
        with computation(PARALLEL), interval(...):
            out = out * 3.0 if unit == Unit.THREE else out + unit

    stencil = gtscript.stencil(backend="numpy", definition=convert)
    for unit in Unit:
        theirs, ours = np.full((3, 2, 2), 5.0), np.full((3, 2, 2), 5.0)
        stencil(theirs, unit)
        wrap(stencil)(ours, unit)
        assert np.array_equal(ours, theirs)
