"""Random halo exchanges against a naive oracle: `mpiexec -n N python random_halos.py SEED CASES`.

The oracle knows no messages and no neighbours. A point's value follows from its place in the whole grid; each process
computes the place of all points of its halo, whether they exist, and which process computes them.
"""

import itertools
import math
import random
import sys
from dataclasses import dataclass
from typing import Any, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt
from mpi4py import MPI

import dlfield as dl
from dlfield import mpi
from dlfield.mpi import _shared

DTYPES = ("float64", "float32", "float16", "int8", "uint16", "int64", "complex64", "complex128", ml_dtypes.bfloat16)
LABELS = "IJK"
UNTOUCHED = 99
PRIMES = (7, 31, 11, 13, 17)

Widths = tuple[tuple[int, int], ...]


@dataclass
class Grid:
    """A grid of processes with the exchanged dimensions, the points of each row of processes, and the halo."""

    dims: str
    processes: tuple[int, ...]
    periodic: tuple[bool, ...]
    points: tuple[tuple[int, ...], ...]
    halo: Widths


@dataclass
class Made:
    """A field with the oracle's values: before, after, and the rank that computes each point."""

    field: dl.Tensor
    after: npt.NDArray[Any]
    owners: npt.NDArray[Any]


def draw_grid(draw: random.Random, ranks: int) -> Grid:
    ndim = draw.randint(1, 3)
    shapes = [shape for shape in itertools.product(range(1, ranks + 1), repeat=ndim) if math.prod(shape) == ranks]
    processes = draw.choice(shapes)
    halo = tuple((draw.randint(0, 3), draw.randint(0, 3)) for _ in range(ndim))
    if not any(map(any, halo)):
        # An exchange needs one.
        halo = ((1, 0), *halo[1:])
    points = tuple(
        tuple(draw.randint(max(1, *width), max(width) + 3) for _ in range(count))
        for count, width in zip(processes, halo, strict=True)
    )
    dims = "".join(draw.sample(LABELS, ndim))
    return Grid(dims, processes, tuple(draw.random() < 0.5 for _ in range(ndim)), points, halo)


def draw_field(draw: random.Random, grid: Grid, here: tuple[int, ...], width: Widths) -> Made:
    """Every process draws the same, so only what depends on `here` differs."""
    exchanged = draw.sample(grid.dims, draw.randint(1, len(grid.dims)) if draw.random() < 0.4 else len(grid.dims))
    other = [label for label in (*LABELS, "0", "x") if label not in grid.dims]
    dims = [*exchanged, *draw.sample(other, draw.randint(0, min(2, len(other))))]
    draw.shuffle(dims)
    # Zeros count as the halo of the grid, and otherwise the halo may be wider.
    stated = draw.random() < 0.7
    values: Any = 0
    exists: Any = True
    owners: Any = 0
    shape: list[int] = []
    halo: list[tuple[int, int]] = []
    margins: list[tuple[int, int] | None] = []
    for axis, label in enumerate(dims):
        here_shape = [1] * len(dims)
        if label not in grid.dims:
            size = draw.randint(1, 3)
            here_shape[axis] = size
            values = values + (PRIMES[3] * np.arange(size)).reshape(here_shape)
            shape.append(size)
            halo.append((draw.randint(0, 1), 0) if stated else (0, 0))
            margins.append(None)
            continue
        dim = grid.dims.index(label)
        more = (draw.randint(0, 1), draw.randint(0, 1)) if stated else (0, 0)
        staggered = draw.random() < 0.3
        lower, upper = (grid.halo[dim][side] + more[side] for side in (0, 1))
        points = grid.points[dim]
        count = points[here[dim]] + staggered
        start = sum(points[: here[dim]])
        places = np.arange(start - lower, start + count + upper)
        whole = sum(points)
        found = (places >= 0) & (places < whole + staggered) | grid.periodic[dim]
        own = (places >= start) & (places < start + count)
        # Beyond what this exchange fills.
        found &= (places >= start - width[dim][0]) & (places < start + count + width[dim][1])
        wrapped = places % whole if grid.periodic[dim] else places
        # Two processes have a point that is shared; above, it is the lower one of them that sends it.
        sender = places - (places >= start + count) * staggered
        sender = sender % whole if grid.periodic[dim] else np.minimum(sender, whole - 1)
        row = np.searchsorted(np.cumsum(points), sender, side="right")
        row = np.where(own, here[dim], row)
        here_shape[axis] = len(places)
        values = values + PRIMES[dim] * wrapped.reshape(here_shape)
        exists = exists & found.reshape(here_shape)
        owners = owners + (row * math.prod(grid.processes[dim + 1 :])).reshape(here_shape)
        shape.append(len(places))
        halo.append((lower, upper) if stated else (0, 0))
        margins.append((lower, lower + count))
    # A field without a dimension is computed by every process along it.
    for dim, label in enumerate(grid.dims):
        if label not in dims:
            owners = owners + here[dim] * math.prod(grid.processes[dim + 1 :])
    layout = draw.sample(range(len(dims)), len(dims))
    field = dl.full(
        shape, UNTOUCHED, draw.choice(DTYPES), dims=dims, layout=layout, halo=halo, alignment_size=draw.choice((1, 64))
    )
    key = tuple(slice(None) if margin is None else slice(*margin) for margin in margins)
    expected = np.broadcast_to(values % 97, shape).astype(field.dtype)
    before = np.full(shape, UNTOUCHED, field.dtype)
    before[key] = expected[key]
    field[...] = before
    exists = np.broadcast_to(exists, shape)
    after = np.where(exists, expected, UNTOUCHED).astype(field.dtype)
    return Made(field, after, np.where(exists, np.broadcast_to(owners, shape), -1))


def check(draw: random.Random, comm: MPI.Intracomm) -> None:
    # All processes are on one machine; with "two", some neighbours share memory and others don't.
    machines = draw.choice((1, 1, 2))
    _shared._machine = lambda comm: cast(MPI.Intracomm, comm.Split(comm.rank % machines))
    grid = draw_grid(draw, comm.size)
    periods = [draw.random() < 0.5 for _ in grid.periodic]
    cart = comm.Create_cart(grid.processes, periods=periods)
    here = tuple(cart.coords)
    # The halo is stated, or that of a field; and so is the shape.
    extents = [points[at] + sum(width) for points, at, width in zip(grid.points, here, grid.halo, strict=True)]
    spec: Any = extents
    by_field = draw.random() < 0.5
    if by_field:
        spec = dl.empty(extents, "int8", dims=grid.dims, halo=grid.halo)
    exchange = mpi.HaloExchange(
        cart,
        spec,
        grid.dims,
        periodic=grid.periodic,
        halo=None if by_field else grid.halo,
        shared_memory=draw.random() < 0.6,
    )
    for _ in range(draw.randint(1, 3)):
        width = grid.halo
        if draw.random() < 0.3:
            width = tuple((draw.randint(0, lower), draw.randint(0, upper)) for lower, upper in grid.halo)
        made = [draw_field(draw, grid, here, width) for _ in range(draw.randint(1, 3))]
        fields = [each.field for each in made]
        before = exchange.messages, exchange.bytes
        cost = exchange.cost(*fields, halo=width)
        if draw.random() < 0.5:
            exchange(*fields, halo=None if width == grid.halo else width)
        else:
            exchange.start(*fields, halo=width).finish()
        for each in made:
            np.testing.assert_array_equal(each.field.to_numpy(), each.after)
        assert (exchange.messages - before[0], exchange.bytes - before[1]) == cost
        owners = [each.owners[(each.owners >= 0) & (each.owners != cart.rank)] for each in made]
        needed = sum(each.size * one.field.itemsize for each, one in zip(owners, made, strict=True))
        sources = set(np.concatenate([each.ravel() for each in owners]).tolist())
        # What this process needs of each other one is what that one sends, once, in one message.
        assert comm.allreduce(needed) == comm.allreduce(cost[1])
        assert sources <= set(exchange.neighbours)
        if min(map(min, width)) > 0 and any(set(grid.dims) <= set(field.dims) for field in fields):
            assert sources == set(exchange.neighbours)
        assert cost[0] == len(exchange.neighbours)
    exchange.free()
    cart.Free()


def main(seed: int, cases: int) -> None:
    for case in range(cases):
        try:
            check(random.Random(f"{seed} {case}"), MPI.COMM_WORLD)
        except BaseException:
            print(
                f"on rank {MPI.COMM_WORLD.rank} of {MPI.COMM_WORLD.size}: seed {seed}, case {case}",
                file=sys.stderr,
                flush=True,
            )
            raise


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
