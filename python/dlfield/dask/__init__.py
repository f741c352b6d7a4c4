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
from typing import Any, SupportsIndex
from uuid import uuid4

import numpy as np

from dlfield import _native
from dlfield._native import DimsError, Tensor
from dlfield.dask.array import Array, da, labelled
from dlfield.dask.blocks import Allocation, part_of_halo
from dlfield.dask.overlap import map_overlap
from dlfield.interop.labels import halo_widths, labels_of

__all__ = ["Array", "empty", "from_tensor", "full", "map_overlap", "ones", "zeros"]


def empty(
    shape: SupportsIndex | Sequence[SupportsIndex], chunks: Any = "auto", dtype: Any = "float64", **keywords: Any
) -> Array:
    """Return a Dask array of uninitialized tensors.

    Each block is allocated where its task runs. It has the layout and the alignment that `dlfield.empty` gives to a
    field of its size, and the part of the halo that lies in it, as a slice of one large field has.

    Parameters
    ----------
    shape : int or sequence of int
        Extents of the whole field, its halo included.
    chunks : int, tuple, dict or str, optional
        Extents of the blocks, in all forms that `dask.array` accepts.
    dtype : str, type or dtype, optional
        Type of the elements.
    **keywords : optional
        `backend`, `dims`, `layout`, `alignment_size`, `padding` as in `dlfield.empty`, and `halo` of the whole field.

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
    """Return a Dask array of tensors of zeros; result and errors are those of `empty`.

    Parameters
    ----------
    shape : int or sequence of int
        Extents of the whole field, its halo included.
    chunks : int, tuple, dict or str, optional
        Extents of the blocks, in all forms that `dask.array` accepts.
    dtype : str, type or dtype, optional
        Type of the elements.
    **keywords : optional
        `backend`, `dims`, `layout`, `alignment_size`, `padding` and `halo`, as in `empty`.

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
    """Return a Dask array of tensors of ones; result and errors are those of `empty`.

    Parameters
    ----------
    shape : int or sequence of int
        Extents of the whole field, its halo included.
    chunks : int, tuple, dict or str, optional
        Extents of the blocks, in all forms that `dask.array` accepts.
    dtype : str, type or dtype, optional
        Type of the elements.
    **keywords : optional
        `backend`, `dims`, `layout`, `alignment_size`, `padding` and `halo`, as in `empty`.

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
    """Return a Dask array of tensors filled with `fill_value`; result and errors are those of `empty`.

    Parameters
    ----------
    shape : int or sequence of int
        Extents of the whole field, its halo included.
    fill_value : number
        The value of every element.
    chunks : int, tuple, dict or str, optional
        Extents of the blocks, in all forms that `dask.array` accepts.
    dtype : str, type or dtype, optional
        Type of the elements.
    **keywords : optional
        `backend`, `dims`, `layout`, `alignment_size`, `padding` and `halo`, as in `empty`.

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
    field : Tensor
        The field to divide.
    chunks : int, tuple, dict or str, optional
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
    found: type[Any] = type(field)
    if not issubclass(found, Tensor):
        of_dask = issubclass(found, da.Array)
        fix = "array.map_blocks(dl.from_array) makes its blocks tensors" if of_dask else "from_dlpack(array) makes one"
        raise TypeError(f"field: expected a dlfield.Tensor, got {found.__name__}; {fix}")
    chunks = da.core.normalize_chunks(chunks, field.shape, dtype=field.dtype)
    name = f"dlfield-from-tensor-{uuid4().hex}"
    graph = {
        (name, *position): field[tuple(slice(start, stop) for start, stop in spans)]
        for position, spans in _blocks(chunks)
    }
    return labelled(da.Array(graph, name, chunks, meta=_meta(field)), field.halo, Allocation.of(field))


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
    for name in ("buffer", "origin", "stream"):
        if keywords.pop(name, None) is not None:
            raise TypeError(f"{make.__name__}() got an unexpected keyword argument {name!r}: each block has its own")
    extents = tuple(index(extent) for extent in shape) if isinstance(shape, Sequence) else (index(shape),)
    halo = keywords.pop("halo", None)
    given = keywords.get("dims")
    dims = _native.empty((1,) * len(extents)).dims if given is None else labels_of(given)
    if len(dims) != len(extents):
        raise DimsError(f"dims: {len(dims)} labels for {len(extents)} dimensions")
    widths = halo_widths({} if halo is None else halo, dims)
    # Wrong arguments fail here, on a field of no more memory than its halo has, and not on a worker.
    small = [min(extent, sum(pair)) for extent, pair in zip(extents, widths, strict=True)]
    model = _native.empty(small, dtype, halo=widths, **keywords)
    allocation = Allocation.from_keywords(len(extents), model.dtype, keywords)
    chunks = da.core.normalize_chunks(chunks, extents, dtype=model.dtype)
    name = f"dlfield-{make.__name__}-{uuid4().hex}"
    block = partial(_block, allocation, make, fill, model.dtype)
    graph = {}
    for position, spans in _blocks(chunks):
        parts = [part_of_halo(pair, span, extent) for pair, span, extent in zip(widths, spans, extents, strict=True)]
        graph[(name, *position)] = (block, [stop - start for start, stop in spans], parts)
    return labelled(da.Array(graph, name, chunks, meta=_meta(model)), widths, allocation)


def _block(allocation: Allocation, make: Any, fill: Any, dtype: Any, shape: list[int], halo: list[Any]) -> Tensor:
    return allocation.make(shape, dtype, halo, make, *fill)
