"""Run the comparisons and print them; with `--write`, also write the tables into the README and `docs/`."""

import argparse
import os
from pathlib import Path

# Idle threads of a linear algebra library would disturb the measurements.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import allocation
import arithmetic
import binding
import copies
import exchange
import extension
import stencil
from peers import versions
from report import Line, heading, table, write

ROOT = Path(__file__).parents[2]
SECTIONS = ("allocation", "exchange", "copies", "binding", "arithmetic", "extension", "stencil", "cuda")


def main() -> None:
    parser = argparse.ArgumentParser(prog="benches/py", description=__doc__)
    parser.add_argument("section", nargs="?", choices=SECTIONS, help="measure this one only")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/, with all sections the README")
    arguments = parser.parse_args()
    if arguments.section == "cuda":
        _on_a_gpu(arguments.write)
        return
    lines: list[Line] = []
    if arguments.section in (None, "allocation"):
        lines += allocation.lines()
    if arguments.section in (None, "exchange"):
        goals, document = exchange.measure()
        lines += goals
        print(document)
        if arguments.write:
            write(ROOT / "docs/exchange.md", document)
    if arguments.section in (None, "copies"):
        goals, document = copies.measure(ROOT / "docs/copies.svg" if arguments.write else None)
        lines += goals
        print(document)
        if arguments.write:
            write(ROOT / "docs/copies.md", document)
    if arguments.section in (None, "binding"):
        lines += binding.lines()
    if arguments.section in (None, "arithmetic"):
        lines += arithmetic.lines()
    if arguments.section in (None, "extension"):
        lines += extension.lines()
    if arguments.section in (None, "stencil"):
        lines += stencil.lines()
    text = f"{heading(versions())}\n{table(lines)}"
    print(text)
    # All lines of the README come from one run, so only a run of all sections replaces them.
    if arguments.write and arguments.section is None:
        write(ROOT / "README.md", text)


def _on_a_gpu(save: bool) -> None:
    # This module imports CuPy, which needs a device.
    import gpu

    document = gpu.measure()
    print(document)
    if save:
        write(ROOT / "docs/cuda.md", document)


if __name__ == "__main__":
    main()
