"""The tasks of `dlfield.dask.map_overlap`: which points each block gets from its neighbours, and what becomes of them.

Dask's own overlap joins the pieces one dimension after the other, with up to as many copies as dimensions, and does not
know where the halo of the result begins. Here each point is copied once into a block with the right alignment.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from dlfield._dask_blocks import Allocation
from dlfield._native import DimsError, LayoutError, Tensor, empty_like, from_array


class Part(NamedTuple):
    """In one dimension, the points of the block `source` that go to the indices `target` of the extended block."""

    offset: int
    source: int
    taken: slice
    target: slice


@dataclass(frozen=True)
class Overlap:
    """Blocks of the extents `chunks`, the `halo` around each, and which dimensions are periodic."""

    chunks: tuple[tuple[int, ...], ...]
    halo: tuple[tuple[int, int], ...]
    periodic: tuple[bool, ...]

    def __post_init__(self) -> None:
        for axis, (extents, (lower, upper), periodic) in enumerate(
            zip(self.chunks, self.halo, self.periodic, strict=True)
        ):
            if len(extents) == 1 and not periodic:
                continue
            computed = list(extents)
            computed[0] -= lower
            computed[-1] -= upper
            if min(computed) < max(lower, upper):
                raise LayoutError(
                    f"halo: ({lower}, {upper}) at axis {axis}, where the blocks have {computed} points to compute; "
                    f"allowed are blocks of at least {max(lower, upper)}, which rechunk() gives"
                )

    def parts(self, axis: int, position: int) -> list[Part]:
        """Return what the block at `position` along the axis is made of: its own points first, then its neighbours'."""
        extents, (lower, upper), periodic = self.chunks[axis], self.halo[axis], self.periodic[axis]
        last, extent = len(extents) - 1, extents[position]
        outer_lower, outer_upper = position == 0, position == last
        # At an edge the halo is part of the block.
        before = 0 if outer_lower else lower
        end = before + extent + (0 if outer_upper else upper)
        own = slice(lower if outer_lower and periodic else 0, extent - (upper if outer_upper and periodic else 0))
        parts = [Part(0, position, own, slice(before + own.start, before + own.stop))]
        if lower and (periodic or not outer_lower):
            source = (position - 1) % len(extents)
            stop = extents[source] - (upper if source == last else 0) if outer_lower else extents[source]
            parts.append(Part(-1, source, slice(stop - lower, stop), slice(0, lower)))
        if upper and (periodic or not outer_upper):
            source = (position + 1) % len(extents)
            start = lower if outer_upper else 0
            parts.append(Part(1, source, slice(start, start + upper), slice(end - upper, end)))
        return parts

    def graph(
        self, name: str, func: Callable[..., Any], sources: Sequence[str], allocations: Sequence[Allocation]
    ) -> dict[Any, Any]:
        """Return the tasks: one for each block, and one for each piece that it gets from a neighbour."""
        graph: dict[Any, Any] = {}
        for position in product(*(range(len(extents)) for extents in self.chunks)):
            along = [self.parts(axis, index) for axis, index in enumerate(position)]
            own, *others = product(*along)
            plan = Plan(
                self.halo, _extents(along), _slices(own, "taken"), _slices(own, "target"), _trimmed(self, position)
            )
            targets = [_slices(parts, "target") for parts in others]
            blocks, pieces = [], []
            for number, source in enumerate(sources):
                keys = []
                for parts in others:
                    offsets = tuple(part.offset for part in parts)
                    key = (f"piece-{name}", number, *position, *offsets)
                    take = partial(_take, _slices(parts, "taken"))
                    graph[key] = (take, (source, *(part.source for part in parts)))
                    keys.append(key)
                blocks.append((source, *position))
                pieces.append(keys)
            graph[(name, *position)] = (partial(_apply, func, plan, targets, allocations), blocks, pieces)
        return graph


class Plan(NamedTuple):
    """How a block is extended and cut again; all slices are in index order."""

    halo: tuple[tuple[int, int], ...]
    shape: tuple[int, ...]
    taken: tuple[slice, ...]
    target: tuple[slice, ...]
    trimmed: tuple[slice, ...]


def _slices(parts: Sequence[Part], which: str) -> tuple[slice, ...]:
    return tuple(getattr(part, which) for part in parts)


def _extents(along: Sequence[Sequence[Part]]) -> tuple[int, ...]:
    return tuple(max(part.target.stop for part in parts) for parts in along)


def _trimmed(overlap: Overlap, position: Sequence[int]) -> tuple[slice, ...]:
    """Where the block lies in the extended one."""
    starts = [0 if index == 0 else lower for index, (lower, _) in zip(position, overlap.halo, strict=True)]
    extents = [chunks[index] for chunks, index in zip(overlap.chunks, position, strict=True)]
    return tuple(slice(start, start + extent) for start, extent in zip(starts, extents, strict=True))


def _take(taken: tuple[slice, ...], block: Any) -> Any:
    """Return a copy of some points without padding: it is what goes to another worker, and keeps no block alive."""
    points = block[taken]
    if not isinstance(points, Tensor):
        return points.copy()
    return from_array(points, alignment_size=1, padding="none", aligned_index=(0,) * points.ndim, layout=points.layout)


def _extend(
    plan: Plan, targets: Sequence[tuple[slice, ...]], allocation: Allocation, block: Any, pieces: Sequence[Any]
) -> Tensor:
    extended = allocation.make(plan.shape, block.dtype, plan.halo)
    extended[plan.target] = block[plan.taken]
    for target, piece in zip(targets, pieces, strict=True):
        extended[target] = piece
    return extended


def _apply(
    func: Callable[..., Any],
    plan: Plan,
    targets: Sequence[tuple[slice, ...]],
    allocations: Sequence[Allocation],
    blocks: Sequence[Any],
    pieces: Sequence[Sequence[Any]],
) -> Tensor:
    extended = [_extend(plan, targets, *each) for each in zip(allocations, blocks, pieces, strict=True)]
    result = func(*extended)
    shape = getattr(result, "shape", None)
    called = func.func if isinstance(func, partial) else func
    name = getattr(called, "__name__", type(called).__name__)
    if shape != plan.shape:
        raise LayoutError(
            f"{name}: returned {type(result).__name__} of shape {shape}; allowed is {plan.shape}, halo included"
        )
    if isinstance(result, Tensor) and result.dims != extended[0].dims:
        raise DimsError(f"{name}: returned a tensor with dims {result.dims}; allowed are {extended[0].dims}")
    if not isinstance(result, Tensor):
        array = np.asarray(result)
        result = empty_like(extended[0], array.dtype)
        result[...] = array
    # A view: the points around it are few, and copying would cost as much as a step.
    trimmed: Tensor = result[plan.trimmed]
    return trimmed
