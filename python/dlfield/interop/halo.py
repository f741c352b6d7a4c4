"""Halos in one process: `pad` allocates a field around data, `Tensor.fill_halo` fills it."""

from typing import Any, Literal

import numpy.typing as npt

from dlfield._native import LayoutError, Tensor, empty
from dlfield.interop.asarray import asarray
from dlfield.interop.copies import record_copy
from dlfield.interop.labels import halo_widths

__all__ = ["fill_halo", "pad"]

_Mode = Literal["constant", "edge", "empty", "wrap"]


def pad(data: Any, halo: Any, mode: _Mode = "constant", *, constant_values: Any = 0, **keywords: Any) -> Tensor:
    """Allocate a field with a halo around data; as `numpy.pad`, whose modes it has.

    Parameters
    ----------
    data : array
        Any array that `asarray` takes. All of its points become the domain, its own halo too: pass `domain_view` to
        leave that out.
    halo : int, sequence of int or pairs, or mapping
        Points to add: one number for all dimensions, or for each a number or (lower, upper), or a mapping by label.
    mode : {"constant", "edge", "wrap", "empty"}, optional
        What is in the halo. "constant": `constant_values`; "edge": the nearest point; "wrap": the points of the other
        end, of periodic data; "empty": undefined.
    constant_values : number, optional
        The value for "constant".
    **keywords : optional
        `dims` labels `data`; the others are those of `empty`, as `dtype`, `backend`, `layout`, `device`. The default
        layout is that of `data`.

    Returns
    -------
    Tensor
        With `data` as its `domain_view`.

    Raises
    ------
    LayoutError
        A halo that does not fit the dimensions; "edge" or "wrap" around no points.
    ValueError
        Another mode.
    Error
        As by `asarray` and `empty`.

    Example
    -------
    >>> import dlfield as dl
    >>> field = dl.pad([1.0, 2.0, 3.0], 1, "wrap", dims="I")
    >>> field.tolist(), field.halo
    ([3.0, 1.0, 2.0, 3.0, 1.0], ((1, 1),))
    """
    source = asarray(data, dims=keywords.pop("dims", None))
    source = source.with_halo([0] * source.ndim)
    widths = halo_widths(halo, source.dims)
    if "backend" not in keywords and "layout" not in keywords:
        keywords["layout"] = source.layout
    own: dict[str, Any] = {"dtype": source.dtype, "dims": source.dims, "halo": widths, "device": source.device}
    shape = [lower + extent + upper for extent, (lower, upper) in zip(source.shape, widths, strict=True)]
    made = empty(tuple(shape), **(own | keywords))
    made.domain_view[...] = source
    record_copy(source.nbytes, "pad: the halo needs new memory around the data")
    if mode != "empty":
        fill_halo(made, mode, constant_values)
    return made


def fill_halo(field: Tensor, mode: str, constant_values: npt.ArrayLike = 0) -> None:
    """Do the work of `Tensor.fill_halo`."""
    if mode not in ("constant", "edge", "wrap"):
        raise ValueError(f"mode: expected 'constant', 'edge' or 'wrap', got {mode!r}")
    # Without a halo, whose slices would have other origins.
    plain = field.with_halo([0] * field.ndim)
    # With the ghost points of the dimensions before, so that edges and corners are filled, too.
    for axis, (lower, upper) in enumerate(field.halo):
        points = field.shape[axis] - lower - upper
        if points == 0 and (lower or upper) and mode != "constant":
            raise LayoutError(f"mode: {mode!r} needs a point to copy along {field.dims[axis]}, and the domain has none")
        for ghost in (*range(lower), *range(lower + points, field.shape[axis])):
            if mode == "constant":
                plain[_at(axis, ghost)] = constant_values
            else:
                inside = (ghost - lower) % points if mode == "wrap" else min(max(ghost - lower, 0), points - 1)
                plain[_at(axis, ghost)] = plain[_at(axis, lower + inside)]


def _at(axis: int, index: int) -> tuple[slice, ...]:
    return (slice(None),) * axis + (slice(index, index + 1),)
