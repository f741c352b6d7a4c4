"""Run all comparisons and print them; with `--write`, put the table into the README too."""

import argparse
import importlib.metadata
import os
import platform
from datetime import UTC, datetime
from pathlib import Path

# Idle threads of a linear algebra library would compete with what is measured.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import allocation
import exchange
import stencil
from report import table

README = Path(__file__).parents[2] / "README.md"
START, END = "<!-- bench:start -->", "<!-- bench:end -->"


def main() -> None:
    parser = argparse.ArgumentParser(prog="benches/py", description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into the README")
    arguments = parser.parse_args()
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "gt4py", "dlfield"))
    day = datetime.now(UTC).date()
    machine = f"{os.cpu_count()} cores of {platform.machine()}"
    text = f"{day}, {machine}, Python {platform.python_version()}, {versions}; the best of interleaved rounds.\n\n"
    text += table(allocation.lines() + exchange.lines() + stencil.lines())
    print(text)
    if arguments.write:
        before, rest = README.read_text().split(START)
        after = rest.split(END)[1]
        README.write_text(f"{before}{START}\n{text}{END}{after}")


if __name__ == "__main__":
    main()
