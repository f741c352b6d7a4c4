"""Which points of a field go to which process, without MPI.

An offset is the position of a neighbour in the grid of processes, relative to this process: -1, 0 or 1 for each
exchanged dimension.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Offset: TypeAlias = tuple[int, ...]
# Points below and above the compute points, for each exchanged dimension.
Widths: TypeAlias = tuple[tuple[int, int], ...]
Slices: TypeAlias = tuple[slice, ...]


@dataclass(frozen=True)
class Axis:
    """One exchanged dimension of a field."""

    # Its index in the field.
    axis: int
    # The compute points are `start` to `stop`.
    start: int
    stop: int
    # 1 if the field has one point more than the specification: its last point is the first one of the process above.
    staggered: int

    def sent(self, direction: int, lower: int, upper: int) -> slice:
        """Return the points that a process in this direction has in its halo, whose widths these are."""
        if direction > 0:
            stop = self.stop - self.staggered
            return slice(stop - lower, stop)
        if direction < 0:
            start = self.start + self.staggered
            return slice(start, start + upper)
        return slice(self.start, self.stop)

    def received(self, direction: int, lower: int, upper: int) -> slice:
        """Return the points of the halo in this direction."""
        if direction > 0:
            return slice(self.stop, self.stop + upper)
        if direction < 0:
            return slice(self.start - lower, self.start)
        return slice(self.start, self.stop)


@dataclass(frozen=True)
class FieldShape:
    """What has to be known of a field to say which of its points are exchanged."""

    shape: tuple[int, ...]
    # One for each exchanged dimension; None if the field does not have it.
    axes: tuple[Axis | None, ...]

    def needs(self, offset: Offset, widths: Widths) -> bool:
        """Return whether the process at this offset has points of the halo: not along dimensions without the field."""
        return all(
            step == 0 or (axis is not None and widths[dim][step > 0] > 0)
            for dim, (step, axis) in enumerate(zip(offset, self.axes, strict=True))
        )

    def sends(self, offset: Offset, widths: Widths) -> bool:
        """Whether the process at this offset needs points of this one: it has this one at the opposite offset."""
        return self.needs(opposite(offset), widths)

    def sent(self, offset: Offset, widths: Widths) -> Slices:
        """Return the part of the field that goes to the process at this offset."""
        parts = [slice(0, size) for size in self.shape]
        for axis, step, (lower, upper) in zip(self.axes, offset, widths, strict=True):
            if axis is not None:
                parts[axis.axis] = axis.sent(step, lower, upper)
        return tuple(parts)

    def received(self, offset: Offset, widths: Widths) -> Slices:
        """Return the part of the field that comes from the process at this offset."""
        parts = [slice(0, size) for size in self.shape]
        for axis, step, (lower, upper) in zip(self.axes, offset, widths, strict=True):
            if axis is not None:
                parts[axis.axis] = axis.received(step, lower, upper)
        return tuple(parts)


@dataclass(frozen=True)
class Neighbours:
    """The processes around one: the rank at each offset. Edges that are not periodic have no neighbour."""

    rank: int
    around: dict[Offset, int]

    @property
    def ranks(self) -> tuple[int, ...]:
        """The other processes, each once."""
        return tuple(sorted(set(self.around.values()) - {self.rank}))

    def sent(self, rank: int) -> list[Offset]:
        """Return the offsets at which a process is, in the order in which its message has their points."""
        return sorted(offset for offset, found in self.around.items() if found == rank)

    def received(self, rank: int) -> list[Offset]:
        """Return these offsets in the order in which a message from that process has their points.

        The sender sees this process at the opposite offsets, so its ascending order is the descending one here.
        """
        return sorted((offset for offset, found in self.around.items() if found == rank), reverse=True)


def neighbours(
    processes: Sequence[int], coordinates: Sequence[int], periodic: Sequence[bool], rank_at: Callable[[list[int]], int]
) -> Neighbours:
    """Return the processes around the one at these coordinates; `rank_at` gives the rank at others."""
    around: dict[Offset, int] = {}
    for offset in itertools.product((-1, 0, 1), repeat=len(processes)):
        place = [here + step for here, step in zip(coordinates, offset, strict=True)]
        inside = [0 <= at < size or wraps for at, size, wraps in zip(place, processes, periodic, strict=True)]
        if any(offset) and all(inside):
            around[offset] = rank_at([at % size for at, size in zip(place, processes, strict=True)])
    return Neighbours(rank_at(list(coordinates)), around)


def opposite(offset: Offset) -> Offset:
    """Return the offset at which a process sees the one that sees it at `offset`."""
    return tuple(-step for step in offset)
