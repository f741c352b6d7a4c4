"""Host/device pairs for tests, and a check of how many copies are made between host and device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import dlfield as dl
from dlfield import storage
from dlfield.storage import SyncState
from driver import DRIVER, IS_FAKE
from fakes_interfaces import Exposing

CLEAN, HOST, DEVICE = SyncState.SYNC_CLEAN, SyncState.SYNC_HOST_DIRTY, SyncState.SYNC_DEVICE_DIRTY
VALUES = np.arange(12.0).reshape(4, 3)
# The values of an outdated buffer.
OLD = -99


def pair(state: int = CLEAN, values: Any = ((0.0,) * 3,) * 4, **keywords: Any) -> Any:
    """A storage with these values in the up-to-date buffers, and `OLD` in the outdated one."""
    made = storage.storage(np.array(values), device="gpu", **keywords)
    assert isinstance(made, storage.SoftwareManagedGPUStorage)
    made.synchronize()
    if state == HOST:
        device_buffer(made)[...] = OLD
    if state == DEVICE:
        made.to_numpy()[...] = OLD
    made.sync_state.state = state
    return made


def on_gpu(values: Any) -> dl.Tensor:
    return dl.from_array(np.asarray(values), device="cuda:0")


def device_buffer(field: storage.Storage) -> dl.Tensor:
    """The device buffer after `acquire`, as a stencil on the device gets it."""
    entry = field.__gt_data_interface__["gpu"]
    entry.get("acquire", lambda: None)()
    return dl.from_dlpack(Exposing(__cuda_array_interface__=entry, kept=field))


def on_device(field: storage.Storage) -> Any:
    return np.array(device_buffer(field).to_device("cpu"))


def on_host(field: storage.Storage) -> Any:
    """A copy of what the host reads."""
    return field.__array__(copy=True)


def copied() -> tuple[int, int]:
    """How many copies to the device and to the host the test double has counted."""
    assert DRIVER is not None
    DRIVER.wait_for_work()
    found = DRIVER.report()
    return found.get("copies_to_device", 0), found.get("copies_to_host", 0)


@contextmanager
def copies(to_device: int = 0, to_host: int = 0) -> Iterator[None]:
    """Check that the body makes as many copies to the device and to the host; only the test double counts them."""
    before = copied()
    yield
    after = copied()
    assert not IS_FAKE or (after[0] - before[0], after[1] - before[1]) == (to_device, to_host)
