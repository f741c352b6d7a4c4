"""Measure one copy by all libraries, on the same memory, compared with memcpy of the same number of bytes."""

import ctypes
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from operator import setitem
from typing import Any

import numpy as np
import torch

import dlfield as dl
from interleaved import Case, Time, best_measured, turns

MEMCPY, NUMPY = "memcpy", "NumPy"
OURS = ("dlfield, 1 thread", "dlfield, 2 threads")
TORCH = ("PyTorch, 1 thread", "PyTorch, 2 threads")
PEERS = (NUMPY, *TORCH)

# Sets the number of threads of each.
THREADS: dict[str, Callable[[], object]] = {
    OURS[0]: partial(dl.set_num_threads, 1),
    OURS[1]: partial(dl.set_num_threads, 2),
    TORCH[0]: partial(torch.set_num_threads, 1),
    TORCH[1]: partial(torch.set_num_threads, 2),
}

# Seconds: OpenMP's threads spin for a while after their work, and would take a core from the next case.
SPINNING = 0.02

TURN = 0.01


@contextmanager
def default_threads() -> Iterator[None]:
    """Restore the numbers of threads of dlfield and PyTorch on exit."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)
        dl.set_num_threads(0)


def field(shape: tuple[int, ...], dtype: str, **keywords: Any) -> dl.Tensor:
    """Allocate a field and number its elements, so that its pages are mapped."""
    made = dl.empty(shape, dtype, **keywords)
    dl.as_numpy(made)[...] = np.arange(made.size, dtype=dtype).reshape(shape)
    return made


def contest(to: dl.Tensor, source: dl.Tensor, rounds: int) -> dict[str, Time]:
    """Return the nanoseconds that each library needs to copy `source` into `to`, the best of `rounds` rounds."""
    _check(to, source)
    numpy_to, torch_to = dl.as_numpy(to, copy=False), dl.as_torch(to, copy=False)
    dlfield_case: Case = (partial(setitem, to, ...), source)
    torch_case: Case = (torch_to.copy_, dl.as_torch(source, copy=False))
    cases: dict[str, Case] = {
        MEMCPY: (partial(setitem, _bytes(to, source.nbytes), slice(None)), _bytes(source, source.nbytes)),
        OURS[0]: dlfield_case,
        OURS[1]: dlfield_case,
        # np.copyto does the same with 0.1 µs more call overhead.
        NUMPY: (partial(setitem, numpy_to, ...), dl.as_numpy(source, copy=False)),
        TORCH[0]: torch_case,
        TORCH[1]: torch_case,
    }
    return best_with_threads({name: _timed(name, case) for name, case in cases.items()}, rounds)


def best_with_threads(cases: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, Time]:
    """Return the best of the times that each case measures itself, in nanoseconds; the key sets its threads."""
    return best_measured({name: partial(_alone, name, case) for name, case in cases.items()}, rounds)


def _timed(name: str, case: Case) -> Callable[[], float]:
    """Return a function that measures the call; the number of calls fills a turn with this number of threads."""
    THREADS.get(name, lambda: None)()
    return turns(case, TURN)


def _alone(name: str, case: Callable[[], float]) -> float:
    THREADS.get(name, lambda: None)()
    seconds = case()
    if name == TORCH[1]:
        time.sleep(SPINNING)
    return seconds


def _bytes(of: dl.Tensor, count: int) -> memoryview:
    """Return the first `count` bytes; assigning one such view to another calls memcpy, with 40 ns of overhead."""
    return memoryview((ctypes.c_char * count).from_address(of.ptr)).cast("B")


def _check(to: dl.Tensor, source: dl.Tensor) -> None:
    """Check a sample of dlfield's copies."""
    sample = (slice(None, None, 7),) * to.ndim
    for name in OURS:
        THREADS[name]()
        dl.as_numpy(to).fill(np.nan)
        to[...] = source
        np.testing.assert_array_equal(dl.as_numpy(to)[sample], dl.as_numpy(source)[sample])
