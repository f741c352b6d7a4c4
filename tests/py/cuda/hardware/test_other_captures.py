"""Graphs captured by other libraries, and their arrays as the first use of a device. Their kernels need a GPU."""

from collections.abc import Callable

import pytest

import library_programs as program
from driver import IS_FAKE
from programs import run

pytestmark = pytest.mark.skipif(IS_FAKE, reason="kernels of other libraries run on a GPU")
NEEDED = {program.by_cupy: "cupy", program.by_pytorch: "torch", program.by_cuda_core: "cuda.core"}


@pytest.mark.parametrize("captured", NEEDED, ids=NEEDED.values())
def test_capture(captured: Callable[[], None]) -> None:
    pytest.importorskip(NEEDED[captured])
    run(captured)


@pytest.mark.parametrize("library", ["cupy", "torch", "jax"])
def test_first_use(library: str) -> None:
    pytest.importorskip(library)
    run(program.first_used_by, library, warm=False)
