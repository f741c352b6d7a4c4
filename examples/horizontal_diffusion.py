"""Horizontal diffusion with a flux limiter, as weather models have it, on the arrays of four libraries.

The stencil is compiled once, for NumPy arrays in C order. Wrapped, it accepts the other arrays too. It runs on their
memory in place, and copies only on request.

    python examples/horizontal_diffusion.py
"""

import numpy as np
import torch
import xarray
from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval

import dlfield as dl
from dlfield import gt4py as dl_gt4py
from only_dlpack import OnlyDLPack

BACKEND = "gt:cpu_kfirst"
DOMAIN = (32, 24, 10)
# The stencil reads two points beyond the domain in I and J.
HALO = ((2, 2), (2, 2), (0, 0))
ORIGIN = (2, 2, 0)
SHAPE = (36, 28, 10)

# GT4Py needs it on Python 3.14, before it compiles a stencil.
dl_gt4py.prepare_build()


@gtscript.stencil(backend=BACKEND)
def plain(inp: Field[np.float64], out: Field[np.float64], *, weight: np.float64) -> None:
    with computation(PARALLEL), interval(...):
        laplacian = 4.0 * inp - (inp[1, 0, 0] + inp[-1, 0, 0] + inp[0, 1, 0] + inp[0, -1, 0])
        step_i = laplacian[1, 0, 0] - laplacian
        flux_i = 0.0 if step_i * (inp[1, 0, 0] - inp) > 0.0 else step_i
        step_j = laplacian[0, 1, 0] - laplacian
        flux_j = 0.0 if step_j * (inp[0, 1, 0] - inp) > 0.0 else step_j
        out = inp - weight * (flux_i - flux_i[-1, 0, 0] + flux_j - flux_j[0, -1, 0])


def main() -> None:
    """Run the stencil on each kind of array, compare, and print which memory it used."""
    start = np.random.default_rng(1).random(SHAPE)

    # The reference: the plain stencil on NumPy arrays.
    expected = np.zeros(SHAPE)
    plain(start, expected, weight=0.1, origin=ORIGIN, domain=DOMAIN)

    diffuse = dl_gt4py.wrap(plain)

    # PyTorch has no dimension names: the order is that of the stencil, and the call gives origin and domain.
    out = torch.zeros(SHAPE, dtype=torch.float64)
    diffuse(torch.tensor(start), out, weight=0.1, origin=ORIGIN, domain=DOMAIN)
    assert np.array_equal(out.numpy(), expected)
    report("torch.Tensor", array=out.data_ptr(), stencil=dl.describe(out).ptr)

    # xarray has dimension names. The stencil gets I, J, K for any order of the dimensions.
    inp = xarray.DataArray(start, dims=("I", "J", "K")).transpose("K", "J", "I")
    out = xarray.DataArray(np.zeros(SHAPE), dims=("I", "J", "K")).transpose("K", "J", "I")
    diffuse(inp, out, weight=0.1, origin=ORIGIN, domain=DOMAIN)
    assert np.array_equal(out.transpose("I", "J", "K"), expected)
    report("xarray.DataArray, K J I", array=out.values.ctypes.data, stencil=dl.describe(out).ptr)

    # An array that supports only DLPack.
    memory = np.zeros(SHAPE)
    out = OnlyDLPack(memory)
    diffuse(OnlyDLPack(start), out, weight=0.1, origin=ORIGIN, domain=DOMAIN)
    assert np.array_equal(memory, expected)
    report("DLPack alone", array=memory.ctypes.data, stencil=dl.describe(out).ptr)

    # dlfield's tensors have a halo, so the call needs no origin. These have the layout of another backend. The stencil
    # can run on them, slowly; with "copy" it runs on temporaries in its own layout.
    inp = dl.from_array(start, backend="gt:cpu_ifirst", dims="IJK", halo=HALO)
    out = dl.zeros_like(inp)
    dl_gt4py.wrap(plain, on_mismatch="copy")(inp, out, weight=0.1, domain=DOMAIN)
    assert np.array_equal(out.to_numpy(), expected)
    print(f"{'dlfield.Tensor, copied':<26} layout {out.layout} at {out.ptr:#x}; the stencil had copies in (0, 1, 2)")


def report(what: str, array: int, stencil: int) -> None:
    """Print the address of the caller's memory and the address that the stencil gets."""
    assert array == stencil
    print(f"{what:<26} memory at {array:#x}, the stencil gets {stencil:#x}")


if __name__ == "__main__":
    main()
