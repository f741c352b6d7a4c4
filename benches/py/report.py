"""Format measurements as Markdown tables."""

import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

START, END = "<!-- bench:start -->", "<!-- bench:end -->"


@dataclass(frozen=True)
class Line:
    """One comparison: a measured call, the call to compare with, and the ratio to reach."""

    what: str
    nanoseconds: float
    peer: str
    peer_nanoseconds: float
    reach: str

    def cells(self) -> list[str]:
        """Return the cells of the line: both times, their ratio, and the ratio to reach."""
        ratio = self.nanoseconds / self.peer_nanoseconds
        return [self.what, _time(self.nanoseconds), self.peer, _time(self.peer_nanoseconds), f"{ratio:.3g}", self.reach]


def _time(nanoseconds: float) -> str:
    for unit, size in (("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def table(lines: Iterable[Line]) -> str:
    """Return the lines as a Markdown table."""
    return grid(["measured", "time", "beside", "time", "ratio", "to reach"], [line.cells() for line in lines])


def grid(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return rows of cells under a header as a Markdown table."""
    return "".join(f"| {' | '.join(row)} |\n" for row in [header, ["---"] * len(header), *rows])


def heading(versions: dict[str, str]) -> str:
    """Return the sentence with date, machine and versions of the measurement."""
    machine = f"{os.cpu_count()} cores of {platform.machine()}"
    names = ", ".join(f"{name} {version}" for name, version in versions.items())
    day = datetime.now(UTC).date()
    return f"{day}, {machine}, Python {platform.python_version()}, {names}; the best of interleaved rounds.\n"


def write(path: Path, text: str) -> None:
    """Replace the text between the markers of a file."""
    before, rest = path.read_text().split(START)
    after = rest.split(END)[1]
    path.write_text(f"{before}{START}\n{text}{END}{after}")
