"""`Tensor.astype`, `copy` and `view`: elements of another type, or in another order."""

from typing import Any, Literal, get_args

import numpy as np

from dlfield._native import Tensor, empty_like, from_array, from_dlpack
from dlfield.interop.copies import because, record_copy

_Order = Literal["C", "F", "A", "K"]


def prepared(tensor: Tensor, dtype: Any, order: _Order, casting: str, copy: bool) -> tuple[Tensor, Any, Any, str]:
    """Return the result of `astype`, the arrays to copy its elements from and to (None: nothing to copy), and the rule.

    On a device, these are fields.

    Example
    -------
    >>> import dlfield as dl
    >>> prepared(dl.zeros((2, 3), dims="KI"), "float64", "K", "same_kind", False)[0].dims
    ('K', 'I')
    """
    # Without elements, to parse the dtype.
    target = empty_like(tensor[:0] if tensor.ndim else tensor, dtype).dtype
    if target == tensor.dtype:
        return in_order(tensor, order, copy), None, None, casting
    made = in_order(empty_like(tensor, target), order, False)
    record_copy(made.nbytes, f"astype: from {tensor.dtype} to {target}")
    if made.device.type == "cuda":
        if casting == "same_value":
            raise ValueError(
                f"casting: 'same_value' looks at values on the host; copy the field from {made.device} first"
            )
        # NumPy's error for a cast that the rule does not allow.
        np.empty(0, tensor.dtype).astype(target, casting=casting)  # type: ignore[call-overload]
        return made, tensor, made, casting
    source = tensor.to_numpy()
    if casting == "same_value":
        # NumPy has this rule in `astype` alone.
        source, casting = source.astype(target, casting=casting), "unsafe"  # type: ignore[call-overload]
    return made, source, made.to_numpy(), casting


def in_order(tensor: Tensor, order: _Order, copy: bool) -> Tensor:
    """Return a copy of `tensor` in one of NumPy's orders; with `copy=False` the tensor itself if it is in that order.

    Example
    -------
    >>> import dlfield as dl
    >>> in_order(dl.zeros((2, 3)), "F", True).strides
    (8, 16)
    """
    if order not in get_args(_Order):
        raise ValueError(f"order: expected 'C', 'F', 'A' or 'K', got {order!r}")
    if order == "A":
        order = "F" if tensor.is_contiguous("F") and not tensor.is_contiguous("C") else "C"
    if order == "K" or (not copy and tensor.is_contiguous(order)):
        return tensor.copy() if copy else tensor
    axes = range(tensor.ndim) if order == "C" else range(tensor.ndim)[::-1]
    with because(f"copy: in order {order!r}"):
        return from_array(tensor, layout=tuple(axes), alignment_size=1, padding="none", device=tensor.device)


def viewed(tensor: Tensor, dtype: Any) -> Tensor:
    """Return the memory of `tensor` as elements of another type.

    Example
    -------
    >>> import dlfield as dl
    >>> viewed(dl.zeros((2, 3), "float32", dims="KI"), "int16").shape
    (2, 6)
    """
    if dtype is None:
        return tensor[...] if tensor.ndim else tensor.transpose()
    made = from_dlpack(tensor.to_ndarray().view(dtype), dims=tensor.dims)
    if made.shape == tensor.shape:
        made.halo = tensor.halo
    return made
