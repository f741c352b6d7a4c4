"""The blocks of `dlfield.dask`: how one is allocated, how several are joined, and how much memory one has."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from dlfield._native import Tensor, empty

Halo = Sequence[tuple[int, int]]


class Allocation(NamedTuple):
    """What all blocks of an array have in common: the arguments of `dlfield.empty` but shape, dtype and halo.

    Presets are resolved, because a worker may not know one that was registered elsewhere.
    """

    dims: tuple[str, ...]
    layout: tuple[int, ...]
    alignment_size: int
    padding: str
    device: str
    # Whether memory is aligned at the first compute point, or at the first point.
    at_domain: bool

    @classmethod
    def from_keywords(cls, ndim: int, dtype: Any, keywords: dict[str, Any]) -> Self:
        """Resolve keywords of `dlfield.empty`."""
        # Rows of 3 elements are padded by every alignment that is a power of 2, if any are.
        found = cls.of(empty((3,) * ndim, dtype, halo=((1, 0),) * ndim, **keywords))
        return found._replace(padding=keywords.get("padding") or found.padding)

    @classmethod
    def of(cls, field: Tensor) -> Self:
        """Read off a field how it was allocated: with padding if its strides are multiples of the alignment."""
        rows = [
            stride
            for stride, extent, rank in zip(field.strides, field.shape, field.layout, strict=True)
            if extent > 1 and rank < field.ndim - 1
        ]
        return cls(
            field.dims,
            field.layout,
            field.alignment_size,
            "none" if any(stride % field.alignment_size for stride in rows) else "row",
            str(field.device),
            field.aligned_index == tuple(lower for lower, _ in field.halo),
        )

    def make(
        self, shape: Sequence[int], dtype: Any, halo: Halo, function: Callable[..., Tensor] = empty, *fill: Any
    ) -> Tensor:
        """Return a block of this kind."""
        return function(
            shape,
            *fill,
            dtype,
            dims=self.dims,
            layout=self.layout,
            alignment_size=self.alignment_size,
            padding=self.padding,
            device=self.device,
            aligned_index=[lower if self.at_domain else 0 for lower, _ in halo],
            halo=halo,
        )


def part_of_halo(halo: tuple[int, int], span: tuple[int, int], extent: int) -> tuple[int, int]:
    """Return how much of the lower and upper halo of `extent` points lies in the span."""
    (lower, upper), (start, stop) = halo, span
    size = stop - start
    return min(max(lower - start, 0), size), min(max(upper - (extent - stop), 0), size)


def concatenate(arrays: Sequence[Any], axis: int = 0) -> Tensor:
    """Join blocks to a tensor with the layout and labels of the first; `np.concatenate` would return a NumPy array."""
    arrays = list(arrays)
    like = next(array for array in arrays if isinstance(array, Tensor))
    axis = range(like.ndim)[axis]
    shape = list(like.shape)
    shape[axis] = sum(array.shape[axis] for array in arrays)
    dtype = np.result_type(*(array.dtype for array in arrays))
    joined = Allocation.of(like).make(shape, dtype, _joined_halo(arrays, axis))
    start = 0
    for array in arrays:
        stop = start + array.shape[axis]
        # Blocks are joined by index, so other labels do not count.
        part = np.asarray(array) if isinstance(array, Tensor) and array.dims != like.dims else array
        joined[(slice(None),) * axis + (slice(start, stop),)] = part
        start = stop
    return joined


def _joined_halo(arrays: Sequence[Any], axis: int) -> list[tuple[int, int]]:
    """Return the opposite of slicing: along the axis the outer halos, in the other dimensions what all have."""
    halos = [array.halo if isinstance(array, Tensor) else ((0, 0),) * array.ndim for array in arrays]
    extents = [array.shape[axis] for array in arrays]
    joined = []
    for pairs in zip(*halos, strict=True):
        lower, upper = zip(*pairs, strict=True)
        joined.append((min(lower), min(upper)))
    lower, upper = zip(*(halo[axis] for halo in halos), strict=True)
    joined[axis] = (_outer(lower, extents), _outer(reversed(upper), reversed(extents)))
    return joined


def _outer(widths: Iterable[int], extents: Iterable[int]) -> int:
    """Return the halo at the outer end of joined blocks; a block that lies in it as a whole does not end it."""
    total = 0
    for width, extent in zip(widths, extents, strict=True):
        total += width
        if width < extent:
            break
    return total


def size_of(field: Tensor) -> int:
    """Return the bytes from the first to the last element, so that padding counts and repeated elements do not."""
    if field.size == 0:
        return 0
    steps = zip(field.shape, field.strides, strict=True)
    return sum((extent - 1) * abs(stride) for extent, stride in steps) + field.itemsize
