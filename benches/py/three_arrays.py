"""Measure calls of an empty function with three arrays of one element, by every binding library."""

from typing import Any

import numpy as np
import tvm_ffi

import rust_extension as extension
from interleaved import Case, best_times, three_arguments
from peers import build_nanobind
from producers import threes
from report import Line


def lines() -> list[Line]:
    """Compare the empty Rust function with that of every peer, for each kind of arrays."""
    kinds = threes()
    functions: dict[str, Any] = {
        "Rust": extension.peers.empty,
        "nanobind": build_nanobind().empty,
        "tvm-ffi": tvm_ffi.get_global_func("testing.nop"),
    }
    cases: dict[tuple[str, str], Case] = {
        (name, kind): (function, arrays) for name, function in functions.items() for kind, arrays in kinds.items()
    }
    cases["`np.add`", "NumPy"] = (np.add, kinds["NumPy"])
    times = best_times(cases, rounds=100, turn=0.002, loop=three_arguments)
    return [
        Line(f"Rust `empty(a, b, c)`, {kind}", times["Rust", kind], peer, times[peer, kind], 1)
        for kind in kinds
        for peer in ("nanobind", "tvm-ffi", "`np.add`")
        if (peer, kind) in cases
    ]
