"""Dask arrays whose blocks are tensors: layout, alignment, dims and halo of each block are those of one large field.

Importing this module teaches Dask about tensors: `dask.array` accepts them as blocks and as operands, joins blocks to a
tensor instead of a NumPy array, and counts their memory, padding included. Workers need no import of their own: each
one learns it with the first tensor that reaches it. Tensors travel and spill as pickles with buffers out of band.

Example
-------
>>> import dlfield.dask
>>> field = dlfield.dask.zeros((8, 8, 4), (4, 4, 4), backend="gt:cpu_ifirst", halo=(1, 1, 0))
>>> whole = (field + 1).compute()
>>> type(whole).__name__, whole.layout, whole.halo
('Tensor', (2, 1, 0), ((1, 1), (1, 1), (0, 0)))
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex
from uuid import uuid4

import numpy as np

from dlfield import _native
from dlfield._dask_blocks import Allocation, concatenate, part_of_halo, size_of
from dlfield._dask_overlap import Overlap
from dlfield._native import DimsError, LayoutError, Tensor
from dlfield.frameworks import imported

if TYPE_CHECKING:
    import dask.array as da
    from dask.array.dispatch import concatenate_lookup
    from dask.highlevelgraph import HighLevelGraph
    from dask.sizeof import sizeof
else:
    da = imported("dask.array", "dlfield.dask")
    from dask.array.dispatch import concatenate_lookup
    from dask.highlevelgraph import HighLevelGraph
    from dask.sizeof import sizeof

__all__ = ["Array", "empty", "from_tensor", "full", "map_overlap", "ones", "zeros"]

Halo = tuple[tuple[int, int], ...]


class Array(da.Array):  # type: ignore[misc, unused-ignore]
    """A Dask array of tensors that knows the halo of the whole field.

    Everything else is `dask.array.Array`. Results of Dask's own functions are of that class, and have no `halo`.

    Attributes
    ----------
    halo
        For each dimension the lower and upper ghost widths, which are part of the shape, as those of `dlfield.Tensor`.
    """

    halo: Halo
    _allocation: Allocation

    def __dask_postpersist__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        rebuild, arguments = super().__dask_postpersist__()
        return _persisted, (rebuild, arguments, self.halo, self._allocation)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (*super().__reduce__(), self.halo, self._allocation)


def _persisted(graph: Any, rebuild: Callable[..., Any], arguments: Any, *stated: Any, **keywords: Any) -> Array:
    return _array(rebuild(graph, *arguments, **keywords), *stated)


def _unpickled(make: Callable[..., Any], arguments: Any, *stated: Any) -> Array:
    return _array(make(*arguments), *stated)


def _array(array: Any, halo: Halo, allocation: Allocation) -> Array:
    made = Array(array.dask, array.name, array.chunks, meta=array._meta)
    made.halo, made._allocation = halo, allocation
    return made


def empty(
    shape: SupportsIndex | Sequence[SupportsIndex], chunks: Any = "auto", dtype: Any = "float64", **keywords: Any
) -> Array:
    """Return a Dask array of uninitialized tensors.

    Each block is allocated where its task runs. It has the layout and the alignment that `dlfield.empty` gives to a
    field of its size, and the part of the halo that lies in it, as a slice of one large field has.

    Parameters
    ----------
    shape
        Extents of the whole field, its halo included.
    chunks
        Extents of the blocks, in all forms that `dask.array` accepts.
    dtype
        As for `dlfield.empty`.
    **keywords
        `backend`, `dims`, `layout`, `alignment_size`, `padding` as for `dlfield.empty`, and `halo` of the whole field.

    Returns
    -------
    Array

    Raises
    ------
    LayoutError, DimsError, DTypeError
        As `dlfield.empty`, at once, not when the blocks are computed.

    Example
    -------
    >>> import dlfield.dask
    >>> dlfield.dask.empty((8, 8), 4, "float32", dims="IJ").blocks[0, 1].compute().dims
    ('I', 'J')
    """
    return _allocate(_native.empty, (), shape, chunks, dtype, keywords)


def zeros(
    shape: SupportsIndex | Sequence[SupportsIndex], chunks: Any = "auto", dtype: Any = "float64", **keywords: Any
) -> Array:
    """Return a Dask array of tensors of zeros; parameters, result and errors are those of `empty`.

    Example
    -------
    >>> import dlfield.dask
    >>> field = dlfield.dask.zeros((8, 8), (4, 8), halo=(1, 0))
    >>> [field.blocks[i].compute().halo for i in range(2)]
    [((1, 0), (0, 0)), ((0, 1), (0, 0))]
    """
    return _allocate(_native.zeros, (), shape, chunks, dtype, keywords)


def ones(
    shape: SupportsIndex | Sequence[SupportsIndex], chunks: Any = "auto", dtype: Any = "float64", **keywords: Any
) -> Array:
    """Return a Dask array of tensors of ones; parameters, result and errors are those of `empty`.

    Example
    -------
    >>> import dlfield.dask
    >>> float(dlfield.dask.ones((4, 4), 2).sum().compute())
    16.0
    """
    return _allocate(_native.ones, (), shape, chunks, dtype, keywords)


def full(
    shape: SupportsIndex | Sequence[SupportsIndex],
    fill_value: Any,
    chunks: Any = "auto",
    dtype: Any = "float64",
    **keywords: Any,
) -> Array:
    """Return a Dask array of tensors filled with a number; the rest is as for `empty`.

    Example
    -------
    >>> import dlfield.dask
    >>> dlfield.dask.full(3, 7, 2, "int32").compute().tolist()
    [7, 7, 7]
    """
    return _allocate(_native.full, (fill_value,), shape, chunks, dtype, keywords)


def from_tensor(field: Tensor, chunks: Any = "auto") -> Array:
    """Return a Dask array whose blocks are views of a field.

    The graph holds the field's memory: no copy is made, and later writes to the field may or may not be seen. Blocks
    that go to a worker are copied on the way.

    Parameters
    ----------
    field
        The field to divide.
    chunks
        Extents of the blocks, in all forms that `dask.array` accepts.

    Returns
    -------
    Array
        With the halo of the field.

    Example
    -------
    >>> import dlfield as dl
    >>> import dlfield.dask
    >>> field = dl.ones((6, 4), dims="KI", halo=(1, 0))
    >>> dlfield.dask.from_tensor(field, 3).compute().dims
    ('K', 'I')
    """
    chunks = da.core.normalize_chunks(chunks, field.shape, dtype=field.dtype)
    name = f"dlfield-from-tensor-{uuid4().hex}"
    graph = {
        (name, *position): field[tuple(slice(start, stop) for start, stop in spans)]
        for position, spans in _blocks(chunks)
    }
    return _array(da.Array(graph, name, chunks, meta=_meta(field)), field.halo, Allocation.of(field))


def map_overlap(
    func: Callable[..., Any],
    *arrays: Any,
    halo: Sequence[SupportsIndex | tuple[SupportsIndex, SupportsIndex]] | None = None,
    periodic: str | Sequence[str] = (),
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
    func
        Returns the block, its halo included: one of its arguments, or an array of the same shape. The halo between
        blocks is cut off, that at the edge of the field becomes part of the result.
    *arrays
        Dask arrays of equal shape and chunks.
    halo
        For each dimension the ghost width, or the lower and the upper one. Default: that of the first array that has
        one, which are results of the functions of this module.
    periodic
        Labels of the periodic dimensions.
    dtype
        Of the result; default: that of the first array.
    **keywords
        Passed to `func`.

    Returns
    -------
    Array
        With the same halo, so that the next step needs none.

    Raises
    ------
    LayoutError
        Chunks differ, no halo is known, a block has fewer points to compute than the halo is wide, or the result of
        `func` has another shape.
    DimsError
        The arrays have no dimension with a label in `periodic`, or the result of `func` has other labels.

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
        raise TypeError(
            f"arrays: found {[type(array).__name__ for array in arrays]}; allowed are one or more Dask arrays"
        )
    first = arrays[0]
    for array in arrays:
        if array.chunks != first.chunks:
            raise LayoutError(f"arrays: found chunks {array.chunks} beside {first.chunks}; rechunk() makes them equal")
    widths = _halo_of(arrays, halo)
    allocations = [_allocation_of(array) for array in arrays]
    dims, labels = allocations[0].dims, tuple(periodic)
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
    return _array(da.Array(layers, name, first.chunks, meta=made), widths, allocations[0])


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


def _halo_of(arrays: Sequence[Any], halo: Any) -> Halo:
    """Return the stated halo, else that of the first array with one, as pairs."""
    if halo is None:
        halo = next((array.halo for array in arrays if isinstance(array, Array)), None)
    if halo is None:
        raise LayoutError("halo: found none; arrays that other functions made do not have one, so state it: halo=...")
    ndim = arrays[0].ndim
    pairs = _pairs(halo)
    if len(pairs) != ndim:
        raise LayoutError(f"halo: found {len(pairs)} entries for {ndim} dimensions")
    if any(width < 0 for pair in pairs for width in pair):
        raise LayoutError(f"halo: found {pairs}; allowed is 0 or more")
    return pairs


def _pairs(halo: Any) -> Halo:
    if not isinstance(halo, Sequence):
        raise TypeError(f"halo: found {halo!r}; allowed is for each dimension a width, or a lower and an upper one")
    return tuple((index(w[0]), index(w[1])) if isinstance(w, Sequence) else (index(w),) * 2 for w in halo)


def _blocks(chunks: Any) -> Iterator[tuple[tuple[int, ...], tuple[tuple[int, int], ...]]]:
    """Yield for each block its position among the blocks, and its first and last index in each dimension."""
    spans = []
    for extents in chunks:
        stops = np.cumsum(extents, dtype=int).tolist()
        spans.append(list(zip([0, *stops[:-1]], stops, strict=True)))
    positions = product(*(range(len(extents)) for extents in chunks))
    return zip(positions, product(*spans), strict=True)


def _meta(field: Tensor) -> Any:
    return field[(slice(0, 0),) * field.ndim] if field.ndim else field


def _allocate(
    make: Callable[..., Tensor], fill: tuple[Any, ...], shape: Any, chunks: Any, dtype: Any, keywords: dict[str, Any]
) -> Array:
    extents = tuple(index(extent) for extent in shape) if isinstance(shape, Sequence) else (index(shape),)
    halo = keywords.pop("halo", None)
    if len(pairs := _pairs((0,) * len(extents) if halo is None else halo)) != len(extents):
        raise LayoutError(f"halo: found {len(pairs)} entries for {len(extents)} dimensions")
    # Wrong arguments fail here, on a field of no more memory than its halo has, and not on a worker.
    small = [min(extent, sum(pair)) for extent, pair in zip(extents, pairs, strict=True)]
    model = _native.empty(small, dtype, halo=pairs, **keywords)
    allocation = Allocation.from_keywords(len(extents), model.dtype, keywords)
    chunks = da.core.normalize_chunks(chunks, extents, dtype=model.dtype)
    name = f"dlfield-{make.__name__}-{uuid4().hex}"
    block = partial(_block, allocation, make, fill, model.dtype)
    graph = {}
    for position, spans in _blocks(chunks):
        parts = [part_of_halo(pair, span, extent) for pair, span, extent in zip(pairs, spans, extents, strict=True)]
        graph[(name, *position)] = (block, [stop - start for start, stop in spans], parts)
    return _array(da.Array(graph, name, chunks, meta=_meta(model)), pairs, allocation)


def _block(allocation: Allocation, make: Any, fill: Any, dtype: Any, shape: list[int], halo: list[Any]) -> Tensor:
    return allocation.make(shape, dtype, halo, make, *fill)


da.register_chunk_type(Tensor)
concatenate_lookup.register(Tensor, concatenate)
sizeof.register(Tensor, size_of)
