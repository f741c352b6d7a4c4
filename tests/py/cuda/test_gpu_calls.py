"""How often an exchange on a device calls the driver: not at all, unless streams have to be ordered."""

from collections.abc import Callable
from typing import Any

import pytest

import dlfield as dl
from driver import IS_FAKE, Driver

pytestmark = pytest.mark.skipif(not IS_FAKE, reason="counted by the double")

# The runtime of PyTorch asks for the current device by them, the double of CuPy for an address.
PYTORCHS = ["cuCtxGetCurrent", "cuCtxGetDevice"]
CUPYS = ["cuPointerGetAttribute"]


def calls(driver: Driver, work: Callable[[], Any]) -> list[str]:
    """The calls of the driver by an exchange, and by the release of its result."""
    for _ in range(2):
        # The first one imports modules.
        driver.reset()
        work()
    found: list[str] = driver.report()["latest"]
    return found


@pytest.mark.parametrize("read", [dl.describe, dl.from_dlpack, dl.asarray])
def test_a_tensor_of_pytorch_is_read_without_a_call(driver: Driver, torch: Any, read: Callable[[Any], Any]) -> None:
    tensor = torch.empty((4, 5), device="cuda")
    assert calls(driver, lambda: read(tensor)) == []


@pytest.mark.parametrize("read", [dl.describe, dl.from_dlpack])
def test_a_field_is_read_without_a_call(driver: Driver, read: Callable[[Any], Any]) -> None:
    field = dl.zeros((4, 5), device="cuda")
    driver.wait_for_work()
    assert calls(driver, lambda: read(field)) == []


@pytest.mark.usefixtures("cupy")
def test_pytorch_and_cupy_read_fields_without_a_call_of_ours(driver: Driver, torch: Any) -> None:
    field = dl.zeros((4, 5), device="cuda")
    assert calls(driver, lambda: dl.as_torch(field)) == 2 * PYTORCHS
    assert calls(driver, lambda: torch.from_dlpack(field)) == 2 * PYTORCHS
    assert calls(driver, lambda: dl.as_cupy(field)) == CUPYS


def test_another_stream_is_ordered_by_one_event(driver: Driver, torch: Any) -> None:
    tensor = torch.empty((4, 5), device="cuda")
    with driver.stream() as ours, dl.cuda.stream(ours):
        found = calls(driver, lambda: dl.describe(tensor))
    assert [name for name in found if "Ctx" not in name] == [
        "cuStreamIsCapturing",
        "cuStreamIsCapturing",
        "cuEventCreate",
        "cuEventRecord",
        "cuStreamWaitEvent",
        "cuEventDestroy_v2",
    ]
