"""How exchanges end: `mpiexec -n 3 python -m mpi4py halo_ends.py CASE...`. The program has to end."""

import copy
import pickle
import sys
from collections.abc import Callable

import pytest
from mpi4py import MPI

import dlfield as dl
from dlfield import mpi

WORLD = MPI.COMM_WORLD
RANK = WORLD.rank
SPEC = (8,)


def made(shared_memory: bool) -> tuple[mpi.HaloExchange, dl.Tensor]:
    """An exchange, and a field of 25 MB to one neighbour: MPI sends it when the neighbour takes it, not before."""
    exchange = mpi.HaloExchange(
        WORLD.Create_cart((WORLD.size,), periods=[True]), SPEC, "I", halo=2, shared_memory=shared_memory
    )
    field = dl.zeros((8, 1_600_000), dims="IJ", halo=(2, 0))
    exchange(field)
    return exchange, field


def dropped() -> None:
    """One process drops what it has started; all others get its fields."""
    for shared_memory in (False, True):
        exchange, field = made(shared_memory)
        field.domain_view[...] = RANK + 1
        exchange.start(field)
        if RANK == 0:
            del exchange, field
        else:
            exchange.finish()
            assert field[0, 0] == (RANK - 1) % WORLD.size + 1


def dropped_by_all() -> None:
    for shared_memory in (False, True):
        exchange, field = made(shared_memory)
        exchange.start(field)
        del exchange, field


def started_twice() -> None:
    """What the neighbours of the failed process still send has to go somewhere."""
    for shared_memory in (False, True):
        exchange, field = made(shared_memory)
        exchange.start(field)
        if RANK == 1:
            with pytest.raises(dl.Error, match="start: the last exchange is not finished"):
                exchange.start(field)
        else:
            exchange.finish()
            with pytest.raises(mpi.RankError, match="failed on rank 1"):
                exchange(field)


def ended() -> None:
    """The others hear of a process that has ended, also in an agreement."""
    (exchange, field), (other, _) = made(False), made(True)
    if RANK != 1:
        with pytest.raises(mpi.RankError, match="failed on rank 1, which says why, or has ended"):
            exchange(field)
        with pytest.raises(mpi.RankError, match="failed on rank 1, which says why, or has ended"):
            other(dl.zeros((8, 5), dims="IJ", halo=(2, 0)))


def finalized() -> None:
    """MPI ends a process that calls it later, so dlfield does not."""
    exchange, field = made(True)
    exchange.start(field)
    cart = WORLD.Create_cart((WORLD.size,))
    MPI.Finalize()
    calls: list[Callable[[], object]] = [
        exchange.finish,
        lambda: exchange(field),
        lambda: mpi.HaloExchange(cart, SPEC, "I", halo=2),
        lambda: mpi.buffer(field),
    ]
    for call in calls:
        with pytest.raises(dl.Error, match=r"MPI\.Finalize"):
            call()
    exchange.free()


def freed() -> None:
    """An exchange that was started is finished first."""
    exchange, field = made(False)
    field.domain_view[...] = RANK + 1
    exchange.start(field)
    exchange.free()
    assert field[0, 0] == (RANK - 1) % WORLD.size + 1
    with pytest.raises(mpi.RankError, match="free"):
        exchange(field)
    exchange.free()


def copied() -> None:
    """Copies would send over one communicator at a time."""
    exchange, _ = made(False)
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="build another one on all processes"):
            make(exchange)


def too_many() -> None:
    """MPI has a limited number of communicators."""
    cart = WORLD.Create_cart((WORLD.size,), periods=[True])

    def use_all() -> None:
        for _ in range(100_000):
            mpi.HaloExchange(cart, SPEC, "I", halo=2, shared_memory=False)

    with pytest.raises(dl.Error, match=r"(?s)comm: .*free\(\) of exchanges"):
        use_all()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        globals()[name]()
