"""The example extension: `cudarc` slices become tensors, and device arrays are accepted as arguments."""

import threading
from pathlib import Path

import numpy as np
import pytest

import dlfield as dl
from childproc import run_python
from driver import Driver

rx = pytest.importorskip("rust_extension")


def on_device(numbers: list[float]) -> dl.Tensor:
    """Run in a thread of its own, because `cudarc` leaves its context current."""
    made: list[dl.Tensor] = []
    thread = threading.Thread(target=lambda: made.append(rx.on_device(np.array(numbers))))
    thread.start()
    thread.join()
    return made.pop()


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


def test_arrays_on_devices_are_arguments_for_kernels() -> None:
    padded = dl.zeros((3, 5), device="cuda:0", alignment_size=64)
    assert rx.for_kernels(padded) == (padded.ptr, [8, 1])
    with pytest.raises(TypeError, match=r"the memory is on cpu, wanted on cuda:0.*\nwhile processing 'x'"):
        rx.for_kernels(np.zeros((3, 5)))
    with pytest.raises(TypeError, match="the memory is on cuda:0; the host can read"):
        rx.sum(padded)


def test_a_return_to_python_does_not_deadlock_with_a_copy() -> None:
    # In a process of its own, because a deadlock here hangs with the GIL held.
    run_python(
        f"""
        import ctypes
        import sys
        import threading

        sys.path.insert(0, {str(Path(__file__).parent)!r})

        import numpy as np

        import rust_extension as rx
        from driver import DRIVER, HOST_FUNCTION, LEGACY

        shared = rx.kinds.Shared("cuda:0")
        # The first call imports the module.
        rx.kinds.readonly()
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
