"""Timing side by side: every case gets a turn in every round, so that noise of the machine meets all alike.

A case is a function and its argument. Nothing is wrapped around the two: a lambda costs 20 ns, and calls of 60 are
measured.
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
    """Return a loop that times so many calls of a function with an argument, in seconds.

    Each has bytecode of its own: CPython adapts a call in it to what was called there before, so that a loop that
    several cases share is up to 10 ns slower for some of them.
    """
    return FunctionType(_loop.__code__.replace(), _loop.__globals__)


def best_times(cases: Mapping[Key, Case], rounds: int = 25, turn: float = 0.02) -> dict[Key, float]:
    """Return the best time per call of each case, in nanoseconds, over so many rounds of so many seconds a turn."""
    return best_measured({key: turns(case, turn) for key, case in cases.items()}, rounds)


def best_measured(cases: Mapping[Key, Callable[[], float]], rounds: int = 9) -> dict[Key, float]:
    """Return the best of what each case measured itself, in nanoseconds; a case returns seconds.

    For what needs a fresh state before every measurement, such as memory that nobody has touched. The best, not the
    mean: noise only ever adds.
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
    """Return what measures the seconds of a call, with as many calls as fill a turn of so many seconds.

    How many is measured, because cases differ by a factor of a million; three times, because a first call or a busy
    machine would make it too few.
    """
    loop, calls = new_loop(), 1
    while (elapsed := min(loop(*case, calls) for _ in range(3))) < turn and calls < 1_000_000:
        calls = max(calls + 1, min(calls * 10, int(calls * turn / max(elapsed, 1e-9)) + 1))
    return lambda: loop(*case, calls) / calls


def _deeper(levels: int, play: Callable[[], None]) -> None:
    """Call `play` so many calls from C further down the stack.

    Where the stack begins is drawn for each process, and a struct on it may lie across cache lines or not: the same
    call was seen to take 69 ns or 80. From several depths, every case gets its best place.
    """
    if levels:
        list(map(partial(_deeper, levels - 1), (play,)))
    else:
        play()
