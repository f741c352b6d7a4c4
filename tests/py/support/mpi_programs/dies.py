"""A process ends in the middle of a time loop: `mpiexec -n 3 python [-m mpi4py] dies.py killed|raised`."""

import os
import signal
import sys

from mpi4py import MPI

import dlfield as dl
from dlfield import mpi

if __name__ == "__main__":
    world = MPI.COMM_WORLD
    field = dl.zeros((8, 100_000), dims="IJ", halo=(2, 0))
    exchange = mpi.HaloExchange(world.Create_cart((world.size,), periods=[True]), field, "I")
    for step in range(1000):
        if world.rank == 1 and step == 3:
            if sys.argv[1] == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("step 3 failed")
        exchange(field)
    print("not reached", flush=True)
