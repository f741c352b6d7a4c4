"""Tensors as buffers of mpi4py: `mpiexec -n 2 python -m mpi4py message_buffers.py`."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from mpi4py import MPI

import dlfield as dl
from dlfield import mpi

WORLD = MPI.COMM_WORLD
RANK = WORLD.rank
SHAPE = (4, 3, 5)
DTYPES = ("float64", "float32", "int16", "complex128", "bool", ml_dtypes.bfloat16)


def filled(dtype: Any, rank: int, **options: Any) -> dl.Tensor:
    """A tensor with values that depend on the rank."""
    return dl.from_array((np.arange(60).reshape(SHAPE) + 100 * rank).astype(dtype), **options)


def same(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


def contiguous() -> None:
    """mpi4py takes C and Fortran order as they are."""
    for order in ("C", "F"):
        mine, other = filled("float64", RANK, backend=order), dl.zeros(SHAPE, backend=order)
        WORLD.Sendrecv(mine, 1 - RANK, recvbuf=other, source=1 - RANK)
        same(other, filled("float64", 1 - RANK))
        total = dl.zeros_like(mine)
        WORLD.Allreduce(mine, total)
        same(total, 2 * filled("float64", 0).to_numpy() + 100)
        WORLD.Bcast(mine, 0)
        same(mine, filled("float64", 0))
        # One array of two processes: along the dimension with the largest stride.
        both = dl.zeros((2, *SHAPE) if order == "C" else (*SHAPE, 2), backend=order)
        WORLD.Allgather(filled("float64", RANK, backend=order), both)
        for rank in (0, 1):
            same(both[rank] if order == "C" else both[..., rank], filled("float64", rank))
        requests = [WORLD.Isend(mine, 1 - RANK), WORLD.Irecv(total, 1 - RANK)]
        MPI.Request.Waitall(requests)
        same(total, filled("float64", 0))


def refused() -> None:
    """Other orders are an error of mpi4py, not a wrong message."""
    for options in ({"layout": (1, 0, 2)}, {"alignment_size": 64}):
        with pytest.raises((BufferError, ValueError)):
            WORLD.Isend(dl.zeros(SHAPE, **options), 1 - RANK)


def blocks() -> None:
    """The whole block goes in one piece, padding included; both sides need the same layout."""
    for options in ({"layout": (1, 0, 2)}, {"alignment_size": 64}, {"layout": (2, 0, 1), "alignment_size": 128}):
        mine = filled("float64", RANK, **options)
        other = dl.zeros_like(mine)
        WORLD.Sendrecv(mine.block, 1 - RANK, recvbuf=other.block, source=1 - RANK)
        same(other, filled("float64", 1 - RANK))
        WORLD.Bcast(other.block, 0)
        same(other, filled("float64", 1))
        # Elements of padding are zeros in a tensor of zeros, and so is their sum.
        padded, total = dl.zeros_like(mine), dl.zeros_like(mine)
        padded[...] = filled("float64", RANK)
        WORLD.Allreduce(padded.block, total.block)
        same(total, 2 * filled("float64", 0).to_numpy() + 100)


def datatypes() -> None:
    """Every layout and every view, without its padding and without what lies between."""
    for dtype in DTYPES:
        for options in ({}, {"layout": (1, 0, 2)}, {"layout": (2, 0, 1), "alignment_size": 64}):
            mine, other = filled(dtype, RANK, **options), filled(dtype, 5, **options)
            WORLD.Sendrecv(mpi.buffer(mine), 1 - RANK, recvbuf=mpi.buffer(other), source=1 - RANK)
            same(other, filled(dtype, 1 - RANK))
            for key in (np.s_[1:3, :, 1:4], np.s_[::2, 1:, ::3], np.s_[2, :, 1], np.s_[:, :0, :], np.s_[3:, 2:, 4:]):
                part, expected = filled(dtype, 5, **options), filled(dtype, 5).to_numpy()
                view = part[key] if part[key].ndim else part[3:4, 2:3, 4:5]
                WORLD.Sendrecv(mpi.buffer(mine[key]), 1 - RANK, recvbuf=mpi.buffer(view), source=1 - RANK)
                expected[key] = filled(dtype, 1 - RANK).to_numpy()[key]
                same(part, expected)
    field = filled("float64", RANK, alignment_size=64)
    WORLD.Bcast(mpi.buffer(field), 1)
    same(field, filled("float64", 1))
    # A request keeps the memory.
    request = WORLD.Isend(mpi.buffer(filled("float32", RANK, alignment_size=64)), 1 - RANK)
    other = filled("float32", 5, layout=(0, 2, 1))
    WORLD.Recv(mpi.buffer(filled("float32", 7, alignment_size=64)), 1 - RANK)
    request.Wait()
    # Read-only memory is sent and not received.
    WORLD.Sendrecv(
        mpi.buffer(field.as_readonly()), 1 - RANK, recvbuf=mpi.buffer(filled("float64", 4, alignment_size=64))
    )
    with pytest.raises((BufferError, ValueError)):
        WORLD.Irecv(mpi.buffer(field.as_readonly()), 1 - RANK)
    with pytest.raises(dl.LayoutError, match=r"expected strides of at least 0, got \(-32, 8\)"):
        mpi.buffer(dl.from_dlpack(np.zeros((4, 4))[::-1]))
    array: Any = np.zeros(4)
    with pytest.raises(TypeError, match=r"tensor: expected a dlfield.Tensor, got ndarray; from_dlpack"):
        mpi.buffer(array)


if __name__ == "__main__":
    for each in (contiguous, refused, blocks, datatypes):
        each()
    WORLD.Barrier()
    if RANK == 0:
        print("done", flush=True)
