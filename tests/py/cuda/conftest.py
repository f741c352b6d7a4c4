"""CUDA: the same tests on the double of the driver (`make test-sim`) and on a GPU (`make test-cuda`).

Never beside the other tests: a process has one driver, and those are about having none.
"""

import gc
import os
from collections.abc import Iterator

import pytest

import dlfield as dl
from driver import DRIVER, IS_FAKE, Driver

if not (IS_FAKE or os.environ.get("DLFIELD_REAL_CUDA")):
    collect_ignore_glob = ["test_*.py"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "misuse(*counters): what the double is going to count in this test")


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
