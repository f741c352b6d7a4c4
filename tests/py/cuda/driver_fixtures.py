"""CUDA: the same tests run on the test double of the driver (`make test-sim`) and on a GPU (`make test-cuda`).

They never share a process with the other tests: a process loads one driver, and those test its absence.
"""

import gc
import importlib.util
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import cupy_double
import dlfield as dl
from driver import DRIVER, IS_FAKE, MISUSE, Driver

collect_ignore_glob = ["test_*.py", "hardware/*"] if DRIVER is None else []
# These need the frameworks' GPU builds and kernels, which the test double does not have.
collect_ignore = ["test_gpu_frameworks.py"] if IS_FAKE else []

PEERS = ("cuda.core", "numba.cuda", "tvm_ffi")


def pytest_configure() -> None:
    """Fail in CI if a real library is missing."""
    missing = [name for name in PEERS if not is_installed(name)]
    if missing and IS_FAKE and os.environ.get("CI"):
        raise pytest.UsageError(f"CI skips no test of an exchange, but these are not installed: {missing}")


def is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@pytest.fixture
def driver() -> Driver:
    assert DRIVER is not None
    return DRIVER


@pytest.fixture(scope="session", autouse=True)
def create_per_device_resources() -> None:
    """Create what dlfield keeps per device, and its copy in the example extension."""
    if DRIVER is None:
        return
    extension = importlib.import_module("rust_extension") if is_installed("rust_extension") else None
    for device in range(DRIVER.device_count):
        dl.cuda.init(device)
        if extension is not None:
            extension.kinds.Shared(f"cuda:{device}")


@pytest.fixture(autouse=True, params=[pytest.param("no context", marks=pytest.mark.exhaustive), "another context"])
def check_driver_use(request: pytest.FixtureRequest, driver: Driver) -> Iterator[None]:
    """Fail a test that leaks, races, misuses the driver or changes the thread's context.

    Each test runs with the last device's context as the current one; `make check` repeats it with none.
    """
    if driver.device_count < 2 and request.node.get_closest_marker("two_devices") is not None:
        pytest.skip("needs a second GPU")
    if request.param == "another context":
        driver.push(driver.device_count - 1)
    driver.wait_for_work()
    driver.reset()
    before, context = driver.report(), driver.context()
    # Exclude older objects: to search those of the frameworks takes longer than most tests.
    gc.freeze()
    yield
    gc.collect()
    assert driver.context() == context, "the thread's context was changed"
    driver.wait_for_work()
    if request.param == "another context":
        driver.pop()
    if not IS_FAKE:
        return
    after = driver.report()
    marker = request.node.get_closest_marker("misuse")
    expected = set() if marker is None else set(marker.args)
    kept = [
        "leaks",
        "live_opened",
        "live_streams",
        "live_events",
        "live_pools",
        "live_graphs",
        "live_executables",
        "captures",
    ]
    lost = {name: after[name] - before[name] for name in kept if after[name] != before[name]}
    assert not lost, f"something was lost: {lost}"
    wrong = {name for name in MISUSE if after[name]}
    assert wrong == expected, after["messages"]


@pytest.fixture(scope="session")
def torch_with_its_streams() -> Any:
    """PyTorch, after it has created the streams and events that it never destroys."""
    torch = pytest.importorskip("torch")
    if not torch.backends.cuda.is_built():
        pytest.skip("PyTorch was built without CUDA")
    assert DRIVER is not None
    with DRIVER.on(0):
        for device in range(DRIVER.device_count):
            with torch.cuda.device(device):
                tensor = torch.empty(1, device="cuda")
                for priority in (0, -1):
                    tensor.record_stream(torch.cuda.Stream(priority=priority))
                copies = [tensor.to(f"cuda:{other}") for other in range(DRIVER.device_count)]
                torch.cuda.synchronize()
                del tensor, copies
        torch.cuda.empty_cache()
    return torch


@pytest.fixture
def torch(torch_with_its_streams: Any, driver: Driver) -> Iterator[Any]:
    """PyTorch in the first device's context, which it would leave current; its cache is emptied afterwards."""
    with driver.on(0):
        yield torch_with_its_streams
        torch_with_its_streams.cuda.empty_cache()


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch, driver: Driver, fresh_answers: None) -> Iterator[Any]:  # noqa: ARG001
    """CuPy in the first device's context, which it would leave current; `cupy_double` on the test double."""
    if IS_FAKE:
        monkeypatch.setitem(sys.modules, "cupy", cupy_double)
        yield cupy_double
        return
    module = pytest.importorskip("cupy")
    with driver.on(0):
        yield module
        gc.collect()
        module.get_default_memory_pool().free_all_blocks()
