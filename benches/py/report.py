"""Write all measurements into CSV files, and those that a user weighs into the README and `docs/about/measured.md`."""

import csv
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from interleaved import Time

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "about"
PAGE, COMPARISONS, TABLES = FOLDER / "measured.md", FOLDER / "comparisons.csv", FOLDER / "tables.csv"
README = ROOT / "README.md"

#: A comparison as the CSV file has it, and the columns that the pages show.
COLUMNS = ("section", "operation", "dlfield", "compared with", "peer", "ratio", "spread", "goal", "missed")
SHOWN = COLUMNS[1:7]

#: A lost comparison is on the page if it takes more than this times as long as the peer.
MUCH = 1.1

#: Operation and peer of the rows in the README.
IN_README = (
    ("`describe(ndarray)`", "`nanobind(ndarray)`"),
    ("`from_dlpack(ndarray)`", "`np.from_dlpack(ndarray)`"),
    ("`Signature.bind`, 4 numpy fields, each", "GT4Py's `_extract_array_infos`"),
    ("copy into F order, fresh 168 MB, 2 threads", "NumPy"),
)
#: The rows of the page: those of the README, and these.
ON_PAGE = (
    *IN_README,
    ("`empty` of (8, 8, 8), gt:cpu_ifirst", "`np.empty`"),
    ("`zeros` of (8, 8, 8), gt:cpu_ifirst", "`np.zeros`"),
    ("`zeros` of 10 MB again, one pass", "`np.zeros`"),
    ("`describe(torch.Tensor)`", "`tvm_ffi.from_dlpack(torch.Tensor)`"),
    ("`describe(jax.Array)`", "`nanobind(jax.Array)`"),
    ("`from_dlpack(torch.Tensor)`", "`tvm_ffi.from_dlpack(torch.Tensor)`"),
    ("`as_torch(tensor)`", "`torch.from_numpy(ndarray)`"),
    ("`as_jax(aligned tensor)`", "`jax.numpy.from_dlpack(aligned ndarray)`"),
    ("Rust `empty(a, b, c)`, NumPy", "nanobind"),
    ("Rust `empty(a, b, c)`, JAX", "nanobind"),
    ("Rust `In::array`", "`PyReadonlyArray3::as_array`"),
    ("Rust `laplacian`, (128, 128, 80), gt:cpu_ifirst", "over slices"),
    ("C to F, 168 MB of float64, 2 threads", "PyTorch, 2 threads"),
    ("C to F, 168 MB of the slower type, 1 thread", "memcpy"),
    ("`a + b` of (4, 4, 4)", "NumPy's arrays"),
    ("`a + b` of (128, 128, 80)", "NumPy's arrays"),
    ("`a + b` of (128, 128, 80)", "xarray's `DataArray`"),
    ("gt:cpu_kfirst Laplacian on (4, 4, 4), `dlfield.gt4py.wrap`, NumPy arrays", "the plain stencil"),
    ("gt:cpu_kfirst Laplacian on (128, 128, 80), fields of `dlfield`", "of `gt4py.storage`"),
    ("halo of 8 fields (256, 256, 80), width 3, 2 processes, periodic, C order", "packed NumPy slices"),
    ("halo of 8 fields (256, 256, 80), width 3, 2 processes, periodic, gt:cpu_ifirst", "packed NumPy slices"),
)


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
        """The median ratio of the rounds or, without rounds, the ratio of the times."""
        ratios = self._ratios()
        return float(np.median(ratios)) if ratios else self.time / self.peer_time

    @property
    def loses(self) -> bool:
        """Whether the goal is missed or, where none is set, the peer is faster."""
        if self.more is not None:
            return self.time > self.peer_time + self.more
        return self.ratio > (1 if self.reach is None else self.reach)

    def cells(self) -> list[str]:
        """Return the cells of the line, from the operation on."""
        times = [self.what, _text(self.time), self.peer, _text(self.peer_time)]
        return [*times, f"{self.ratio:.3g}", self._spread(), self._goal(), "missed" if self.loses else ""]

    def _ratios(self) -> list[float]:
        if not (isinstance(self.time, Time) and isinstance(self.peer_time, Time)):
            return []
        return [mine / other for mine, other in zip(self.time.rounds, self.peer_time.rounds, strict=True)]

    def _spread(self) -> str:
        """Return the range of the ratios of the middle 80 % of the rounds."""
        ratios = self._ratios()
        return "{:.3g} to {:.3g}".format(*(np.quantile(ratios, share) for share in (0.1, 0.9))) if ratios else ""

    def _goal(self) -> str:
        if self.more is not None:
            return f"at most {_text(self.more)} more"
        return "" if self.reach is None else f"at most {self.reach:g}"


class Grid(NamedTuple):
    """A table of single times. The first `labels` columns name a row."""

    section: str
    name: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    labels: int = 1

    def cells(self) -> list[list[str]]:
        """Return a row for each cell: table, row, column, value."""
        return [
            [self.section, self.name, ", ".join(row[: self.labels]), column, value]
            for row in self.rows
            for column, value in zip(self.header[self.labels :], row[self.labels :], strict=True)
        ]


def _text(nanoseconds: float) -> str:
    for unit, size in (("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def grid(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return rows of cells under a header as a Markdown table."""
    return "".join(f"| {' | '.join(row)} |\n" for row in [header, ["---"] * len(header), *rows])


def table(lines: Iterable[Line]) -> str:
    """Return the lines as a Markdown table."""
    return grid(COLUMNS[1:], [line.cells() for line in lines])


def heading(versions: Mapping[str, str]) -> str:
    """Return the sentence with date, machine and versions of the measurement."""
    machine = f"{os.cpu_count()} cores of {platform.machine()}"
    names = ", ".join(f"{name} {version}" for name, version in versions.items())
    return f"{datetime.now(UTC).date()}, {machine}, Python {platform.python_version()}, {names}.\n"


def write(path: Path, text: str, what: str = "bench") -> None:
    """Replace the text between the markers of a file."""
    start, end = f"<!-- {what}:start -->", f"<!-- {what}:end -->"
    before, rest = path.read_text(encoding="utf8").split(start)
    path.write_text(f"{before}{start}\n{text}{end}{rest.split(end)[1]}", encoding="utf8")


def save(lines: Mapping[str, Sequence[Line]], grids: Sequence[Grid]) -> None:
    """Replace the rows of the measured sections in the CSV files."""
    sections = {*lines, *(each.section for each in grids)}
    compared = [[section, *line.cells()] for section, found in lines.items() for line in found]
    _replace(COMPARISONS, COLUMNS, sections, compared)
    cells = [row for each in grids for row in each.cells()]
    _replace(TABLES, ("section", "table", "row", "column", "value"), sections, cells)


def _replace(path: Path, header: Sequence[str], sections: set[str], rows: Iterable[Sequence[str]]) -> None:
    kept = [row for row in _rows(path) if row[0] not in sections] if path.exists() else []
    with path.open("w", encoding="utf8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *kept, *rows])


def _rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf8", newline="") as file:
        return list(csv.reader(file))[1:]


def comparisons() -> list[dict[str, str]]:
    """Return the comparisons of the CSV file."""
    return [dict(zip(COLUMNS, row, strict=True)) for row in _rows(COMPARISONS)]


def chosen(names: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """Return the comparisons of these operations and peers."""
    found = {(row["operation"], row["compared with"]): row for row in comparisons()}
    return [found[name] for name in names]


def write_pages(heading: str) -> None:
    """Write the tables of the README and of the page from the CSV file."""
    rows = [row for row in comparisons() if row["section"] != "cuda"]
    missed = [row for row in rows if row["missed"]]
    much = [row for row in missed if float(row["ratio"]) > MUCH]
    count = (
        f"In {len(missed)} of {len(rows)} comparisons dlfield misses its goal or, without a goal, is slower than the"
        f" peer. In {len(much)} of them it takes more than {MUCH:g} times as long:"
    )
    # The versions are on the page alone.
    write(README, f"{heading.split(', dlfield')[0]}.\n\n{_shown(chosen(IN_README))}")
    write(PAGE, f"{heading}\n{_shown(chosen(ON_PAGE))}\n### What is lost\n\n{count}\n\n{_shown(much)}")


def _shown(rows: Iterable[Mapping[str, str]]) -> str:
    return grid(SHOWN, [[row[column] for column in SHOWN] for row in rows])
