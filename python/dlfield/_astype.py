"""`Tensor.astype`: elements of another type in the same layout."""

from typing import Any

import numpy as np

from dlfield._native import Tensor, empty_like


def astype(tensor: Tensor, dtype: Any, casting: Any, copy: bool) -> Tensor:
    """Return a copy of `tensor` with elements of `dtype`; with `copy=False` the tensor itself if it has them.

    Example
    -------
    >>> import dlfield as dl
    >>> astype(dl.zeros((2, 3), dims="KI"), "float32", "same_kind", False).dims
    ('K', 'I')
    """
    # Without elements, to parse the dtype.
    wanted = empty_like(tensor[:0] if tensor.ndim else tensor, dtype).dtype
    if wanted == tensor.dtype:
        return tensor.copy() if copy else tensor
    made = empty_like(tensor, wanted)
    on_host = made.device.type != "cuda"
    source = tensor if on_host else tensor.to_device("cpu")
    target = made if on_host else empty_like(made, device="cpu")
    np.copyto(target.to_numpy(), source.to_numpy(), casting=casting)
    if not on_host:
        made[...] = target
    return made
