"""What dlfield and its peers do with inputs that break the rules: `python benches/py/hostile.py [--write]`.

Each input is taken in a process of its own, a fork of this one. The inputs are those of the tests.
"""

import csv
import ctypes
import sys
from collections import Counter
from datetime import UTC, datetime
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tvm_ffi
from cuda.core.utils import StridedMemoryView

import dlfield as dl
from peers import build_crate, build_nanobind, versions
from report import FOLDER, grid, write

TESTS = Path(__file__).parents[2] / "tests" / "py"
sys.path.insert(0, str(TESTS))

from hostile_inputs import INPUTS, Consumer, outcome  # noqa: E402

CASES = FOLDER / "hostile.csv"
#: What can happen other than the right result or an error.
KINDS = ("crash", "wrong data", "writes", "leaks")


def _of_numpy(array: Any) -> list[float]:
    return [float(value) for value in array.flat[:6]]


def _set_numpy(array: Any) -> None:
    array[...] = 9.0


def _take_numpy(obj: Any) -> Any:
    """DLPack if the object has it, else what NumPy makes of it; not an array of one Python object."""
    array = np.from_dlpack(obj) if hasattr(obj, "__dlpack__") and not isinstance(obj, np.ndarray) else np.asarray(obj)
    if array.dtype == object:
        raise TypeError("an object that NumPy cannot import")
    return array


def _take_torch(obj: Any) -> Any:
    if isinstance(obj, torch.Tensor):
        return obj.view_as(obj)
    return torch.from_dlpack(obj) if hasattr(obj, "__dlpack__") else torch.as_tensor(obj)


def _set_torch(tensor: Any) -> None:
    tensor.fill_(9.0)


def _addresses(view: Any) -> list[int]:
    """Return the addresses of the first six elements of a view of cuda.core, whose strides are elements."""
    if not view.is_device_accessible and view.dtype == np.float64:
        strides = view.strides
        if strides is None:
            strides = [int(np.prod(view.shape[axis + 1 :])) for axis in range(len(view.shape))]
        indices = islice(product(*map(range, view.shape)), 6)
        return [view.ptr + 8 * sum(map(int.__mul__, index, strides)) for index in indices]
    raise TypeError("expected float64 on the host")


def _set_view(view: Any) -> None:
    if view.readonly:
        raise TypeError("read-only")
    ctypes.c_double.from_address(_addresses(view)[0]).value = 9.0


def consumers() -> dict[str, Consumer]:
    """Return the libraries by the names of their columns."""
    nanobind_peer, dlpark_peer = build_nanobind(), build_crate("dlpark_peer")
    return {
        "dlfield": Consumer(dl.from_dlpack, lambda tensor: _of_numpy(np.asarray(tensor)), _set_numpy),
        "NumPy": Consumer(_take_numpy, _of_numpy, _set_numpy),
        "PyTorch": Consumer(_take_torch, lambda tensor: tensor.flatten()[:6].tolist(), _set_torch),
        "nanobind": Consumer(
            # A pair: the object is what its function for writable memory takes.
            lambda obj: (nanobind_peer.keep(obj), obj),
            lambda kept: nanobind_peer.Kept.values(kept[0]),
            lambda kept: nanobind_peer.set_first(kept[1]),
        ),
        "tvm-ffi": Consumer(
            tvm_ffi.from_dlpack,
            lambda tensor: _of_numpy(np.from_dlpack(tensor)),
            lambda tensor: _set_numpy(np.from_dlpack(tensor)),
        ),
        "dlpark": Consumer(dlpark_peer.keep, dlpark_peer.Kept.values, dlpark_peer.Kept.set_first),
        "cuda.core": Consumer(
            lambda obj: StridedMemoryView.from_any_interface(obj, -1),
            lambda view: [ctypes.c_double.from_address(address).value for address in _addresses(view)],
            _set_view,
        ),
    }


def measure() -> list[list[str]]:
    """Return a row for each input: the protocol, the input, the right result, and that of each library."""
    libraries = consumers()
    rows = [["protocol", "input", "right", *libraries]]
    for protocol, inputs in INPUTS.items():
        for hostile in inputs:
            right = "error" if hostile.values is None else "correct"
            rows.append([protocol, hostile.what, right, *(outcome(library, hostile) for library in libraries.values())])
    return rows


def summary(rows: list[list[str]]) -> str:
    """Return how often each library was neither right nor raised an error, and what happened then."""
    first, *results = (row[2:] for row in rows)
    found: dict[str, Counter[str]] = {library: Counter() for library in first[1:]}
    for right, *outcomes in results:
        for counts, result in zip(found.values(), outcomes, strict=True):
            counts.update(kind for kind in KINDS if kind in result and result not in {right, "error"})
    return grid(
        ["library", *KINDS],
        [[library, *(str(counts[kind]) for kind in KINDS)] for library, counts in found.items()],
    )


if __name__ == "__main__":
    table = measure()
    text = summary(table)
    print(text, *map(",".join, table), sep="\n")
    if "--write" in sys.argv:
        with CASES.open("w", encoding="utf8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(table)
        found = versions()
        used = ("dlfield", "numpy", "torch", "nanobind", "apache-tvm-ffi", "dlpark", "cuda-core")
        names = ", ".join(f"{name} {found[name]}" for name in used)
        heading = f"{datetime.now(UTC):%Y-%m-%d}, {len(table) - 1} inputs: {names}."
        write(FOLDER / "safety.md", f"{heading}\n\n{text}")
