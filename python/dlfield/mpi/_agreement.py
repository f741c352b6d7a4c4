"""Agreement of all processes, and the error that all of them raise when one fails."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from mpi4py import MPI

from dlfield._native import Error

# Tags on the communicator that an exchange has for itself.
FIELDS_TAG, AGREEMENT_TAG = 1, 2

_SIZE = 17


class RankError(Error, RuntimeError):
    """Another process has failed, or the processes disagree; raised on every process.

    The process that failed raises its own error instead.
    """

    __module__ = "dlfield.mpi"


def duplicate(comm: Any) -> MPI.Cartcomm:
    """Return a communicator of its own for an exchange; an error if it has no grid.

    A grid is one on all processes, so the errors need no agreement.
    """
    if not isinstance(comm, MPI.Comm) or comm == MPI.COMM_NULL:
        raise TypeError(f"comm: expected a communicator with this process, from Create_cart, got {comm!r}")
    if comm.Get_topology() != MPI.CART:
        raise TypeError(f"comm: {comm!r} has no Cartesian grid; fix: comm.Create_cart(dims, periods)")
    return MPI.Cartcomm(comm.Dup())


def agree(comm: MPI.Intracomm, digest: bytes | None, wait: Callable[[MPI.Request], object]) -> bool:
    """Return whether all processes have the same digest of 16 bytes; None stands for an error and agrees with nothing.

    In each of the log2(processes) rounds every process passes on the smallest and the largest digest that it knows.
    `wait` waits for a message; it raises when it learns in another way that not all processes take part.
    """
    low = high = b"\1".ljust(_SIZE, b"\0") if digest is None else b"\0" + digest
    step = 1
    while step < comm.size:
        theirs = bytearray(2 * _SIZE)
        receipt = comm.Irecv([theirs, MPI.BYTE], (comm.rank - step) % comm.size, AGREEMENT_TAG)
        sent = comm.Isend([low + high, MPI.BYTE], (comm.rank + step) % comm.size, AGREEMENT_TAG)
        try:
            wait(receipt)
        except BaseException:
            # It would be written to after it is gone.
            receipt.Cancel()
            receipt.Wait()
            raise
        finally:
            sent.Wait()
        low, high = min(low, bytes(theirs[:_SIZE])), max(high, bytes(theirs[_SIZE:]))
        step *= 2
    return low == high and high[0] == 0


def raise_together(comm: MPI.Intracomm, error: Exception | None, text: str) -> NoReturn:
    """Raise on every process: its own error, or what the others failed with, or how the texts differ.

    Collective.
    """
    outcomes: list[tuple[str, str]] = comm.allgather((f"{type(error).__name__}: {error}" if error else "", text))
    if error is not None:
        raise error
    if failed := [f"rank {rank}: {wrong}" for rank, (wrong, _) in enumerate(outcomes) if wrong]:
        raise RankError(f"halo exchange: {_some(failed)}")
    texts: dict[str, list[int]] = {}
    for rank, (_, found) in enumerate(outcomes):
        texts.setdefault(found, []).append(rank)
    raise RankError(f"halo exchange: the processes disagree. {_some([_on(*each) for each in texts.items()])}")


def gathered(comm: MPI.Intracomm, mine: Any, error: Exception | None) -> list[Any]:
    """Return what every process has, or raise on every one if any has an error. Collective."""
    if comm.allreduce(error is not None, MPI.LOR):
        raise_together(comm, error, "")
    found: list[Any] = comm.allgather(mine)
    return found


def _on(text: str, ranks: Sequence[int]) -> str:
    return (
        f"On {'ranks' if len(ranks) > 1 else 'rank'} {', '.join(map(str, ranks[:8]))}{', …' * (len(ranks) > 8)}: {text}"
    )


def _some(texts: Sequence[str]) -> str:
    """Join the first few texts: there may be thousands of processes."""
    return "; ".join([*texts[:4], *([f"and {len(texts) - 4} more"] if len(texts) > 4 else [])])
