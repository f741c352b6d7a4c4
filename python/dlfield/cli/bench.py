"""`dlfield bench`: dlfield compared with the installed frameworks, on this machine, in seconds."""

import contextlib
import importlib
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TextIO

import numpy as np

import dlfield as dl

# Compared if they are installed.
_OTHERS = ("torch", "jax")
_SMALL = (64, 64, 20)
_LARGE = (256, 256, 40)
_ROUNDS = 9
# A measurement repeats its call for so long, so that the clock's resolution does not count.
_SECONDS = 0.004

Call = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """An operation, and the call of each library for it."""

    name: str
    calls: dict[str, Call]


def bench(*, as_json: bool) -> None:
    """Measure all rows, with a progress bar if a terminal shows it, and print a table or JSON."""
    rows = _rows()
    bar = Bar(len(rows) * _ROUNDS, sys.stderr)
    measured = {row.name: _measure(row.calls, bar) for row in rows}
    bar.clear()
    versions = {name: module.__version__ for name, module in libraries().items()}
    if as_json:
        found = {
            "machine": f"{platform.system()} {platform.machine()}",
            "threads": dl.num_threads(),
            "versions": versions,
            "microseconds": measured,
        }
        print(json.dumps(found, indent=2))
    else:
        print(_table(versions, measured))


def libraries() -> dict[str, Any]:
    """Return the modules that are compared, by name."""
    found = {"dlfield": dl, "numpy": np}
    for name in _OTHERS:
        # A broken installation of one framework must not hide the others.
        with contextlib.suppress(Exception):
            found[name] = importlib.import_module(name)
    return found


def _rows() -> list[Row]:
    """Return the operations. A library without an operation, as JAX without writes, is not in its row."""
    found = libraries()
    # JAX would convert 64-bit numbers.
    small, source = dl.zeros(_SMALL, "float32"), np.ones(_SMALL, "float32")
    c_order, rows = dl.ones(_LARGE), dl.zeros(_LARGE)
    columns = dl.zeros(_LARGE, layout=(2, 1, 0))
    arrays = [np.asarray(each) for each in (c_order, rows, columns)]
    exchange: dict[str, Call] = {
        "dlfield": lambda: dl.from_dlpack(source),
        "numpy": lambda: np.from_dlpack(small),
    }
    allocate: dict[str, Call] = {"dlfield": lambda: dl.empty(_SMALL), "numpy": lambda: np.empty(_SMALL)}
    fill: dict[str, Call] = {"dlfield": lambda: rows.fill(1.0), "numpy": lambda: arrays[1].fill(1.0)}
    same: dict[str, Call] = {
        "dlfield": lambda: rows.__setitem__(..., c_order),
        "numpy": lambda: np.copyto(arrays[1], arrays[0]),
    }
    turned: dict[str, Call] = {
        "dlfield": lambda: columns.__setitem__(..., c_order),
        "numpy": lambda: np.copyto(arrays[2], arrays[0]),
    }
    if "torch" in found:
        torch = found["torch"]
        tensors = [dl.as_torch(each, copy=False) for each in (c_order, rows, columns)]
        exchange["torch"] = lambda: torch.from_dlpack(source)
        allocate["torch"] = lambda: torch.empty(_SMALL, dtype=torch.float64)
        fill["torch"] = lambda: tensors[1].fill_(1.0)
        same["torch"] = lambda: tensors[1].copy_(tensors[0])
        turned["torch"] = lambda: tensors[2].copy_(tensors[0])
    if "jax" in found:
        from_dlpack = found["jax"].numpy.from_dlpack
        exchange["jax"] = lambda: from_dlpack(source)
    size = dl.zeros(_LARGE).nbytes >> 20
    return [
        Row("take a float32 array of another library", exchange),
        Row(f"allocate {_text(_SMALL)} float64", allocate),
        Row(f"fill {_text(_LARGE)} float64 ({size} MiB)", fill),
        Row("copy it", same),
        Row("copy it to a layout with I contiguous", turned),
    ]


def _text(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def _measure(calls: dict[str, Call], bar: "Bar") -> dict[str, float]:
    """Return the median time of each library's call in microseconds.

    The libraries take turns, so that other work of the machine slows all of them down.
    """
    repeats = {name: _repeats(call) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(_ROUNDS):
        for name, call in calls.items():
            times[name].append(_time(call, repeats[name]))
        bar.advance()
    return {name: round(statistics.median(found) * 1e6, 3) for name, found in times.items()}


def _repeats(call: Call) -> int:
    """Return how often to call so that it takes long enough."""
    call()
    return max(1, int(_SECONDS / max(_time(call, 3), 1e-9)))


def _time(call: Call, repeats: int) -> float:
    started = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - started) / repeats


def _table(versions: dict[str, str], measured: dict[str, dict[str, float]]) -> str:
    head = ["microseconds", *(f"{name} {version}" for name, version in versions.items())]
    rows = [head]
    for name, times in measured.items():
        rows.append([name, *(f"{times[library]:,.2f}" if library in times else "-" for library in versions)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]
    threads = (
        f"{dl.num_threads()} threads for dlfield's large copies; the libraries take turns, medians of {_ROUNDS} rounds"
    )
    return "\n".join([*lines, "", threads])


class Bar:
    """A progress bar on a terminal; nothing elsewhere."""

    def __init__(self, total: int, stream: TextIO) -> None:
        self._total, self._done, self._stream = total, 0, stream

    def advance(self) -> None:
        """Count one more, and show it on a terminal."""
        self._done += 1
        if self._stream.isatty():
            full = 40 * self._done // self._total
            self._stream.write(f"\r[{'#' * full}{' ' * (40 - full)}] {100 * self._done // self._total:3} %")
            self._stream.flush()

    def clear(self) -> None:
        """Remove the line from a terminal."""
        if self._stream.isatty():
            self._stream.write("\r" + " " * 50 + "\r")
            self._stream.flush()
