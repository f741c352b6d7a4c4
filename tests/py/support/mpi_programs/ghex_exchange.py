"""Exchanges of halos by GHEX and by `HaloExchange`: `mpiexec -n N python -m mpi4py ghex_exchange.py`. The same bits."""

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI

import dlfield as dl
from dlfield import mpi
from dlfield.mpi.ghex import GhexExchange

WORLD = MPI.COMM_WORLD
HALO = ((1, 2), (2, 1), (0, 0))

# Keywords of fields of GHEX's own types, in layouts of every kind, with and without padding.
KEYWORDS: list[dict[str, Any]] = [
    {},
    {"backend": "F"},
    {"backend": "gtmc"},
    {"backend": "gt:cpu_ifirst", "alignment_size": 64},
    {"dtype": "float32", "backend": "gtmc"},
    {"dtype": "int32", "layout": (1, 0, 2)},
    {"dtype": "int64", "layout": (1, 2, 0)},
    {"dtype": "bool", "layout": (2, 0, 1)},
]


def made(grid: MPI.Cartcomm, points: tuple[int, ...], halo: Any = HALO, **keywords: Any) -> dl.Tensor:
    """Return a field whose inner points differ everywhere."""
    shape = tuple(size + lower + upper for size, (lower, upper) in zip(points, halo, strict=True))
    field = dl.full(shape, 99, **{"dtype": "float64", "dims": "IJK", "halo": halo, **keywords})
    values = np.arange(math.prod(points)).reshape(points) + 1000 * grid.rank
    inner = field.domain_view
    inner[...] = (values % 2 == 1) if field.dtype == bool else values.astype(field.dtype)
    return field


def compare(grid: MPI.Cartcomm) -> None:
    """All fields, alone and together; also a wider halo, and another order of the dims."""
    points = (*[5 + place for place in grid.coords], 4)
    fields = [made(grid, points, **keywords) for keywords in KEYWORDS]
    fields.append(made(grid, points, ((3, 3), (2, 2), (0, 0))))
    fields.append(dl.from_array(made(grid, points).transpose("K", "I", "J"), alignment_size=128))
    theirs, ours = GhexExchange(grid, fields[0], "IJ"), mpi.HaloExchange(grid, fields[0], "IJ")
    for count in (1, len(fields)):
        for first in range(0, len(fields), count):
            chosen = fields[first : first + count]
            copies = [field.copy() for field in chosen]
            before = [field.ptr for field in chosen]
            theirs(*chosen)
            ours(*copies)
            for field, expected in zip(chosen, copies, strict=True):
                assert np.asarray(field).tobytes() == np.asarray(expected).tobytes(), (field.layout, field.dtype)
            assert [field.ptr for field in chosen] == before
    # Two dimensions, of an array that NumPy has made.
    plane = np.full((points[0] + 3, points[1] + 3), float(grid.rank))
    same = plane.copy()
    flat = GhexExchange(grid, plane.shape, "IJ", halo=HALO[:2])
    # With GHEX's own functions.
    descriptor = flat.descriptor(plane)
    flat.communication.exchange([flat.pattern(descriptor)]).wait()
    mpi.HaloExchange(grid, plane.shape, "IJ", halo=HALO[:2])(same)
    assert plane.tobytes() == same.tobytes()
    flat.free()
    wrong_use(grid, theirs, points)
    # An error leaves it of use.
    theirs(fields[0])
    theirs.free()
    ours.free()


def wrong_use(grid: MPI.Cartcomm, exchange: GhexExchange, points: tuple[int, ...]) -> None:
    """Each case is wrong on the last process only, and an error on every one."""
    good = made(grid, points)
    last = grid.rank == grid.size - 1
    cases: list[tuple[tuple[Any, ...], type[Exception], str]] = [
        ((), dl.LayoutError, "expected at least one"),
        ((made(grid, points, dtype="int8"),), dl.DTypeError, "field 0: int8; GHEX exchanges bool, int32"),
        ((good[..., 0],), dl.DimsError, "GHEX exchanges ('I', 'J', 'K'), in any order"),
        ((good.as_readonly(),), ValueError, "read-only"),
        ((made(grid, (points[0], points[1], 5)),), dl.LayoutError, "5 points along K; this exchange is for 4"),
        ((made(grid, (points[0] + 1, *points[1:])),), dl.LayoutError, "staggered in I"),
        ((made(grid, points, ((0, 1), (2, 1), (0, 0))),), dl.LayoutError, "less than (1, 2) exchanged"),
        ((good[..., ::-1],), dl.LayoutError, "positive strides"),
        ((dl.zeros_like(good, layout=(0, 1, 2))[..., :1],), dl.LayoutError, "1 points along K"),
    ]
    for fields, error, text in cases:
        chosen = fields if last else (good,)
        raises(partial(exchange, *chosen), error if last else mpi.RankError, text)
    if grid.size > 1:
        single = made(grid, points, dtype="float32")
        raises(lambda: exchange(single if last else good), mpi.RankError, "disagree", "field 0: float32")
        turned = made(grid, points, backend="F")
        raises(lambda: exchange(turned if last else good), mpi.RankError, "field 0: float64 in the layout (2, 1, 0)")
        deeper = made(grid, (*points[:2], 4 + last))
        raises(lambda: GhexExchange(grid, deeper), mpi.RankError, "dims that are not exchanged: (('K', 5),)")
    raises(lambda: GhexExchange(WORLD, good), TypeError, "no Cartesian grid")


def raises(action: Callable[[], Any], error: type[Exception], *texts: str) -> None:
    raised: Exception | None = None
    try:
        action()
    except Exception as found:
        raised = found
    assert isinstance(raised, error), (raised, texts)
    assert all(text in str(raised) for text in texts), (raised, texts)


def compare_layouts(grid: MPI.Cartcomm) -> None:
    """All layouts of four dimensions that GHEX is compiled for; the others are refused."""
    halo = (*HALO, (0, 0))
    first = made(grid, (4, 5, 3, 2), halo, dims="IJK0")
    theirs, ours = GhexExchange(grid, first, "IJ"), mpi.HaloExchange(grid, first, "IJ")
    for layout in itertools.permutations(range(4)):
        field = made(grid, (4, 5, 3, 2), halo, dims="IJK0", layout=layout)
        if layout[0] == 2:
            raises(partial(theirs, field), dl.LayoutError, "GHEX refuses the shape (7, 8, 3, 2) with strides")
            continue
        expected = field.copy()
        theirs(field)
        ours(expected)
        assert np.asarray(field).tobytes() == np.asarray(expected).tobytes(), layout
    theirs.free()
    ours.free()


for columns in range(1, WORLD.size + 1):
    if WORLD.size % columns == 0:
        for periods in ((columns % 2 == 0, True), (True, False)):
            cart = WORLD.Create_cart((columns, WORLD.size // columns), periods)
            compare(cart)
            if columns == 1:
                compare_layouts(cart)
            cart.Free()
if WORLD.rank == 0:
    print("done")
