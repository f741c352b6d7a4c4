"""Fields in device, pinned and managed memory: allocated in stream order, or in memory that other code allocated."""

import gc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from driver import IS_FAKE, PER_THREAD, Driver
from fakes_interfaces import Exposing

DEVICES = ("cuda:0", "cuda_host", "cuda_managed")
MAKERS: dict[str, Callable[..., dl.Tensor]] = {
    "empty": dl.empty,
    "zeros": dl.zeros,
    "ones": dl.ones,
    "full": lambda shape, *rest, **keywords: dl.full(shape, 2.5, *rest, **keywords),
}
VALUES = {"zeros": 0.0, "ones": 1.0, "full": 2.5}
double_only = pytest.mark.skipif(not IS_FAKE, reason="only the double fails on demand")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", MAKERS)
def test_contents(driver: Driver, name: str, device: str) -> None:
    field = MAKERS[name]((5, 7), "float32", alignment_size=64, device=device)
    assert (str(field.device), field.strides, field.alignment() >= 256) == (device, (64, 4), True)
    block = field[1:, 2].block
    assert (block.ptr, block.shape, str(block.device)) == (field.ptr, (5 * 16,), device)
    if name in VALUES:
        held = np.frombuffer(driver.read(block.ptr, block.nbytes), "f4").reshape(5, 16)[:, :7]
        assert (held == VALUES[name]).all()


@pytest.mark.parametrize("name", ["zeros", "ones", "full"])
def test_contents_in_the_order_of_the_stream(driver: Driver, name: str) -> None:
    with driver.stream() as stream:
        with dl.cuda.stream(stream):
            field = MAKERS[name]((64,), device="cuda:0")
            held = np.frombuffer(driver.read(field.ptr, 512, stream), "f8")
            assert (held == VALUES[name]).all()
            driver.fill(field.ptr, 1, 512, stream)
            # Freed after the work of that stream.
            del field
            again = MAKERS[name]((64,), device="cuda:0")
        held = np.frombuffer(driver.read(again.ptr, 512, stream), "f8")
        assert (held == VALUES[name]).all()
        del again


@pytest.mark.parametrize(
    ("backend", "layout", "alignment"),
    [
        ("gt:gpu", (2, 1, 0), 256),
        ("gtcuda", (2, 1, 0), 256),
        ("dace:gpu", (2, 1, 0), 8),
        ("dace:gpu_IJK", (0, 1, 2), 8),
    ],
)
def test_presets(backend: str, layout: tuple[int, ...], alignment: int) -> None:
    field = dl.zeros((5, 6, 7), backend=backend, halo=(1, 1, 0))
    assert (str(field.device), field.layout, field.alignment_size) == ("cuda:0", layout, alignment)
    assert field.domain_view.ptr % alignment == 0
    assert dl.zeros((5, 6, 7), backend=backend, device="cuda_managed").device == "cuda_managed"
    assert dl.zeros((5, 6, 7), backend="cupy").device == "cuda:0"
    assert dl.zeros((5, 6, 7), backend="cupy").is_contiguous()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,)])
def test_small_shapes(device: str, shape: tuple[int, ...]) -> None:
    for maker in MAKERS.values():
        field = maker(shape, device=device)
        assert (field.shape, str(field.device)) == (shape, device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("maker", MAKERS.values())
def test_more_memory_than_there_is(maker: Callable[..., dl.Tensor], device: str) -> None:
    free = dl.cuda.memory_info()[0]
    with pytest.raises(MemoryError, match=f"cannot be allocated on {device}"):
        maker((1 << 46,), "float64", device=device)
    # A GPU has other users, and its driver takes memory for managed pages when it likes.
    assert not IS_FAKE or dl.cuda.memory_info()[0] == free
    assert maker((3,), device=device).shape == (3,)


@double_only
@pytest.mark.parametrize("device", DEVICES)
def test_a_failed_allocation_leaks_nothing(driver: Driver, device: str) -> None:
    field = dl.zeros(3, device=device)
    makers: list[Callable[[], dl.Tensor]] = [lambda: dl.zeros(3, device=device), field.copy]
    for make in makers:
        driver.fail_allocations(0)
        with pytest.raises(MemoryError, match=device):
            make()
        driver.fail_allocations(-1)
        assert make().shape == (3,)


@double_only
@pytest.mark.parametrize(
    ("function", "device"),
    [
        ("cuMemAllocAsync", "cuda:0"),
        ("cuMemHostAlloc", "cuda_host"),
        ("cuMemAllocManaged", "cuda_managed"),
        ("cuMemsetD8Async", "cuda:0"),
        ("cuMemsetD8Async", "cuda_managed"),
        ("cuStreamSynchronize", "cuda_managed"),
        ("cuStreamIsCapturing", "cuda:0"),
        ("cuCtxPushCurrent", "cuda:0"),
    ],
)
def test_functions_that_fail(driver: Driver, function: str, device: str) -> None:
    if function == "cuMemAllocAsync" and not driver.has_pools:
        function = "cuMemAlloc"
    driver.fail(function, 999)
    with pytest.raises(dl.DeviceError, match=rf"{function} on {device} failed: CUDA_ERROR_UNKNOWN.*\(999\)"):
        dl.zeros(300, device=device)
    assert dl.zeros(3, device=device).shape == (3,)


@double_only
@pytest.mark.parametrize("function", ["cuMemFreeAsync", "cuEventCreate", "cuEventRecord", "cuStreamWaitEvent"])
def test_a_failed_free_fails_no_other_call(driver: Driver, function: str) -> None:
    with driver.stream() as stream:
        field = dl.zeros(3, device="cuda:0")
        field.__dlpack__(stream=stream)
        driver.fail(function, 999)
        del field
        assert dl.zeros(3, device="cuda:0").shape == (3,)


def test_freed_by_another_thread() -> None:
    fields = [dl.zeros(64, device=device) for device in DEVICES]
    with ThreadPoolExecutor(1) as pool:
        pool.submit(fields.clear).result()
    assert fields == []


@pytest.mark.parametrize("device", DEVICES)
def test_graph_capture(driver: Driver, device: str) -> None:
    with driver.stream() as stream:
        with driver.capturing(stream), dl.cuda.stream(stream):
            field = dl.empty(64, device=device)
            zeros = dl.zeros(64, device=device)
        assert driver.read(zeros.ptr, 512) == bytes(512)
        del field, zeros


def test_per_thread_stream(driver: Driver) -> None:
    field = dl.ones(64, device="cuda:0", stream=PER_THREAD)
    assert np.frombuffer(driver.read(field.ptr, 512, PER_THREAD), "f8").tolist() == [1.0] * 64


# Memory that other code has allocated: by its address, and as room for new fields.


@pytest.mark.parametrize("device", DEVICES)
def test_memory_by_its_address(driver: Driver, device: str) -> None:
    block = dl.full((100,), 3.0, device=device)
    owner = Exposing(kept=block)
    seen = weakref.ref(owner)
    field = dl.from_pointer(block.ptr + 80, (5, 4), "float64", device=device, dims="JI", owner=owner)
    del block, owner
    assert (str(field.device), field.dims, field.strides) == (device, ("J", "I"), (32, 8))
    assert field.to_device("cpu").tolist() == [[3.0] * 4] * 5
    field[...] = 5.0
    assert (np.frombuffer(driver.read(field.ptr, 160), "f8") == 5.0).all()
    view = field[1:]
    del field
    gc.collect()
    assert seen() is not None
    del view
    gc.collect()
    assert seen() is None


def test_the_driver_checks_the_address() -> None:
    host = dl.zeros((10,))
    with pytest.raises(dl.DeviceError, match="expected memory that CUDA allocated"):
        dl.from_pointer(host.ptr, (10,), "float64", device="cuda:0", owner=host)


def test_the_work_is_done_before_the_owner_frees_the_memory(driver: Driver) -> None:
    class Allocated:
        def __init__(self) -> None:
            self.address = driver.allocate(512)

        def __del__(self) -> None:
            driver.free(self.address)

    with driver.stream() as stream, dl.cuda.stream(stream):
        memory = Allocated()
        field = dl.from_pointer(memory.address, (64,), "float64", device="cuda:0", owner=memory)
        del memory
        field[...] = 1.0
        del field
        gc.collect()


@pytest.mark.parametrize("device", DEVICES)
def test_fields_in_memory_of_a_device(driver: Driver, device: str) -> None:
    block = dl.full((100,), 7.0, device=device)
    for create, value in ((dl.zeros, 0.0), (dl.ones, 1.0)):
        field = create((3, 5), alignment_size=64, device=device, buffer=block)
        assert (field.ptr, field.strides, str(field.device)) == (block.ptr, (64, 8), device)
        assert field.to_device("cpu").tolist() == [[value] * 5] * 3
        assert value or driver.read(field.ptr, 192) == bytes(192), "the padding of zeros"
    copied = dl.from_array(np.arange(15.0).reshape(3, 5), device=device, buffer=block)
    assert copied.to_device("cpu").tolist() == np.arange(15.0).reshape(3, 5).tolist()
    # By another cast than that of the device, and one of NumPy alone.
    cast = dl.from_array(dl.from_array(np.arange(4), device=device), "float32", device=device, buffer=block)
    assert cast.to_device("cpu").tolist() == [0.0, 1.0, 2.0, 3.0]
    assert block[90:].to_device("cpu").tolist() == [7.0] * 10
    with pytest.raises(dl.LayoutError, match=r"buffer: expected 808 bytes .* got 800"):
        dl.zeros((101,), device=device, buffer=block)
    with pytest.raises(
        dl.DeviceError, match=f"buffer: expected memory on cpu, as the field is, got {device}; pass device='{device}'"
    ):
        dl.zeros((10,), buffer=block)


def test_streams_are_those_of_the_memory(driver: Driver) -> None:
    """A field in a block of another stream: the block is freed after the work on both."""
    with driver.stream() as one, driver.stream() as other:
        block = dl.zeros((64,), device="cuda:0", stream=one)
        field = dl.ones((3, 5), alignment_size=64, device="cuda:0", buffer=block, stream=other)
        del block
        held = np.frombuffer(driver.read(field.ptr, 40, other), "f8")
        assert (held == 1.0).all()
        del field


def test_saved_fields_of_a_device(tmp_path: Any) -> None:
    field = dl.ones((6, 5, 4), backend="gt:gpu", halo=(1, 1, 0))
    dl.save_field(tmp_path / "field.dlf", field)
    again = dl.open_field(tmp_path / "field.dlf")
    assert (str(again.device), again.strides, again.halo) == ("cpu", field.strides, field.halo)
    assert float(again.sum()) == 120.0
