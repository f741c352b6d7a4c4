"""For tests of stencils of GT4Py: definitions, and a call of `mix` with arrays of any library."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from calls import Array, dataarray, next_field, torch_of
from fakes import FakeTensor, Producer
from fakes_interfaces import Exposing, host, interface_of

pytest.importorskip("gt4py")

from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import FORWARD, PARALLEL, computation, interval

DOMAIN = (4, 3, 2)
SHAPE = (7, 6, 4)
ORIGIN = (1, 2, 1)


def mix(  # type: ignore[no-untyped-def]  # noqa: ANN201 (GTScript allows no return type)
    inp: gtscript.Field[np.float64],
    level: gtscript.Field[gtscript.K, np.float64],
    pair: gtscript.Field[(np.float64, (2,))],
    out: gtscript.Field[np.float64],
    weight: np.float64,
    *,
    idle: gtscript.Field[np.float32] = None,  # noqa: ARG001 (it is there not to be used)
    offset: np.float64 = 0.5,  # type: ignore[assignment]
):
    with computation(PARALLEL), interval(...):
        out = (  # noqa: F841 (GTScript assigns to the field)
            inp[1, 0, 0]
            + weight * inp[-1, 0, 0]
            + 3.0 * inp[0, -1, 0]
            + level
            + offset
            + pair[0, 0, 0][0] / pair[0, 0, 0][1]
        )


def climb(  # type: ignore[no-untyped-def]  # noqa: ANN201 (GTScript allows no return type)
    inp: gtscript.Field[np.float64],
    plane: gtscript.Field[gtscript.IJ, np.float64],
    level: gtscript.Field[gtscript.K, np.float64],
    pair: gtscript.Field[(np.float64, (2,))],
    idle: gtscript.Field[np.float64],  # noqa: ARG001 (it is there not to be used)
    out: gtscript.Field[np.float64],
):
    with computation(FORWARD):
        with interval(0, 1):
            out = inp[1, 0, 0] + plane[0, -1] + pair[-1, 0, 0][1]
        with interval(1, None):
            out = out[0, 0, -1] + inp[2, 0, -1] + level[1]


def add(inp: gtscript.Field[np.float64], out: gtscript.Field[np.float64]):  # type: ignore[no-untyped-def]  # noqa: ANN201
    with computation(PARALLEL), interval(...):
        out = out + 2.0 * inp


WEIGHTED: dict[str, Any] = {"weight": 2.0, "origin": ORIGIN, "domain": DOMAIN}
# The scalars and the field that is not used, as a frozen stencil and `run` need them.
PLAIN: dict[str, Any] = {"idle": None, "weight": 2.0, "offset": 0.5}


class Call:
    """Fresh NumPy arrays for a call of `mix`, and the plain stencil's result for them."""

    def __init__(self, stencil: Any) -> None:
        generator = np.random.default_rng(7)
        self.stencil = stencil
        self.arrays: dict[str, Any] = {
            "inp": generator.random(SHAPE),
            "level": generator.random(SHAPE[2]),
            "pair": generator.random((*SHAPE, 2)),
            "out": generator.random(SHAPE),
        }

    def expected(self, **options: Any) -> Array:
        """Return all of `out` after a call of the plain stencil with copies in its own layout."""
        copies = {
            name: dl.from_array(array, backend=self.stencil.backend, dims=("IJK0"[: array.ndim], "K")[array.ndim == 1])
            for name, array in self.arrays.items()
        }
        self.stencil(**{name: copy.to_numpy() for name, copy in copies.items()}, **{**WEIGHTED, **options})
        return copies["out"].to_numpy()


def frozen_origin() -> dict[str, tuple[int, ...]]:
    i, j, k = ORIGIN
    return {"inp": ORIGIN, "level": (k,), "pair": (i, j, k, 0), "out": ORIGIN, "idle": ORIGIN}


def in_strided_memory(array: Array, order: str) -> Array:
    """A copy whose dimensions come in `order` in memory, with gaps; the index order is that of `array`."""
    axes = ["IJK".index(label) for label in order]
    memory = np.full([array.shape[axis] + 1 for axis in axes], np.nan)
    view = memory[tuple(slice(0, array.shape[axis]) for axis in axes)].transpose(np.argsort(axes))
    view[...] = array
    return view


def as_interface(array: Array) -> Any:
    """An object with GDP 3's data interface, with its dimensions in another order."""
    turned = array.transpose(2, 1, 0)
    return Exposing(kept=array, __gt_data_interface__={None: {**interface_of(turned), "dims": ("K", "J", "I")}})


# Some have the dimensions in another order than I, J, K, and say so.
PRODUCERS: dict[str, Callable[[Array], Any]] = {
    "numpy": lambda array: array,
    "torch": torch_of,
    "xarray": lambda array: dataarray(array).transpose("K", "I", "J"),
    "tensor": lambda array: dl.from_dlpack(array, dims="IJK").transpose("J", "K", "I"),
    "gt4py.next": next_field,
    "dlpack": lambda array: Producer(FakeTensor(array)),
    "data interface": as_interface,
    "array interface": host,
}
