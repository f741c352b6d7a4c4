"""Measure how the cost of one item grows with the number of items: links of chains, live tensors, fields of a call."""

import gc
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import xarray

import dlfield as dl
import rust_extension
from report import Grid

ROUNDS = 4
#: A row whose cost of an item grows by more than this has a fault.
LIMIT = 2.0


@dataclass(frozen=True)
class Row:
    """One measurement: `measure` returns the seconds of one item among as many as its argument says."""

    what: str
    small: int
    large: int
    measure: Callable[[int], float]


def measure() -> Grid:
    """Return the cost of an item among few and among many. A ratio above `LIMIT` is marked."""
    rows = []
    for number, row in enumerate(_rows()):
        small, large = _in_new_process(number)
        ratio = f"{large / small:.2f}" if large <= LIMIT * small else f"{large / small:.2f}: GROWS"
        rows.append([row.what, f"{row.small:,}", _text(small), f"{row.large:,}", _text(large), ratio])
    return Grid("growth", "cost of an item", ["items", "few", "each of few", "many", "each of many", "ratio"], rows)


def _in_new_process(number: int) -> tuple[float, float]:
    """Measure a row where no other one has scattered the free memory."""
    command = [sys.executable, __file__, str(number)]
    small, large = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-2:]
    return float(small), float(large)


def _best(row: Row) -> tuple[float, float]:
    """Return the best time of an item among few and among many, of interleaved rounds."""
    times: list[tuple[float, float]] = []
    gc.collect()
    gc.disable()
    try:
        # As many items in all for few as for many, at most.
        repeats = max(1, min(16, row.large // row.small))
        for _ in range(ROUNDS):
            times.append((min(row.measure(row.small) for _ in range(repeats)), row.measure(row.large)))
    finally:
        gc.enable()
    return min(small for small, _ in times), min(large for _, large in times)


def _text(seconds: float) -> str:
    nanoseconds = seconds * 1e9
    return f"{nanoseconds:.3g} ns" if nanoseconds < 1e3 else f"{nanoseconds / 1e3:.3g} µs"


def _rows() -> Iterator[Row]:
    for what, link in CHAINS.items():
        yield Row(f"links of a chain: `field = {what}`", 1_000, 16_000, partial(_chain, link))
    yield Row("live tensors: one more `zeros(8)`, and its release", 1_000, 100_000, partial(_alive, (8,)))
    yield Row("live tensors of 128 KiB: one more, and its release", 100, 3_000, partial(_alive, (16_384,)))
    yield Row("blocks in `memory_report()`", 100, 3_000, _report)
    yield Row("fields of `Signature.bind`, all written", 16, 1_024, partial(_bind, backwards=False))
    yield Row("fields of `Signature.bind`, given backwards", 16, 1_024, partial(_bind, backwards=True))
    yield Row("fields of a bound call: each by its name, and `domain`", 16, 1_024, _look_up)
    yield Row("fields of a new `Signature`, each with a size of its own", 16, 1_024, _signature)
    yield Row("dimensions of `zeros`, with labels", 4, 64, _dims)
    yield Row("dimensions of `describe(ndarray)`", 4, 64, _described_dims)
    yield Row("fields of a Rust function, `Vec<Out>`", 100, 16_000, partial(_arguments, _write))
    yield Row("fields of a Rust function, `Vec<In>`", 100, 16_000, partial(_arguments, _read))
    yield Row(
        "rust-numpy's `Vec<PyReadwriteArrayDyn>`, with dlfield",
        100,
        16_000,
        partial(_arguments, _write_numpy),
    )
    yield Row("shares: `share()`, `attach(name)`, and the release of both", 8, 256, _shares)
    yield Row("threads: `zeros(8)`, each in a thread of its own that ends", 8, 256, _threads)


def _torch_view(field: dl.Tensor) -> Any:
    return torch.from_dlpack(field)[:]


class Interface:
    """An object with an array interface, which keeps the field."""

    def __init__(self, field: dl.Tensor) -> None:
        self.field, self.__array_interface__ = field, field.__array_interface__


CHAINS: dict[str, Callable[[Any], Any]] = {
    "from_dlpack(describe(memoryview(field)))": lambda field: dl.from_dlpack(dl.describe(memoryview(field))),
    "from_dlpack(describe(np.asarray(field)))": lambda field: dl.from_dlpack(dl.describe(np.asarray(field))),
    "from_dlpack(field.__dlpack__())": lambda field: dl.from_dlpack(field.__dlpack__(max_version=(1, 3))),
    "from_dlpack(np.asarray(field)[:])": lambda field: dl.from_dlpack(np.asarray(field)[:]),
    "from_dlpack(np.from_dlpack(field))": lambda field: dl.from_dlpack(np.from_dlpack(field)),
    "from_dlpack(torch.from_dlpack(field)[:])": lambda field: dl.from_dlpack(_torch_view(field)),
    "from_dlpack(describe(torch.from_dlpack(field)))": lambda field: dl.from_dlpack(
        dl.describe(torch.from_dlpack(field))
    ),
    "from_dlpack(as_jax(field))": lambda field: dl.from_dlpack(dl.as_jax(field)),
    "from_dlpack(DataArray(field))": lambda field: dl.from_dlpack(xarray.DataArray(field, dims=("I", "J"))),
    "from_dlpack(Interface(field))": lambda field: dl.from_dlpack(Interface(field)),
    "empty(shape, buffer=describe(memoryview(field)))": lambda field: dl.empty(
        (4, 4), "float32", buffer=dl.describe(memoryview(field))
    ),
    "frombuffer(memoryview(field), ...)": lambda field: dl.frombuffer(memoryview(field), dtype="float32", shape=(4, 4)),
    "field[:].T": lambda field: field[:].T,
}


def _chain(link: Callable[[Any], Any], count: int) -> float:
    """Make a chain of so many links, and release it."""
    field = dl.ones((4, 4), "float32")
    start = time.thread_time()
    for _ in range(count):
        field = link(field)
    del field
    return (time.thread_time() - start) / count


def _alive(shape: tuple[int, ...], count: int) -> float:
    """Measure one more tensor, and its release, while so many live."""
    _kept = [dl.zeros(shape) for _ in range(count)]
    return _each(lambda: dl.zeros(shape), 1)


def _each(call: Callable[[], object], count: int) -> float:
    """Return the seconds of an item in a call with so many, which is repeated."""
    call()
    calls = max(3, 20_000 // count)
    start = time.thread_time()
    for _ in range(calls):
        call()
    return (time.thread_time() - start) / count / calls


def _report(count: int) -> float:
    _kept = [dl.empty(16_384) for _ in range(count)]
    return _each(dl.memory_report, count)


def _fields(count: int) -> tuple[dl.Signature, dict[str, Any]]:
    # Names in code are interned.
    names = [sys.intern(f"field_{number}") for number in range(count)]
    specs: dict[str, Any] = {name: dl.FieldSpec("float64", "IJ", access="rw", shape=("I", "J")) for name in names}
    return dl.Signature(**specs), {name: np.zeros((4, 4)) for name in names}


def _bind(count: int, *, backwards: bool) -> float:
    signature, fields = _fields(count)
    given = dict(reversed(fields.items())) if backwards else fields
    return _each(lambda: signature.bind(**given), count)


def _look_up(count: int) -> float:
    signature, fields = _fields(count)
    bound = signature.bind(**fields)
    return _each(lambda: ([getattr(bound, name) for name in fields], bound.domain), count)


def _signature(count: int) -> float:
    specs: dict[str, Any] = {
        f"field_{number}": dl.FieldSpec("float64", "I", shape=(f"size_{number}",)) for number in range(count)
    }
    fields: dict[str, Any] = {name: np.zeros(4) for name in specs}
    return _each(lambda: dl.Signature(**specs).bind(**fields), count)


def _dims(count: int) -> float:
    labels = [f"x{number}" for number in range(count)]
    return _each(lambda: dl.zeros((1,) * count, dims=labels), count)


def _described_dims(count: int) -> float:
    array = np.zeros((1,) * count)
    return _each(lambda: dl.describe(array), count)


def _arguments(function: Callable[[list[Any]], object], count: int) -> float:
    """Measure a function of so many arrays."""
    # The first extension that borrows an array keeps the list of borrows for all: here dlfield's.
    _write([np.zeros(1)])
    arrays = [np.zeros(4) for _ in range(count)]
    return _each(lambda: function(arrays), count)


def _write(arrays: list[Any]) -> None:
    rust_extension.kinds.several([], arrays)


def _read(arrays: list[Any]) -> None:
    rust_extension.kinds.several(arrays, [])


def _write_numpy(arrays: list[Any]) -> None:
    rust_extension.mixed.with_readwrites(arrays, int)


def _shares(count: int) -> float:
    field = dl.zeros((4, 4))
    start = time.thread_time()
    shared = [field.share() for _ in range(count)]
    attached = [dl.attach(dl.shared_name(tensor)) for tensor in shared]
    del shared, attached
    return (time.thread_time() - start) / count


def _threads(count: int) -> float:
    """Measure a barrier of threads that allocate and end: time of all processors, as each thread has its own."""

    def work() -> None:
        for _ in range(100):
            kept = [dl.zeros(8) for _ in range(8)]
            del kept

    threads = [threading.Thread(target=work) for _ in range(count)]
    start = time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (time.process_time() - start) / count / 800


if __name__ == "__main__":
    print(*_best(list(_rows())[int(sys.argv[1])]))
