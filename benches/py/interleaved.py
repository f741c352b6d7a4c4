"""Interleaved timing: every case gets a turn in every round, so that noise of the machine affects all cases equally.

A case is a function and its argument, without a wrapper: a lambda costs 20 ns, and some measured calls take 60.
"""

import gc
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from itertools import repeat
from types import FunctionType
from typing import Any, Self, TypeAlias, TypeVar

Function: TypeAlias = Callable[..., object]
Case: TypeAlias = tuple[Function, Any]
Loop: TypeAlias = Callable[[Function, Any, int], float]
Key = TypeVar("Key", bound=Hashable)

DEPTHS = 16


class Time(float):
    """Nanoseconds: the best of all rounds, with the time of each round in `rounds`."""

    rounds: tuple[float, ...]

    def __new__(cls, rounds: Sequence[float]) -> Self:
        """Make it of the nanoseconds of each round."""
        made = super().__new__(cls, min(rounds))
        made.rounds = tuple(rounds)
        return made

    def per(self, count: int) -> "Time":
        """Return the time for each of `count` equal parts of the call."""
        return Time([each / count for each in self.rounds])


def one_argument(function: Function, argument: Any, calls: int) -> float:
    """Call a function repeatedly and return the seconds."""
    start = time.perf_counter()
    for _ in repeat(None, calls):
        function(argument)
    return time.perf_counter() - start


def three_arguments(function: Function, arguments: Any, calls: int) -> float:
    """Call a function of three arguments repeatedly and return the seconds."""
    first, second, third = arguments
    start = time.perf_counter()
    for _ in repeat(None, calls):
        function(first, second, third)
    return time.perf_counter() - start


def new_loop(like: Loop = one_argument) -> Loop:
    """Return a copy of a function that calls another repeatedly.

    Each loop has its own bytecode: CPython specializes a call for the function that was called there before, so a loop
    that several cases share is up to 10 ns slower for some of them.
    """
    assert isinstance(like, FunctionType)
    return FunctionType(like.__code__.replace(), like.__globals__)


def best_times(
    cases: Mapping[Key, Case], rounds: int = 25, turn: float = 0.02, loop: Loop = one_argument
) -> dict[Key, Time]:
    """Return the best time per call of each case, in nanoseconds, over `rounds` turns of `turn` seconds each."""
    return best_measured({key: turns(case, turn, loop) for key, case in cases.items()}, rounds)


def best_measured(cases: Mapping[Key, Callable[[], float]], rounds: int = 9) -> dict[Key, Time]:
    """Return the best of the times that each case measures itself, in nanoseconds; a case returns seconds.

    For cases that need a fresh state before every measurement, such as untouched memory. The best and not the mean,
    because noise only adds time.
    """
    measured: dict[Key, list[float]] = {key: [] for key in cases}

    def play() -> None:
        for key, case in cases.items():
            measured[key].append(case() * 1e9)

    gc.collect()
    gc.disable()
    try:
        for number in range(rounds):
            _deeper(number % DEPTHS, play)
    finally:
        gc.enable()
    return {key: Time(nanoseconds) for key, nanoseconds in measured.items()}


def turns(case: Case, turn: float, like: Loop = one_argument) -> Callable[[], float]:
    """Return a function that measures the seconds per call, over as many calls as fill a turn of `turn` seconds.

    The number of calls is found by measurement, because cases differ by a factor of a million. Each measurement is the
    best of three, because a first call or a busy machine would make the number too small.

    An eighth as many calls before them, unless it is less than one, are not counted: their code has to be loaded into
    the processor's caches again, which the cases before have filled. Counted, they made the first of three calls of JAX
    12 to 25 % slower than the two that followed, whichever came first.
    """
    loop, calls = new_loop(like), 1
    while (elapsed := min(loop(*case, calls) for _ in range(3))) < turn and calls < 1_000_000:
        calls = max(calls + 1, min(calls * 10, int(calls * turn / max(elapsed, 1e-9)) + 1))

    def measured() -> float:
        loop(*case, calls // 8)
        return loop(*case, calls) / calls

    return measured


def _deeper(levels: int, play: Callable[[], None]) -> None:
    """Call `play` with `levels` additional calls from C on the stack.

    The system randomizes the start of the stack for each process, so a struct on it may or may not cross a cache line:
    the same call took 69 ns or 80. With several depths, every case gets its best alignment.
    """
    if levels:
        list(map(partial(_deeper, levels - 1), (play,)))
    else:
        play()
