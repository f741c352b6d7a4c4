"""Wrong use of a halo exchange on some of the processes: `mpiexec -n 4 python -m mpi4py halo_errors.py`.

Every case ends with an error on every process. A process that is in no position to notice it in the same call calls
again, as a program in its time loop does.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI

import dlfield as dl
from dlfield import mpi

WORLD = MPI.COMM_WORLD
RANK = WORLD.rank
HALO = (2, 2, 0)


def cart(*processes: int) -> MPI.Cartcomm:
    return WORLD.Create_cart(processes or (2, 2))


def field(dtype: str = "float64", points: int = 4, **options: Any) -> dl.Tensor:
    return dl.zeros((points + 4, points + 4, 3), dtype, **{"dims": "IJK", "halo": HALO, **options})


def built(spec: Any = None, dims: Any = "IJ", **keywords: Any) -> mpi.HaloExchange:
    return mpi.HaloExchange(cart(), field() if spec is None else spec, dims, **keywords)


def on(rank: int, one: Any, others: Any) -> Any:
    """Return `one` on this rank, and `others` on the others."""
    return one if rank == RANK else others


class Labelled:
    """A field without a halo."""

    dims, shape = ("I", "J"), (8, 8)


# What the errors say on each rank that is named.
Says = dict[int, str]

FAILED = "RankError: halo exchange: "
DISAGREE = FAILED + "the processes disagree. On ranks 0, 1, 3: "
ONE = "1 fields, halo ((2, 2), (2, 2))"

# How an exchange is built.
BUILT: dict[str, tuple[Callable[[], Any], Says]] = {
    "no grid": (lambda: mpi.HaloExchange(WORLD, field()), {0: "TypeError: comm", 3: "no Cartesian grid"}),
    "dims of one rank": (
        lambda: built(dims=on(1, "I", "IJ")),
        {0: FAILED + "rank 1: DimsError: dims: ('I',)", 1: "DimsError: dims"},
    ),
    "dims that are None": (
        lambda: built(dims=on(1, None, "IJ")),
        {0: FAILED + "rank 1: DimsError: dims: expected", 1: "got None"},
    ),
    "shared_memory that is an array": (
        lambda: built(shared_memory=on(3, np.zeros(2), True)),
        {0: FAILED + "rank 3: TypeError: shared_memory: expected a bool, got array", 3: "TypeError: shared_memory"},
    ),
    "periodic that is labels": (lambda: built(periodic="IJ"), {0: "LayoutError: periodic: expected a bool"}),
    "an array without labels": (
        lambda: built(np.zeros((8, 8)), halo=2),
        {0: "TypeError: spec: expected a field"},
    ),
    "a halo by a label of no dimension": (lambda: built(halo={"K": 1}), {0: "DimsError: halo: expected labels of"}),
    "a text that is one label": (lambda: built(dims="lat"), {0: "DimsError: dims: ('lat',) has 1 labels"}),
    "a shape without a halo": (lambda: built((8, 8)), {0: "LayoutError: halo: missing"}),
    "a field without a halo": (lambda: built(Labelled()), {0: "LayoutError: halo: missing", 1: "Labelled"}),
    "a field whose halo is 0": (lambda: built(field(halo=None)), {0: "LayoutError: spec: it has no halo along I, J"}),
    "a halo of 0": (lambda: built(halo=((0, 0), 0)), {2: "LayoutError: halo: ((0, 0), 0) along I, J, so nothing"}),
    "a halo of 0 on one process": (
        lambda: built(on(1, field(halo=(0, 0, 1)), field())),
        {0: FAILED + "rank 1: LayoutError: spec: it has no halo along I, J"},
    ),
    "other halos": (
        lambda: built(on(2, field(halo=(1, 1, 0)), field())),
        {0: DISAGREE + "dims I J, halo ((2, 2), (2, 2))", 2: "; On rank 2: dims I J, halo ((1, 1), (1, 1))"},
    ),
    "other sizes in a row": (
        lambda: built(field(points=on(3, 5, 4))),
        {1: FAILED + "the processes disagree. On rank 0: 4 points along", 3: "5 points along"},
    ),
    "smaller than the halo": (
        lambda: built(field(points=on(3, 1, 4))),
        {0: FAILED + "rank 3: LayoutError: spec: 5 points along I with the halo (2, 2) leave 1"},
    ),
    "smaller than the halo everywhere": (
        lambda: built(field(points=1)),
        {0: "LayoutError: spec: 5 points", 3: "LayoutError: spec: 5 points"},
    ),
}

# The fields of a call, its halo, and what the errors say.
CALLED: dict[str, tuple[Callable[[], list[dl.Tensor]], Any, Says]] = {
    "other dtypes": (
        lambda: [field(on(2, "float32", "float64"))],
        None,
        {3: DISAGREE + ONE + "; field 0: float64, dims I J K", 2: "field 0: float32"},
    ),
    "other layouts": (
        lambda: [field(layout=on(2, (2, 1, 0), (0, 1, 2)))],
        None,
        {1: DISAGREE + ONE + "; field 0: float64, dims I J K, layout (0, 1, 2)"},
    ),
    "other numbers of fields": (lambda: [field()] * on(2, 2, 1), None, {1: "On rank 2: 2 fields"}),
    "other halos": (lambda: [field()], on(2, 1, 2), {1: "On rank 2: 1 fields, halo ((1, 1), (1, 1))"}),
    "another shape": (
        lambda: [on(2, field(points=5, halo=(1, 1, 0)), field())],
        None,
        {0: FAILED + "rank 2: LayoutError: field 0: expected", 2: "LayoutError: field 0: expected"},
    ),
    "wider than it was built": (lambda: [field()], 3, {0: "LayoutError: halo: (3, 3) along I"}),
    "read-only": (
        lambda: [on(0, field().as_readonly(), field())],
        None,
        {0: "ValueError: field 0: read-only", 1: "rank 0: ValueError: field 0: read-only"},
    ),
    "no fields": (list, None, {0: "LayoutError: fields: expected at least one"}),
}

FIRST, SECOND, WIDE = field(), field("float32"), dl.zeros((8, 8, 50_000), dims="IJK", halo=HALO)
PLANE = dl.zeros((8, 3), dims="JK", halo=(2, 0))

# Fields that all processes have agreed on, one after the other, and those of the next call: no further agreement takes
# place, but each message says what it has.
AGREED: dict[str, tuple[list[dl.Tensor], list[dl.Tensor], Says]] = {
    "fields that are agreed too": ([FIRST, SECOND], [on(0, SECOND, FIRST)], {0: "RankError"}),
    "new fields": ([FIRST], [on(0, SECOND, FIRST)], {0: "RankError"}),
    "larger new fields": ([FIRST], on(3, [WIDE] * 2, [FIRST]), {3: "RankError"}),
    "another shape": (
        [FIRST],
        [on(1, field(points=6), FIRST)],
        {1: "LayoutError: field 0: expected 8 points along I", 3: FAILED + "it failed on rank 1"},
    ),
    "without the dimension of the neighbours": ([PLANE], [on(0, FIRST, PLANE)], {0: "RankError"}),
}


def start_twice(exchange: mpi.HaloExchange) -> None:
    exchange.start(FIRST)
    if RANK == 1:
        exchange.start(FIRST)
    exchange.finish()


def check(name: str, call: Callable[[], Any], says: Says) -> None:
    """Call until it raises; compare what all ranks say."""
    error = ""
    for _ in range(8):
        try:
            call()
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
            break
    errors = WORLD.allgather(error)
    wrong = [rank for rank in range(WORLD.size) if not errors[rank] or says.get(rank, "") not in errors[rank]]
    if wrong and RANK == 0:
        print(f"{name}: on ranks {wrong}: {errors}", flush=True)
    if RANK == 0 and "-v" in sys.argv:
        print(name, *errors, sep="\n  ", flush=True)


def main() -> None:
    for name, (build, says) in BUILT.items():
        check(name, build, says)
    for name, (fields, halo, says) in CALLED.items():
        check(name, partial(built(), *fields(), halo=halo), says)
    for name, (agreed, wrong, says) in AGREED.items():
        exchange = mpi.HaloExchange(cart(4, 1), FIRST)
        for each in agreed:
            exchange(each)
        check(name, partial(exchange, *wrong), says)
    check(
        "started twice",
        partial(start_twice, built()),
        {1: "Error: start: the last exchange is not finished", 0: "RankError"},
    )

    # An error that all processes had in the same call leaves the exchange usable.
    exchange, mine = built(), field()
    wrong_calls: list[tuple[dl.Tensor, int]] = [(mine, RANK), (field(points=6 + RANK), 2)]
    for one, width in wrong_calls:
        try:
            exchange(one, halo=width)
        except dl.Error:
            exchange(mine)
        else:
            print("no error", flush=True)

    # A broken one is not.
    said: list[str] = []
    while "make a new one on all processes" not in "".join(said):
        try:
            exchange(mine, halo=2 if RANK or said else 9)
        except dl.Error as raised:
            said.append(str(raised))
    assert len(said) == 2, said
    WORLD.Barrier()
    if RANK == 0:
        print("done", flush=True)


if __name__ == "__main__":
    main()
