"""The rows of a tensor in memory, in the plane through its origin: what its drawings show."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from dlfield._native import Tensor

#: The bytes between rows. Those of a view may be elements of the whole field.
PADDING = "padding, or not in this view"


@dataclass(frozen=True)
class Cell:
    """An element, or a place of padding behind a row; `offset` is in bytes from the element at index 0."""

    kind: Literal["point", "halo", "padding"]
    index: tuple[int, ...]
    offset: int
    #: Whether its address is a multiple of the tensor's alignment, and the alignment larger than an element.
    aligned: bool


@dataclass(frozen=True)
class Row:
    """A run along the smallest stride, at a place along `Plane.outer`. None in `cells` stands for omitted elements."""

    index: int
    cells: tuple[Cell | None, ...]


class Plane:
    """The rows of a tensor that has elements: runs along the dimension `inner`, one for each index of `outer`.

    Both are None where the tensor has no such dimension. None in `rows` stands for the rows that are left out.

    Example
    -------
    >>> import dlfield as dl
    >>> plane = Plane(dl.zeros((2, 3), halo=(0, 1), alignment_size=32), max_rows=10, max_columns=32)
    >>> [[cell.kind for cell in row.cells] for row in plane.rows]
    [['halo', 'point', 'halo', 'padding'], ['halo', 'point', 'halo', 'padding']]
    """

    def __init__(self, tensor: Tensor, max_rows: int, max_columns: int) -> None:
        self._tensor = tensor
        order = _memory_order(tensor)
        self.inner: int | None = order[-1] if order else None
        self.outer: int | None = order[-2] if len(order) > 1 else None
        #: The index along each dimension that the plane goes through.
        self.at: list[int] = [min(start, size - 1) for start, size in zip(tensor.origin, tensor.shape, strict=True)]
        #: The dimensions of one index in the plane.
        self.fixed: list[int] = order[:-2]
        columns = _shown(row_pitch(tensor), max_columns)
        lines = _shown(1 if self.outer is None else tensor.shape[self.outer], max_rows)
        self.rows: list[Row | None] = [
            None if line is None else Row(line, tuple(self._cells(line, columns))) for line in lines
        ]

    def cells(self) -> Iterator[Cell]:
        """Yield all cells that are not left out."""
        for row in self.rows:
            for cell in row.cells if row else ():
                if cell:
                    yield cell

    def caption(self) -> str:
        """Return what the rows are."""
        if self.inner is None:
            return "one element"
        tensor, stride = self._tensor, self._tensor.strides[self.inner]
        text = f"rows in memory, along {tensor.dims[self.inner]}"
        if abs(stride) != tensor.itemsize and tensor.shape[self.inner] > 1:
            text += f" (elements {stride} bytes apart)"
        if self.fixed:
            text += ", at " + ", ".join(f"{tensor.dims[place]}={self.at[place]}" for place in self.fixed)
        return text

    def _cells(self, line: int, columns: list[int | None]) -> Iterator[Cell | None]:
        tensor, index = self._tensor, list(self.at)
        if self.outer is not None:
            index[self.outer] = line
        for column in columns:
            if column is None:
                yield None
                continue
            if self.inner is not None:
                index[self.inner] = column
            offset = sum(place * stride for place, stride in zip(index, tensor.strides, strict=True))
            aligned = tensor.alignment_size > tensor.itemsize and (tensor.ptr + offset) % tensor.alignment_size == 0
            if self.inner is not None and column >= tensor.shape[self.inner]:
                yield Cell("padding", tuple(index), offset, aligned=False)
            else:
                yield Cell("halo" if in_halo(tensor, index) else "point", tuple(index), offset, aligned)


def _memory_order(tensor: Tensor) -> list[int]:
    """Return the dimensions in order of decreasing strides."""
    return sorted(range(tensor.ndim), key=lambda dimension: tensor.layout[dimension])


def in_halo(tensor: Tensor, index: list[int] | tuple[int, ...]) -> bool:
    """Return whether an element is outside of the domain."""
    sizes = zip(index, tensor.shape, tensor.halo, strict=True)
    return any(place < lower or place >= size - upper for place, size, (lower, upper) in sizes)


def row_pitch(tensor: Tensor) -> int:
    """Return the distance from one row to the next in elements, or the length of the row if there is only one."""
    if tensor.ndim == 0:
        return 1
    *outer, inner = _memory_order(tensor)
    length = tensor.shape[inner]
    if not outer or tensor.shape[outer[-1]] < 2 or abs(tensor.strides[inner]) != tensor.itemsize:
        return length
    return max(length, abs(tensor.strides[outer[-1]]) // tensor.itemsize)


def padding_text(tensor: Tensor) -> str:
    """Return how many bytes behind each row belong to no element, or an empty text for 0.

    Example
    -------
    >>> import dlfield as dl
    >>> padding_text(dl.zeros((2, 3), alignment_size=64))
    '40 bytes per row, or elements that this view leaves out'
    """
    if tensor.ndim == 0 or tensor.size == 0:
        return ""
    elements = row_pitch(tensor) - tensor.shape[_memory_order(tensor)[-1]]
    return f"{elements * tensor.itemsize} bytes per row, or elements that this view leaves out" if elements else ""


def _shown(count: int, limit: int) -> list[int | None]:
    """Return the indices below `count` to draw, with one None in place of those left out in the middle."""
    if count <= limit:
        return list(range(count))
    head = limit // 2
    tail = limit - head - 1
    return [*range(head), None, *range(count - tail, count)]
