"""Measure arguments of Rust functions beside nanobind and rust-numpy, and loops beside slices and loops over strides.

The functions are in `examples/rust_extension`, which `make bench` builds with the feature `peers`.
"""

from functools import partial
from typing import Any

import numpy as np
import torch

import dlfield as dl
import rust_extension as extension
from interleaved import Case, best_times
from peers import build_nanobind, consumers
from report import Line

SMALL = (8, 8, 8)
LARGE = (128, 128, 80)


def lines() -> list[Line]:
    """Measure the cost of an argument, the loops, then the traversal of views."""
    return [*_arguments(), *_loops(), *_sums(), *_updates()]


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
        ("ndim(ndarray)", "nanobind(ndarray)", 0.6),
        ("ndim(ndarray)", "PyReadonlyArray3", 1),
        ("ndim(ndarray)", "PyReadonlyArrayDyn", 1),
        ("ndim(torch.Tensor)", "nanobind(torch.Tensor)", 0.1),
    )
    return [Line(f"Rust `{what}`", times[what], f"`{peer}`", times[peer], reach) for what, peer, reach in beside]


def _loops() -> list[Line]:
    inp, out = np.random.default_rng(1).random(LARGE), np.zeros(LARGE)
    field, result = (dl.from_array(array, backend="gt:cpu_ifirst") for array in (inp, out))
    reach = 1.1
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


def _views() -> dict[str, Any]:
    """Return views of all kinds of layouts, by what they are in C order's terms."""
    rows = np.random.default_rng(1).random((*LARGE[:2], LARGE[2] + 8))
    array = np.ascontiguousarray(rows[..., : LARGE[2]])
    return {
        "contiguous": array,
        "F order": np.asfortranarray(array),
        "transposed": array.transpose(1, 2, 0),
        "padded rows": rows[..., : LARGE[2]],
        "[:, :, ::2]": array[:, :, ::2],
        "[::2, ::2, ::2]": array[::2, ::2, ::2],
    }


def _sums() -> list[Line]:
    """Measure `sum` beside the fastest peer, and one addition after the other beside the same loop by hand."""
    peers = extension.peers
    found = []
    for what, view in _views().items():
        beside: dict[str, Case] = {
            "a loop by hand": (peers.sum_loop, view),
            "nanobind's loop": (build_nanobind().sum, view),
            "ndarray's `sum`": (peers.sum_ndarray, view),
            "ndarray's `iter`": (peers.sum_iter, view),
        }
        own: dict[str, Case] = {"`sum`": (extension.sum, view), "`fold`": (peers.sum_fold, view)}
        times = best_times(own | beside, rounds=30, turn=0.005)
        fastest = min(beside, key=times.__getitem__)
        for name, peer in (("`sum`", fastest), ("`fold`", "a loop by hand")):
            found.append(Line(f"Rust {name}, {LARGE}, {what}", times[name], peer, times[peer], 1))
    return found


def _updates() -> list[Line]:
    """Measure `out += 2 * inp` beside the fastest peer."""
    peers = extension.peers
    array = np.random.default_rng(1).random(LARGE)
    pairs = {
        "contiguous": (array, np.zeros(LARGE)),
        "transposed": (array.transpose(1, 2, 0), np.zeros(LARGE).transpose(1, 2, 0)),
        "[:, :, ::2]": (array[:, :, ::2], np.zeros(LARGE)[:, :, ::2]),
        "[::2, ::2, ::2]": (array[::2, ::2, ::2], np.zeros(LARGE)[::2, ::2, ::2]),
        "[1:-1, 1:-1, 1:-1]": (array[1:-1, 1:-1, 1:-1], np.zeros(LARGE)[1:-1, 1:-1, 1:-1]),
        "C order to F order": (array, np.zeros(LARGE, order="F")),
    }
    found = []
    for what, (inp, out) in pairs.items():
        beside = {"a loop by hand": peers.add_scaled_loop, "`Zip`": peers.add_scaled_zip}
        cases: dict[str, Case] = {
            name: (partial(function, 2.0, inp), out)
            for name, function in {"`zip`": extension.add_scaled, **beside}.items()
        }
        times = best_times(cases, rounds=30, turn=0.005)
        fastest = min(beside, key=times.__getitem__)
        found.append(Line(f"Rust `zip`, {LARGE}, {what}", times["`zip`"], fastest, times[fastest], 1))
    return found
