"""Measure import from and export to every framework, compared with the frameworks' own functions."""

from collections.abc import Iterable

import jax
import numpy as np
import torch

import dlfield as dl
import scaling
import three_arrays
from interleaved import Case, Time, best_times
from peers import consumers
from producers import DTYPE, SHAPE, producers
from report import Grid, Line

# A call and its argument, as the tables name them.
Key = tuple[str, str]

# The peers of `describe`, and those of `from_dlpack`, which shares ownership.
OWNING = ("tvm_ffi.from_dlpack", "np.from_dlpack", "np.asarray", "torch.from_dlpack", "dlpark")
DESCRIBING = ("nanobind", "cuda.core", *OWNING)

# The measured call, the call to compare with, and the ratio to reach; other calls are compared with their fastest peer.
GOALS = (
    (("describe", "ndarray"), ("nanobind", "ndarray"), 0.5),
    (("describe", "torch.Tensor"), ("tvm_ffi.from_dlpack", "torch.Tensor"), 0.4),
    (("describe", "jax.Array"), ("nanobind", "jax.Array"), 0.4),
    (("from_dlpack", "ndarray"), ("np.from_dlpack", "ndarray"), 0.9),
    (("from_dlpack", "torch.Tensor"), ("tvm_ffi.from_dlpack", "torch.Tensor"), 0.8),
)
EXPORTS = (
    (("np.from_dlpack", "tensor"), ("np.from_dlpack", "ndarray"), 1.1),
    (("as_numpy", "tensor"), ("np.from_dlpack", "ndarray"), 1),
    (("np.asarray", "tensor"), ("np.asarray", "memoryview"), 1),
    (("torch.from_dlpack", "tensor"), ("torch.from_dlpack", "ndarray"), 1),
    (("as_torch", "tensor"), ("torch.from_dlpack", "ndarray"), 0.35),
    (("as_torch", "tensor"), ("torch.from_numpy", "ndarray"), 1),
    (("jax.numpy.from_dlpack", "aligned tensor"), ("jax.numpy.from_dlpack", "aligned ndarray"), 1),
    (("as_jax", "aligned tensor"), ("jax.numpy.from_dlpack", "aligned ndarray"), 1),
    (("tvm_ffi.from_dlpack", "tensor"), ("tvm_ffi.from_dlpack", "ndarray"), 1),
)


def measure() -> tuple[list[Line], list[Grid]]:
    """Measure all calls in one interleaved run, then how their times grow."""
    peers, arrays = consumers(), producers()
    pairs = {(name, kind): (peers[name], array) for name in peers for kind, array in arrays.items()}
    cells = {key: consumer.verdict(array) for key, (consumer, array) in pairs.items()}
    cases: dict[Key, Case] = {
        key: (consumer.call, consumer.argument(array)) for key, (consumer, array) in pairs.items() if not cells[key]
    }
    times = best_times(cases | _export_cases(arrays["tensor"]), rounds=150, turn=0.002)
    cells |= {key: f"{times[key]:.0f}" for key in cases}
    imports = [*_with_fastest(times, arrays), *_lines(times, GOALS)]
    exports, called = _lines(times, EXPORTS), three_arrays.lines()
    reading = Grid(
        "exchange",
        "importing an array, ns",
        ["array", *peers],
        [[kind, *(cells[name, kind] for name in peers)] for kind in arrays],
    )
    return [*imports, *called, *exports], [reading, *scaling.measure(peers)]


def _with_fastest(times: dict[Key, Time], arrays: Iterable[str]) -> list[Line]:
    """Compare each call that has no goal of its own with the fastest peer that takes the array."""
    given, found = {what for what, _, _ in GOALS}, []
    for call, peers in (("describe", DESCRIBING), ("from_dlpack", OWNING)):
        for kind in arrays:
            able = [(peer, kind) for peer in peers if (peer, kind) in times]
            if (call, kind) not in given:
                found.append(((call, kind), min(able, key=times.__getitem__), 1))
    return _lines(times, found)


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


def _lines(times: dict[Key, Time], comparisons: Iterable[tuple[Key, Key, float]]) -> list[Line]:
    return [
        Line("`{}({})`".format(*what), times[what], "`{}({})`".format(*peer), times[peer], reach)
        for what, peer, reach in comparisons
    ]
