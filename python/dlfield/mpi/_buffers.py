"""Tensors of any layout as message buffers of mpi4py."""

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
from mpi4py import MPI
from mpi4py.util import dtlib

from dlfield._native import LayoutError, Tensor
from dlfield.mpi._lifetime import check_running


def buffer(tensor: Tensor) -> list[Any]:
    """Return a tensor as a message specification of mpi4py: `[bytes, 1, datatype]`, without a copy.

    mpi4py takes a tensor directly if its memory is contiguous in C or Fortran order. This is for all others: padded
    rows, other orders of dimensions, slices. The elements travel in the order of the memory of the tensor, those with
    the largest stride first, so both sides need the same layout; padding does not travel.

    For point-to-point calls and collectives that move data. Reductions need named datatypes: MPI defines its operations
    for those only.

    Parameters
    ----------
    tensor : Tensor
        A tensor in host memory. A read-only one can be sent only.

    Returns
    -------
    list
        For `Send`, `Recv`, `Bcast`, ... The datatype is one for each combination of shape, strides and element type, is
        committed, and lives as long as the process.

    Raises
    ------
    TypeError
        The argument is not a tensor; `dlfield.from_dlpack` makes one of any array.
    LayoutError
        A stride is negative.

    Example
    -------
    >>> import dlfield as dl
    >>> from dlfield import mpi
    >>> from mpi4py import MPI
    >>> field = dl.ones((3, 5), layout=(1, 0), alignment_size=64)
    >>> copy = dl.zeros_like(field)
    >>> field.strides
    (8, 64)
    >>> MPI.COMM_SELF.Sendrecv(mpi.buffer(field), 0, recvbuf=mpi.buffer(copy))
    >>> float(copy.sum())
    15.0
    """
    check_running("buffer")
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"tensor: expected a dlfield.Tensor, got {type(tensor).__name__}; from_dlpack(...) makes one of any array"
        )
    if any(stride < 0 for stride in tensor.strides):
        raise LayoutError(f"tensor: expected strides of at least 0, got {tensor.strides}")
    return [_span(tensor), 1, _datatype(tensor.dtype, tensor.shape, tensor.strides, tensor.layout)]


def _span(tensor: Tensor) -> npt.NDArray[Any]:
    """Return the bytes from the first element to the last one, padding between them included."""
    array = tensor.to_numpy()
    steps = zip(tensor.shape, tensor.strides, strict=True)
    nbytes = tensor.itemsize + sum((size - 1) * stride for size, stride in steps) if tensor.size else 0
    # One element keeps the array's address, owner and read-only flag; none has a byte to show.
    first = array[tuple(slice(0, 1) for _ in tensor.shape)].reshape(-1).view(np.uint8)
    return np.lib.stride_tricks.as_strided(first, (nbytes,), (1,), writeable=not tensor.readonly)


@functools.cache
def _datatype(
    dtype: np.dtype[Any], shape: tuple[int, ...], strides: tuple[int, ...], layout: tuple[int, ...]
) -> MPI.Datatype:
    """Return the committed datatype of elements that lie like this."""
    try:
        made = dtlib.from_numpy_dtype(dtype)
    except (TypeError, ValueError):
        # MPI has no name for it, such as bfloat16.
        made = MPI.BYTE.Create_contiguous(dtype.itemsize)
    # From the innermost dimension outward.
    for axis in sorted(range(len(shape)), key=lambda axis: -layout[axis]):
        made = made.Create_hvector(shape[axis], 1, strides[axis])
    return made.Commit()
