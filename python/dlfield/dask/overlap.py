"""`dlfield.dask.map_overlap` and its tasks: which points each block gets from its neighbours, and what becomes of them.

Dask's own overlap joins the pieces one dimension after the other, with up to as many copies as dimensions, and does not
know where the halo of the result begins. Here each point is copied once into a block with the right alignment.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from dask.highlevelgraph import HighLevelGraph

from dlfield._native import DimsError, LayoutError, Tensor, empty_like, from_array
from dlfield.dask.array import Array, Halo, check_order, da, labelled
from dlfield.dask.blocks import Allocation
from dlfield.interop.labels import halo_widths, labels_of


def map_overlap(
    func: Callable[..., Any],
    *arrays: Any,
    halo: Any = None,
    periodic: Any = (),
    dtype: Any = None,
    **keywords: Any,
) -> Array:
    """Apply a stencil to each block of one or several arrays, with the points of its neighbours around it.

    `func` gets for each array a writable tensor of its own: the block with the field's whole halo around it. Inside the
    field the halo has the neighbours' points; at its edge it is the field's own halo, or, in a periodic dimension, the
    points of the other end. So `tensor.domain_view` has the points to compute, and every block is a small field.

    Each neighbour sends only the points that are needed, one message of its own for a face, an edge or a corner.

    Parameters
    ----------
    func : callable
        Returns the block, its halo included: one of its arguments, or an array of the same shape. The halo between
        blocks is cut off, that at the edge of the field becomes part of the result.
    *arrays : dask.array.Array
        Dask arrays of equal shape and chunks.
    halo : int, sequence of int or pairs, or mapping, optional
        For each dimension the ghost width, or the lower and the upper one, also as a mapping by label. Default: that of
        the first array that has one, which are results of the functions of this module. The halo is part of an array:
        of any Dask array the outer points are taken as such, also if they were meant to be computed. Pad such an array,
        as `x = dask.array.pad(x, 1, mode="wrap").rechunk(x.chunksize)`, and cut the result: `[1:-1, 1:-1]`.
    periodic : str, sequence of str or mapping, optional
        Labels of the periodic dimensions: a text as "IJ" or "lat lon", a sequence, or a mapping of labels to bools.
    dtype : str, type or dtype, optional
        Of the result; default: that of the first array.
    **keywords : optional
        Passed to `func`; not `depth` and `boundary`, which are Dask's words for the halo and periodic dimensions.

    Returns
    -------
    Array
        With the same halo, so that the next step needs none.

    Raises
    ------
    TypeError
        `arrays` that are not Dask's, `periodic` without labels, or Dask's keywords `depth` and `boundary`.
    LayoutError
        Chunks differ, no halo is known, a block has fewer points to compute than the halo is wide, or the result of
        `func` has another shape.
    DimsError
        The arrays have no dimension with a label in `periodic`, or the labels of one in another order; or the result of
        `func` has other labels.

    Example
    -------
    >>> import dlfield.dask
    >>> def smooth(field):
    ...     inner = field.domain_view
    ...     inner[...] = (field.to_numpy()[:-2] + field.to_numpy()[2:]) / 2
    ...     return field
    >>> field = dlfield.dask.from_tensor(dlfield.from_array([0.0, 4, 0, 0, 8, 0], halo=(1,)), 3)
    >>> dlfield.dask.map_overlap(smooth, field).compute().tolist()
    [0.0, 0.0, 2.0, 4.0, 0.0, 0.0]
    """
    if not arrays or not all(isinstance(array, da.Array) for array in arrays):
        raise TypeError(f"arrays: expected one or more Dask arrays, got {[type(array).__name__ for array in arrays]}")
    for other, ours in (("depth", "halo=, the widths"), ("boundary", "periodic=, the labels of periodic dimensions")):
        if other in keywords:
            raise TypeError(
                f"map_overlap() got an unexpected keyword argument {other!r}; write {ours}: the outer points of an "
                f"array are taken as its halo, so {_PAD}"
            )
    if isinstance(periodic, Mapping):
        periodic = [label for label, wraps in periodic.items() if wraps]
    if not isinstance(periodic, Sequence) or not all(isinstance(label, str) for label in periodic):
        raise TypeError(f"periodic: expected labels of dimensions, such as 'IJ' or ('I',), got {periodic!r}")
    first = arrays[0]
    for array in arrays:
        if array.chunks != first.chunks:
            raise LayoutError(
                f"arrays: expected equal chunks, got {first.chunks} and {array.chunks}; rechunk() makes them equal"
            )
    allocations = [_allocation_of(array) for array in arrays]
    check_order(arrays)
    dims, labels = allocations[0].dims, labels_of(periodic)
    widths = _halo_of(arrays, halo, dims)
    for label in labels:
        if label not in dims:
            raise DimsError(f"periodic: found {label!r}; the dimensions are {', '.join(dims)}")
    overlap = Overlap(first.chunks, widths, tuple(label in labels for label in dims))
    name = f"dlfield-map-overlap-{uuid4().hex}"
    graph = overlap.graph(
        name, partial(func, **keywords) if keywords else func, [array.name for array in arrays], allocations
    )
    layers = HighLevelGraph.from_collections(name, graph, dependencies=arrays)
    made = allocations[0].make((0,) * first.ndim, dtype or first.dtype, ((0, 0),) * first.ndim)
    return labelled(da.Array(layers, name, first.chunks, meta=made), widths, allocations[0])


# What to do with an array of other functions whose outer points are to be computed.
_PAD = "pad one that has none: x = dask.array.pad(x, 1, mode='wrap').rechunk(x.chunksize)"


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
                    f"halo: expected blocks of at least {max(lower, upper)} points to compute along axis {axis} for "
                    f"the halo ({lower}, {upper}), got {computed}; array.rechunk({{{axis}: -1}}) makes one block there"
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
            f"{name}: expected a result of shape {plan.shape}, halo included, got {type(result).__name__} of {shape}"
        )
    if isinstance(result, Tensor) and result.dims != extended[0].dims:
        raise DimsError(f"{name}: expected a result with dims {extended[0].dims}, got {result.dims}")
    if not isinstance(result, Tensor):
        array = np.asarray(result)
        result = empty_like(extended[0], array.dtype)
        result[...] = array
    # A view: the points around it are few, and copying would cost as much as a step.
    trimmed: Tensor = result[plan.trimmed]
    return trimmed


def _allocation_of(array: Any) -> Allocation:
    """Return how the blocks of an array with its own points around them are allocated."""
    if isinstance(array, Array):
        return array._allocation
    # Empty, but with labels, layout and alignment of the blocks, if these are tensors.
    meta = array._meta
    keywords = (
        {"dims": meta.dims, "layout": meta.layout, "alignment_size": meta.alignment_size}
        if isinstance(meta, Tensor)
        else {}
    )
    return Allocation.from_keywords(array.ndim, array.dtype, keywords)


def _halo_of(arrays: Sequence[Any], halo: Any, dims: Sequence[str]) -> Halo:
    """Return the stated halo, else that of the first array with one, as pairs."""
    if halo is None:
        halo = next((array.halo for array in arrays if isinstance(array, Array)), None)
    if halo is None:
        raise LayoutError(
            "halo: found none; arrays that other functions made do not have one, so state it, halo=..., if their outer "
            f"points are the halo; {_PAD}"
        )
    return halo_widths(halo, dims)
