"""Measure copies into another layout and fills, compared with NumPy, PyTorch and memcpy."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import dlfield as dl
import plot
from copying import MEMCPY, NUMPY, OURS, PEERS, TORCH, best_with_threads, contest, default_threads, field
from interleaved import Time
from report import Grid, Line

# 168 MB each.
LARGE = {"float64": (512, 512, 80), "float32": (512, 512, 160)}
MIDDLE = (128, 128, 80)
# Cubes of float64, from 64 bytes to 262 MB, each about four times as large as the one before.
EDGES = (2, 3, 5, 8, 13, 20, 32, 50, 80, 128, 200, 320)
SIZED: dict[str, dict[str, Any]] = {
    "C to F": {"backend": "F"},
    "C to C": {},
    "C to padded rows": {"alignment_size": 64},
}
PERMUTATIONS = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))

# Layouts of the destination and of the source, and the ratios to reach on one thread and on two.
PADDED = "C to (2, 0, 1), rows of 510 padded to 64 bytes"
SLICED = "slice of a larger field to compact"
STEPPED = "every second element of the last dimension to compact"
REACH: tuple[float | None, float | None] = (1.6, 1)
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[float | None, float | None]]] = {
    "C to F": ({"backend": "F"}, {}, REACH),
    "F to C": ({}, {"backend": "F"}, REACH),
    "C to (2, 0, 1)": ({"layout": (2, 0, 1)}, {}, REACH),
    "(2, 0, 1) to C": ({}, {"layout": (2, 0, 1)}, REACH),
    PADDED: ({"layout": (2, 0, 1), "alignment_size": 64}, {}, REACH),
    SLICED: ({}, {}, (1.3, 1)),
    STEPPED: ({}, {}, (2, 1.5)),
}

BY_SIZE = "cubes of float64, over memcpy"

# The nanoseconds of one copy, by library; and a case with its element type.
Times = dict[str, Time]
Key = tuple[str, str]


def measure() -> tuple[list[Line], list[Grid]]:
    """Measure everything. The values of the tables are ratios to the time of memcpy, but for those of memcpy itself."""
    with default_threads():
        large = {(case, dtype): _large(case, dtype) for case in CASES for dtype in LARGE}
        sizes = {(case, edge): _size(SIZED[case], edge) for case in SIZED for edge in EDGES}
        permutations = {layout: _permutation(layout) for layout in PERMUTATIONS}
        fresh = {what: best_with_threads(cases, 7) for what, cases in _fresh_cases().items()}
    goals = [*_large_goals(large), *_peer_goals(large), *_size_goals(sizes), *_fresh_goals(fresh)]
    parties = [*OURS, *PEERS]
    shapes = ", ".join(f"{shape} of {dtype}" for dtype, shape in LARGE.items())
    return goals, [
        Grid(
            "copies",
            f"large fields, {shapes}, over memcpy",
            ["copy", "elements", "memcpy, ms", *parties],
            [[case, dtype, f"{times[MEMCPY] / 1e6:.3g}", *_cells(times)] for (case, dtype), times in large.items()],
            labels=2,
        ),
        Grid(
            "copies",
            BY_SIZE,
            ["copy", "bytes", "memcpy, µs", *parties],
            [
                [case, f"{8 * edge**3:,}", f"{times[MEMCPY] / 1e3:.3g}", *_cells(times)]
                for (case, edge), times in sizes.items()
            ],
            labels=2,
        ),
        Grid(
            "copies",
            f"from C order to each layout, {MIDDLE} of float64, over memcpy",
            ["layout", *parties],
            [[str(key), *_cells(times)] for key, times in permutations.items()],
        ),
        Grid(
            "copies",
            "fresh memory, 168 MB of float64, ms",
            ["call", *parties],
            [[what, *(f"{times[party] / 1e6:.3g}" for party in parties)] for what, times in fresh.items()],
        ),
    ]


def draw(path: Path, grids: Sequence[Grid]) -> None:
    """Draw the times of copies from C to F order against their size."""
    (sizes,) = (each for each in grids if each.name == BY_SIZE)
    parties = sizes.header[3:]
    curves = {
        int(row[1].replace(",", "")): dict(zip(parties, map(float, row[3:]), strict=True))
        for row in sizes.rows
        if row[0] == "C to F"
    }
    plot.copies(path, curves)


def _ratios(times: Times) -> dict[str, float]:
    return {party: times[party] / times[MEMCPY] for party in (*OURS, *PEERS)}


def _cells(times: Times) -> list[str]:
    return [f"{ratio:.3g}" for ratio in _ratios(times).values()]


def _large(case: str, dtype: str) -> Times:
    to, source, _ = CASES[case]
    shape = LARGE[dtype]
    if case == SLICED:
        whole = field(tuple(extent + 8 for extent in shape), dtype)
        return contest(field(shape, dtype), whole[4:-4, 4:-4, 4:-4], rounds=5)
    if case == STEPPED:
        whole = field((*shape[:2], 2 * shape[2]), dtype)
        return contest(field(shape, dtype), whole[:, :, ::2], rounds=5)
    if case == PADDED:
        shape = (510, *shape[1:])
    return contest(field(shape, dtype, **to), field(shape, dtype, **source), rounds=5)


def _size(keywords: dict[str, Any], edge: int) -> Times:
    shape = (edge, edge, edge)
    to, source = field(shape, "float64", **keywords), field(shape, "float64")
    return contest(to, source, rounds=9 if source.nbytes < 1 << 25 else 3)


def _permutation(layout: tuple[int, int, int]) -> Times:
    return contest(field(MIDDLE, "float64", layout=layout), field(MIDDLE, "float64"), rounds=9)


def _fresh_cases() -> dict[str, dict[str, Callable[[], float]]]:
    """Return functions that measure an allocation and the first write to it, by library."""
    shape = LARGE["float64"]
    source = field(shape, "float64")
    array, tensor = dl.as_numpy(source), dl.as_torch(source)
    strides = tuple(step // 8 for step in dl.empty(shape, backend="F").strides)
    everybody: dict[str, tuple[Callable[[], Any], Callable[[], Any], Callable[[], Any]]] = {
        "`full`": (
            lambda: dl.full(shape, 2.5),
            lambda: np.full(shape, 2.5),
            lambda: torch.full(shape, 2.5, dtype=torch.float64),
        ),
        "`ones`": (lambda: dl.ones(shape), lambda: np.ones(shape), lambda: torch.ones(shape, dtype=torch.float64)),
        "copy into F order": (
            lambda: dl.from_array(source, backend="F"),
            lambda: np.array(array, order="F", copy=True),
            lambda: torch.empty_strided(shape, strides, dtype=torch.float64).copy_(tensor),
        ),
    }
    parties = dict.fromkeys(OURS, 0) | {NUMPY: 1} | dict.fromkeys(TORCH, 2)
    return {
        what: {party: partial(_first, makers[place]) for party, place in parties.items()}
        for what, makers in everybody.items()
    }


def _first(make: Callable[[], Any]) -> float:
    """Return the seconds of a call of `make`; its result is freed after the measurement."""
    start = time.perf_counter()
    _made = make()
    return time.perf_counter() - start


def _large_goals(large: dict[Key, Times]) -> list[Line]:
    goals = []
    for case, (_, _, reach) in CASES.items():
        for party, bound in zip(OURS, reach, strict=True):
            times = max((large[case, dtype] for dtype in LARGE), key=lambda found: _ratios(found)[party])
            what = f"{case}, 168 MB of the slower type, {party.removeprefix('dlfield, ')}"
            goals.append(Line(what, times[party], "memcpy", times[MEMCPY], bound))
    return goals


def _peer_goals(large: dict[Key, Times]) -> list[Line]:
    """Compare each large copy with the fastest library, all on two threads if they can."""
    goals = []
    for (case, dtype), times in large.items():
        peer = min(PEERS, key=times.__getitem__)
        goals.append(Line(f"{case}, 168 MB of {dtype}, 2 threads", times[OURS[1]], peer, times[peer], 1))
    return goals


def _size_goals(sizes: dict[tuple[str, int], Times]) -> list[Line]:
    """Compare a small copy with NumPy, and of all sizes of each copy the worst with the fastest library."""
    small = sizes["C to F", 32]
    goals = [Line("C to F, cube of 32, 2 threads", small[OURS[1]], NUMPY, small[NUMPY], 0.5)]
    for case in SIZED:

        def ratio(edge: int, case: str = case) -> float:
            times = sizes[case, edge]
            return times[OURS[1]] / min(times[peer] for peer in PEERS)

        edge = max(EDGES, key=ratio)
        times = sizes[case, edge]
        peer = min(PEERS, key=times.__getitem__)
        what = f"the worst from 64 bytes to 262 MB: {case}, cube of {edge}, 2 threads"
        goals.append(Line(what, times[OURS[1]], peer, times[peer], 1))
    return goals


def _fresh_goals(fresh: dict[str, Times]) -> list[Line]:
    goals = []
    for what, times in fresh.items():
        peer = NUMPY if what == "copy into F order" else min(PEERS, key=times.__getitem__)
        reach = 0.5 if what == "copy into F order" else 1
        goals.append(Line(f"{what}, fresh 168 MB, 2 threads", times[OURS[1]], peer, times[peer], reach))
    return goals
