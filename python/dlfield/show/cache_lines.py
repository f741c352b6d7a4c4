"""The elements of a tensor by the cache lines that they are in."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from dlfield._native import Tensor

#: Bytes of a cache line.
LINE = 64


@dataclass(frozen=True)
class Part:
    """The bytes of an element in a cache line, from `start` to `stop`: all of them, unless it goes on in the next."""

    start: int
    stop: int
    index: tuple[int, ...]
    #: Bytes from the element at index 0 to this one.
    offset: int


@dataclass
class Line:
    """A cache line. `number` counts from the line of the lowest address; `gaps` are bytes of no element."""

    number: int
    parts: list[Part] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Skipped:
    """Lines that are not shown: `empty` ones have no element."""

    count: int
    empty: bool


def memory_lines(tensor: Tensor, limit: int) -> list[Line | Skipped]:
    """Return the cache lines of a tensor that has elements: all of them, or the first and last `limit // 2`.

    More than one line without an element is one `Skipped`. Where elements share memory, each place has one of them.

    Example
    -------
    >>> import dlfield as dl
    >>> [line.gaps for line in memory_lines(dl.zeros((2, 3), alignment_size=64), 8)]
    [[(24, 64)], []]
    """
    [(lowest, _)] = _elements(tensor, 1, 1)
    [(highest, _)] = _elements(tensor, -1, 1)
    first = (tensor.ptr + lowest) // LINE
    lines = _filled(tensor, 1, first, limit + 1)
    cut = None
    if len(lines) > limit:
        half = limit // 2
        # One line more at the end: its last element may go on in the first line that is shown.
        tail = _filled(tensor, -1, first, half + 1)
        lines = sorted(lines, key=_number)[:half]
        cut = lines[-1].number
        lines += sorted(tail, key=_number)[-half:]
    lines.sort(key=_number)
    begin, end = tensor.ptr + lowest - first * LINE, tensor.ptr + highest + tensor.itemsize - first * LINE
    shown: list[Line | Skipped] = [lines[0]]
    for before, line in pairwise(lines):
        missing = line.number - before.number - 1
        if before.number == cut:
            shown.append(Skipped(missing, empty=False))
        elif missing == 1:
            shown.append(Line(line.number - 1))
        elif missing:
            shown.append(Skipped(missing, empty=True))
        shown.append(line)
    for each in shown:
        if isinstance(each, Line):
            each.parts.sort(key=lambda part: part.start)
            each.gaps = list(_gaps(each, begin, end))
    return shown


def _number(line: Line) -> int:
    return line.number


def _elements(tensor: Tensor, sign: int, count: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield offset and index of `count` elements, the lowest first, or the highest if `sign` is -1.

    Of elements that share memory only one: of indices along a dimension of stride 0 the first.
    """
    # The lowest sums of two sets are sums of the lowest of each, so no more than `count` are kept of any dimension.
    distances = np.zeros(1, dtype=np.int64)
    indices = np.zeros((1, 0), dtype=np.int64)
    for size, stride in zip(tensor.shape, tensor.strides, strict=True):
        steps = np.arange(min(size, count) if stride else 1)
        sums = np.add.outer(steps * abs(stride), distances).ravel()
        distances, chosen = np.unique(sums, return_index=True)
        distances, chosen = distances[:count], chosen[:count]
        step, before = np.divmod(chosen, len(indices))
        places = step if sign * stride >= 0 else size - 1 - step
        indices = np.column_stack([indices[before], places])
    start = sum(
        (size - 1) * stride for size, stride in zip(tensor.shape, tensor.strides, strict=True) if sign * stride < 0
    )
    for distance, index in zip(distances.tolist(), indices.tolist(), strict=True):
        yield start + sign * distance, tuple(index)


def _filled(tensor: Tensor, sign: int, first: int, limit: int) -> list[Line]:
    """Return the lines that hold the elements at one end of the memory, until `limit` of them are full."""
    lines: dict[int, Line] = {}
    started: set[int] = set()
    # One more in each line, as the first element of a line may begin before it.
    for offset, index in _elements(tensor, sign, (limit + 1) * (LINE // tensor.itemsize + 1)):
        begin = tensor.ptr + offset - first * LINE
        end = begin + tensor.itemsize
        number = begin // LINE
        if number not in started and len(started) == limit:
            break
        started.add(number)
        # Strides are multiples of the element size, so elements share all bytes or none.
        for line in range(number, (end - 1) // LINE + 1):
            place = line * LINE
            part = Part(max(begin - place, 0), min(end - place, LINE), index, offset)
            lines.setdefault(line, Line(line)).parts.append(part)
    return list(lines.values())


def _gaps(line: Line, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the bytes of a line between the tensor's first and last one that belong to no element."""
    place = max(begin - line.number * LINE, 0)
    for part in line.parts:
        if part.start > place:
            yield place, part.start
        place = part.stop
    last = min(end - line.number * LINE, LINE)
    if last > place:
        yield place, last
