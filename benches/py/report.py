"""What a measurement says, as a line of a table."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One comparison: what was measured, beside what, and the ratio to reach."""

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


def table(lines: list[Line]) -> str:
    """Return the lines as a Markdown table."""
    rows = [["measured", "time", "beside", "time", "ratio", "to reach"], ["---"] * 6]
    rows += [line.cells() for line in lines]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
