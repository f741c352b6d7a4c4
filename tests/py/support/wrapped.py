"""For tests of `dlfield.gt4py.wrap`: two stencils, and a call of the first with arrays of any library."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import dlfield as dl
from fakes_interfaces import Exposing, host, interface_of

pytest.importorskip("gt4py")

from gt4py import next as gtx
from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import FORWARD, PARALLEL, computation, interval

Array = npt.NDArray[Any]
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


WEIGHTED: dict[str, Any] = {"weight": 2.0, "origin": ORIGIN, "domain": DOMAIN}


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


def as_torch(array: Array) -> Any:
    return pytest.importorskip("torch").from_numpy(array)


def as_jax(array: Array) -> Any:
    return dl.as_jax(array.copy(), copy=True)


def as_xarray(array: Array) -> Any:
    """A DataArray on the same memory, with its dimensions in another order."""
    return pytest.importorskip("xarray").DataArray(array, dims=("I", "J", "K")).transpose("K", "I", "J")


def as_tensor(array: Array) -> Any:
    return dl.from_dlpack(array, dims="IJK").transpose("J", "K", "I")


def as_field(array: Array) -> Any:
    dims = [gtx.Dimension(label) for label in "IJ"] + [gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)]
    return gtx.common._field(array, domain=gtx.common.domain(dict(zip(dims, array.shape, strict=True))))


def as_interface(array: Array) -> Any:
    """An object with GDP 3's data interface, with its dimensions in another order."""
    turned = array.transpose(2, 1, 0)
    return Exposing(kept=array, __gt_data_interface__={None: {**interface_of(turned), "dims": ("K", "J", "I")}})


class OnlyDLPack:
    """An array that supports DLPack only."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __dlpack__(self, **keywords: Any) -> object:
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


PRODUCERS: dict[str, Callable[[Array], Any]] = {
    "numpy": lambda array: array,
    "torch": as_torch,
    "xarray": as_xarray,
    "tensor": as_tensor,
    "gt4py.next": as_field,
    "dlpack": OnlyDLPack,
    "data interface": as_interface,
    "array interface": host,
}
