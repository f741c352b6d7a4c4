"""PyTorch on the test double of the CUDA runtime: what the tests of PyTorch rely on."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from driver import IS_FAKE, Driver

pytestmark = pytest.mark.skipif(not IS_FAKE, reason="about the double")

SIZE = 1000
RAMP = list(map(float, range(SIZE)))


def ramp(torch: Any, device: str = "cuda") -> Any:
    return torch.arange(float(SIZE)).to(device)


@pytest.mark.two_devices
def test_devices(driver: Driver, torch: Any) -> None:
    assert torch.cuda.device_count() == driver.device_count == 2
    for device in range(2):
        found = torch.cuda.get_device_properties(device)
        assert (found.name, found.major, found.minor) == (f"dlfield fake GPU {device}", 9, 0)
        assert (found.multi_processor_count, found.warp_size, found.pci_bus_id) == (132, 32, device + 1)
        assert found.total_memory == driver.memory_info(device)[1] == torch.cuda.mem_get_info(device)[1]
        assert str(found.uuid).endswith(f"{device:02x}")
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.empty(3, device="cuda:2")


@pytest.mark.two_devices
def test_copies_there_and_back(torch: Any) -> None:
    for device in ("cuda:0", "cuda:1"):
        tensor = ramp(torch, device)
        assert (str(tensor.device), tensor.cpu().tolist()) == (device, RAMP)
        for copied in (tensor.clone(), tensor.to("cuda:0"), tensor.to("cuda:1")):
            assert copied.cpu().tolist() == RAMP
    assert torch.cuda.current_device() == 0


@pytest.mark.two_devices
def test_threads_without_a_context(torch: Any) -> None:
    """The runtime makes the context of the thread's device current."""

    def work() -> tuple[Any, str]:
        found = ramp(torch).cpu().tolist()
        torch.cuda.set_device(1)
        return found, str(torch.empty(1, device="cuda").device)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(work).result() == (RAMP, "cuda:1")
    assert torch.cuda.current_device() == 0


def test_streams_and_events(torch: Any) -> None:
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    assert torch.cuda.current_stream().cuda_stream == 0
    source, target = ramp(torch), torch.empty(SIZE, device="cuda")
    one, other = torch.cuda.Stream(), torch.cuda.Stream(priority=-1)
    assert one.cuda_stream != other.cuda_stream
    torch.cuda.synchronize()
    with torch.cuda.stream(one):
        assert torch.cuda.current_stream() == one
        target.copy_(source)
        done = torch.cuda.Event(enable_timing=True)
        done.record()
    other.wait_event(done)
    with torch.cuda.stream(other):
        copied = target.clone()
        later = torch.cuda.Event(enable_timing=True)
        later.record()
    later.synchronize()
    assert done.query()
    assert later.query()
    assert done.elapsed_time(later) >= 0
    assert copied.cpu().tolist() == RAMP


def test_the_allocator_waits_for_recorded_streams(torch: Any) -> None:
    """PyTorch's allocator reuses a block at once, but only after each recorded stream has done its work."""
    tensor = torch.empty(SIZE, device="cuda")
    address = tensor.data_ptr()
    del tensor
    assert torch.empty(SIZE, device="cuda").data_ptr() == address
    source, zeros, other = ramp(torch), torch.zeros(SIZE).to("cuda"), torch.cuda.Stream()
    target = torch.empty(SIZE, device="cuda")
    torch.cuda.synchronize()
    tensor = source.clone()
    other.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(other):
        target.copy_(tensor)
    tensor.record_stream(other)
    address = tensor.data_ptr()
    del tensor
    again = zeros.clone()
    assert again.data_ptr() != address
    other.synchronize()
    assert target.cpu().tolist() == RAMP


@pytest.mark.parametrize(
    "work",
    [
        lambda tensor: tensor.fill_(1),
        lambda tensor: tensor + 1,
        lambda tensor: tensor.sort(),
        lambda tensor: tensor[::2].contiguous(),
        repr,
    ],
    ids=["fill", "add", "sort", "contiguous", "repr"],
)
def test_kernels_fail_with_an_error(torch: Any, work: Callable[[Any], Any]) -> None:
    tensor = ramp(torch)
    with pytest.raises(RuntimeError, match="invalid device function"):
        work(tensor)
    # The error does not stay.
    assert tensor.cpu().tolist() == RAMP


@pytest.mark.parametrize("name", ["CUBLAS", "cuFFT"])
def test_other_libraries_of_cuda_load_and_fail(torch: Any, name: str) -> None:
    tensor = ramp(torch)
    with pytest.raises(RuntimeError, match=name):
        torch.fft.fft(tensor) if name == "cuFFT" else tensor @ tensor
    assert tensor.cpu().tolist() == RAMP


def test_driver_errors_reach_pytorch(driver: Driver, torch: Any) -> None:
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 40, device="cuda")
    tensor = ramp(torch)
    driver.fail("cuMemcpyAsync", 700)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        tensor.cpu()
    assert tensor.cpu().tolist() == RAMP
