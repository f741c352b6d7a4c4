"""One copy by all who can make it, on the same memory, beside memcpy of as many bytes."""

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
from interleaved import Case, best_measured, turns

MEMCPY, NUMPY = "memcpy", "NumPy"
OURS = ("dlfield, 1 thread", "dlfield, 2 threads")
TORCH = ("PyTorch, 1 thread", "PyTorch, 2 threads")
PEERS = (NUMPY, *TORCH)

# How each is told the number of its threads.
THREADS: dict[str, Callable[[], object]] = {
    OURS[0]: partial(dl.set_num_threads, 1),
    OURS[1]: partial(dl.set_num_threads, 2),
    TORCH[0]: partial(torch.set_num_threads, 1),
    TORCH[1]: partial(torch.set_num_threads, 2),
}

# OpenMP's threads go on spinning for a while after their work, and would take a core from the next in turn.
SPINNING = 0.02

TURN = 0.01


@contextmanager
def default_threads() -> Iterator[None]:
    """Give dlfield and PyTorch back the threads that they had."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)
        dl.set_num_threads(0)


def field(shape: tuple[int, ...], dtype: str, **keywords: Any) -> dl.Tensor:
    """Allocate a field whose elements are numbered, and whose memory is there."""
    made = dl.empty(shape, dtype, **keywords)
    dl.as_numpy(made)[...] = np.arange(made.size, dtype=dtype).reshape(shape)
    return made


def contest(to: dl.Tensor, source: dl.Tensor, rounds: int) -> dict[str, float]:
    """Return the nanoseconds that each needs to copy `source` into `to`, the best of so many rounds."""
    _check(to, source)
    numpy_to, torch_to = dl.as_numpy(to, copy=False), dl.as_torch(to, copy=False)
    ours: Case = (partial(setitem, to, ...), source)
    theirs: Case = (torch_to.copy_, dl.as_torch(source, copy=False))
    cases: dict[str, Case] = {
        MEMCPY: (partial(setitem, _bytes(to, source.nbytes), slice(None)), _bytes(source, source.nbytes)),
        OURS[0]: ours,
        OURS[1]: ours,
        # np.copyto does the same and takes 0.1 µs longer to get there.
        NUMPY: (partial(setitem, numpy_to, ...), dl.as_numpy(source, copy=False)),
        TORCH[0]: theirs,
        TORCH[1]: theirs,
    }
    return best_with_threads({name: _timed(name, case) for name, case in cases.items()}, rounds)


def best_with_threads(cases: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Return the best that each measured itself, in nanoseconds; the keys say with how many threads."""
    return best_measured({name: partial(_alone, name, case) for name, case in cases.items()}, rounds)


def _timed(name: str, case: Case) -> Callable[[], float]:
    """Return what measures a call, with as many calls a turn as these threads need to fill it."""
    THREADS.get(name, lambda: None)()
    return turns(case, TURN)


def _alone(name: str, case: Callable[[], float]) -> float:
    THREADS.get(name, lambda: None)()
    seconds = case()
    if name == TORCH[1]:
        time.sleep(SPINNING)
    return seconds


def _bytes(of: dl.Tensor, count: int) -> memoryview:
    """Return so many bytes of memory; assigning such to another is a call of memcpy, with 40 ns around it."""
    return memoryview((ctypes.c_char * count).from_address(of.ptr)).cast("B")


def _check(to: dl.Tensor, source: dl.Tensor) -> None:
    """See that dlfield copies, by a sample."""
    sample = (slice(None, None, 7),) * to.ndim
    for name in OURS:
        THREADS[name]()
        dl.as_numpy(to).fill(np.nan)
        to[...] = source
        np.testing.assert_array_equal(dl.as_numpy(to)[sample], dl.as_numpy(source)[sample])
