"""Allocation of device, pinned and managed memory, in stream order."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dlfield as dl
from driver import IS_FAKE, PER_THREAD, Driver

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
    assert (field.device, field.strides, field.alignment() >= 256) == (device, (64, 4), True)
    block = field[1:, 2].block
    assert (block.ptr, block.shape, block.device) == (field.ptr, (5 * 16,), device)
    if name in VALUES:
        held = np.frombuffer(driver.read(block.ptr, block.nbytes), "f4").reshape(5, 16)[:, :7]
        assert (held == VALUES[name]).all()


@pytest.mark.parametrize("name", ["zeros", "ones", "full"])
def test_contents_in_the_order_of_the_stream(driver: Driver, name: str) -> None:
    with driver.stream() as stream:
        field = MAKERS[name]((64,), device="cuda:0", stream=stream)
        held = np.frombuffer(driver.read(field.ptr, 512, stream), "f8")
        assert (held == VALUES[name]).all()
        driver.fill(field.ptr, 1, 512, stream)
        # Freed in the order of that stream, whatever the current one is.
        del field
        with dl.cuda.stream(stream):
            again = MAKERS[name]((64,), device="cuda:0")
        held = np.frombuffer(driver.read(again.ptr, 512, stream), "f8")
        assert (held == VALUES[name]).all()
        del again


@pytest.mark.misuse("races")
@double_only
def test_the_double_sees_a_missing_wait(driver: Driver) -> None:
    """The test double reports the races that the other tests rule out."""
    with driver.stream() as one, driver.stream() as other:
        field = dl.zeros(64, device="cuda:0", stream=one)
        driver.fill(field.ptr, 1, 512, other)
        driver.synchronize(other)
        del field


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
    assert dl.cuda.memory_info()[0] == free
    assert maker((3,), device=device).shape == (3,)


@double_only
@pytest.mark.parametrize("device", DEVICES)
def test_a_failed_allocation_leaks_nothing(driver: Driver, device: str) -> None:
    driver.fail_allocations(0)
    with pytest.raises(MemoryError, match=device):
        dl.zeros(3, device=device)
    driver.fail_allocations(-1)
    assert dl.zeros(3, device=device).shape == (3,)


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
