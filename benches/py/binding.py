"""Binding the arguments of a stencil, next to what GT4Py does with its own at every call."""

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
KINDS: dict[str, Callable[[], Any]] = {
    "numpy": partial(np.zeros, SHAPE),
    "torch": partial(torch.zeros, SHAPE, dtype=torch.float64),
}


def lines() -> list[Line]:
    """Measure calls with so many fields, the first of them written; times are per field."""
    found = []
    for kind, make in KINDS.items():
        for count in COUNTS:
            fields = {f"f{number}": make() for number in range(count)}
            specs: dict[str, Any] = {
                name: dl.FieldSpec("float64", "IJK", access="w" if name == "f0" else "r") for name in fields
            }
            times = best_times(
                {
                    "bind": (_bind(dl.Signature(**specs).bind), fields),
                    "gt4py": (_extract, fields),
                },
                rounds=60,
                turn=0.005,
            )
            what = f"`Signature.bind`, {count} {kind} field{'s' if count > 1 else ''}, each"
            peer = "GT4Py's `_extract_array_infos`"
            found.append(Line(what, times["bind"] / count, peer, times["gt4py"] / count, "at most 0.15"))
    return found


def _bind(bind: Callable[..., object]) -> Callable[[dict[str, Any]], object]:
    return lambda fields: bind(**fields)


def _extract(fields: dict[str, Any]) -> object:
    return stencil_object._extract_array_infos(fields, "cpu")
