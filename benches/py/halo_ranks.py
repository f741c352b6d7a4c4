"""Time one halo exchange with all peers: `mpiexec -n 2 python halo_ranks.py LAYOUT I_PROCESSES J_PROCESSES PERIODIC`.

Prints the seconds of every round, of each peer, as JSON. A round's time is that of the slower process.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

import dlfield as dl
from dlfield import mpi

FIELDS, SHAPE, WIDTH = 8, (256, 256, 80), 3
ROUNDS = 15

Key = tuple[slice, ...]


def regions(cart: MPI.Cartcomm) -> dict[int, list[tuple[Key, Key]]]:
    """Return what each neighbour gets and sends, with corners."""
    sent = {-1: slice(WIDTH, 2 * WIDTH), 0: slice(WIDTH, -WIDTH), 1: slice(-2 * WIDTH, -WIDTH)}
    received = {-1: slice(0, WIDTH), 0: slice(WIDTH, -WIDTH), 1: slice(-WIDTH, None)}
    offsets = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    around: dict[int, list[tuple[int, int]]] = {}
    for i, j in offsets:
        place = [at + step for at, step in zip(cart.coords, (i, j), strict=True)]
        if all(wraps or 0 <= at < size for at, size, wraps in zip(place, cart.dims, cart.periods, strict=True)):
            rank = cart.Get_cart_rank([at % size for at, size in zip(place, cart.dims, strict=True)])
            around.setdefault(rank, []).append((i, j))
    # The other process sees this one at the opposite offsets, so it sends in the reverse order of these.
    return {
        rank: [
            ((sent[to[0]], sent[to[1]]), (received[source[0]], received[source[1]]))
            for to, source in zip(found, found[::-1], strict=True)
        ]
        for rank, found in around.items()
    }


def by_datatypes(cart: MPI.Cartcomm, arrays: list[Any], order: int) -> Callable[[], None]:
    """One message for each field and region, described by subarray datatypes that are made once."""
    calls: list[tuple[int, int, MPI.Datatype, MPI.Datatype]] = []
    shape = arrays[0].shape
    for rank, parts in regions(cart).items():
        for number, (sent, received) in enumerate(parts):
            types = []
            for key in (sent, received):
                ranges = [part.indices(size) for part, size in zip((*key, slice(None)), shape, strict=True)]
                sizes, starts = [stop - start for start, stop, _ in ranges], [start for start, _, _ in ranges]
                types.append(MPI.DOUBLE.Create_subarray(shape, sizes, starts, order).Commit())
            calls.append((rank, number, types[0], types[1]))

    def exchange() -> None:
        requests = []
        for array in arrays:
            requests += [cart.Irecv([array, 1, received], rank, tag) for rank, tag, _, received in calls]
        for array in arrays:
            requests += [cart.Isend([array, 1, sent], rank, tag) for rank, tag, sent, _ in calls]
        MPI.Request.Waitall(requests)

    return exchange


def by_slices(cart: MPI.Cartcomm, arrays: list[Any], order: int) -> Callable[[], None]:
    """One message for each neighbour, packed by assigning NumPy slices to parts of a buffer that is reused."""
    plans = []
    for rank, parts in regions(cart).items():
        # The parts have the arrays' order of memory.
        made: list[Any] = []
        for way in (0, 1):
            shapes = [arrays[0][part[way]].shape for part in parts]
            ends = np.cumsum([0] + [int(np.prod(shape)) for shape in shapes] * len(arrays)).tolist()
            buffer = np.empty(ends[-1])
            views = [
                buffer[start:end].reshape(shape, order="F" if order == MPI.ORDER_F else "C")
                for start, end, shape in zip(ends[:-1], ends[1:], shapes * len(arrays), strict=True)
            ]
            made.append((buffer, [(array, part[way]) for array in arrays for part in parts], views))
        plans.append((rank, made[0], made[1]))

    def exchange() -> None:
        receipts = [cart.Irecv(received[0], rank) for rank, _, received in plans if rank != cart.rank]
        sends = []
        for rank, (buffer, parts, views), _ in plans:
            for (array, key), view in zip(parts, views, strict=True):
                view[...] = array[key]
            if rank != cart.rank:
                sends.append(cart.Isend(buffer, rank))
        MPI.Request.Waitall(receipts)
        for rank, (_, _, copies), (_, parts, views) in plans:
            for (array, key), view in zip(parts, copies if rank == cart.rank else views, strict=True):
                array[key] = view
        MPI.Request.Waitall(sends)

    return exchange


def main() -> None:
    backend, periodic = sys.argv[1], sys.argv[4] == "periodic"
    dl.set_num_threads(1)
    cart = MPI.COMM_WORLD.Create_cart([int(sys.argv[2]), int(sys.argv[3])], periods=[periodic] * 2)
    shape = (SHAPE[0] + 2 * WIDTH, SHAPE[1] + 2 * WIDTH, SHAPE[2])
    kinds: dict[str, list[dl.Tensor]] = {
        kind: [
            dl.full(shape, float(cart.rank), backend=backend, dims="IJK", halo=(WIDTH, WIDTH, 0)) for _ in range(FIELDS)
        ]
        for kind in ("dlfield", "slices", "datatypes")
    }
    arrays = {kind: [field.to_numpy() for field in fields] for kind, fields in kinds.items()}
    for each in arrays.values():
        for number, array in enumerate(each):
            array[WIDTH:-WIDTH, WIDTH:-WIDTH] = np.random.default_rng([cart.rank, number]).random(SHAPE)
    order = MPI.ORDER_F if arrays["slices"][0].flags.f_contiguous else MPI.ORDER_C
    exchange = mpi.HaloExchange(cart, kinds["dlfield"][0])
    cases: dict[str, Callable[[], None]] = {
        "dlfield": lambda: exchange(*kinds["dlfield"]),
        "slices": by_slices(cart, arrays["slices"], order),
        "datatypes": by_datatypes(cart, arrays["datatypes"], order),
    }
    times: dict[str, list[float]] = {kind: [] for kind in cases}
    for _ in range(ROUNDS):
        for kind, case in cases.items():
            cart.Barrier()
            start = time.perf_counter()
            case()
            times[kind].append(cart.allreduce(time.perf_counter() - start, MPI.MAX))
    for kind in ("slices", "datatypes"):
        assert all(map(np.array_equal, arrays["dlfield"], arrays[kind])), kind
    if cart.rank == 0:
        print(json.dumps(times))


if __name__ == "__main__":
    main()
