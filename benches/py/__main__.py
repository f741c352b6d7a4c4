"""Run the comparisons and list those that dlfield loses; `--write` puts them into the README and `docs/about/`."""

import argparse
import os
from collections.abc import Callable

# Idle threads of a linear algebra library would disturb the measurements.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import allocation
import arithmetic
import binding
import copies
import exchange
import extension
import growth
import halo
import plot
import report
import stencil
from peers import versions
from report import FOLDER, Grid, Line

SECTIONS: dict[str, Callable[[], tuple[list[Line], list[Grid]]]] = {
    "allocation": lambda: (allocation.lines(), []),
    "exchange": exchange.measure,
    "copies": copies.measure,
    "binding": lambda: (binding.lines(), []),
    "arithmetic": lambda: (arithmetic.lines(), []),
    "extension": lambda: (extension.lines(), []),
    "stencil": lambda: (stencil.lines(), []),
    "halo": lambda: (halo.lines(), []),
    "growth": lambda: ([], [growth.measure()]),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="benches/py", description=__doc__)
    parser.add_argument(
        "section", nargs="?", choices=[*SECTIONS, "cuda"], help="measure this one only, and write nothing"
    )
    parser.add_argument("--write", action="store_true", help="write the pages; all of them come from one run")
    arguments = parser.parse_args()
    if arguments.section == "cuda":
        _on_a_gpu(save=arguments.write)
        return
    lines: dict[str, list[Line]] = {}
    grids: list[Grid] = []
    for section in [arguments.section] if arguments.section else SECTIONS:
        lines[section], found = SECTIONS[section]()
        grids += found
    for each in grids:
        print(f"{each.name}\n\n{report.grid(each.header, each.rows)}")
    measured = [line for found in lines.values() for line in found]
    print(f"Missed goals:\n\n{report.table(line for line in measured if line.loses)}\nAll:\n\n{report.table(measured)}")
    if arguments.write and not arguments.section:
        report.save(lines, grids)
        report.write_pages(report.heading(versions()))
        copies.draw(FOLDER / "copies.svg", grids)
        plot.ratios(FOLDER / "ratios.svg", report.chosen(report.ON_PAGE))


def _on_a_gpu(*, save: bool) -> None:
    # This module imports CuPy, which needs a device.
    import gpu

    lines, grids, heading = gpu.measure()
    print(heading, report.table(lines), *(report.grid(each.header, each.rows) for each in grids), sep="\n")
    if save:
        report.save({"cuda": lines}, grids)
        missed = [line for line in lines if line.loses]
        count = f"In {len(missed)} of {len(lines)} comparisons dlfield misses its goal:"
        tables = f"{report.table(missed)}\n{report.grid(grids[0].header, grids[0].rows)}"
        report.write(report.PAGE, f"{heading}\n{count}\n\n{tables}", "cuda")


if __name__ == "__main__":
    main()
