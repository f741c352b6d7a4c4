"""Text of tensors: the values as NumPy prints them, then the attributes that NumPy arrays do not have."""

import itertools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from dlfield._native import Error, Tensor


def repr_text(tensor: Tensor, attributes: str) -> str:
    """Return the values of `tensor`, elided by NumPy's print options, followed by its attributes.

    Example
    -------
    >>> import dlfield as dl
    >>> dl.zeros((2, 3), dims="KI")
    Tensor([[0., 0., 0.],
            [0., 0., 0.]],
           shape=(2, 3), dtype=float64, dims=('K', 'I'), layout=(0, 1), device='cpu', alignment_size=1)
    >>> dl.full((), 2.5)
    Tensor(2.5, shape=(), dtype=float64, dims=(), layout=(), device='cpu', alignment_size=1)
    >>> dl.zeros((1,), "i1", origin=(1,))
    Tensor([0], shape=(1,), dtype=int8, dims=('I',), origin=(1,), layout=(0,), device='cpu', alignment_size=1)
    """
    prefix = "Tensor("
    values = values_text(tensor, prefix, ",")
    gap = "\n" + " " * len(prefix) if "\n" in values else " "
    return f"{prefix}{values},{gap}{attributes})"


def values_text(tensor: Tensor, prefix: str = "", suffix: str = "") -> str:
    """Return the values of `tensor`, elided by NumPy's print options, to print between `prefix` and `suffix`.

    Example
    -------
    >>> import dlfield as dl
    >>> values_text(dl.from_array([1, 2, 3]))
    '[1, 2, 3]'
    """
    try:
        shown, options = _elided(tensor)
        return np.array2string(shown, separator=", ", prefix=prefix, suffix=suffix, **options)
    except (Error, ImportError) as error:
        # Values cannot be read during graph capture; some dtypes need another package.
        return f"<values on {tensor.device}, not read: {str(error).splitlines()[0]}>"


def dtype_text(tensor: Tensor) -> str:
    """Return the name of the dtype, also of one that needs a package that is missing.

    Example
    -------
    >>> import dlfield as dl
    >>> dtype_text(dl.zeros((), "float32"))
    'float32'
    """
    try:
        return str(tensor.dtype)
    except Error:
        found = re.search(r"\bdtype=(\w+)", repr(tensor))
        return found[1] if found else "?"


def str_text(tensor: Tensor) -> str:
    """Return the number of a tensor without dimensions, as for NumPy arrays, else the `repr`.

    Example
    -------
    >>> import dlfield as dl
    >>> print(dl.full((), 2.5), f"{dl.full((), 2.5)}")
    2.5 2.5
    """
    if tensor.ndim > 0:
        return repr(tensor)
    try:
        return str(_elided(tensor)[0][()])
    except (Error, ImportError):
        return repr(tensor)


def _elided(tensor: Tensor) -> tuple[npt.NDArray[Any], dict[str, Any]]:
    """Return an array with all elements to print, and the print options."""
    if tensor.device.type in ("cpu", "cuda_host", "cuda_managed"):
        return tensor.to_numpy(), {}
    options = np.get_printoptions()
    if tensor.size <= options["threshold"]:
        return tensor.to_device("cpu").to_numpy(), {}
    # NumPy always prints the last element.
    return _corners(tensor, max(options["edgeitems"], 1)), {"threshold": 0}


def _corners(tensor: Tensor, edge: int) -> npt.NDArray[Any]:
    """Return the first and last `edge` elements of each dimension, with one placeholder for those between.

    Only these elements are copied to the host, not the whole tensor.
    """
    found = np.zeros([min(extent, 2 * edge + 1) for extent in tensor.shape], tensor.dtype)
    for parts in itertools.product(*(_ends(extent, edge) for extent in tensor.shape)):
        to, source = zip(*parts, strict=True)
        found[to] = tensor[source].to_device("cpu").to_numpy()
    return found


def _ends(extent: int, edge: int) -> Iterator[tuple[slice, slice]]:
    """Yield destination and source of each part of a dimension that is printed."""
    if extent <= 2 * edge:
        yield slice(None), slice(None)
    else:
        yield slice(0, edge), slice(0, edge)
        yield slice(edge + 1, None), slice(extent - edge, None)
