"""What storages on a device are created from, and their classes."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield import storage
from dlfield.storage import SyncState
from driver import Driver
from fakes_interfaces import Exposing
from storages import CLEAN, DEVICE, HOST, Counted, on_device, on_device_of, on_gpu, on_host, pair


@pytest.fixture
def copies(driver: Driver) -> Counted:
    return Counted(driver)


def test_allocation_copies_nothing(copies: Counted) -> None:
    for make in (storage.empty, storage.zeros, storage.ones):
        assert make((4, 3), defaults="gtcuda").sync_state.state == CLEAN  # type: ignore[union-attr]
    field = storage.full((4, 3), 7.0, device="gpu")
    like = storage.full_like(field, 8.0)
    assert type(like) is storage.SoftwareManagedGPUStorage
    assert copies.are(0, 0)
    assert (on_host(field) == 7).all()
    assert (on_host(like) == 8).all()
    assert copies.are(0, 0)
    assert (on_device(field) == 7).all()
    assert (on_device(like) == 8).all()


@pytest.mark.parametrize(
    ("managed", "kind"),
    [
        ("gt4py", storage.SoftwareManagedGPUStorage),
        ("cuda", storage.CUDAManagedGPUStorage),
        (None, storage.GPUStorage),
    ],
)
def test_kinds(managed: Any, kind: type[storage.Storage]) -> None:
    field = storage.ones((4, 3), defaults="gtcuda", managed=managed, halo=(1, 0))
    assert isinstance(field, kind)
    assert field.device == ("cuda_managed" if managed == "cuda" else "cuda:0")
    assert (field.layout, field.halo) == ((1, 0), ((1, 1), (0, 0)))
    assert field.domain_view.shape == (2, 3)
    for made in (storage.zeros_like(field), field.transpose(), field[1:], copy.deepcopy(field), field.domain_view):
        assert isinstance(made, kind)
    for nothing in (field.host_to_device, field.device_to_host, field.synchronize, field.set_synchronized):
        nothing()
    if managed is not None:
        assert (on_host(field) == 1).all()
    assert (on_device_of(field) == 1).all()


def test_tensors_count_as_storages() -> None:
    for device, kind in (
        ("cpu", storage.CPUStorage),
        ("cuda_host", storage.CPUStorage),
        ("cuda_managed", storage.CUDAManagedGPUStorage),
        ("cuda:0", storage.GPUStorage),
    ):
        field: Any = dl.zeros(3, device=device)
        assert isinstance(field, kind)
        assert isinstance(field, storage.Storage)
        assert type(field) is dl.Tensor
    assert not isinstance(dl.zeros(3, device="cuda:0"), storage.CPUStorage)


def test_as_storage_of_one_buffer(copies: Counted) -> None:
    array = np.arange(12.0).reshape(4, 3)
    field: Any = storage.as_storage(array, device="gpu")
    assert (type(field), field.sync_state.state) == (storage.SoftwareManagedGPUStorage, HOST)
    assert copies.are(0, 0)
    assert (on_device(field) == array).all()
    inside = on_gpu(array)
    field = storage.as_storage(device_data=inside, managed="gt4py")
    assert field.sync_state.state == DEVICE
    assert (on_host(field) == array).all()
    assert isinstance(storage.as_storage(inside), storage.GPUStorage)
    assert isinstance(storage.as_storage(device_data=inside, device="gpu"), storage.GPUStorage)


def test_as_storage_of_both_buffers_of_a_storage() -> None:
    field = pair()
    view = field[1:]
    host = view.to_numpy()
    device = Exposing(__cuda_array_interface__=view.__cuda_array_interface__, kept=field)
    again: Any = storage.as_storage(host, device, sync_state=field.sync_state)
    assert again.sync_state is field.sync_state
    again[0, 0] = 5.0
    assert on_device(field)[1, 0] == 5
    for other in (field[:3].to_numpy(), view.to_numpy()[::-1], np.zeros((3, 3))):
        with pytest.raises(dl.ExchangeError, match="sync_state"):
            storage.as_storage(other, device, sync_state=field.sync_state)
    with pytest.raises(dl.ExchangeError, match="sync_state"):
        storage.as_storage(field, sync_state=SyncState())
    assert storage.as_storage(field).sync_state is field.sync_state  # type: ignore[union-attr]


def test_buffers_that_disagree() -> None:
    host = np.zeros((4, 3))
    for other, error in (
        (on_gpu(np.zeros((3, 4))), dl.LayoutError),
        (on_gpu(np.zeros((4, 3), "f4")), dl.DTypeError),
        (dl.zeros((4, 3), layout=(1, 0), device="cuda:0"), dl.LayoutError),
        (dl.zeros((4, 3), dims="JI", device="cuda:0"), dl.DimsError),
    ):
        with pytest.raises(error, match="device_data"):
            storage.as_storage(host, other)
    with pytest.raises(dl.NoSuchBufferError, match="device_data"):
        storage.as_storage(host, np.zeros((4, 3)))
    with pytest.raises(dl.NoSuchBufferError, match="device_data"):
        storage.as_storage(host, device="gpu", sync_state=SyncState(DEVICE))
    with pytest.raises(dl.LayoutError, match="managed"):
        storage.as_storage(host, on_gpu(host), managed=None)
    with pytest.raises(dl.NoSuchBufferError, match="storage"):
        storage.as_storage(host, device="gpu", managed=None)
    with pytest.raises(dl.NoSuchBufferError, match="storage"):
        storage.as_storage(on_gpu(host), device="cpu")
    with pytest.raises(dl.NoSuchBufferError, match="to_device"):
        storage.zeros((3,), device="gpu", managed=None).to_numpy()


@pytest.mark.parametrize("managed", ["gt4py", "cuda", None])
@pytest.mark.parametrize("given", ["host", "device", "both"])
def test_storage_copies_the_values(copies: Counted, managed: Any, given: str) -> None:
    array = np.arange(12.0).reshape(4, 3)
    inside = on_gpu(array)
    copies.now()
    copies = Counted(copies.driver)
    data = None if given == "device" else array
    device_data = None if given == "host" else inside
    field = storage.storage(data, device_data, device="gpu", managed=managed, layout=(1, 0), dtype="f8")
    if managed == "gt4py":
        assert copies.are(0, 0)
        assert field.sync_state.state == {"host": HOST, "device": DEVICE, "both": CLEAN}[given]  # type: ignore[union-attr]
    assert field.layout == (1, 0)
    assert (on_device_of(field) == array).all()
    array[...] = 0.0
    assert (on_device_of(field) == np.arange(12.0).reshape(4, 3)).all()


def test_storage_takes_the_up_to_date_buffer() -> None:
    old, new = np.zeros((2, 2)), np.ones((2, 2))
    field = storage.storage(old, on_gpu(new), sync_state=SyncState(DEVICE))
    assert (on_host(field) == 1).all()
    field = storage.storage(new, on_gpu(old), sync_state=SyncState(HOST))
    assert (on_device(field) == 1).all()
    assert type(storage.storage(new, defaults="gtcuda")) is storage.SoftwareManagedGPUStorage
    on_the_host = storage.storage(old, on_gpu(new), device="cpu", sync_state=SyncState(DEVICE))
    assert isinstance(on_the_host, storage.CPUStorage)
    assert (on_host(on_the_host) == 1).all()
    with pytest.raises(dl.NoSuchBufferError, match="device_data"):
        storage.storage(new, device="gpu", sync_state=SyncState(DEVICE))


def test_as_storage_of_one_buffer_of_a_storage(copies: Counted) -> None:
    field = pair(halo=(1, 0))
    field[...] = on_gpu(np.full((4, 3), 4.0))
    copies = Counted(copies.driver)
    host = storage.as_storage(field, device="cpu")
    assert copies.are(0, 1)
    assert isinstance(host, storage.CPUStorage)
    assert host.halo == ((1, 1), (0, 0))
    host[0, 0] = 5.0
    device = storage.as_storage(field, managed=None)
    assert copies.are(1, 0)
    assert isinstance(device, storage.GPUStorage)
    assert (on_device_of(device)[0] == [5, 4, 4]).all()
    assert field.sync_state.state == DEVICE
    with pytest.raises(dl.NoSuchBufferError, match="storage"):
        storage.as_storage(field, managed="cuda")
    with pytest.raises(dl.ExchangeError, match="alone"):
        storage.as_storage(field, on_gpu(np.zeros((4, 3))))


def test_storage_casts_host_and_device_values() -> None:
    array = np.arange(12, dtype="f4").reshape(4, 3)
    for values in (array, on_gpu(array)):
        for managed in ("gt4py", "cuda", None):
            field = storage.storage(values, device="gpu", managed=managed, dtype="f8")
            assert field.dtype == np.dtype("f8")
            assert (on_device_of(field) == array).all()


def test_parts_of_buffers_with_opposite_strides() -> None:
    field: Any = storage.as_storage(np.arange(12.0).reshape(4, 3)[::-1, :], device="gpu")
    for view in (field[1:], field[:, ::-1], field.transpose()[::2], field[2:3]):
        host = view.to_numpy()
        device = Exposing(__cuda_array_interface__=view.__cuda_array_interface__, kept=field)
        again = storage.as_storage(host, device, sync_state=field.sync_state)
        assert (on_host(again) == on_host(view)).all()
    backwards = field[:, ::-1].to_numpy()
    device = Exposing(__cuda_array_interface__=field.__cuda_array_interface__, kept=field)
    with pytest.raises(dl.ExchangeError, match="sync_state"):
        storage.as_storage(backwards, device, sync_state=field.sync_state)
