"""CUDA memory that goes to an extension, or into a capsule, and comes back: no chain of owners, all streams known."""

from collections.abc import Callable

import pytest

import dlfield as dl
from driver import Driver
from leak_checks import grown
from round_trips import TRIPS, repeated

ROUNDS = 500


def going_to_and_fro() -> dict[str, Callable[[], object]]:
    devices = ("cuda:0", "cuda_host", "cuda_managed")
    return {
        f"{name}, {device}": repeated(trip, dl.zeros((4, 5), device=device))
        for device in devices
        for name, trip in TRIPS.items()
    }


def test_memory_that_comes_back_often_takes_no_more_of_it() -> None:
    for name, growth in grown(__name__, "going_to_and_fro", ROUNDS).items():
        assert growth.heap < 16 * ROUNDS, (name, growth)


@pytest.mark.parametrize("name", TRIPS)
def test_a_kept_tensor_knows_the_alignment(name: str) -> None:
    field = dl.zeros((4, 5), device="cuda:0", dims=("K", "x"), alignment_size=64)
    back = TRIPS[name](field)
    assert (back.ptr, back.strides, back.device) == (field.ptr, field.strides, field.device)
    if "argument" in name:
        assert (back.dims, back.alignment_size) == (field.dims, 64)


@pytest.mark.parametrize("name", TRIPS)
def test_work_on_other_streams_is_done_before_the_memory_is_freed(driver: Driver, name: str) -> None:
    """Allocated, passed and written in different streams."""
    with driver.stream() as first, driver.stream() as second:
        with dl.cuda.stream(first, 0):
            field = dl.zeros((64,), device="cuda:0")
        with dl.cuda.stream(second, 0):
            field = TRIPS[name](field)
            field[...] = 4.0
            copy = field.copy()
            del field
        # Takes the memory again if it is freed.
        with dl.cuda.stream(first, 0):
            others = [dl.full((64,), 5.0, device="cuda:0") for _ in range(4)]
        assert copy.to_device("cpu").to_numpy().tolist() == [4.0] * 64
        del copy, others
