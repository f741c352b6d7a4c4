"""Measure arguments and loops of Rust, compared with nanobind, rust-numpy, slices and loops over strides.

The functions are in `examples/rust_extension`, which `make bench` builds with the feature `peers`.
"""

from functools import partial
from typing import Any

import numpy as np
import torch

import dlfield as dl
import rust_extension as extension
from interleaved import Case, best_times
from peers import build_crate, build_nanobind, consumers
from producers import DLPackOnly
from report import Line

SMALL = (8, 8, 8)
LARGE = (128, 128, 80)


def lines() -> list[Line]:
    """Measure the cost of an argument and of a returned tensor, the loops, then the traversal of views."""
    return [*_arguments(), *_views(), *_checked_views(), *_imports(), *_returns(), *_loops(), *_sums(), *_updates()]


def _arguments() -> list[Line]:
    nanobind, numpy_array, torch_tensor = consumers()["nanobind"].call, np.zeros(SMALL), torch.zeros(SMALL)
    field = dl.zeros(SMALL, halo=(1, 1, 1))
    cases: dict[str, Case] = {
        "ndim(ndarray)": (extension.ndim, numpy_array),
        "nanobind(ndarray)": (nanobind, numpy_array),
        "PyReadonlyArray3": (extension.peers.ndim3, numpy_array),
        "PyReadonlyArrayDyn": (extension.peers.ndim, numpy_array),
        "ndim(Tensor)": (extension.ndim, field),
        "nanobind(Tensor)": (nanobind, field),
        "ndim(read-only Tensor)": (extension.ndim, field.as_readonly()),
        "ndim(torch.Tensor)": (extension.ndim, torch_tensor),
        "nanobind(torch.Tensor)": (nanobind, torch_tensor),
    }
    times = best_times(cases, rounds=100, turn=0.002)
    compared = (
        ("ndim(ndarray)", "nanobind(ndarray)", 0.6),
        ("ndim(ndarray)", "PyReadonlyArray3", 1),
        ("ndim(ndarray)", "PyReadonlyArrayDyn", 1),
        ("ndim(Tensor)", "ndim(ndarray)", 0.8),
        ("ndim(Tensor)", "nanobind(Tensor)", 1),
        ("ndim(read-only Tensor)", "ndim(ndarray)", 0.8),
        ("ndim(torch.Tensor)", "nanobind(torch.Tensor)", 0.1),
    )
    return [Line(f"Rust `{what}`", times[what], f"`{peer}`", times[peer], reach) for what, peer, reach in compared]


def _views() -> list[Line]:
    """Measure functions that read or write one element by a view. rust-numpy borrows from dlfield's list here."""
    peers, nanobind = extension.peers, build_nanobind()
    array, field = np.zeros(SMALL), dl.zeros(SMALL, halo=(1, 1, 1))
    cases: dict[str, Case] = {
        "`In::array`": (peers.read, array),
        "`PyReadonlyArray3::as_array`": (peers.numpy_read, array),
        "nanobind's `ndarray<const double>`": (nanobind.read, array),
        "`Out::array_mut`": (peers.write, array),
        "`PyReadwriteArray3::as_array_mut`": (peers.numpy_write, array),
        "nanobind's `ndarray<double>`": (nanobind.write, array),
        "`AnyIn::view`": (peers.read_any, array),
        "`PyUntypedArray`, cast": (peers.numpy_read_any, array),
        "`OrCopy::array`": (peers.read_or_copy, array),
        "`PyArrayLike3::as_array`": (peers.numpy_read_or_copy, array),
        "`In::array` of a Tensor": (peers.read, field),
        "`Out::array_mut` of a Tensor": (peers.write, field),
        "nanobind's, of a Tensor": (nanobind.read, field),
    }
    times = best_times(cases, rounds=100, turn=0.002)
    compared = (
        ("`In::array`", "`PyReadonlyArray3::as_array`", 0.7),
        ("`In::array`", "nanobind's `ndarray<const double>`", 1),
        ("`Out::array_mut`", "`PyReadwriteArray3::as_array_mut`", 0.8),
        ("`Out::array_mut`", "nanobind's `ndarray<double>`", 1),
        ("`AnyIn::view`", "`PyUntypedArray`, cast", 1),
        ("`OrCopy::array`", "`PyArrayLike3::as_array`", 1),
        ("`In::array` of a Tensor", "nanobind's, of a Tensor", 1),
        ("`Out::array_mut` of a Tensor", "nanobind's, of a Tensor", 1),
    )
    return [Line(f"Rust {what}", times[what], peer, times[peer], reach) for what, peer, reach in compared]


def _checked_views() -> list[Line]:
    """Measure functions that read or write one element after a look at element type and rank, or at the labels."""
    peers, nanobind = extension.peers, build_nanobind()
    array, field = np.zeros(SMALL), dl.zeros(SMALL, halo=(1, 1, 1))
    cases: dict[str, Case] = {
        "`AnyIn::view` by type and rank": (peers.read_by_type, array),
        "`PyUntypedArray` by type and rank, to read": (peers.numpy_read_by_type, array),
        "nanobind's `ndarray<ro>` by type and rank": (nanobind.read_by_type, array),
        "`Out<Any>::view_mut` by type and rank": (peers.write_by_type, array),
        "`PyUntypedArray` by type and rank, to write": (peers.numpy_write_by_type, array),
        "nanobind's `ndarray<>` by type and rank": (nanobind.write_by_type, array),
        "`In::labelled`, labels checked, of a Tensor": (peers.read_labelled, field),
        "`In::array` of a Tensor": (peers.read, field),
        "nanobind's, labels checked, of a Tensor": (nanobind.read_labelled, field),
    }
    times = best_times(cases, rounds=100, turn=0.002)
    compared = (
        ("`AnyIn::view` by type and rank", "`PyUntypedArray` by type and rank, to read"),
        ("`AnyIn::view` by type and rank", "nanobind's `ndarray<ro>` by type and rank"),
        ("`Out<Any>::view_mut` by type and rank", "`PyUntypedArray` by type and rank, to write"),
        ("`Out<Any>::view_mut` by type and rank", "nanobind's `ndarray<>` by type and rank"),
        ("`In::labelled`, labels checked, of a Tensor", "nanobind's, labels checked, of a Tensor"),
        ("`In::labelled`, labels checked, of a Tensor", "`In::array` of a Tensor"),
    )
    return [Line(f"Rust {what}", times[what], peer, times[peer]) for what, peer in compared]


def _imports() -> list[Line]:
    """Measure an argument of any type, and one to read, compared with the imports of dlpark and pyo3-dlpack."""
    dlpark, pyo3_dlpack = build_crate("dlpark_peer"), build_crate("pyo3_dlpack_peer")
    found = []
    # No goal is set for an object that has the methods of DLPack only.
    for what, array, reach in (
        ("ndarray", np.zeros(SMALL), 1),
        ("torch.Tensor", torch.zeros(SMALL), 1),
        ("Tensor", dl.zeros(SMALL), 1),
        ("DLPack only", DLPackOnly(np.zeros(SMALL)), None),
    ):
        times = best_times(
            {"mine": (extension.ndim, array), "dlpark": (dlpark.take, array), "pyo3": (pyo3_dlpack.take, array)}
        )
        for peer, name in (("dlpark", "`dlpark`"), ("pyo3", "`pyo3-dlpack`")):
            found.append(Line(f"Rust `AnyIn`, {what}", times["mine"], name, times[peer], reach))
    array = DLPackOnly(np.zeros(SMALL))
    times = best_times(
        {
            "mine": (extension.peers.read, array),
            "dlpark": (dlpark.read, array),
            "nanobind": (build_nanobind().read, array),
        }
    )
    for peer, name in (("dlpark", "`dlpark`"), ("nanobind", "nanobind's `ndarray<const double>`")):
        found.append(Line("Rust `In::array`, DLPack only", times["mine"], name, times[peer]))
    return found


def _returns() -> list[Line]:
    """Measure tensors that are made in Rust: on the memory of a vector, and a field with a halo and padded rows."""
    peers, stop, shape = extension.peers, 8, (4, 4, 4)
    cases: dict[str, Case] = {
        "count_to": (extension.count_to, stop),
        "rust-numpy's `count_to`": (peers.count_to, stop),
        "nanobind's `count_to`": (build_nanobind().count_to, stop),
        "make_field": (extension.make_field, shape),
        "rust-numpy's `zeros`": (peers.zeros, shape),
        "`dl.zeros` with preset and halo": (partial(dl.zeros, backend="gt:cpu_ifirst", halo=(1, 1, 1)), shape),
    }
    times = best_times(cases, rounds=100, turn=0.002)
    compared = (
        ("count_to", "rust-numpy's `count_to`"),
        ("count_to", "nanobind's `count_to`"),
        ("make_field", "rust-numpy's `zeros`"),
        ("make_field", "`dl.zeros` with preset and halo"),
    )
    return [Line(f"Rust `{what}`", times[what], peer, times[peer], 1) for what, peer in compared]


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


def _layouts() -> dict[str, Any]:
    """Return views of all kinds of layouts, named in terms of C order."""
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
    """Measure `sum` against the fastest peer, and sequential additions against the same loop by hand."""
    peers = extension.peers
    found = []
    for what, view in _layouts().items():
        compared: dict[str, Case] = {
            "a loop by hand": (peers.sum_loop, view),
            "nanobind's loop": (build_nanobind().sum, view),
            "ndarray's `sum`": (peers.sum_ndarray, view),
            "ndarray's `iter`": (peers.sum_iter, view),
        }
        own: dict[str, Case] = {"`sum`": (extension.sum, view), "`fold`": (peers.sum_fold, view)}
        times = best_times(own | compared, rounds=30, turn=0.005)
        fastest = min(compared, key=times.__getitem__)
        for name, peer in (("`sum`", fastest), ("`fold`", "a loop by hand")):
            found.append(Line(f"Rust {name}, {LARGE}, {what}", times[name], peer, times[peer], 1))
    return found


def _updates() -> list[Line]:
    """Measure `out += 2 * inp` against the fastest peer."""
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
        compared = {"a loop by hand": peers.add_scaled_loop, "`Zip`": peers.add_scaled_zip}
        cases: dict[str, Case] = {
            name: (partial(function, 2.0, inp), out)
            for name, function in {"`zip`": extension.add_scaled, **compared}.items()
        }
        times = best_times(cases, rounds=30, turn=0.005)
        fastest = min(compared, key=times.__getitem__)
        found.append(Line(f"Rust `zip`, {LARGE}, {what}", times["`zip`"], fastest, times[fastest], 1))
    return found
