"""The demo's horizontal diffusion on a grid of processes, bit for bit the same as on one.

Each process has a block of the domain with a halo of two points. While the halos travel it computes the points that do
not need them.

    mpiexec -n 4 python examples/diffusion_mpi.py
"""

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

import dlfield as dl
from dlfield import mpi

DOMAIN = (50, 37, 10)
WIDTH = 2
STEPS = 20
# An explicit step of the fourth-order operator is stable below 1/32.
COEFFICIENT = 1.0 / 64.0

Array = npt.NDArray[np.float64]


def main() -> None:
    """Run the steps on all processes, gather the result on the first one and compare."""
    world = MPI.COMM_WORLD
    grid = world.Create_cart(MPI.Compute_dims(world.size, 2))
    # Every process makes the whole initial field; a real program would read its part.
    whole = initial()
    start, stop = zip(*(extent(DOMAIN[dim], grid.dims[dim], grid.coords[dim]) for dim in (0, 1)), strict=True)
    block = whole[start[0] : stop[0] + 2 * WIDTH, start[1] : stop[1] + 2 * WIDTH]

    inp = dl.from_array(block, backend="gt:cpu_kfirst", dims="IJK", halo=(WIDTH, WIDTH, 0))
    out = inp.copy()
    exchange = mpi.HaloExchange(grid, inp, dims="IJ")
    messages, nbytes = exchange.cost(inp)
    size = tuple(high - low for low, high in zip(start, stop, strict=True))
    for _ in range(STEPS):
        exchange.start(inp)
        inner, borders = parts(size)
        diffuse(inp.to_numpy(), out.to_numpy(), *inner)
        exchange.finish()
        for border in borders:
            diffuse(inp.to_numpy(), out.to_numpy(), *border)
        inp, out = out, inp
    assert (exchange.messages, exchange.bytes) == (STEPS * messages, STEPS * nbytes)

    blocks = world.gather((start, stop, inp.domain_view.to_numpy()))
    total = world.reduce(np.array([messages, nbytes]))
    if blocks is None:
        return
    result = np.empty(DOMAIN)
    for low, high, values in blocks:
        result[low[0] : high[0], low[1] : high[1]] = values
    expected = reference(whole)
    assert np.array_equal(result, expected)
    print(f"{world.size} processes as {grid.dims[0]} x {grid.dims[1]}: all bits equal to one process")
    print(f"a step sends {total[0]} messages, {total[1]} bytes")


def initial() -> Array:
    """Return waves that the diffusion keeps, plus noise that it removes, with a halo that stays as it is."""
    shape = (DOMAIN[0] + 2 * WIDTH, DOMAIN[1] + 2 * WIDTH, DOMAIN[2])
    i, j, k = np.indices(shape, dtype=np.float64, sparse=True)
    waves = np.sin(4.0 * np.pi * i / shape[0]) * np.cos(2.0 * np.pi * j / shape[1]) + 0.1 * k / shape[2]
    return np.asarray(waves + np.random.default_rng(0).normal(scale=0.4, size=shape))


def extent(points: int, processes: int, place: int) -> tuple[int, int]:
    """Return the points of the domain that a row of processes computes."""
    return points * place // processes, points * (place + 1) // processes


def parts(size: tuple[int, ...]) -> tuple[tuple[slice, slice], list[tuple[slice, slice]]]:
    """Return the points that need no halo, and four strips with all others, as slices of the compute points."""
    (ni, nj), width = size, WIDTH
    inner = slice(width, max(width, ni - width)), slice(width, max(width, nj - width))
    strips = [
        (slice(0, min(width, ni)), slice(0, nj)),
        (slice(inner[0].stop, ni), slice(0, nj)),
        (inner[0], slice(0, min(width, nj))),
        (inner[0], slice(inner[1].stop, nj)),
    ]
    return inner, strips


def diffuse(inp: Array, out: Array, rows: slice, columns: slice) -> None:
    """Compute one step of these points, which are counted without the halo."""
    around = slice(rows.start, rows.stop + 2 * WIDTH), slice(columns.start, columns.stop + 2 * WIDTH)
    points = slice(rows.start + WIDTH, rows.stop + WIDTH), slice(columns.start + WIDTH, columns.stop + WIDTH)
    out[points] = inp[points] - COEFFICIENT * laplacian(laplacian(inp[around]))


def laplacian(field: Array) -> Array:
    """Return the Laplacian in I and J, without the outermost points."""
    result: Array = field[2:, 1:-1] + field[:-2, 1:-1] + field[1:-1, 2:] + field[1:-1, :-2] - 4.0 * field[1:-1, 1:-1]
    return result


def reference(whole: Array) -> Array:
    """Return the result of the same steps on one process."""
    field = whole.copy()
    for _ in range(STEPS):
        field[WIDTH:-WIDTH, WIDTH:-WIDTH] -= COEFFICIENT * laplacian(laplacian(field))
    result: Array = field[WIDTH:-WIDTH, WIDTH:-WIDTH]
    return result


if __name__ == "__main__":
    main()
