"""Timing side by side: every case gets a turn in every round, so that noise of the machine meets all alike."""

import gc
import time
from collections.abc import Callable, Mapping

Case = Callable[[], object]


def _calls_per_turn(case: Case, turn: float) -> int:
    """How many calls fill a turn of so many seconds; measured, because cases differ by a factor of a million."""
    calls = 1
    while True:
        start = time.perf_counter()
        for _ in range(calls):
            case()
        elapsed = time.perf_counter() - start
        if elapsed >= turn or calls >= 1_000_000:
            return calls
        calls = max(calls + 1, min(calls * 10, int(calls * turn / max(elapsed, 1e-9)) + 1))


def best_times(cases: Mapping[str, Case], rounds: int = 25, turn: float = 0.02) -> dict[str, float]:
    """Return the best time per call of each case, in nanoseconds, over so many rounds of so many seconds a turn.

    The best, not the mean: noise only ever adds.
    """
    calls = {name: _calls_per_turn(case, turn) for name, case in cases.items()}
    best = dict.fromkeys(cases, float("inf"))
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, case in cases.items():
                count = range(calls[name])
                start = time.perf_counter()
                for _ in count:
                    case()
                best[name] = min(best[name], (time.perf_counter() - start) / calls[name])
    finally:
        gc.enable()
    return {name: seconds * 1e9 for name, seconds in best.items()}


def best_measured(cases: Mapping[str, Callable[[], float]], rounds: int = 9) -> dict[str, float]:
    """Return the best of what each case measured itself, in nanoseconds; a case returns seconds.

    For what needs a fresh state before every measurement, such as memory that nobody has touched.
    """
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(rounds):
        for name, case in cases.items():
            best[name] = min(best[name], case())
    return {name: seconds * 1e9 for name, seconds in best.items()}
