"""Solve a tridiagonal system in every column, as in implicit vertical diffusion, on the arrays of four libraries.

The backend needs I contiguous. Most data on disk has this layout: dimensions in the order K, J, I, in C order. The
stencil accepts such arrays directly, without a copy and without a manual transpose.

    python examples/vertical_solve.py
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import xarray
from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import BACKWARD, FORWARD, Field, computation, interval

import dlfield as dl
from dlfield import gt4py as dl_gt4py
from only_dlpack import OnlyDLPack

BACKEND = "gt:cpu_ifirst"
SHAPE = (24, 20, 30)
NAMES = ("lower", "diagonal", "upper", "right")

# GT4Py needs it on Python 3.14, before it compiles a stencil.
dl_gt4py.prepare_build()


@gtscript.stencil(backend=BACKEND)
def plain(
    lower: Field[np.float64],
    diagonal: Field[np.float64],
    upper: Field[np.float64],
    right: Field[np.float64],
    out: Field[np.float64],
) -> None:
    with computation(FORWARD):
        with interval(0, 1):
            ratio = upper / diagonal
            reduced = right / diagonal
        with interval(1, None):
            ratio = upper / (diagonal - lower * ratio[0, 0, -1])
            reduced = (right - lower * reduced[0, 0, -1]) / (diagonal - lower * ratio[0, 0, -1])
    with computation(BACKWARD):
        with interval(-1, None):
            out = reduced
        with interval(0, -1):
            out = reduced - ratio * out[0, 0, 1]


def main() -> None:
    """Solve with each kind of array, compare, and print which memory the solver used."""
    generator = np.random.default_rng(2)
    # The layout is that on disk: K slowest, I contiguous. The diagonal dominates, so there is one solution.
    system = {name: generator.random(SHAPE[::-1]) for name in NAMES}
    system["diagonal"] += 2.0

    # The reference: the plain stencil on NumPy arrays, which it needs in the order I, J, K.
    expected = np.zeros(SHAPE[::-1])
    plain(**{name: array.transpose(2, 1, 0) for name, array in system.items()}, out=expected.transpose(2, 1, 0))
    assert np.allclose(product(system, expected), system["right"])

    solve = dl_gt4py.wrap(plain)

    # PyTorch has no dimension names, so the tensors are permuted to the stencil's order: views, no copies.
    out = torch.zeros(SHAPE[::-1], dtype=torch.float64)
    views = {name: torch.from_numpy(array).permute(2, 1, 0) for name, array in system.items()}
    solve(**views, out=out.permute(2, 1, 0))
    assert np.array_equal(out.numpy(), expected)
    report("torch.Tensor", array=out.data_ptr(), stencil=dl.describe(out).ptr)

    # xarray has dimension names: the stencil accepts the arrays as they come from a file.
    out = xarray.DataArray(np.zeros(SHAPE[::-1]), dims=("K", "J", "I"))
    solve(**{name: xarray.DataArray(array, dims=("K", "J", "I")) for name, array in system.items()}, out=out)
    assert np.array_equal(out, expected)
    report("xarray.DataArray, K J I", array=out.values.ctypes.data, stencil=dl.describe(out).ptr)

    # DLPack has no dimension names either, but `from_dlpack` adds them.
    memory = np.zeros(SHAPE[::-1])
    out = dl.from_dlpack(OnlyDLPack(memory), dims="KJI")
    solve(**{name: dl.from_dlpack(OnlyDLPack(array), dims="KJI") for name, array in system.items()}, out=out)
    assert np.array_equal(memory, expected)
    report("DLPack alone", array=memory.ctypes.data, stencil=dl.describe(out).ptr)

    # A result in another layout: with "copy" the solver writes to a temporary, which is copied back.
    out = dl.zeros(SHAPE, backend="gt:cpu_kfirst")
    given = {name: dl.from_dlpack(array, dims="KJI") for name, array in system.items()}
    dl_gt4py.wrap(plain, on_mismatch="copy")(**given, out=out)
    assert np.array_equal(out.transpose("K", "J", "I").to_numpy(), expected)
    print(f"{'dlfield.Tensor, copied':<26} layout {out.layout} at {out.ptr:#x}; the stencil had a copy in (2, 1, 0)")


def product(system: dict[str, npt.NDArray[np.float64]], solution: npt.NDArray[np.float64]) -> Any:
    """Multiply the matrix of the system with a solution."""
    result = system["diagonal"] * solution
    result[1:] += system["lower"][1:] * solution[:-1]
    result[:-1] += system["upper"][:-1] * solution[1:]
    return result


def report(what: str, array: int, stencil: int) -> None:
    """Print the address of the caller's memory and the address that the stencil gets."""
    assert array == stencil
    print(f"{what:<26} memory at {array:#x}, the stencil gets {stencil:#x}")


if __name__ == "__main__":
    main()
