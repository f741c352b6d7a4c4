"""Measure arguments of Rust functions, compared with nanobind and rust-numpy, and loops compared with slices.

The functions are in `examples/rust_extension`, which `make bench` builds with the feature `peers`.
"""

from functools import partial

import numpy as np
import torch

import dlfield as dl
import rust_extension as extension
from interleaved import Case, best_times
from peers import consumers
from report import Line

SMALL = (8, 8, 8)
LARGE = (128, 128, 80)


def lines() -> list[Line]:
    """Measure the cost of an argument, then the loops."""
    return [*_arguments(), *_loops()]


def _arguments() -> list[Line]:
    nanobind, numpy_array, torch_tensor = consumers()["nanobind"].call, np.zeros(SMALL), torch.zeros(SMALL)
    cases: dict[str, Case] = {
        "ndim(ndarray)": (extension.ndim, numpy_array),
        "nanobind(ndarray)": (nanobind, numpy_array),
        "PyReadonlyArray3": (extension.peers.ndim3, numpy_array),
        "PyReadonlyArrayDyn": (extension.peers.ndim, numpy_array),
        "ndim(torch.Tensor)": (extension.ndim, torch_tensor),
        "nanobind(torch.Tensor)": (nanobind, torch_tensor),
    }
    times = best_times(cases, rounds=100, turn=0.002)
    beside = (
        ("ndim(ndarray)", "nanobind(ndarray)", "at most 0.6"),
        ("ndim(ndarray)", "PyReadonlyArray3", "at most 1"),
        ("ndim(ndarray)", "PyReadonlyArrayDyn", "at most 1"),
        ("ndim(torch.Tensor)", "nanobind(torch.Tensor)", "at most 0.1"),
    )
    return [Line(f"Rust `{what}`", times[what], f"`{peer}`", times[peer], reach) for what, peer, reach in beside]


def _loops() -> list[Line]:
    inp, out = np.random.default_rng(1).random(LARGE), np.zeros(LARGE)
    field, result = (dl.from_array(array, backend="gt:cpu_ifirst") for array in (inp, out))
    reach = "at most 1.1"
    found = []
    for what, peer, mine, reference in (
        ("sum", "a slice's", (extension.sum, inp), (extension.peers.sum, inp)),
        ("sum", "a slice's", (extension.sum, field), (extension.peers.sum, inp)),
        (
            "laplacian",
            "over slices",
            (partial(extension.laplacian, inp), out),
            (partial(extension.peers.laplacian, inp), out),
        ),
        (
            "laplacian",
            "over slices",
            (partial(extension.laplacian, field), result),
            (partial(extension.peers.laplacian, inp), out),
        ),
    ):
        times = best_times({"mine": mine, "reference": reference}, rounds=30, turn=0.01)
        kind = "gt:cpu_ifirst" if isinstance(mine[1], dl.Tensor) else "ndarray"
        found.append(Line(f"Rust `{what}`, {LARGE}, {kind}", times["mine"], peer, times["reference"], reach))
    return found
