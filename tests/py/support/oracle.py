"""A naive oracle for strides, which enumerates every index of a tensor."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import dlfield as dl


def indices(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Every index of `shape`, the last one running fastest."""
    return itertools.product(*(range(extent) for extent in shape))


def offset(strides: Sequence[int], index: Sequence[int]) -> int:
    """Bytes from the element at index 0, 0, ... to the one at `index`."""
    return sum(stride * at for stride, at in zip(strides, index, strict=True))


class InterfaceOnly:
    """The memory of a tensor or descriptor for NumPy to read, by pointer, shape and strides alone."""

    def __init__(self, found: dl.Tensor | dl.Descriptor) -> None:
        self.found = found

    @property
    def __array_interface__(self) -> dict[str, Any]:
        found = self.found
        data = (found.ptr, found.readonly)
        return {"version": 3, "shape": found.shape, "strides": found.strides, "typestr": found.dtype.str, "data": data}


def values(found: dl.Tensor | dl.Descriptor) -> Any:
    """The elements that `found` points at, as nested lists; only for NumPy's own dtypes."""
    if found.size == 0:
        # NumPy 2.3 treats a null pointer in an interface as missing.
        return np.empty(found.shape).tolist()
    return np.asarray(InterfaceOnly(found)).tolist()


def addresses(tensor: dl.Tensor) -> list[int]:
    """The address of every element of `tensor`, in the order of `indices`."""
    return [tensor.ptr + offset(tensor.strides, index) for index in indices(tensor.shape)]


def row_starts(tensor: dl.Tensor) -> list[int]:
    """The address, in every row, of the element that `aligned_index` names in the row's own dimension.

    A row runs along the dimension with the smallest stride: the one of the highest rank in `layout`.
    """
    if tensor.ndim == 0:
        return [tensor.ptr]
    inner = tensor.layout.index(tensor.ndim - 1)
    along = [
        range(extent) if dim != inner else range(tensor.aligned_index[dim], tensor.aligned_index[dim] + 1)
        for dim, extent in enumerate(tensor.shape)
    ]
    return [tensor.ptr + offset(tensor.strides, index) for index in itertools.product(*along)]


def aligned_address(tensor: dl.Tensor) -> int:
    """The address of the element at `aligned_index`."""
    return tensor.ptr + offset(tensor.strides, tensor.aligned_index)


def compact_strides(shape: Sequence[int], layout: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Byte strides of `shape` without padding, its dimensions ordered by `layout`."""
    strides = [0] * len(shape)
    step = itemsize
    for dim in sorted(range(len(shape)), key=lambda d: layout[d], reverse=True):
        strides[dim] = step
        step *= max(shape[dim], 1)
    return tuple(strides)


def is_ordered_by(layout: Sequence[int], strides: Sequence[int]) -> bool:
    """True if `layout` ranks `strides` in decreasing order (equal ones in either)."""
    by_rank = [strides[layout.index(rank)] for rank in range(len(layout))]
    return all(abs(outer) >= abs(inner) for outer, inner in itertools.pairwise(by_rank))
