"""Buffers that cannot form a host/device pair, and operations that fail halfway."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dlfield as dl
from dlfield import storage
from dlfield.storage import SyncState
from driver import Driver
from fakes_interfaces import Exposing
from storages import CLEAN, DEVICE, HOST, Counted, on_device, on_gpu, on_host, pair


def test_buffers_on_the_wrong_device() -> None:
    values = np.zeros((4, 3))
    with pytest.raises(dl.NoSuchBufferError, match="data: found a buffer on cuda:0"):
        storage.as_storage(on_gpu(values), on_gpu(values))
    for elsewhere in (dl.zeros((4, 3), device="cuda:1"), storage.zeros((4, 3), device="cuda:1")):
        for managed in ("gt4py", None):
            with pytest.raises(dl.NoSuchBufferError, match="device: found 'cuda:0', but the buffer is on cuda:1"):
                storage.as_storage(elsewhere, device="cuda:0", managed=managed)
    here = storage.as_storage(dl.zeros((4, 3), device="cuda:1"), device="cuda:1", managed="gt4py")
    assert here.device == "cuda:1"


def test_halos_that_disagree() -> None:
    host, device = dl.zeros((4, 3), halo=(1, 1)), dl.zeros((4, 3), device="cuda:0")
    with pytest.raises(dl.LayoutError, match="device_data: its halo"):
        storage.as_storage(host, device)
    field = storage.as_storage(host, device, halo=(1, 0))
    field.domain_view[...] = 2.0
    assert on_device(field)[:, 0].tolist() == [0, 2, 2, 0]
    assert host.halo == ((1, 1), (1, 1))


@pytest.mark.parametrize("managed", ["gt4py", "cuda", None])
@pytest.mark.parametrize("state", [CLEAN, HOST, DEVICE])
def test_values_whose_shapes_disagree(managed: Any, state: int) -> None:
    with pytest.raises(dl.LayoutError, match=r"device_data: its shape \(4,\) must be that of data, \(3,\)"):
        storage.storage(np.ones(3), on_gpu(np.ones(4)), managed=managed, sync_state=SyncState(state))


def test_values_for_the_device_in_any_form() -> None:
    field: Any = storage.storage(device_data=[1.0, 2.0, 3.0])
    assert isinstance(field, storage.SoftwareManagedGPUStorage)
    assert on_host(field).tolist() == [1, 2, 3]


@pytest.mark.parametrize("state", [CLEAN, HOST, DEVICE])
def test_dims_rename_the_dimensions(state: int) -> None:
    values = np.arange(9.0).reshape(3, 3)
    data: Any = storage.storage(values, dims="JI", device="gpu")
    data.synchronize()
    data.sync_state.state = state
    field: Any = storage.storage(data, dims="IJ")
    assert (on_host(field) == values).all()
    assert (on_device(field) == values).all()


def test_an_allocated_buffer_has_the_requested_alignment() -> None:
    given = np.asarray(dl.zeros((6, 5), alignment_size=128, aligned_index=(1, 1)))
    field: Any = storage.as_storage(given, device="gpu", alignment_size=128, aligned_index=(1, 1))
    device = dl.describe(field, device="cuda:0")
    assert (device.ptr + sum(device.strides)) % 128 == 0
    field[1, 1] = 3.0
    assert on_device(field)[1, 1] == 3


def test_a_refused_conversion_marks_nothing() -> None:
    for keywords in ({"device": "cpu"}, {"managed": None}):
        field = pair()
        with pytest.raises(dl.LayoutError, match="shape"):
            storage.as_storage(field, shape=(9, 9), **keywords)
        with pytest.raises(dl.NoSuchBufferError):
            storage.as_storage(field, managed="cuda")
        assert field.sync_state.state == CLEAN


@pytest.mark.parametrize("key", [..., slice(None), [0, 1, 2]])
@pytest.mark.parametrize("state", [CLEAN, HOST, DEVICE])
def test_after_an_assignment_that_fails_halfway_both_buffers_agree(key: Any, state: int) -> None:
    field: Any = storage.zeros((3,), "float32", device="gpu")
    field.sync_state.state = state
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        field[key] = [1.0, 1e300, 2.0]
    first, second = on_host(field), on_device(field)
    assert (first == second).all()


def test_managed_memory_is_exported_as_device_memory() -> None:
    field: Any = storage.as_storage(np.zeros(3), dl.zeros(3, device="cuda_managed"))
    for keywords in ({"dl_device": (2, 0)}, {"dl_device": (13, 0)}, {}):
        field.synchronize()
        taken = dl.from_dlpack(field.__dlpack__(max_version=(1, 3), **keywords))
        taken[...] = taken.shape[0] + len(keywords)
        assert on_host(field).tolist() == [3 + len(keywords)] * 3


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_a_stencil_takes_dtypes_without_a_type_string(device: str, driver: Driver) -> None:
    copies = Counted(driver)
    field: Any = storage.full((4, 3), 2.0, ml_dtypes.bfloat16, device="gpu", halo=(1, 1))
    signature = dl.Signature(x=dl.FieldSpec("bfloat16", "IJ", access="rw"), device=device)
    with signature.bind(x=field) as fields:
        assert fields.x.device == device
        assert fields.x.origin == (1, 1)
        dl.from_dlpack(fields.x)[1, 1] = 3.0
    assert copies.are(0, 0)
    other = "cpu" if device != "cpu" else "cuda:0"
    found = dl.from_array(field, device=other).to_device("cpu").to_numpy().astype(float)
    assert math.isclose(found.sum(), 25.0)


@pytest.mark.parametrize(
    "name", ["on the host", "on the device", "of CuPy", "with the data interface", "in managed memory"]
)
def test_positions_may_be_anywhere(name: str, cupy: Any) -> None:  # noqa: ARG001
    positions = np.array([0, 2])
    interface = {None: {**positions.__array_interface__}}
    keys: dict[str, Callable[[], Any]] = {
        "on the host": lambda: dl.from_array(positions),
        "on the device": lambda: on_gpu(positions),
        "of CuPy": lambda: on_gpu(positions).to_cupy(),
        "with the data interface": lambda: Exposing(__gt_data_interface__=interface, kept=positions),
        "in managed memory": lambda: dl.from_array(positions, device="cuda_managed"),
    }
    key, field = keys[name](), pair()
    field[key] = 2.0
    field[key, 0] = 3.0
    assert on_device(field)[:, :2].tolist() == [[3, 2], [0, 0], [3, 2], [0, 0]]
    assert field[key].tolist() == [[3, 2, 2], [3, 2, 2]]
