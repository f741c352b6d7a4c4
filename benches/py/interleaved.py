"""Interleaved timing: every case gets a turn in every round, so that noise of the machine affects all cases equally.

A case is a function and its argument, without a wrapper: a lambda costs 20 ns, and some measured calls take 60.
"""

import gc
import time
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from itertools import repeat
from types import FunctionType
from typing import Any, TypeAlias, TypeVar

Function: TypeAlias = Callable[[Any], object]
Case: TypeAlias = tuple[Function, Any]
Loop: TypeAlias = Callable[[Function, Any, int], float]
Key = TypeVar("Key", bound=Hashable)

DEPTHS = 16


def _loop(function: Function, argument: Any, calls: int) -> float:
    start = time.perf_counter()
    for _ in repeat(None, calls):
        function(argument)
    return time.perf_counter() - start


def new_loop() -> Loop:
    """Return a function that calls a function repeatedly with an argument and returns the seconds.

    Each loop has its own bytecode: CPython specializes a call for the function that was called there before, so a loop
    that several cases share is up to 10 ns slower for some of them.
    """
    return FunctionType(_loop.__code__.replace(), _loop.__globals__)


def best_times(cases: Mapping[Key, Case], rounds: int = 25, turn: float = 0.02) -> dict[Key, float]:
    """Return the best time per call of each case, in nanoseconds, over `rounds` turns of `turn` seconds each."""
    return best_measured({key: turns(case, turn) for key, case in cases.items()}, rounds)


def best_measured(cases: Mapping[Key, Callable[[], float]], rounds: int = 9) -> dict[Key, float]:
    """Return the best of the times that each case measures itself, in nanoseconds; a case returns seconds.

    For cases that need a fresh state before every measurement, such as untouched memory. The best and not the mean,
    because noise only adds time.
    """
    best = dict.fromkeys(cases, float("inf"))

    def play() -> None:
        for key, case in cases.items():
            best[key] = min(best[key], case())

    gc.collect()
    gc.disable()
    try:
        for number in range(rounds):
            _deeper(number % DEPTHS, play)
    finally:
        gc.enable()
    return {key: seconds * 1e9 for key, seconds in best.items()}


def turns(case: Case, turn: float) -> Callable[[], float]:
    """Return a function that measures the seconds per call, over as many calls as fill a turn of `turn` seconds.

    The number of calls is found by measurement, because cases differ by a factor of a million. Each measurement is the
    best of three, because a first call or a busy machine would make the number too small.
    """
    loop, calls = new_loop(), 1
    while (elapsed := min(loop(*case, calls) for _ in range(3))) < turn and calls < 1_000_000:
        calls = max(calls + 1, min(calls * 10, int(calls * turn / max(elapsed, 1e-9)) + 1))
    return lambda: loop(*case, calls) / calls


def _deeper(levels: int, play: Callable[[], None]) -> None:
    """Call `play` with `levels` additional calls from C on the stack.

    The system randomizes the start of the stack for each process, so a struct on it may or may not cross a cache line:
    the same call took 69 ns or 80. With several depths, every case gets its best alignment.
    """
    if levels:
        list(map(partial(_deeper, levels - 1), (play,)))
    else:
        play()
