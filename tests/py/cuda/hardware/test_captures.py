"""Graph captures, and replays with other inputs, in each capture mode.

A driver allows little on a capturing stream; what else is asked of it invalidates the capture, in every mode.
"""

from collections.abc import Callable

import pytest

import capture_programs as program
import library_programs as others
from capture_programs import MODES
from driver import IS_FAKE
from programs import run

PROGRAMS = [
    program.filled_and_copied,
    program.transposed,
    program.allocated,
    program.dropped,
    program.exported_and_imported,
    program.refused,
    program.legacy_stream_is_current,
]
FIRST_USES = ["zeros", "empty", "from_pointer", "memory_info"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("made", PROGRAMS, ids=lambda made: made.__name__)
def test_capture(made: Callable[[str], None], mode: str) -> None:
    run(made, mode)


@pytest.mark.parametrize("kind", ["handle", "object"])
def test_the_captured_stream_goes_before_the_replay(kind: str) -> None:
    run(program.stream_goes_before_the_replay, kind)


@pytest.mark.parametrize("name", FIRST_USES)
@pytest.mark.parametrize("mode", MODES)
def test_first_use_of_a_device(mode: str, name: str) -> None:
    run(program.first_use, mode, name, warm=False)


# Graphs captured by other libraries, and their arrays as the first use of a device.
of_a_gpu = pytest.mark.skipif(IS_FAKE, reason="kernels of other libraries run on a GPU")
NEEDED = {others.by_cupy: "cupy", others.by_pytorch: "torch", others.by_cuda_core: "cuda.core"}


@of_a_gpu
@pytest.mark.parametrize("captured", NEEDED, ids=NEEDED.values())
def test_capture_by_others(captured: Callable[[], None]) -> None:
    pytest.importorskip(NEEDED[captured])
    run(captured)


@of_a_gpu
@pytest.mark.parametrize("library", ["cupy", "torch", "jax"])
def test_first_use_by_others(library: str) -> None:
    pytest.importorskip(library)
    run(others.first_used_by, library, warm=False)
