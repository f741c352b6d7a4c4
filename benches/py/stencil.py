"""A compiled GT4Py stencil on our fields, next to the same stencil on GT4Py's own."""

from typing import Any

import numpy as np
from gt4py import storage
from gt4py.cartesian import gtscript

import dlfield as dl
import dlfield.gt4py
from interleaved import Case, best_times
from report import Line

DOMAINS = ((128, 128, 80), (4, 4, 4))


def laplacian(inp: gtscript.Field[np.float64], out: gtscript.Field[np.float64]) -> None:
    with computation(PARALLEL), interval(...):  # type: ignore[name-defined]  # noqa: F821
        out = (  # noqa: F841
            inp[-1, 0, 0] + inp[1, 0, 0] + inp[0, -1, 0] + inp[0, 1, 0] - 4.0 * inp[0, 0, 0]
        )


def _case(stencil: Any, module: Any, backend: str, domain: tuple[int, int, int]) -> Case:
    """Return a call of the stencil, and the output field to call it with; a module has allocated its fields."""
    shape = (domain[0] + 2, domain[1] + 2, domain[2])
    inp = module.from_array(np.random.default_rng(1).random(shape), backend=backend)
    out = module.zeros(shape, backend=backend)
    return lambda out: stencil(inp, out, origin=(1, 1, 0), domain=domain), out


def lines() -> list[Line]:
    """Measure both backends, a large and a tiny domain, our tensors and the drop-in's arrays."""
    found = []
    for backend in ("gt:cpu_kfirst", "gt:cpu_ifirst"):
        stencil = gtscript.stencil(backend=backend)(laplacian)
        for domain in DOMAINS:
            modules = {"gt4py.storage": storage, "dlfield.gt4py": dlfield.gt4py, "dlfield": dl}
            cases = {name: _case(stencil, module, backend, domain) for name, module in modules.items()}
            times = best_times(cases, rounds=40, turn=0.05)
            results = [np.asarray(out) for _, out in cases.values()]
            for other in results[1:]:
                np.testing.assert_array_equal(other, results[0])
            peer = times["gt4py.storage"]
            for name in ("dlfield.gt4py", "dlfield"):
                what = f"{backend} Laplacian on {domain}, fields of `{name}`"
                found.append(Line(what, times[name], "of `gt4py.storage`", peer, "at most 1"))
    return found
