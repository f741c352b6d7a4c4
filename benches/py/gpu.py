"""Measure on a GPU: allocation, exchange, copies between layouts and with the host, compared with CuPy and PyTorch."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import cupy
import torch

import dlfield as dl
from interleaved import Time, best_measured
from report import Grid, Line, heading

# 1 GB each, so float32 has twice the elements: far more than the caches of any device hold.
LARGE = {"float64": (512, 512, 512), "float32": (512, 512, 1024)}
SMALL = (128, 128, 80)
CALLS = 1000

# Source and destination of a copy, as keywords for their allocation.
LAYOUTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "C to F": ({}, {"backend": "F"}),
    "F to C": ({"backend": "F"}, {}),
    "C to (2, 0, 1)": ({}, {"layout": (2, 0, 1)}),
    "(2, 0, 1) to C": ({"layout": (2, 0, 1)}, {}),
    "C to gt:gpu": ({}, {"backend": "gt:gpu"}),
}


def times(cases: Mapping[str, Callable[[], object]], calls: int = 10) -> dict[str, Time]:
    """Return nanoseconds per call of each case, including the work on the device."""

    def measured(case: Callable[[], object]) -> float:
        for_all_devices()
        start = time.perf_counter()
        for _ in range(calls):
            case()
        for_all_devices()
        return (time.perf_counter() - start) / calls

    return best_measured({name: partial(measured, case) for name, case in cases.items()})


def for_all_devices() -> None:
    """Wait for the work of all streams: the legacy default stream is ordered after it."""
    dl.cuda.synchronize(0, 1)


def _assign(target: Any, source: Any) -> None:
    target[...] = source


def measure() -> tuple[list[Line], list[Grid], str]:
    """Measure everything. Return the comparisons, the tables, of which the page shows the first, and the heading."""
    goals = [*_allocation(), *_exchange()]
    rows, straight = [], 0.0
    for dtype, shape in LARGE.items():
        for name, (source_spec, target_spec) in LAYOUTS.items():
            source = dl.ones(shape, dtype=dtype, device="cuda", **source_spec)
            target = dl.empty(shape, dtype=dtype, device="cuda", **target_spec)
            one, other = (dl.empty(shape, dtype=dtype, device="cuda") for _ in range(2))
            to_cupy, from_cupy = cupy.from_dlpack(target), cupy.from_dlpack(source)
            to_torch, from_torch = torch.from_dlpack(target), torch.from_dlpack(source)
            took = times(
                {
                    "in one piece": partial(_assign, one, other),
                    "dlfield": partial(_assign, target, source),
                    "CuPy": partial(cupy.copyto, to_cupy, from_cupy),
                    "PyTorch": partial(to_torch.copy_, from_torch),
                }
            )
            moved = 2 * source.nbytes
            straight = max(straight, moved / took["in one piece"])
            rows.append([name, dtype, *(f"{moved / took[who]:.0f}" for who in ("dlfield", "CuPy", "PyTorch"))])
            what = f"{name}, {dtype}"
            goals.append(Line(what, took["dlfield"], "in one piece", took["in one piece"], 1.43))
            goals.append(Line(what, took["dlfield"], "CuPy", took["CuPy"], 0.5))
    device = torch.cuda.get_device_properties(0).name
    versions = {device: "", "dlfield": dl.__version__, "cupy": cupy.__version__, "torch": torch.__version__}
    layouts = Grid("cuda", "copies of 1 GB, GB/s", ["copy", "elements", "dlfield", "CuPy", "PyTorch"], rows, labels=2)
    rows.append(["in one piece", "float64", f"{straight:.0f}", "", ""])
    return goals, [layouts, _host()], heading(versions)


def _allocation() -> list[Line]:
    took = times(
        {
            "dlfield": lambda: dl.empty(SMALL, device="cuda"),
            "CuPy": lambda: cupy.empty(SMALL),
            "PyTorch": lambda: torch.empty(SMALL, dtype=torch.float64, device="cuda"),
        },
        CALLS,
    )
    return [Line(f"`empty({SMALL})`", took["dlfield"], who, took[who]) for who in ("CuPy", "PyTorch")]


def _exchange() -> list[Line]:
    field, array, tensor = dl.zeros(SMALL, device="cuda"), cupy.zeros(SMALL), torch.zeros(SMALL, device="cuda")
    took = times(
        {
            "from_dlpack(cupy)": partial(dl.from_dlpack, array),
            "torch.from_dlpack(cupy)": partial(torch.from_dlpack, array),
            "from_dlpack(torch)": partial(dl.from_dlpack, tensor),
            "cupy.from_dlpack(torch)": partial(cupy.from_dlpack, tensor),
            "cupy.from_dlpack(dlfield)": partial(cupy.from_dlpack, field),
            "torch.from_dlpack(dlfield)": partial(torch.from_dlpack, field),
        },
        CALLS,
    )
    pairs = [
        ("from_dlpack(cupy)", "torch.from_dlpack(cupy)"),
        ("from_dlpack(torch)", "cupy.from_dlpack(torch)"),
        ("cupy.from_dlpack(dlfield)", "cupy.from_dlpack(torch)"),
        ("torch.from_dlpack(dlfield)", "torch.from_dlpack(cupy)"),
    ]
    return [Line(f"`{one}`", took[one], f"`{other}`", took[other]) for one, other in pairs]


def _host() -> Grid:
    pinned, device = (dl.empty((512, 512, 512), device=where) for where in ("cuda_host", "cuda"))
    # Rows of 510 elements, padded to 512.
    rows_pinned, rows = (
        dl.empty((512, 512, 510), device=where, alignment_size=4096) for where in ("cuda_host", "cuda")
    )
    took = times(
        {
            "there": partial(_assign, device, pinned),
            "back": partial(_assign, pinned, device),
            "rows there": partial(_assign, rows, rows_pinned),
            "rows back": partial(_assign, rows_pinned, rows),
        }
    )
    ways = {"there": "host to device", "back": "device to host"}
    speeds = [[name, f"{rows.nbytes / took[f'rows {way}']:.1f}"] for way, name in ways.items()]
    speeds += [[f"{name}, in one piece", f"{device.nbytes / took[way]:.1f}"] for way, name in ways.items()]
    return Grid("cuda", "pinned memory, rows of 510 padded to 512, GB/s", ["copy", "dlfield"], speeds)
