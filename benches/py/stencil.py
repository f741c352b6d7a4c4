"""Measure a compiled GT4Py stencil on fields of dlfield and of GT4Py, and the wrapped stencil against the plain one."""

from functools import partial
from typing import Any

import numpy as np
import torch
from gt4py import storage
from gt4py.cartesian import gtscript

import dlfield as dl
import dlfield.gt4py
from interleaved import Case, best_times
from laplacian import laplacian
from report import Line

DOMAINS = ((128, 128, 80), (4, 4, 4))


def _case(stencil: Any, module: Any, backend: str, domain: tuple[int, int, int]) -> Case:
    """Return a call of the stencil and its output field; `module` allocates the fields."""
    shape = (domain[0] + 2, domain[1] + 2, domain[2])
    inp = module.from_array(np.random.default_rng(1).random(shape), backend=backend)
    out = module.zeros(shape, backend=backend)
    return lambda out: stencil(inp, out, origin=(1, 1, 0), domain=domain), out


def lines() -> list[Line]:
    """Measure both backends, a large and a tiny domain, `Tensor` fields and arrays of `dlfield.gt4py`."""
    found = []
    dlfield.gt4py.prepare_build()
    for backend in ("gt:cpu_kfirst", "gt:cpu_ifirst"):
        stencil = gtscript.stencil(backend=backend)(laplacian)
        for domain in DOMAINS:
            modules = {"gt4py.storage": storage, "dlfield.gt4py": dlfield.gt4py, "dlfield": dl}
            cases = {name: _case(stencil, module, backend, domain) for name, module in modules.items()}
            times = best_times(cases, rounds=40, turn=0.01)
            results = [np.asarray(out) for _, out in cases.values()]
            for other in results[1:]:
                np.testing.assert_array_equal(other, results[0])
            peer = times["gt4py.storage"]
            for name in ("dlfield.gt4py", "dlfield"):
                what = f"{backend} Laplacian on {domain}, fields of `{name}`"
                found.append(Line(what, times[name], "of `gt4py.storage`", peer, 1))
            if backend == "gt:cpu_kfirst":
                found += _wrapped(stencil, backend, domain)
    return found


def _wrapped(stencil: Any, backend: str, domain: tuple[int, int, int]) -> list[Line]:
    """Measure the wrapped stencil and the plain stencil on arrays of NumPy and PyTorch, and on fields of dlfield.

    The peer of the latter is the plain stencil on NumPy's arrays: what a call without labels costs.
    """
    shape = (domain[0] + 2, domain[1] + 2, domain[2])
    inp = np.random.default_rng(1).random(shape)
    arguments: dict[str, tuple[Any, Any]] = {
        "NumPy arrays": (inp, np.zeros(shape)),
        "PyTorch tensors": (torch.from_numpy(inp), torch.zeros(shape, dtype=torch.float64)),
        "fields of `dlfield`": (dl.from_array(inp, backend=backend), dl.zeros(shape, backend=backend)),
    }
    of_fields = 0.8 if domain == (4, 4, 4) else 1.0
    goals = {
        "NumPy arrays": ("the plain stencil", "NumPy arrays", 1.0),
        "PyTorch tensors": ("the plain stencil", "PyTorch tensors", 1.0),
        "fields of `dlfield`": ("the plain stencil, NumPy arrays", "NumPy arrays", of_fields),
    }
    calls = {"plain": stencil, "wrapped": dlfield.gt4py.wrap(stencil)}
    cases: dict[tuple[str, str], Case] = {
        (which, what): (partial(_call, call, given, domain), out)
        for what, (given, out) in arguments.items()
        for which, call in calls.items()
    }
    times = best_times(cases, rounds=40, turn=0.01)
    results = [np.asarray(out) for _, out in arguments.values()]
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])
    return [
        Line(
            f"{backend} Laplacian on {domain}, `dlfield.gt4py.wrap`, {what}",
            times["wrapped", what],
            peer,
            times["plain", plainly],
            goal,
        )
        for what, (peer, plainly, goal) in goals.items()
    ]


def _call(call: Any, inp: Any, domain: tuple[int, int, int], out: Any) -> None:
    call(inp, out, origin=(1, 1, 0), domain=domain)
