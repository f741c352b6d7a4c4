"""Memory that processes of one machine share, by windows of MPI: fields go from one to the other without its copies."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

Bytes: TypeAlias = npt.NDArray[np.uint8]
# One for even and one for odd exchanges.
Pair: TypeAlias = tuple[Bytes, Bytes]

_ALIGNMENT = 64
# Where Linux has this memory; too little of it would end the process at the first access.
_LINUX = "/dev/shm"


class SharedMemory:
    """The memory through which a process passes fields to its neighbours on the same machine.

    The sender packs into its own memory and the receiver unpacks from there, after a message that it is ready. There
    are two parts, used in turns: who packs for an exchange has heard from the neighbour in the one before, and so
    knows that the neighbour has unpacked the one before that.
    """

    def __init__(self, comm: MPI.Intracomm, ranks: Sequence[int]) -> None:
        self._node = _machine(comm)
        self._members = self._node.allgather(comm.rank)
        # The neighbours on this machine.
        self.ranks = [rank for rank in ranks if rank in self._members]
        self._rank = comm.rank
        self._window: MPI.Win | None = None
        self._sizes: dict[int, int] = {}

    def grow(self, sizes: Mapping[int, int]) -> dict[int, tuple[Pair, Pair]] | None:
        """Make room for messages of these sizes; return the memory to pack into and to unpack from, by neighbour.

        None if what there is suffices; nothing if no memory can be shared. Collective on the machine.
        """
        grown = any(sizes[rank] > self._sizes.get(rank, 0) for rank in self.ranks)
        if not self._node.allreduce(grown, MPI.LOR):
            return None
        for rank in self.ranks:
            size = max(sizes[rank], self._sizes.get(rank, 0))
            self._sizes[rank] = size + -size % _ALIGNMENT
        self._release()
        total = 2 * sum(self._sizes.values()) + _ALIGNMENT
        if not self._node.allreduce(_fits(self._node.allreduce(total)), MPI.LAND):
            return {}
        self._window = MPI.Win.Allocate_shared(total, 1, comm=self._node)
        self._window.Lock_all(MPI.MODE_NOCHECK)
        # The same distance from the start in all processes, because mappings begin at pages.
        mine = self._segment(self._rank)
        end, starts = -mine.ctypes.data % _ALIGNMENT, {}
        for rank, size in self._sizes.items():
            starts[rank] = end, size
            end += 2 * size
        everyone = dict(zip(self._members, self._node.allgather(starts), strict=True))
        return {
            rank: (_pair(mine, starts[rank]), _pair(self._segment(rank), everyone[rank][self._rank]))
            for rank in self.ranks
        }

    def sync(self) -> None:
        """Order the accesses of this process before and after a message."""
        if self._window is not None:
            self._window.Sync()

    def free(self) -> None:
        """Release the memory. Collective."""
        self._release()
        self._node.Free()

    def _release(self) -> None:
        if self._window is not None:
            self._window.Unlock_all()
            self._window.Free()
            self._window = None

    def _segment(self, rank: int) -> Bytes:
        assert self._window is not None
        memory: Any = self._window.Shared_query(self._members.index(rank))[0]
        return np.frombuffer(memoryview(memory), np.uint8)


def _pair(segment: Bytes, place: tuple[int, int]) -> Pair:
    start, size = place
    return segment[start : start + size], segment[start + size : start + 2 * size]


def _machine(comm: MPI.Intracomm) -> MPI.Intracomm:
    """Return the processes on the machine of this one."""
    return cast(MPI.Intracomm, comm.Split_type(MPI.COMM_TYPE_SHARED))


def _fits(nbytes: int) -> bool:
    """Whether the system has so many bytes, and as many again for others."""
    try:
        free = os.statvfs(_LINUX)
    except (OSError, AttributeError):
        return True
    return 2 * nbytes <= free.f_bavail * free.f_frsize
