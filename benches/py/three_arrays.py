"""Measure calls of an empty function with three arrays of one element, by every binding library."""

from typing import Any

import jax
import numpy as np
import torch
import tvm_ffi

import dlfield as dl
import rust_extension as extension
from interleaved import Case, best_times, three_arguments
from peers import build_nanobind
from report import Line

# Each makes three arrays of one float32.
KINDS: dict[str, tuple[Any, ...]] = {
    "NumPy": tuple(np.ones(1, "float32") for _ in range(3)),
    "PyTorch": tuple(torch.ones(1) for _ in range(3)),
    "JAX": tuple(jax.numpy.ones(1) for _ in range(3)),
    "dlfield": tuple(dl.ones(1, "float32") for _ in range(3)),
}


def lines() -> list[Line]:
    """Compare the empty Rust function with that of every peer, for each kind of arrays."""
    functions: dict[str, Any] = {
        "Rust": extension.peers.empty,
        "nanobind": build_nanobind().empty,
        "tvm-ffi": tvm_ffi.get_global_func("testing.nop"),
    }
    cases: dict[tuple[str, str], Case] = {
        (name, kind): (function, arrays) for name, function in functions.items() for kind, arrays in KINDS.items()
    }
    cases["`np.add`", "NumPy"] = (np.add, KINDS["NumPy"])
    times = best_times(cases, rounds=100, turn=0.002, loop=three_arguments)
    return [
        Line(f"Rust `empty(a, b, c)`, {kind}", times["Rust", kind], peer, times[peer, kind], 1)
        for kind in KINDS
        for peer in ("nanobind", "tvm-ffi", "`np.add`")
        if (peer, kind) in cases
    ]
