"""The example extension: slices of `cudarc` go to Python, and arrays on devices are its arguments."""

import threading

import numpy as np
import pytest

import dlfield as dl
from driver import Driver

rx = pytest.importorskip("rust_extension")


def on_device(numbers: list[float]) -> dl.Tensor:
    """In a thread of its own: `cudarc` leaves its context current."""
    made: list[dl.Tensor] = []
    thread = threading.Thread(target=lambda: made.append(rx.on_device(np.array(numbers))))
    thread.start()
    thread.join()
    return made.pop()


def test_a_slice_becomes_a_tensor() -> None:
    tensor = on_device([1.0, 2.0, 3.0])
    assert isinstance(tensor, dl.Tensor)
    assert (tensor.device, tensor.shape, tensor.strides) == ("cuda:0", (3,), (8,))
    np.testing.assert_array_equal(tensor.to_device("cpu").to_numpy(), [1.0, 2.0, 3.0])


def test_its_memory_goes_after_the_work_in_our_streams(driver: Driver) -> None:
    with driver.stream() as stream, dl.cuda.stream(stream, 0):
        tensor = on_device([1.0, 2.0, 3.0])
        tensor[...] = 4.0
        copy = tensor.copy()
        del tensor
        np.testing.assert_array_equal(copy.to_device("cpu").to_numpy(), [4.0, 4.0, 4.0])
        # Before the stream.
        del copy


def test_arrays_on_devices_are_arguments_for_kernels() -> None:
    padded = dl.zeros((3, 5), device="cuda:0", alignment_size=64)
    assert rx.for_kernels(padded) == (padded.ptr, [8, 1])
    with pytest.raises(TypeError, match=r"the memory is on cpu, wanted on cuda:0.*\nwhile processing 'x'"):
        rx.for_kernels(np.zeros((3, 5)))
    with pytest.raises(TypeError, match="the memory is on cuda:0; the host can read"):
        rx.sum(padded)
