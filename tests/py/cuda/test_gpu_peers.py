"""Memory exchanged with the real libraries cuda.core, numba-cuda and TVM FFI, both ways.

Each test runs in a thread of its own, because these libraries leave their context current.
"""

import functools
import gc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from driver import Driver
from stream_producers import NBYTES, SHAPE

# Fields that each library gets.
OPTIONS: list[dict[str, Any]] = [{}, {"alignment_size": 64}, {"backend": "F"}, {"device": "cuda_host"}]
OPTIONS.append({"device": "cuda_managed"})


def in_a_thread(test: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*arguments: Any, **keywords: Any) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(test, *arguments, **keywords).result()
        gc.collect()

    return run


@pytest.fixture(scope="session")
def core() -> Any:
    """The module, after it has created what it keeps for good."""
    module = pytest.importorskip("cuda.core")

    @in_a_thread
    def warm() -> None:
        device = module.Device(0)
        device.set_current()
        stream = device.create_stream()
        device.memory_resource.allocate(NBYTES, stream=stream).close(stream)
        stream.sync()

    warm()
    return module


def free_deferred_numba_memory(module: Any) -> None:
    gc.collect()
    context = module.current_context()
    for pending in (context.deallocations, context.memory_manager.deallocations):
        pending.clear()


@pytest.fixture(scope="session")
def _numba() -> Any:
    module = pytest.importorskip("numba.cuda")

    @in_a_thread
    def warm() -> None:
        array = module.to_device(np.ones(3))
        array.copy_to_host()
        del array
        free_deferred_numba_memory(module)

    warm()
    return module


@pytest.fixture
def numba(_numba: Any) -> Iterator[Any]:
    """The module; its deferred frees are done after the test."""
    yield _numba

    @in_a_thread
    def clear() -> None:
        free_deferred_numba_memory(_numba)

    clear()


@pytest.fixture(scope="session")
def tvm_ffi() -> Any:
    return pytest.importorskip("tvm_ffi")


# cuda.core


def stream_of(core: Any) -> Any:
    device = core.Device(0)
    device.set_current()
    return device.create_stream()


@in_a_thread
def test_streams_of_cuda_core(core: Any, driver: Driver) -> None:
    stream = stream_of(core)
    handle = int(stream.handle)
    with dl.cuda.stream(stream) as current:
        assert (current.handle, current.device) == (handle, 0)
        again = core.Device(0).create_stream(dl.cuda.current_stream())
        assert int(again.handle) == handle, "it takes our streams"
    dl.cuda.synchronize(0, stream)
    field = dl.zeros(64, device="cuda:0", stream=stream)
    driver.fill(field.ptr, 1, 512, handle)
    assert field.to_device("cpu", stream=stream).to_numpy().tobytes() == b"\1" * 512
    field.__dlpack__(stream=stream)
    seen = dl.describe(field, stream=stream)
    del field, seen
    stream.sync()


@in_a_thread
def test_buffers_of_cuda_core(core: Any, driver: Driver) -> None:
    stream = stream_of(core)
    buffer = core.Device(0).memory_resource.allocate(NBYTES, stream=stream)
    driver.fill(int(buffer.handle), 5, NBYTES, int(stream.handle))
    for read in (dl.describe, dl.from_dlpack):
        seen = read(buffer, stream=stream)
        assert (str(seen.device), seen.ptr, seen.nbytes) == ("cuda:0", int(buffer.handle), NBYTES)
        assert driver.read(seen.ptr, NBYTES, int(stream.handle)) == b"\5" * NBYTES
        del seen
    buffer.close(stream)
    stream.sync()


@in_a_thread
def test_views_of_cuda_core(core: Any, driver: Driver) -> None:
    utils = pytest.importorskip("cuda.core.utils")
    with driver.stream() as ours:
        stream = stream_of(core)
        handle = int(stream.handle)
        for options in OPTIONS:
            with dl.cuda.stream(ours):
                field = dl.ones(SHAPE, "float32", **{"device": "cuda:0", **options})
                for make in (utils.StridedMemoryView.from_dlpack, utils.StridedMemoryView.from_cuda_array_interface):
                    view = make(field, stream_ptr=handle)
                    strides = tuple(stride // 4 for stride in field.strides)
                    assert (view.ptr, view.shape, view.device_id) == (field.ptr, SHAPE, 0)
                    assert view.strides in ((strides,) if options else (strides, None))
                    assert (view.readonly, view.is_device_accessible) == (False, True)
                    # Its work comes after ours without a wait on the host.
                    driver.fill(view.ptr, 5, 16, handle)
                    del view
            stream.sync()
            del field


# numba-cuda


@in_a_thread
def test_numba_reads_ours(numba: Any, driver: Driver) -> None:
    with driver.stream() as ours:
        for options in OPTIONS:
            with dl.cuda.stream(ours):
                field = dl.from_array(np.arange(32.0).reshape(SHAPE), **{"device": "cuda:0", **options})
                array = numba.as_cuda_array(field)
            assert (array.shape, array.strides) == (field.shape, field.strides)
            assert array.device_ctypes_pointer.value == field.ptr
            host = array.copy_to_host()
            numba.synchronize()
            assert (host == np.arange(32.0).reshape(SHAPE)).all()
            del array, field


@in_a_thread
def test_numba_writes_ours(numba: Any) -> None:
    field = dl.zeros(SHAPE, device="cuda:0")
    array = numba.as_cuda_array(field)
    array.copy_to_device(np.arange(32.0).reshape(SHAPE))
    assert (np.asarray(field.to_device("cpu")) == np.arange(32.0).reshape(SHAPE)).all()


@in_a_thread
def test_we_read_numbas(numba: Any, driver: Driver) -> None:
    values = np.arange(32.0).reshape(SHAPE)
    stream = numba.stream()
    arrays = [numba.to_device(values, stream=stream), numba.to_device(np.asfortranarray(values), stream=stream)]
    with driver.stream() as ours, dl.cuda.stream(ours):
        for array in arrays:
            for read in (dl.describe, dl.from_dlpack):
                seen = read(array)
                assert (str(seen.device), seen.shape, seen.strides) == ("cuda:0", SHAPE, array.strides)
                assert seen.ptr == array.device_ctypes_pointer.value
            field = dl.from_dlpack(array, dims="KI")
            assert (np.asarray(field.to_device("cpu")) == values).all()
            del seen, field
        view = arrays[0][1:, ::2]
        assert (np.asarray(dl.from_array(view, device="cpu")) == values[1:, ::2]).all()
        del view, array
    stream.synchronize()
    del arrays


@in_a_thread
def test_numba_on_our_stream(numba: Any, driver: Driver) -> None:
    stream = numba.stream()
    handle = stream.handle.value if hasattr(stream.handle, "value") else int(stream.handle)
    field = dl.zeros(SHAPE, device="cuda:0", stream=handle)
    driver.fill(field.ptr, 1, NBYTES, handle)
    assert driver.read(field.ptr, NBYTES, handle) == b"\1" * NBYTES
    del field
    stream.synchronize()


# TVM FFI


@in_a_thread
def test_tvm_ffi(tvm_ffi: Any) -> None:
    values = np.arange(32.0).reshape(SHAPE)
    for device in ("cuda:0", "cuda_host"):
        for alignment in (None, 64):
            field = dl.from_array(values, device=device, alignment_size=alignment)
            expected = field.ptr, field.device, field.strides
            tensor = tvm_ffi.from_dlpack(field)
            # The tensor keeps our memory, and what is read from the tensor keeps it too.
            del field
            assert tuple(tensor.shape) == SHAPE
            seen, back = dl.describe(tensor), dl.from_dlpack(tensor)
            for read in (seen, back):
                assert (read.ptr, read.device, read.strides) == expected
            del tensor, seen, read
            assert (np.asarray(back.to_device("cpu")) == values).all()
            del back
