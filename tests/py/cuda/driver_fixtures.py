"""CUDA: the same tests on the double of the driver (`make test-sim`) and on a GPU (`make test-cuda`).

Never beside the other tests: a process has one driver, and those are about having none.
"""

import gc
import importlib.util
import os
from collections.abc import Iterator

import pytest

import dlfield as dl
from driver import DRIVER, IS_FAKE, Driver

collect_ignore_glob = ["test_*.py"] if DRIVER is None else []
# These need the device's libraries, and kernels that the double has not got.
collect_ignore = ["test_gpu_frameworks.py"] if IS_FAKE else []

PEERS = ("cuda.core", "numba.cuda", "tvm_ffi")


def pytest_configure() -> None:
    """Insist on the real libraries in CI."""
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
def kept_for_good() -> None:
    """What dlfield makes once for each device: a stream for allocations while a graph is recorded, its kernels."""
    if DRIVER is None:
        return
    for device in range(DRIVER.device_count):
        with DRIVER.stream(device) as stream:
            with DRIVER.capturing(stream, device), dl.cuda.stream(stream, device):
                dl.empty(1, device=f"cuda:{device}")
            with dl.cuda.stream(stream, device):
                dl.ones(1, device=f"cuda:{device}")


@pytest.fixture(autouse=True, params=["no context", "another context"])
def watched(request: pytest.FixtureRequest, driver: Driver) -> Iterator[None]:
    """Nothing is lost, nothing races, nothing is misused, and the thread's context is what it was.

    Each test runs without a context, and while that of the last device is current.
    """
    if request.param == "another context":
        driver.push(driver.device_count - 1)
    driver.settle()
    driver.reset()
    before, context = driver.report(), driver.context()
    # What is there already is none of the test's: to look through the frameworks takes longer than most tests.
    gc.freeze()
    yield
    gc.collect()
    assert driver.context() == context, "the thread's context was changed"
    driver.settle()
    if request.param == "another context":
        driver.pop()
    if not IS_FAKE:
        return
    after = driver.report()
    marker = request.node.get_closest_marker("misuse")
    expected = set() if marker is None else set(marker.args)
    kept = ["leaks", "live_streams", "live_events", "live_pools", "live_graphs", "live_executables", "captures"]
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}, "something was lost"
    wrong = {name for name in MISUSE if after[name]}
    assert wrong == expected, after["messages"]


MISUSE = [
    "double_frees",
    "bad_frees",
    "use_after_free",
    "out_of_bounds",
    "races",
    "bad_handles",
    "no_context",
    "foreign_context",
    "no_peer_access",
    "lost_with_context",
    "host_memory_gone",
    "calls_in_host_functions",
    "panics",
]
