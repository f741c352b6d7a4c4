"""Helpers for tests of host/device pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

import dlfield as dl
from dlfield import storage
from dlfield.storage import SyncState
from driver import IS_FAKE, Driver
from fakes_interfaces import Exposing

CLEAN, HOST, DEVICE = SyncState.SYNC_CLEAN, SyncState.SYNC_HOST_DIRTY, SyncState.SYNC_DEVICE_DIRTY


def on_gpu(values: Any) -> dl.Tensor:
    return dl.from_array(np.asarray(values), device="cuda:0")


def device_buffer(field: storage.Storage) -> dl.Tensor:
    """The device buffer after `acquire`, as a stencil on the device gets it."""
    entry = field.__gt_data_interface__["gpu"]
    entry["acquire"]()
    return dl.from_dlpack(Exposing(__cuda_array_interface__=entry, kept=field))


def on_device(field: storage.Storage) -> Any:
    return np.array(device_buffer(field).to_device("cpu"))


def on_host(field: storage.Storage) -> Any:
    """A copy of what the host reads."""
    return field.__array__(copy=True)


class Counted:
    """Counts copies to the device and to the host since it was created or last asked."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.before = self.now()

    def now(self) -> tuple[int, int]:
        self.driver.wait_for_work()
        found = self.driver.report()
        return found.get("copies_to_device", 0), found.get("copies_to_host", 0)

    def restart(self) -> None:
        self.before = self.now()

    def are(self, to_device: int, to_host: int) -> bool:
        now = self.now()
        found = now[0] - self.before[0], now[1] - self.before[1]
        self.before = now
        return not IS_FAKE or found == (to_device, to_host)


def pair(state: int = CLEAN, **keywords: Any) -> storage.SoftwareManagedGPUStorage:
    field = storage.zeros((4, 3), device="gpu", **keywords)
    assert isinstance(field, storage.SoftwareManagedGPUStorage)
    field.sync_state.state = state
    return field


def on_device_of(field: storage.Storage) -> Any:
    interface = field.__cuda_array_interface__
    return np.array(dl.from_dlpack(Exposing(__cuda_array_interface__=interface, kept=field)).to_device("cpu"))


def changed(field: Any, state: int) -> Any:
    field.sync_state.state = state
    return field
