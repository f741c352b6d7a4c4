"""Threads that switch in the middle of calls."""

import sys
import threading
from collections.abc import Callable, Iterable


def run_in_threads(work: Callable[[int], None], numbers: Iterable[int]) -> None:
    """Run `work` in one thread for each number, all at once, and raise the first error."""
    failures: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=guarded, args=(number,)) for number in numbers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    if failures:
        raise failures[0]
