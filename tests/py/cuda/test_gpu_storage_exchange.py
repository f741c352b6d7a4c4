"""What host/device pairs give to other libraries and devices; test_gpu_storage_uses.py has exports in each state."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield import storage
from driver import Driver
from storages import CLEAN, DEVICE, HOST, VALUES, copies, on_host, pair

states = pytest.mark.parametrize("state", [CLEAN, HOST, DEVICE])


def holding(state: int) -> Any:
    return pair(state, VALUES, halo=(1, 0))


@states
def test_as_torch_takes_the_host_buffer(torch: Any, state: int) -> None:
    field = holding(state)
    with copies(to_host=int(state == DEVICE)):
        tensor = dl.as_torch(field)
    assert (tensor.device.type, field.sync_state.state) == ("cpu", HOST)
    assert (tensor.numpy() == VALUES).all()
    field.set_synchronized()
    assert (dl.as_torch(field, copy=True).numpy() == VALUES).all()
    assert field.sync_state.state == CLEAN
    del tensor
    assert torch.from_dlpack(field).device.type == "cuda"
    assert field.sync_state.state == DEVICE


@states
def test_inspection_copies_and_marks_nothing(state: int) -> None:
    field = holding(state)
    with copies():
        assert dl.preflight(field, "numpy")
        assert dl.preflight(field, "cupy")
        assert dl.get_dims(field) == ("I", "J")
        assert dl.get_origin(field) == (1, 0)
        assert dl.zeros_like(field).halo == ((1, 1), (0, 0))
        assert field.__dlpack_device__() == (2, 0)
    assert field.sync_state.state == state


@states
def test_a_copy_to_managed_memory_is_of_either_buffer(state: int) -> None:
    field, target = holding(state), dl.empty((4, 3), device="cuda_managed")
    target[...] = field
    assert field.sync_state.state == state
    assert (np.array(target) == VALUES).all()


def test_managed_memory_is_exported_as_device_memory() -> None:
    field: Any = storage.as_storage(np.zeros(3), dl.zeros(3, device="cuda_managed"))
    for keywords in ({"dl_device": (2, 0)}, {"dl_device": (13, 0)}, {}):
        field.synchronize()
        taken = dl.from_dlpack(field.__dlpack__(max_version=(1, 3), **keywords))
        taken[...] = taken.shape[0] + len(keywords)
        assert on_host(field).tolist() == [3 + len(keywords)] * 3


def test_labels_and_alignment_are_kept() -> None:
    field = storage.zeros((4, 3), device="gpu", dims="KI", halo=(1, 0), alignment_size=64)
    for device in (None, "cuda:0"):
        found = dl.from_dlpack(field, device=device)
        assert (found.dims, found.halo, found.alignment_size) == (("K", "I"), ((1, 1), (0, 0)), 64)
        seen = dl.describe(field, device=device)
        assert (seen.dims, seen.halo, seen.protocol) == (("K", "I"), ((1, 1), (0, 0)), "dlfield")
    assert dl.from_dlpack(field, dims="IJ").dims == ("I", "J")


def test_a_device_without_a_buffer(driver: Driver) -> None:
    field, other = holding(HOST), f"cuda:{driver.device_count - 1}"
    if driver.device_count > 1:
        assert (np.array(dl.from_dlpack(field, device=other).to_device("cpu")) == VALUES).all()
        assert field.sync_state.state == HOST
        with pytest.raises(dl.ExchangeError):
            dl.from_dlpack(field, device=other, copy=False)
        with pytest.raises(dl.DeviceError, match=other):
            dl.describe(field, device=other)
    assert field.sync_state.state == HOST
    assert (np.array(dl.from_dlpack(field, device="cuda_host")) == VALUES).all()


@pytest.mark.parametrize(
    ("keywords", "error"),
    [
        ({"dl_device": (99, 0)}, BufferError),
        ({"dl_device": "cpu"}, TypeError),
        ({"dl_device": (1, 0), "stream": 1}, BufferError),
        ({"copy": 5}, TypeError),
        ({"max_version": 1}, TypeError),
        ({"stream": 0}, BufferError),
    ],
)
def test_every_argument_of_dlpack_is_obeyed_or_refused(keywords: Any, error: type[Exception]) -> None:
    field = holding(CLEAN)
    with pytest.raises(error):
        field.__dlpack__(**keywords)
    assert field.sync_state.state == CLEAN


def test_a_tensor_of_one_buffer_keeps_the_memory() -> None:
    field = holding(DEVICE)
    found = dl.from_dlpack(field)
    del field
    gc.collect()
    assert (np.asarray(found) == VALUES).all()


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_a_pair_is_assigned_by_its_labels(device: str) -> None:
    """The pair's default label counts: it is repeated along I, a plain array would be along J."""
    target = dl.zeros((3, 3), device=device)
    target[...] = storage.storage(np.arange(3.0), device="gpu")
    assert np.asarray(target.to_device("cpu")).tolist() == [[0] * 3, [1] * 3, [2] * 3]


def test_a_pinned_host_buffer_fits_every_gpu() -> None:
    pinned = dl.from_array(VALUES, device="cuda_host")
    field: Any = storage.as_storage(pinned, dl.from_array(VALUES, device="cuda:0"))
    with copies():
        for device, expected in (("cpu", pinned), ("cuda:1", pinned), ("cuda:0", field._device)):
            assert dl.describe(field, device=device).ptr == expected.ptr
