"""Attacks dlfield: `python tests/py/support/adversary --seed 7` repeats one case and prints its steps."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])

from adversary import pool  # noqa: E402


def main() -> int:
    """Run what was asked for; return 0 if nothing was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--seed", type=int, nargs="+", help="run these cases alone, in this process, and print their steps"
    )
    parser.add_argument("--start", type=int, help="the first seed; a random one if it is left out")
    parser.add_argument("--count", type=int, default=1 << 40, help="how many cases")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long")
    parser.add_argument("--functions", nargs="+", default=[], help="call only those whose name contains one of these")
    parser.add_argument("--worker", type=int, nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--first", action="store_true", help="stop at the first finding")
    given = parser.parse_args()
    if given.worker:
        pool.worker(range(*given.worker), given.functions)
        return 0
    if given.seed:
        missing = {name: value for name, value in pool.ENVIRONMENT.items() if os.environ.get(name) != value}
        if missing:
            # Memory is overwritten as in the pool: the C library reads its settings when a process starts.
            os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **missing})
        pool.worker(given.seed, given.functions, verbose=True)
        return 0
    start = secrets.randbelow(1 << 40) if given.start is None else given.start
    found = pool.hunt(start, given.count, given.seconds, first=given.first, functions=given.functions)
    print(f"{found.cases} cases from seed {start} on, {found.calls} calls, {len(found.findings)} findings")
    return bool(found.findings)


if __name__ == "__main__":
    sys.exit(main())
