"""The messages between a process and its neighbours, and how a failure of one reaches all.

In every exchange a process sends one message to each neighbour and waits for one from each, so an exchange that fails
somewhere can't leave another process waiting: who fails sends the message "stopped" instead of its next one.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from mpi4py import MPI

from dlfield.mpi._agreement import FIELDS_TAG, RankError, agree, raise_together
from dlfield.mpi._lifetime import check_running, connections
from dlfield.mpi._plan import HEADER, Buffers, Plan, digest_of, stopped, stopped_by
from dlfield.mpi._shared import Bytes, SharedMemory

# A neighbour, and the place for a message from it.
Receipt: TypeAlias = tuple[int, MPI.Request, Bytes]


class Channel:
    """The connection to the neighbours, for one exchange at a time."""

    def __init__(self, comm: MPI.Cartcomm, ranks: Sequence[int], shared_memory: bool) -> None:
        self.comm = comm
        self.buffers = {rank: Buffers() for rank in ranks}
        self._shared = SharedMemory(comm, ranks) if shared_memory else None
        # 0 in even exchanges and 1 in odd ones.
        self.turn = 0
        # Why no exchange is possible any more.
        self.broken: str | None = None
        # Digests of exchanges on which all processes have agreed.
        self._agreed: set[bytes] = set()
        self._receipts: list[MPI.Request] = []
        self._sends: list[MPI.Request] = []
        self._arrived: list[int] = []
        # After a failure: the neighbours that have said that they stopped, and the receipts of what else they send.
        self._stopped: set[int] = set()
        self._rest: list[Receipt] = []
        connections.add(self)

    def open(self, plan: Plan | None, error: Exception | None) -> None:
        """Begin to receive; return if all processes exchange by the same plan. Otherwise all of them raise.

        None stands for a process that has failed with `error`.
        """
        check_running("halo exchange")
        if self.broken:
            raise RankError(self.broken) from error
        self._arrived, self._sends = [], []
        # A message is one on which the processes have agreed, so it fits into its buffer.
        self._receipts = [
            self.comm.Irecv([buffers.receive, MPI.BYTE], rank, FIELDS_TAG) for rank, buffers in self.buffers.items()
        ]
        if plan is not None and digest_of(plan.header) in self._agreed:
            return
        try:
            agreed = agree(
                self.comm, digest_of(plan.header) if plan else None, lambda request: self._wait(request, plan)
            )
        except BaseException as failed:
            self.stop()
            # What happened here comes first.
            raise (error or failed) from None
        if not agreed:
            # All processes are here and have sent no fields, so the next exchange can begin where this one did.
            for receipt in self._receipts:
                receipt.Cancel()
            MPI.Request.Waitall(self._receipts)
            raise_together(self.comm, error, plan.text if plan else "")
        assert plan is not None
        self._agreed.add(digest_of(plan.header))
        if self._shared is not None:
            self._share(self._shared, {message.rank: message.room for message in plan.messages})

    def send(self, rank: int, plan: Plan, nbytes: int) -> None:
        """Send the packed elements for a neighbour."""
        buffers = self.buffers[rank]
        if buffers.shared:
            assert self._shared is not None
            self._shared.sync()
            nbytes = 0
        header = plan.shared_header if buffers.shared else plan.header
        buffers.send[:HEADER] = np.frombuffer(header, np.uint8)
        self._sends.append(self.comm.Isend([buffers.send, HEADER + nbytes, MPI.BYTE], rank, FIELDS_TAG))

    def received(self, plan: Plan) -> Iterator[int]:
        """Yield the index of each neighbour when its message is here, then wait until the sent messages have left.

        One after the other: `Waitany` does not give its core away while it waits.
        """
        check_running("finish")
        for index, receipt in enumerate(self._receipts):
            if index not in self._arrived:
                receipt.Wait()
                self._expect(index, plan)
            if self._shared is not None:
                self._shared.sync()
            yield index
        MPI.Request.Waitall(self._sends)
        self.turn = 1 - self.turn

    def stop(self, first: int | None = None) -> None:
        """Tell the neighbours that the exchange has failed, first on the given rank; each tells its own neighbours."""
        if self.broken is None and not MPI.Is_finalized():
            first = self.comm.rank if first is None else first
            self.broken = f"halo exchange: it failed on rank {first} before; make a new one on all processes"
            receipts = zip(self.buffers.items(), self._receipts, strict=False)
            self._rest = [(rank, receipt, buffers.receive) for (rank, buffers), receipt in receipts if receipt]
            for rank, buffers in self.buffers.items():
                self._sends.append(self.comm.Isend([stopped(first), MPI.BYTE], rank, FIELDS_TAG))
                # A neighbour that does not know it yet sends its next fields, and could not end if nobody took them.
                self._rest.append(self._receipt(rank, np.empty_like(buffers.receive)))

    def ended(self) -> bool:
        """Take what the neighbours send; return whether all have stopped and have taken all of this process."""
        waiting = []
        for rank, request, place in self._rest:
            if not request.Test():
                waiting.append((rank, request, place))
            elif self._note(rank, place) is None:
                waiting.append(self._receipt(rank, place))
        self._rest = waiting
        if not MPI.Request.Testall(self._sends) or not self._stopped.issuperset(self.buffers):
            return False
        for _, request, _ in waiting:
            request.Cancel()
            request.Wait()
        self._rest = []
        return True

    def free(self) -> None:
        """Release the communicator and the buffers. Collective, unless an exchange has failed."""
        if self.broken is None:
            self.broken = "halo exchange: it was released by free()"
            connections.discard(self)
            self.buffers = {}
            if MPI.Is_finalized():
                return
            if self._shared is not None:
                self._shared.free()
            self.comm.Free()

    def _share(self, memory: SharedMemory, sizes: dict[int, int]) -> None:
        """Have room in the shared memory for messages of these sizes."""
        try:
            found = memory.grow(sizes)
            for rank in memory.ranks if found is not None else ():
                self.buffers[rank].use((found or {}).get(rank))
        except BaseException:
            self.stop()
            raise

    def _wait(self, request: MPI.Request, plan: Plan | None) -> None:
        """Wait for a message of the agreement.

        A neighbour that sends something else meanwhile has either agreed already, or takes no part in it.
        """
        while index := MPI.Request.Waitany([request, *self._receipts]):
            self._expect(index - 1, plan)
            self._arrived.append(index - 1)

    def _receipt(self, rank: int, place: Bytes) -> Receipt:
        return rank, self.comm.Irecv([place, MPI.BYTE], rank, FIELDS_TAG), place

    def _note(self, rank: int, place: Bytes) -> int | None:
        """Return on which rank the exchange has failed first, if the message from a neighbour says that it has."""
        first = stopped_by(place[:HEADER].tobytes())
        if first is not None:
            self._stopped.add(rank)
        return first

    def _expect(self, index: int, plan: Plan | None) -> None:
        """Raise unless the message that came from a neighbour belongs to this plan."""
        rank = list(self.buffers)[index]
        header = self.buffers[rank].receive[:HEADER].tobytes()
        if plan is not None and header in (plan.header, plan.shared_header):
            return
        first = self._note(rank, self.buffers[rank].receive)
        self.stop(first)
        if first is not None:
            raise RankError(f"halo exchange: it failed on rank {first}, which says why, or has ended")
        raise RankError(
            f"halo exchange: rank {rank} exchanges other fields, or another halo, than rank {self.comm.rank}, which "
            f"has {plan.text if plan else 'failed'}"
        )
