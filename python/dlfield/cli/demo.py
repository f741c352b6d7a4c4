"""Demonstration of `make demo`: a compiled GT4Py stencil, NumPy, PyTorch and JAX on memory that dlfield allocated.

The stencil is the fourth-order horizontal diffusion of weather models: it removes small-scale noise and keeps large
waves.
"""

import importlib
import importlib.util
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import dlfield as dl

_BACKEND = "gt:cpu_kfirst"
_DOMAIN = (256, 256, 20)
_HALO = ((2, 2), (2, 2), (0, 0))
_STEPS = 300
# An explicit step of the fourth-order operator is stable below 1/32.
_COEFFICIENT = 1.0 / 64.0
# Stencil and reference round differently (order of additions, fused multiply-add), never by more than this.
_TOLERANCE = 1e-12

Array = npt.NDArray[np.float64]


def run(output: Path) -> int:
    """Run the demonstration, save the picture to `output` and return the exit status.

    The status is 1 if GT4Py is missing or if the stencil and the NumPy reference differ. Other missing packages (JAX,
    PyTorch, matplotlib, tqdm) are skipped, with a line that says how to install them.
    """
    if importlib.util.find_spec("gt4py") is None:
        print('The demo runs a GT4Py stencil and GT4Py is not installed. Fix: pip install "gt4py>=1.1.12,<1.2"')
        return 1

    print("1. A field for the stencil's backend, with its halo\n")
    shape = tuple(size + lower + upper for size, (lower, upper) in zip(_DOMAIN, _HALO, strict=True))
    field = dl.from_array(_initial(shape), backend=_BACKEND, dims="IJK", halo=_HALO)
    print(f"   {field.shape} of {field.dtype}, dims {field.dims}, layout {field.layout}, halo {field.halo}\n")

    print("2. One memory, seen by\n")
    for name, pointer in _pointers(field):
        print(f"   {name:<10} {pointer}")

    print(f"\n3. Horizontal diffusion, GT4Py backend {_BACKEND}\n")
    initial = field.copy()
    print("   compiling the stencil, up to half a minute the first time", flush=True)
    stencil = _compile()
    started = time.perf_counter()
    result = _diffuse(stencil, field)
    elapsed = time.perf_counter() - started
    print(f"   {_STEPS} steps in {elapsed:.2f} s, {elapsed / _STEPS * 1e3:.2f} ms each")

    expected = _reference(initial.to_numpy())
    difference = float(np.max(np.abs(result.to_numpy() - expected)))
    correct = difference <= _TOLERANCE
    print(f"   largest difference from NumPy: {difference:.1e} ({'correct' if correct else 'WRONG'})")

    print("\n4. Before and after\n")
    print(f"   {_picture(initial.domain_view, result.domain_view, output)}")
    if not correct:
        print(f"\nThe stencil differs from the NumPy reference by more than {_TOLERANCE:.0e}.")
        return 1
    return 0


def _initial(shape: tuple[int, ...]) -> Array:
    """Return waves that the diffusion keeps, plus noise that it removes."""
    i, j, k = np.indices(shape, dtype=np.float64, sparse=True)
    waves = np.sin(4.0 * np.pi * i / shape[0]) * np.cos(2.0 * np.pi * j / shape[1]) + 0.1 * k / shape[2]
    noise = np.random.default_rng(0).normal(scale=0.4, size=shape)
    return np.asarray(waves + noise)


def _pointers(field: dl.Tensor) -> Iterable[tuple[str, str]]:
    """Yield the name of each library with the address that it sees, or with what to install."""
    yield "dlfield", f"{field.ptr:#x}"
    yield "NumPy", f"{np.from_dlpack(field).__array_interface__['data'][0]:#x}"
    if importlib.util.find_spec("torch") is None:
        yield "PyTorch", "not installed; with it: make demo WITH=torch, or pip install torch"
    else:
        yield "PyTorch", f"{dl.as_torch(field, copy=False).data_ptr():#x}"
    if importlib.util.find_spec("jax") is None:
        yield "JAX", "not installed; with it: pip install jax"
    else:
        yield "JAX", f"{dl.as_jax(field, copy=False).unsafe_buffer_pointer():#x}"


def _compile() -> Callable[..., None]:
    """Return the stencil compiled for `_BACKEND`; GT4Py caches the result in `.gt_cache`."""
    from gt4py.cartesian import gtscript
    from gt4py.cartesian.gtscript import PARALLEL, Field, computation, interval

    from dlfield.gt4py import prepare_build

    def diffusion(inp: Field[np.float64], out: Field[np.float64], coefficient: np.float64) -> None:
        with computation(PARALLEL), interval(...):
            lap = inp[1, 0, 0] + inp[-1, 0, 0] + inp[0, 1, 0] + inp[0, -1, 0] - 4.0 * inp
            out = inp - coefficient * (lap[1, 0, 0] + lap[-1, 0, 0] + lap[0, 1, 0] + lap[0, -1, 0] - 4.0 * lap)  # noqa: F841

    prepare_build()
    compiled: Callable[..., None] = gtscript.stencil(backend=_BACKEND, definition=diffusion)
    return compiled


def _diffuse(stencil: Callable[..., None], field: dl.Tensor) -> dl.Tensor:
    """Run the steps, alternating between two fields; the stencil accepts tensors directly."""
    inp, out = field, field.copy()
    for _ in _progress(range(_STEPS)):
        stencil(inp, out, _COEFFICIENT, domain=_DOMAIN)
        inp, out = out, inp
    return inp


def _progress(steps: range) -> Iterable[int]:
    if importlib.util.find_spec("tqdm") is None:
        print("   no progress bar; with it: pip install tqdm")
        return steps
    bar: Iterable[int] = importlib.import_module("tqdm").tqdm(steps, desc="   diffusion", unit="step", ncols=80)
    return bar


def _reference(initial: Array) -> Array:
    """Return the result of the same steps in NumPy. As in the stencil, the halo does not change."""
    field = initial.copy()
    for _ in range(_STEPS):
        laplacian = _laplacian(field)
        field[2:-2, 2:-2] -= _COEFFICIENT * _laplacian(laplacian)
    return field


def _laplacian(field: Array) -> Array:
    result: Array = field[2:, 1:-1] + field[:-2, 1:-1] + field[1:-1, 2:] + field[1:-1, :-2] - 4.0 * field[1:-1, 1:-1]
    return result


def _picture(before: dl.Tensor, after: dl.Tensor, output: Path) -> str:
    """Save the lowest level before and after to `output` and return the line to print."""
    if importlib.util.find_spec("matplotlib") is None:
        return "no picture; with it: pip install matplotlib"
    matplotlib: Any = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 4), layout="constrained", sharey=True)
    titles = ("before", f"after {_STEPS} steps of horizontal diffusion")
    for axis, values, title in zip(axes, (before, after), titles, strict=True):
        image = axis.imshow(values[:, :, 0].to_numpy().T, origin="lower", cmap="RdBu_r", vmin=-1.5, vmax=1.5)
        axis.set(title=title, xlabel="I")
    axes[0].set_ylabel("J")
    figure.colorbar(image, ax=axes, shrink=0.9)
    figure.savefig(output, dpi=120)
    pyplot.close(figure)
    return f"picture saved to {output.resolve()}"
