"""Stencils with each feature of GTScript: the wrapped one does what the plain one does."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield.gt4py import wrap

pytest.importorskip("gt4py")

from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import (
    BACKWARD,
    FORWARD,
    IJ,
    PARALLEL,
    Field,
    GlobalTable,
    I,
    J,
    K,
    computation,
    horizontal,
    interval,
    region,
)

F8 = np.float64
SHAPE = (6, 5, 4)
FACTOR = 3.0

# mypy: disable-error-code="no-untyped-def, operator, index, assignment, misc, import-not-found, valid-type"
# ruff: noqa: ANN201, F841


def outside(inp: Field[F8], out: Field[F8]):
    with computation(PARALLEL), interval(...):
        out = 0.0
        with horizontal(region[I[0] - 1, J[0] - 1]):
            out = inp


def regions(inp: Field[F8], out: Field[F8]):
    with computation(PARALLEL), interval(...):
        out = inp
        with horizontal(region[I[0], :], region[:, J[-1]]):
            out = 2.0 * inp[0, 0, 0]


def loops(inp: Field[F8], out: Field[F8]):
    with computation(PARALLEL), interval(...):
        left = inp
        out = 0.0
        while left > 0.25:
            left = left / 2.0
            out = out + 1.0


def planes(inp: Field[F8], plane: Field[IJ, F8], level: Field[K, F8], out: Field[F8]):
    with computation(PARALLEL), interval(...):
        out = inp[1, 0, 0] + plane[0, 1] * level


def reduced(inp: Field[F8], plane: Field[IJ, F8]):
    with computation(FORWARD), interval(...):
        plane = plane + inp


def vectors(inp: Field[(F8, (2,))], out: Field[(F8, (2,))]):
    with computation(PARALLEL), interval(...):
        out[0, 0, 0][0] = inp[0, 0, 0][1]
        out[0, 0, 0][1] = 2.0 * inp[0, 0, 0][0]


def tables(table: GlobalTable[(F8, (3,))], out: Field[F8]):
    with computation(PARALLEL), interval(...):
        out = table.A[1]


def temporaries(inp: Field[F8], out: Field[F8]):
    with computation(PARALLEL), interval(...):
        laplacian = inp[1, 0, 0] + inp[-1, 0, 0] - 2.0 * inp
        out = laplacian[0, 1, 0] - laplacian[0, -1, 0]


def sweeps(inp: Field[F8], out: Field[F8], *, weight: F8 = 0.5):
    with computation(FORWARD):
        with interval(0, 1):
            out = inp
        with interval(1, None):
            out = weight * out[0, 0, -1] + inp
    with computation(BACKWARD), interval(0, -1):
        out = out + weight * out[0, 0, 1]


def externals(inp: Field[F8], out: Field[F8], flag: np.bool_):
    from __externals__ import FACTOR

    with computation(PARALLEL), interval(...):
        out = FACTOR * inp if flag else inp


def arrays_for(*names: str) -> dict[str, Any]:
    generator = np.random.default_rng(3)
    shapes = {"plane": SHAPE[:2], "level": SHAPE[2:], "table": (3,)}
    return {name: generator.random(shapes.get(name, SHAPE)) for name in names}


def vector_arrays() -> dict[str, Any]:
    generator = np.random.default_rng(3)
    return {name: generator.random((*SHAPE, 2)) for name in ("inp", "out")}


CASES: dict[str, tuple[Callable[..., None], dict[str, Any], dict[str, Any]]] = {
    "outside": (outside, arrays_for("inp", "out"), {}),
    "regions": (regions, arrays_for("inp", "out"), {"origin": (1, 1, 0), "domain": (3, 3, 2)}),
    "loops": (loops, arrays_for("inp", "out"), {}),
    "planes": (planes, arrays_for("inp", "plane", "level", "out"), {"origin": {"_all_": (0, 0, 0), "plane": (1, 0)}}),
    "reduced": (reduced, arrays_for("inp", "plane"), {"domain": [4, 4, 4]}),
    "vectors": (vectors, vector_arrays(), {"origin": (0, 1, 0)}),
    "tables": (tables, arrays_for("table", "out"), {}),
    "temporaries": (temporaries, arrays_for("inp", "out"), {"origin": {"inp": (1, 1, 0), "out": (0, 0, 0)}}),
    "sweeps": (sweeps, arrays_for("inp", "out"), {"origin": 0}),
    "sweeps, weighted": (sweeps, arrays_for("inp", "out"), {"weight": 0.75, "origin": (1, 1, 1)}),
    "externals": (externals, arrays_for("inp", "out"), {"flag": True, "validate_args": False}),
    "externals, checked": (externals, arrays_for("inp", "out"), {"flag": False, "origin": np.array([1, 0, 0])}),
    "origin too small": (temporaries, arrays_for("inp", "out"), {"origin": (0, 0, 0)}),
    "domain too large": (regions, arrays_for("inp", "out"), {"domain": (7, 5, 4)}),
    "another scalar": (sweeps, arrays_for("inp", "out"), {"weight": 1}),
    "unknown argument": (sweeps, arrays_for("inp", "out"), {"height": 1}),
    "missing argument": (sweeps, arrays_for("inp"), {}),
    "missing field": (regions, {**arrays_for("inp"), "out": None}, {}),
    "more dimensions": (reduced, {**arrays_for("inp"), "plane": np.zeros(SHAPE)}, {}),
    "other data dimensions": (vectors, {**vector_arrays(), "out": np.zeros((*SHAPE, 3))}, {}),
    "another dtype": (regions, {**arrays_for("inp"), "out": np.zeros(SHAPE, "f4")}, {}),
}


def stencil_of(definition: Any, backend: str) -> Any:
    given = {"externals": {"FACTOR": FACTOR}} if definition is externals else {}
    return gtscript.stencil(backend=backend, definition=definition, **given)


def outcome(call: Any, arrays: dict[str, Any], options: dict[str, Any], *, positional: bool) -> Any:
    """All fields after the call and the lasting part of `exec_info`; or the error."""
    copies, info = copy.deepcopy(arrays), {"__aggregate_data": True}
    try:
        if positional:
            call(*copies.values(), **options, exec_info=info)
        else:
            call(**copies, **options, exec_info=info)
    except Exception as error:
        return error
    lasting: dict[str, Any] = {key: value for key, value in info.items() if not key.endswith("_time")}
    (counters,) = [value for value in lasting.values() if isinstance(value, dict) and "ncalls" in value]
    counted = (sorted(counters), counters["ncalls"])
    where = (tuple(lasting["domain"]), {name: tuple(index) for name, index in lasting["origin"].items()})
    return {name: array.tolist() for name, array in copies.items()}, sorted(info), counted, where


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning", "ignore:The layout of the field")
@pytest.mark.parametrize("positional", [False, True], ids=["by name", "by position"])
@pytest.mark.parametrize("backend", ["numpy", "debug"])
@pytest.mark.parametrize("case", CASES)
def test_results_are_the_plain_stencils(case: str, backend: str, positional: bool) -> None:
    definition, arrays, options = CASES[case]
    stencil = stencil_of(definition, backend)
    stencil.clean_call_args_cache()
    theirs = outcome(stencil, arrays, options, positional=positional)
    for on_mismatch in ("raise", "copy"):
        ours = outcome(wrap(stencil, on_mismatch=on_mismatch), arrays, options, positional=positional)
        if isinstance(theirs, AssertionError):
            # GT4Py asserts that a field is given.
            assert isinstance(ours, TypeError), ours
            assert isinstance(ours, ValueError), ours
        elif case == "another dtype" and on_mismatch == "copy":
            assert not isinstance(ours, Exception)
        elif isinstance(theirs, Exception):
            assert isinstance(ours, type(theirs)), (ours, theirs)
            if "dimensions" in str(theirs):
                assert str(theirs) in str(ours)
        else:
            assert ours == theirs


@pytest.mark.parametrize("backend", ["numpy", "debug", "gt:cpu_kfirst", "gt:cpu_ifirst"])
def test_a_field_that_is_not_accessed_is_passed_on(backend: str) -> None:
    """The generated code takes an array for it, though the branch that reads it never runs."""
    stencil = stencil_of(outside, backend)
    assert not stencil.field_info["inp"].access
    inp = dl.ones(SHAPE, backend=backend)
    inp.to_numpy()[...] = 7.0
    turned = dl.from_array(np.ones(SHAPE[::-1]), dims="KJI")
    for given in (inp, inp.to_numpy(), inp.as_readonly(), turned):
        for options in ({}, {"on_mismatch": "copy"}):
            out = dl.ones(SHAPE, backend=backend)
            wrap(stencil, **options)(given, out)  # type: ignore[arg-type]
            assert not out.to_numpy().any()
