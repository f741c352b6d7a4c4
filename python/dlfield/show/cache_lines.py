"""The elements of a tensor by the cache lines that they are in."""

from collections.abc import Iterable, Iterator
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
    """Return the cache lines of a tensor that has elements: all, or `limit // 2` from the origin on, and the last.

    More than one line without an element is one `Skipped`. Where elements share memory, each place has one of them, and
    the first lines take the place of those at the origin.

    Example
    -------
    >>> import dlfield as dl
    >>> [line.gaps for line in memory_lines(dl.zeros((2, 3), alignment_size=64), 8)]
    [[(24, 64)], []]
    """
    [(lowest, _)] = _elements(tensor, 1, 1)
    [(highest, _)] = _elements(tensor, -1, 1)
    first = (tensor.ptr + lowest) // LINE
    lines = _filled(tensor, _elements(tensor, 1, _enough(tensor, limit + 1)), first, limit + 1)
    cut = None
    if len(lines) > limit:
        half = limit // 2
        # One line more at the end: its last element may go on in the first line that is shown.
        tail = _filled(tensor, _elements(tensor, -1, _enough(tensor, half + 1)), first, half + 1)
        tail = sorted(tail, key=_number)[-half:]
        lines = [line for line in _at_origin(tensor, first, half) if line.number < tail[0].number] or lines
        lines = sorted(lines, key=_number)[:half]
        cut = lines[-1].number
        lines += tail
    lines.sort(key=_number)
    begin, end = tensor.ptr + lowest - first * LINE, tensor.ptr + highest + tensor.itemsize - first * LINE
    shown: list[Line | Skipped] = [Skipped(lines[0].number, empty=False)] if lines[0].number else []
    shown.append(lines[0])
    for before, line in pairwise(lines):
        missing = line.number - before.number - 1
        if before.number == cut and missing:
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


def _enough(tensor: Tensor, lines: int) -> int:
    """Return how many elements fill so many lines: one more in each, whose first element may begin before it."""
    return (lines + 1) * (LINE // tensor.itemsize + 1)


def _at_origin(tensor: Tensor, first: int, limit: int) -> list[Line]:
    """Return the lines from that of the first element of the domain on; an empty list if elements share memory."""
    order = sorted(range(tensor.ndim), key=lambda dimension: -abs(tensor.strides[dimension]))
    sizes = [tensor.shape[dimension] for dimension in order]
    steps = [tensor.strides[dimension] for dimension in order]
    span = tensor.itemsize
    for size, step in zip(reversed(sizes), reversed(steps), strict=True):
        if size > 1 and abs(step) < span:
            return []
        span += (size - 1) * abs(step)
    # Counted in the order of addresses, in which a dimension with a negative stride runs backwards.
    begin, at = 0, 0
    for dimension, size, step in zip(order, sizes, steps, strict=True):
        place = min(tensor.origin[dimension], size - 1)
        begin = begin * size + (place if step >= 0 else size - 1 - place)
        at += place * step
    before = LINE // tensor.itemsize
    numbers = range(max(begin - before, 0), min(begin + _enough(tensor, limit), tensor.size))
    lines = _filled(tensor, (_counted(tensor, order, number) for number in numbers), first, limit + before + 1)
    origin = (tensor.ptr + at) // LINE - first
    return [line for line in lines if line.number >= origin]


def _counted(tensor: Tensor, order: list[int], number: int) -> tuple[int, tuple[int, ...]]:
    """Return offset and index of the element with this number in the order of addresses."""
    index = [0] * tensor.ndim
    for dimension in reversed(order):
        number, place = divmod(number, tensor.shape[dimension])
        index[dimension] = place if tensor.strides[dimension] >= 0 else tensor.shape[dimension] - 1 - place
    return sum(place * stride for place, stride in zip(index, tensor.strides, strict=True)), tuple(index)


def _filled(tensor: Tensor, elements: Iterable[tuple[int, tuple[int, ...]]], first: int, limit: int) -> list[Line]:
    """Return the lines that hold these elements, which are in the order of their addresses, until `limit` are full."""
    lines: dict[int, Line] = {}
    started: set[int] = set()
    for offset, index in elements:
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
