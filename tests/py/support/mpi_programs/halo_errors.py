"""Wrong use of a halo exchange on some of the processes: `mpiexec -n 4 python -m mpi4py halo_errors.py`.

Every case ends with an error on every process. A process that is in no position to notice it in the same call calls
again, as a program in its time loop does.
"""

import sys
from collections.abc import Callable
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


def made(*processes: int) -> mpi.HaloExchange:
    return mpi.HaloExchange(cart(*processes), field())


# What a case does on every process until it raises; and what the errors say on each rank that is named.
CASES: dict[str, tuple[Callable[[], Callable[[], Any]], dict[int, str]]] = {}


def case(**says: str) -> Callable[[Callable[[], Callable[[], Any]]], None]:
    def add(function: Callable[[], Callable[[], Any]]) -> None:
        CASES[function.__name__] = function, {int(rank.removeprefix("on_")): text for rank, text in says.items()}

    return add


DISAGREE = "RankError: halo exchange: the processes disagree. On ranks 0, 1, 3: "


@case(on_0="TypeError: comm", on_3="no Cartesian grid; fix: comm.Create_cart(dims, periods)")
def not_cartesian() -> Callable[[], Any]:
    return lambda: mpi.HaloExchange(WORLD, field())


@case(on_0="RankError: halo exchange: rank 1: DimsError: dims: ('I',) has 1 labels", on_1="DimsError: dims")
def dims_of_one_rank() -> Callable[[], Any]:
    return lambda: mpi.HaloExchange(cart(), field(), "I" if RANK == 1 else "IJ")


@case(
    on_0="RankError: halo exchange: rank 1: DimsError: dims: None", on_1="DimsError: dims: None; allowed is one label"
)
def dims_that_are_none() -> Callable[[], Any]:
    none: Any = None
    return lambda: mpi.HaloExchange(cart(), field(), none if RANK == 1 else "IJ")


@case(on_0="RankError: halo exchange: rank 3: TypeError: shared_memory: found array", on_3="allowed is a bool")
def memory_shared_by_an_array() -> Callable[[], Any]:
    flag: Any = np.zeros(2) if RANK == 3 else True
    return lambda: mpi.HaloExchange(cart(), field(), shared_memory=flag)


@case(on_0="LayoutError: periodic: 'IJ'; allowed is a bool, or one for each of the dims I J")
def periodic_that_is_labels() -> Callable[[], Any]:
    return lambda: mpi.HaloExchange(cart(), field(), periodic="IJ")


@case(on_0="TypeError: spec: found ndarray; allowed is a field with dims, or its extents along ('I', 'J')")
def array_without_labels_as_specification() -> Callable[[], Any]:
    return lambda: mpi.HaloExchange(cart(), np.zeros((8, 8)), halo=2)


@case(on_0="LayoutError: halo: missing; needed where `spec` has none. Found for `spec` is tuple")
def shape_without_halo() -> Callable[[], Any]:
    return lambda: mpi.HaloExchange(cart(), (8, 8))


@case(on_0="LayoutError: halo: missing; needed where `spec` has none. Found for `spec` is Labelled")
def field_without_halo() -> Callable[[], Any]:
    class Labelled:
        dims, shape = ("I", "J"), (8, 8)

    return lambda: mpi.HaloExchange(cart(), Labelled())


@case(on_0=DISAGREE + "dims I J, halo ((2, 2), (2, 2))", on_2="; On rank 2: dims I J, halo ((1, 1), (1, 1))")
def halos_disagree() -> Callable[[], Any]:
    return lambda: mpi.HaloExchange(cart(), field(halo=(1, 1, 0)) if RANK == 2 else field())


@case(on_1="RankError: halo exchange: the processes disagree. On rank 0: 4 points along", on_3="5 points along")
def sizes_in_a_row_disagree() -> Callable[[], Any]:
    return lambda: mpi.HaloExchange(cart(), field(points=5 if RANK == 3 else 4))


@case(on_0="RankError: halo exchange: rank 3: LayoutError: spec: 5 points along I with the halo (2, 2) leave 1")
def smaller_than_the_halo() -> Callable[[], Any]:
    return lambda: mpi.HaloExchange(cart(), field(points=1 if RANK == 3 else 4))


@case(on_0="LayoutError: spec: 5 points", on_3="LayoutError: spec: 5 points")
def smaller_than_the_halo_everywhere() -> Callable[[], Any]:
    return lambda: mpi.HaloExchange(cart(), field(points=1))


@case(on_3=DISAGREE + "1 fields, halo ((2, 2), (2, 2)); field 0: float64, dims I J K", on_2="field 0: float32")
def dtypes_disagree() -> Callable[[], Any]:
    exchange, mine = made(), field("float32" if RANK == 2 else "float64")
    return lambda: exchange(mine)


@case(on_1=DISAGREE + "1 fields, halo ((2, 2), (2, 2)); field 0: float64, dims I J K, layout (0, 1, 2)")
def layouts_disagree() -> Callable[[], Any]:
    exchange, mine = made(), field(layout=(2, 1, 0) if RANK == 2 else (0, 1, 2))
    return lambda: exchange(mine)


@case(on_1="On rank 2: 2 fields")
def numbers_of_fields_disagree() -> Callable[[], Any]:
    exchange, fields = made(), [field()] * (2 if RANK == 2 else 1)
    return lambda: exchange(*fields)


@case(on_1="On rank 2: 1 fields, halo ((1, 1), (1, 1))")
def halos_of_a_call_disagree() -> Callable[[], Any]:
    exchange, mine = made(), field()
    return lambda: exchange(mine, halo=1 if RANK == 2 else 2)


@case(on_0="RankError: halo exchange: rank 2: LayoutError: field 0: 9 points along I", on_2="LayoutError: field 0: 9")
def wrong_shape() -> Callable[[], Any]:
    exchange, mine = made(), field(points=5 if RANK == 2 else 4, halo=(2, 2, 0) if RANK != 2 else (1, 1, 0))
    return lambda: exchange(mine)


@case(on_0="LayoutError: halo: (3, 3) along I; the exchange was built for (2, 2) at most")
def wider_than_built() -> Callable[[], Any]:
    exchange, mine = made(), field()
    return lambda: exchange(mine, halo=3)


@case(on_0="ValueError: field 0: read-only", on_1="rank 0: ValueError: field 0: read-only")
def read_only() -> Callable[[], Any]:
    exchange, mine = made(), field()
    return lambda: exchange(mine.as_readonly() if RANK == 0 else mine)


@case(on_0="LayoutError: fields: none")
def no_fields() -> Callable[[], Any]:
    exchange = made()
    return lambda: exchange()


# From here on all processes had agreed, so no further agreement takes place, but each message says what it has.
@case(on_0="RankError")
def other_fields_that_are_agreed() -> Callable[[], Any]:
    exchange, first, second = made(4, 1), field(), field("float32")
    exchange(first)
    exchange(second)
    return lambda: exchange(second if RANK == 0 else first)


@case(on_0="RankError")
def other_fields_that_are_new() -> Callable[[], Any]:
    exchange, first, second = made(4, 1), field(), field("float32")
    exchange(first)
    return lambda: exchange(second if RANK == 0 else first)


@case(on_3="RankError")
def larger_fields_that_are_new() -> Callable[[], Any]:
    exchange, first = made(4, 1), field()
    large = dl.zeros((8, 8, 50_000), dims="IJK", halo=HALO)
    exchange(first)
    return lambda: exchange(*[large] * 2 if RANK == 3 else [first])


@case(on_1="LayoutError: field 0: 10 points along I", on_3="RankError: halo exchange: it failed on rank 1")
def wrong_shape_later() -> Callable[[], Any]:
    exchange, first, wrong = made(4, 1), field(), field(points=6)
    exchange(first)
    return lambda: exchange(wrong if RANK == 1 else first)


@case(on_0="RankError")
def without_the_dimension_of_the_neighbours() -> Callable[[], Any]:
    exchange, first = made(4, 1), field()
    plane = dl.zeros((8, 3), dims="JK", halo=(2, 0))
    exchange(plane)
    return lambda: exchange(first if RANK == 0 else plane)


@case(on_1="Error: start: the last exchange is not finished", on_0="RankError")
def started_twice() -> Callable[[], Any]:
    exchange, first = made(), field()

    def call() -> None:
        exchange.start(first)
        if RANK == 1:
            exchange.start(first)
        exchange.finish()

    return call


def main() -> None:
    for name, (prepare, says) in CASES.items():
        call, error = prepare(), ""
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

    # An error that all processes had in the same call leaves the exchange usable.
    exchange, mine = made(), field()
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
