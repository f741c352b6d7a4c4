"""Measure binding of stencil arguments, compared with GT4Py's own work on them in every call."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from gt4py.cartesian import stencil_object

import dlfield as dl
from interleaved import best_times
from report import Line

SHAPE = (8, 8, 8)
COUNTS = (1, 4, 16)
EXTRACT = stencil_object._extract_array_infos
KINDS: dict[str, Callable[[], Any]] = {
    "numpy": partial(np.zeros, SHAPE),
    "torch": partial(torch.zeros, SHAPE, dtype=torch.float64),
}


def lines() -> list[Line]:
    """Measure calls with several numbers of fields, the first of them written; times are per field.

    Both start from the arrays, like a stencil call; for GT4Py this includes making a dictionary of them.
    """
    found = []
    for kind, make in KINDS.items():
        for count in COUNTS:
            names = [f"f{number}" for number in range(count)]
            specs: dict[str, Any] = {
                name: dl.FieldSpec("float64", "IJK", access="w" if name == "f0" else "r") for name in names
            }
            arrays = [make() for _ in names]
            given = ", ".join(f"{name}=arrays[{number}]" for number, name in enumerate(names))
            pairs = ", ".join(f"'{name}': arrays[{number}]" for number, name in enumerate(names))
            times = best_times(
                {
                    "bind": (_function(f"bind({given})", bind=dl.Signature(**specs).bind), arrays),
                    "gt4py": (_function(f"extract({{{pairs}}}, 'cpu')", extract=EXTRACT), arrays),
                },
                rounds=60,
                turn=0.005,
            )
            what = f"`Signature.bind`, {count} {kind} field{'s' if count > 1 else ''}, each"
            peer = "GT4Py's `_extract_array_infos`"
            found.append(Line(what, times["bind"] / count, peer, times["gt4py"] / count, "at most 0.15"))
    return found


def _function(body: str, **names: Any) -> Callable[[list[Any]], object]:
    """Return a function of a list of arrays, compiled from an expression as in a stencil wrapper."""
    function: Callable[[list[Any]], object] = eval(f"lambda arrays: {body}", names)
    return function
