"""Imports `driver_fixtures` for the tests here, which never share a process with those about a missing driver."""

import gc
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import cupy_double
from driver import DRIVER, IS_FAKE, Driver
from driver_fixtures import (
    check_driver_use,
    collect_ignore,
    collect_ignore_glob,
    create_per_device_resources,
    driver,
    pytest_configure,
)

__all__ = [
    "check_driver_use",
    "collect_ignore",
    "collect_ignore_glob",
    "create_per_device_resources",
    "driver",
    "pytest_configure",
]


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
