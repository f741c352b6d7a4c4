"""One process is an exchange ahead of the other: `mpiexec -n 2 python -m mpi4py halo_ahead.py`.

Rank 1 packs for its next exchange while rank 0 has not yet unpacked the one before.
"""

from mpi4py import MPI

import dlfield as dl
from dlfield import mpi
from dlfield.mpi import _shared

WORLD = MPI.COMM_WORLD
STEPS = 6

if __name__ == "__main__":
    for shared_memory, enough in ((True, True), (True, False), (False, True)):
        if not enough and WORLD.rank == 1:
            # Too little memory to share on one process: all of this machine use messages.
            _shared._fits = lambda nbytes: nbytes < 0
        field = dl.zeros((20, 1000), dims="IJ", halo=(2, 0))
        exchange = mpi.HaloExchange(WORLD.Create_cart((2,)), field, "I", shared_memory=shared_memory)
        other = 1 - WORLD.rank
        halo = field[18:] if other else field[:2]
        for step in range(STEPS):
            field[2:-2] = 10.0 * step + WORLD.rank
            exchange.start(field)
            if WORLD.rank == 1 and step > 0:
                WORLD.send(None, 0)
            if WORLD.rank == 0 and step < STEPS - 1:
                # Rank 1 has finished this step, and has packed the next one.
                WORLD.recv(source=1)
            exchange.finish()
            assert (halo.to_numpy() == 10.0 * step + other).all(), (shared_memory, step, halo.to_numpy())
    WORLD.Barrier()
    if WORLD.rank == 0:
        print("done", flush=True)
