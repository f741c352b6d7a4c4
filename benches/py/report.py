"""Format measurements as Markdown tables."""

import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from interleaved import Time

START, END = "<!-- bench:start -->", "<!-- bench:end -->"


@dataclass(frozen=True)
class Line:
    """One comparison: a measured call, the call to compare with, and the ratio to reach.

    `more` is for comparisons whose goal is a number of nanoseconds above the peer's instead.
    """

    what: str
    time: float
    peer: str
    peer_time: float
    reach: float | None = None
    more: float | None = None

    @property
    def ratio(self) -> float:
        """The best time divided by the peer's."""
        return self.time / self.peer_time

    @property
    def loses(self) -> bool:
        """Whether the goal is missed or, where none is set, the peer is faster."""
        if self.more is not None:
            return self.time > self.peer_time + self.more
        return self.ratio > (1 if self.reach is None else self.reach)

    def cells(self) -> list[str]:
        """Return the cells of the line: both times, their ratio and its spread, and the goal."""
        times = [self.what, _text(self.time), self.peer, _text(self.peer_time)]
        return [*times, f"{self.ratio:.3g}", self._spread(), self._goal()]

    def _spread(self) -> str:
        """Return the ratios of the single rounds, without the lowest and the highest tenth."""
        if not (isinstance(self.time, Time) and isinstance(self.peer_time, Time)):
            return ""
        ratios = [mine / other for mine, other in zip(self.time.rounds, self.peer_time.rounds, strict=True)]
        low, high = (np.quantile(ratios, share) for share in (0.1, 0.9))
        return f"{low:.3g} to {high:.3g}"

    def _goal(self) -> str:
        if self.more is not None:
            return f"at most {_text(self.more)} more"
        return "" if self.reach is None else f"at most {self.reach:g}"


def _text(nanoseconds: float) -> str:
    for unit, size in (("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def table(lines: Iterable[Line], *, goals: bool = True) -> str:
    """Return the lines as a Markdown table; without `goals`, which are the project's own, it has no last column."""
    header = ["measured", "time", "beside", "time", "ratio", "spread", "to reach"]
    columns = len(header) - (not goals)
    return grid(header[:columns], [line.cells()[:columns] for line in lines])


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
