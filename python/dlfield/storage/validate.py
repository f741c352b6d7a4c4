"""Checks that given buffers match the parameters, and each other."""

from __future__ import annotations

import operator
from itertools import islice, pairwise
from typing import Any

from dlfield import _native
from dlfield._native import DimsError, DTypeError, LayoutError, Tensor
from dlfield.storage.parameters import Parameters

__all__ = ["check_pair", "check_shape", "checked"]


def check_shape(name: str, found: tuple[int, ...], shape: Any) -> None:
    """Raise an error if a buffer does not have the caller's shape; None allows any."""
    if shape is None:
        return
    try:
        expected = (operator.index(shape),)
    except TypeError:
        expected = tuple(shape)
    if expected != found:
        raise LayoutError(f"shape: expected {found}, as {name} has, got {expected}")


def checked(name: str, buffer: Tensor, shape: Any, dtype: Any, parameters: Parameters) -> Tensor:
    """Return the buffer with its alignment recorded; raise an error if it does not match the parameters."""
    check_shape(name, buffer.shape, shape)
    if dtype is not None:
        # Only an allocation knows the names of all dtypes, and the dtypes of other libraries.
        expected = _native.empty((), dtype, device="cpu")
        if expected.ndim > 0 or expected.dtype != buffer.dtype:
            raise DTypeError(f"dtype: found {dtype}, but {name} has {buffer.dtype}; storage() copies and casts")
    defaults, layout = parameters.get("defaults"), parameters.get("layout")
    if defaults is not None or layout is not None:
        # An empty allocation has the layout that the parameters mean.
        like = _native.empty(
            (0,) * buffer.ndim, buffer.dtype, backend=defaults, dims=buffer.dims, layout=layout, device="cpu"
        )
        if not _is_laid_out(buffer, like.layout):
            found = (
                f"layout: found {like.layout}" if layout is not None else f"defaults: {defaults!r} means {like.layout}"
            )
            raise LayoutError(f"{found}, but {name} has {buffer.layout}; storage() copies into another layout")
    return _aligned(name, buffer, parameters)


def check_pair(host: Tensor, device: Tensor) -> None:
    """Raise an error if two buffers can't form a host/device pair."""
    if host.shape != device.shape:
        raise LayoutError(f"device_data: its shape {device.shape} must be that of data, {host.shape}")
    if host.dtype != device.dtype:
        raise DTypeError(f"device_data: its dtype {device.dtype} must be that of data, {host.dtype}")
    if not _is_laid_out(device, host.layout):
        raise LayoutError(f"device_data: its layout {device.layout} must be that of data, {host.layout}")
    if host.dims != device.dims:
        raise DimsError(f"device_data: its dims {device.dims} must be those of data, {host.dims}")
    if host.halo != device.halo:
        raise LayoutError(f"device_data: its halo {device.halo} must be that of data, {host.halo}; or pass halo")


def _is_laid_out(buffer: Tensor, layout: tuple[int, ...]) -> bool:
    """Return whether the strides decrease as `layout` says; a dimension of size one may have any stride."""
    order = sorted(range(buffer.ndim), key=lambda axis: layout[axis])
    strides = [abs(buffer.strides[axis]) for axis in order if buffer.shape[axis] > 1]
    return buffer.size == 0 or all(one >= two for one, two in pairwise(strides))


def _index(given: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    try:
        index = tuple(operator.index(entry) for entry in islice(given, len(shape) + 1))
    except TypeError:
        raise TypeError(f"aligned_index: expected a sequence of integers, got {given!r}") from None
    if len(index) != len(shape) or not all(0 <= entry <= size for entry, size in zip(index, shape, strict=True)):
        raise LayoutError(f"aligned_index: found {given!r}, must be an index of the buffer, whose shape is {shape}")
    return index


def _aligned(name: str, buffer: Tensor, parameters: Parameters) -> Tensor:
    alignment, index = parameters.get("alignment_size"), parameters.get("aligned_index")
    if alignment is None and index is None:
        return buffer
    place = tuple(lower for lower, _ in buffer.halo) if index is None else _index(index, buffer.shape)
    if alignment is None:
        return buffer
    # An empty allocation accepts only a valid alignment.
    like = _native.empty((0,) * buffer.ndim, buffer.dtype, alignment_size=alignment, device="cpu")
    address = buffer.ptr + sum(at * stride for at, stride in zip(place, buffer.strides, strict=True))
    if address % like.alignment_size and buffer.size:
        raise LayoutError(
            f"alignment_size: found {like.alignment_size}, but the address of {name} at {tuple(place)} is not a "
            "multiple of it; storage() copies into aligned memory"
        )
    if (buffer.alignment_size, buffer.aligned_index) == (like.alignment_size, place):
        return buffer
    # "none", because the alignment of the other rows was not checked.
    return _native._with_metadata(
        buffer, (None, None, None, False, list(buffer.layout), "none", like.alignment_size, list(place))
    )
