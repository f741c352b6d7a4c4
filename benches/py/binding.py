"""Measure binding of stencil arguments, compared with GT4Py's own work on them in every call, and with nanobind."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import torch
from gt4py.cartesian import stencil_object

import dlfield as dl
from interleaved import best_times
from peers import build_nanobind
from report import Line

SHAPE = (8, 8, 8)
COUNTS = (1, 4, 16)
EXTRACT = stencil_object._extract_array_infos
KINDS: dict[str, Callable[[], Any]] = {
    "numpy": partial(np.zeros, SHAPE),
    "torch": partial(torch.zeros, SHAPE, dtype=torch.float64),
}


def lines() -> list[Line]:
    """Measure `bind`, then kernels."""
    return [*_bind(), *_kernels()]


def _bind() -> list[Line]:
    """Measure calls with several numbers of fields, the first of them written; times are per field.

    Both start from the arrays, like a stencil call; for GT4Py this includes making a dictionary of them. `bind` is
    called as a method: Python passes 16 keywords to a stored `signature.bind` in a dictionary.
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
                    "bind": (
                        _function(f"signature.bind({given})", ["arrays"], signature=dl.Signature(**specs)),
                        arrays,
                    ),
                    "gt4py": (_function(f"extract({{{pairs}}}, 'cpu')", ["arrays"], extract=EXTRACT), arrays),
                },
                rounds=60,
                turn=0.005,
            )
            what = f"`Signature.bind`, {count} {kind} field{'s' if count > 1 else ''}, each"
            peer = "GT4Py's `_extract_array_infos`"
            found.append(Line(what, times["bind"].per(count), peer, times["gt4py"].per(count), 0.15))
    return found


def _kernels() -> list[Line]:
    """Measure whole calls of an empty kernel, compared with `bind` in a `with` statement around the same call.

    The nanobind functions check the same element type, number of dimensions and device.
    """
    nanobind = build_nanobind()
    found = []
    for count in COUNTS:
        names = [f"f{number}" for number in range(count)]
        specs: dict[str, Any] = {
            name: dl.FieldSpec("float64", "IJK", access="w" if name == "f0" else "r") for name in names
        }
        body = _function("None", names)
        body.__annotations__ = specs
        arrays = [np.zeros(SHAPE) for _ in names]
        values = [f"arrays[{number}]" for number in range(count)]
        given = ", ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))
        fields = ", ".join(f"fields.{name}" for name in names)
        with_bind = f"with signature.bind({given}) as fields: body({fields})"
        call = f"call({', '.join(values)})"
        functions = {
            "kernel": _function(call, ["arrays"], call=dl.kernel(body)),
            "bind": _function(with_bind, ["arrays"], signature=dl.Signature(**specs), body=body),
            "nanobind": _function(call, ["arrays"], call=getattr(nanobind, f"fields{count}")),
        }
        cases = {name: (function, arrays) for name, function in functions.items()}
        times = best_times(cases, rounds=60, turn=0.005)
        what = f"`@dl.kernel`, {count} numpy field{'s' if count > 1 else ''}"
        found.append(Line(what, times["kernel"], "`with` `bind`", times["bind"], more=150))
        found.append(Line(what, times["kernel"], "nanobind", times["nanobind"]))
    return found


def _function(body: str, parameters: Iterable[str], /, **names: Any) -> Callable[..., Any]:
    """Return a function compiled from a statement, as in a stencil wrapper."""
    namespace = dict(names)
    exec(f"def function({', '.join(parameters)}):\n    {body}", namespace)
    function: Callable[..., Any] = namespace["function"]
    return function
