"""Fill halos between four processes.

Run it by: mpiexec -n 4 python -m mpi4py examples/tasks/mpi_halo.py
"""

from mpi4py import MPI

import dlfield as dl
from dlfield import mpi

grid = MPI.COMM_WORLD.Create_cart((2, 2), periods=(True, True))
u = dl.full((10, 8, 3), float(grid.rank), halo={"I": 1, "J": 1}, backend="gt:cpu_ifirst")
exchange = mpi.HaloExchange(grid, u, dims="IJ")
exchange(u)

left, right = grid.Shift(0, 1)
assert u[0, 4, 0] == left and u[-1, 4, 0] == right
total = grid.reduce(float(u.domain_view.sum()))
if grid.rank == 0:
    print(total, exchange.cost(u))
