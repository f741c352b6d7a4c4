"""The example extension: `cudarc` slices become tensors, device arrays are arguments, and memory comes back."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dlfield as dl
from childproc import run_python
from driver import Driver
from leak_checks import grown
from round_trips import TRIPS, repeated

rx = pytest.importorskip("rust_extension")


def on_device(numbers: list[float]) -> dl.Tensor:
    """Run in a thread of its own, because `cudarc` leaves its context current."""
    with ThreadPoolExecutor(1) as pool:
        made: dl.Tensor = pool.submit(rx.on_device, np.array(numbers)).result()
    return made


def test_a_slice_becomes_a_tensor() -> None:
    tensor = on_device([1.0, 2.0, 3.0])
    assert isinstance(tensor, dl.Tensor)
    assert (str(tensor.device), tensor.shape, tensor.strides) == ("cuda:0", (3,), (8,))
    np.testing.assert_array_equal(tensor.to_device("cpu").to_numpy(), [1.0, 2.0, 3.0])


def test_its_memory_is_freed_after_the_work_of_our_streams(driver: Driver) -> None:
    with driver.stream() as stream, dl.cuda.stream(stream, 0):
        tensor = on_device([1.0, 2.0, 3.0])
        tensor[...] = 4.0
        copy = tensor.copy()
        del tensor
        np.testing.assert_array_equal(copy.to_device("cpu").to_numpy(), [4.0, 4.0, 4.0])
        # Freed before the stream is destroyed.
        del copy


def test_a_returned_tensor_comes_after_the_work_of_all_its_streams(driver: Driver) -> None:
    shared = rx.kinds.Shared("cuda:0")
    with driver.stream() as other, driver.stream() as ours:
        for _ in range(2):
            with dl.cuda.stream(other, 0):
                tensor = shared.given()
                tensor[...] = 6.0
            # Rust knows no work of Python on its memory, which is done when Python gives it back.
            del tensor
            with dl.cuda.stream(ours, 0):
                tensor = shared.given()
                driver.fill(tensor.ptr, 7, 64, ours)
                assert driver.read(tensor.ptr, 64, ours) == b"\7" * 64
            driver.synchronize(ours)
            del tensor
        del shared


def test_an_argument_that_is_kept_comes_after_the_work_of_all_its_streams(driver: Driver) -> None:
    with driver.stream() as ours, driver.stream() as other, driver.stream() as theirs:
        with dl.cuda.stream(ours):
            field = dl.ones(64, device="cuda:0")
        driver.synchronize(ours)
        capsule = field.__dlpack__(max_version=(1, 3), stream=other)
        with dl.cuda.stream(other):
            field[...] = 6.0
        with dl.cuda.stream(theirs):
            kept = rx.kinds_views.kept(field)
            driver.fill(field.ptr, 7, 512, theirs)
            assert driver.read(field.ptr, 512, theirs) == b"\7" * 512
        driver.synchronize(theirs)
        del field, capsule, kept


def test_arrays_on_devices_are_arguments_for_kernels() -> None:
    padded = dl.zeros((3, 5), device="cuda:0", alignment_size=64)
    assert rx.for_kernels(padded) == (padded.ptr, [8, 1])
    with pytest.raises(TypeError, match=r"expected memory on cuda:0, got memory on cpu.*\nwhile processing 'x'"):
        rx.for_kernels(np.zeros((3, 5)))
    with pytest.raises(TypeError, match=r"memory that the host can read, .* got memory on cuda:0"):
        rx.sum(padded)


# Each in a process of its own, because a deadlock holds the GIL. The first calls import the module.
PRELUDE = """
import ctypes
import sys
import threading

import numpy as np

import dlfield as dl
import rust_extension as rx
from dlpack_structs import take
from driver import DRIVER, HOST_FUNCTION, LEGACY
from exchange_api import adopt
from gates import Gate
from tensor_api import create, share

gate = Gate(DRIVER)
rx.kinds.Kept(dl.ones(10, device="cuda:0"))
rx.kinds.readonly()


def made_in(stream):
    with dl.cuda.stream(stream):
        return dl.ones(10, device="cuda:0")
"""
WITHOUT_FIRST_STREAM = {
    "a tensor that comes back": """
with DRIVER.stream() as second, DRIVER.stream() as third, DRIVER.stream() as held:
    with DRIVER.stream() as first:
        field = made_in(first)
        with dl.cuda.stream(second):
            shared = share(field)
        DRIVER.synchronize(first)
    gate.stop(held)
    made = []
    with dl.cuda.stream(third):
        gate.opened_during(lambda: made.append(create(shared)))
    assert made[0].ptr == field.ptr
    del field, made
""",
    "a kept tensor that is viewed": """
for _ in range(8):
    with DRIVER.stream() as second, DRIVER.stream() as third, DRIVER.stream() as held:
        with DRIVER.stream() as first:
            field = made_in(first)
            with dl.cuda.stream(second):
                kept = rx.kinds.Kept(field)
            DRIVER.synchronize(first)
        gate.stop(held)

        def call():
            with dl.cuda.stream(third):
                try:
                    kept.sum()
                except TypeError as error:
                    assert "cuda:0" in str(error), error

        gate.opened_during(call)
        del field, kept
""",
    "a struct that comes back": """
with DRIVER.stream() as third, DRIVER.stream() as held:
    with DRIVER.stream() as first:
        field = made_in(first)
        capsule = field.__dlpack__(max_version=(1, 0), stream=-1)
        DRIVER.synchronize(first)
    address = ctypes.addressof(take(capsule))
    gate.stop(held)
    made = []
    with dl.cuda.stream(third):
        gate.opened_during(lambda: made.append(adopt(address)))
    assert made[0].ptr == field.ptr
    del field, made
""",
}


def test_what_returns_while_its_first_stream_is_gone_does_not_hold_the_gil() -> None:
    """The cases share a process: one that deadlocks ends it, with the traceback of its line."""
    run_python(PRELUDE + "".join(WITHOUT_FIRST_STREAM.values()), timeout=120)


def test_a_return_to_python_does_not_deadlock_with_a_copy() -> None:
    run_python(
        PRELUDE
        + """
shared = rx.kinds.Shared("cuda:0")
begun, allowed, copies = threading.Event(), threading.Event(), []


@HOST_FUNCTION
def work(_):
    begun.set()
    allowed.wait()


DRIVER.launch_host_function(ctypes.cast(work, ctypes.c_void_p), LEGACY)
reader = threading.Thread(target=lambda: copies.append(shared.copied()))
reader.start()
begun.wait()
# From here on no other thread runs unless this one releases the GIL.
sys.setswitchinterval(1000)
allowed.set()
given = shared.given()
reader.join()
assert given.shape == (8,)
assert np.array_equal(copies[0], np.zeros(8))
""",
        timeout=60,
    )


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
