"""Measure import from and export to every framework, compared with the frameworks' own functions."""

from collections.abc import Iterable

import jax
import numpy as np
import torch

import dlfield as dl
import scaling
from interleaved import Case, best_times
from peers import consumers, versions
from producers import DTYPE, SHAPE, producers
from report import Line, grid, heading, table

# A call and its argument, as the tables name them.
Key = tuple[str, str]

# The measured call, the call to compare with, and the ratio to reach.
GOALS = (
    (("describe", "ndarray"), ("nanobind", "ndarray"), "at most 0.5"),
    (("describe", "torch.Tensor"), ("tvm_ffi.from_dlpack", "torch.Tensor"), "at most 0.4"),
    (("describe", "jax.Array"), ("nanobind", "jax.Array"), "at most 0.4"),
    (("from_dlpack", "ndarray"), ("np.from_dlpack", "ndarray"), "at most 0.9"),
    (("from_dlpack", "torch.Tensor"), ("tvm_ffi.from_dlpack", "torch.Tensor"), "at most 0.8"),
    (("as_torch", "tensor"), ("torch.from_dlpack", "ndarray"), "at most 0.35"),
    (("as_torch", "tensor"), ("torch.from_numpy", "ndarray"), ""),
    (("np.from_dlpack", "tensor"), ("np.from_dlpack", "ndarray"), "at most 1.1"),
)
EXPORTS = (
    (("np.from_dlpack", "tensor"), ("np.from_dlpack", "ndarray")),
    (("as_numpy", "tensor"), ("np.from_dlpack", "ndarray")),
    (("np.asarray", "tensor"), ("np.asarray", "memoryview")),
    (("torch.from_dlpack", "tensor"), ("torch.from_dlpack", "ndarray")),
    (("as_torch", "tensor"), ("torch.from_dlpack", "ndarray")),
    (("as_torch", "tensor"), ("torch.from_numpy", "ndarray")),
    (("jax.numpy.from_dlpack", "aligned tensor"), ("jax.numpy.from_dlpack", "aligned ndarray")),
    (("as_jax", "aligned tensor"), ("jax.numpy.from_dlpack", "aligned ndarray")),
    (("tvm_ffi.from_dlpack", "tensor"), ("tvm_ffi.from_dlpack", "ndarray")),
)

DOCUMENT = """\
{heading}
## Importing an array

Nanoseconds for one call of the function of each column with the array of each row. `no-op` is a C function that does
nothing, called from the same loop: no call takes less. "refuses" means an exception, "misreads" a wrong result.

{reading}
## Ratios to reach

The comparisons that have a goal, from the same run.

{goals}
## Exporting a tensor

A `Tensor` exported to each framework, beside the same framework's import of a NumPy array. Aligned arrays begin at a
multiple of 64 bytes; JAX copies other arrays.

{exports}
{scaling}"""


def measure() -> tuple[list[Line], str]:
    """Measure all calls in one interleaved run, then how their times grow.

    Returns the comparisons with a ratio to reach, and the text for `docs/exchange.md`.
    """
    calls, arrays = consumers(), producers()
    pairs = {(name, kind): (calls[name], array) for name in calls for kind, array in arrays.items()}
    cells = {key: consumer.verdict(array) for key, (consumer, array) in pairs.items()}
    cases: dict[Key, Case] = {
        key: (consumer.call, consumer.argument(array)) for key, (consumer, array) in pairs.items() if not cells[key]
    }
    times = best_times(cases | _export_cases(arrays["tensor"]), rounds=150, turn=0.002)
    cells |= {key: f"{times[key]:.0f}" for key in cases}
    goals = _lines(times, GOALS)
    document = DOCUMENT.format(
        heading=heading(versions()),
        reading=grid(["array", *calls], [[kind, *(cells[name, kind] for name in calls)] for kind in arrays]),
        goals=table(goals),
        exports=table(_lines(times, [(*pair, "") for pair in EXPORTS])),
        scaling=scaling.document(calls),
    )
    return goals, document


def _export_cases(tensor: dl.Tensor) -> dict[Key, Case]:
    """Return the calls of `EXPORTS` and `GOALS` that `consumers` and `producers` do not cover."""
    array = np.zeros(SHAPE, DTYPE)
    aligned = dl.zeros(SHAPE, DTYPE, backend="jax")
    aligned_array = dl.as_numpy(dl.zeros(SHAPE, DTYPE, backend="jax"))
    return {
        ("as_numpy", "tensor"): (dl.as_numpy, tensor),
        ("as_torch", "tensor"): (dl.as_torch, tensor),
        ("as_jax", "aligned tensor"): (dl.as_jax, aligned),
        ("np.asarray", "tensor"): (np.asarray, tensor),
        ("np.asarray", "memoryview"): (np.asarray, array.data),
        ("torch.from_numpy", "ndarray"): (torch.from_numpy, array),
        ("jax.numpy.from_dlpack", "aligned tensor"): (jax.numpy.from_dlpack, aligned),
        ("jax.numpy.from_dlpack", "aligned ndarray"): (jax.numpy.from_dlpack, aligned_array),
    }


def _lines(times: dict[Key, float], comparisons: Iterable[tuple[Key, Key, str]]) -> list[Line]:
    return [
        Line("`{}({})`".format(*what), times[what], "`{}({})`".format(*peer), times[peer], reach)
        for what, peer, reach in comparisons
    ]
