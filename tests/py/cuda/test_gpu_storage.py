"""Storages with two sides: the copies that must happen happen, those that need not do not."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield import storage
from dlfield.storage import SyncState
from driver import IS_FAKE, Driver
from fakes_interfaces import Exposing

CLEAN, HOST, DEVICE = SyncState.SYNC_CLEAN, SyncState.SYNC_HOST_DIRTY, SyncState.SYNC_DEVICE_DIRTY


def on_gpu(values: Any) -> dl.Tensor:
    return dl.from_array(np.asarray(values), device="cuda:0")


def device_side(field: storage.Storage) -> dl.Tensor:
    """What a stencil on the device gets, acquired."""
    entry = field.__gt_data_interface__["gpu"]
    entry["acquire"]()
    return dl.from_dlpack(Exposing(__cuda_array_interface__=entry, kept=field))


def on_device(field: storage.Storage) -> Any:
    return np.array(device_side(field).to_device("cpu"))


def on_host(field: storage.Storage) -> Any:
    """What the host reads."""
    return field.__array__(copy=True)


class Counted:
    """How many copies there were since it was made or asked last: to the device, to the host."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.before = self.now()

    def now(self) -> tuple[int, int]:
        self.driver.settle()
        found = self.driver.report()
        return found.get("copies_to_device", 0), found.get("copies_to_host", 0)

    def are(self, to_device: int, to_host: int) -> bool:
        now = self.now()
        found = now[0] - self.before[0], now[1] - self.before[1]
        self.before = now
        return not IS_FAKE or found == (to_device, to_host)


@pytest.fixture
def copies(driver: Driver) -> Counted:
    return Counted(driver)


def pair(state: int = CLEAN, **keywords: Any) -> storage.SoftwareManagedGPUStorage:
    field = storage.zeros((4, 3), device="gpu", **keywords)
    assert isinstance(field, storage.SoftwareManagedGPUStorage)
    field.sync_state.state = state
    return field


def test_allocation_copies_nothing(copies: Counted) -> None:
    for make in (storage.empty, storage.zeros, storage.ones):
        assert make((4, 3), defaults="gtcuda").sync_state.state == CLEAN  # type: ignore[attr-defined]
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
    assert type(field) is kind
    assert (field.device, field.layout, field.halo) == ("cuda:0", (1, 0), ((1, 1), (0, 0)))
    assert field.domain_view.shape == (2, 3)
    assert type(storage.zeros_like(field)) is kind
    assert type(field.transpose()) is type(field[1:]) is type(copy.deepcopy(field)) is kind
    for nothing in (field.host_to_device, field.device_to_host, field.synchronize, field.set_synchronized):
        nothing()
    if managed is not None:
        assert (on_host(field) == 1).all()
    assert (on_device_of(field) == 1).all()


def on_device_of(field: storage.Storage) -> Any:
    interface = field.__cuda_array_interface__  # type: ignore[attr-defined]
    return np.array(dl.from_dlpack(Exposing(__cuda_array_interface__=interface, kept=field)).to_device("cpu"))


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
        assert not isinstance(field, storage.SoftwareManagedGPUStorage)
    assert not isinstance(dl.zeros(3, device="cuda:0"), storage.CPUStorage)


def test_each_side_is_copied_once_and_when_it_is_used(copies: Counted) -> None:
    field = pair()
    field[1, 1] = 3.0
    field[2, :] = [4.0, 5.0, 6.0]
    assert field.sync_state.state == HOST
    assert copies.are(0, 0)
    field.host_to_device()
    field.host_to_device()
    assert copies.are(1, 0)
    assert field.sync_state.state == CLEAN
    side = device_side(field)
    side[0] = on_gpu([7.0, 8.0, 9.0])
    copies.now()
    copies = Counted(copies.driver)
    field.__gt_data_interface__["gpu"]["touch"]()
    assert field.sync_state.state == DEVICE
    assert copies.are(0, 0)
    assert on_host(field).tolist() == [[7, 8, 9], [0, 3, 0], [4, 5, 6], [0, 0, 0]]
    assert field[2, 1] == 5
    assert field[[0, 1]].shape == (2, 3)
    assert copies.are(0, 1)


def test_views_share_the_state_and_synchronize_all(copies: Counted) -> None:
    field = pair(halo=(1, 1))
    view, turned = field[1:3], field.transpose("J", "I")
    assert view.sync_state is field.sync_state is turned.sync_state is field.domain_view.sync_state
    field[3] = 5.0
    view.host_to_device()
    assert copies.are(1, 0)
    assert (on_device(field)[3] == 5).all()
    view.device_to_host(force=True)
    turned[0, 0] = 2.0
    assert (on_device(field)[0] == [2, 0, 0]).all()


def test_a_whole_overwrite_needs_no_copy(copies: Counted) -> None:
    field = pair(DEVICE)
    field[...] = np.full((4, 3), 2.0)
    assert copies.are(0, 0)
    assert (on_device(field) == 2).all()
    source = on_gpu(np.full((4, 3), 3.0))
    field.set_host_modified()
    copies = Counted(copies.driver)
    field[:, ::-1] = source
    assert copies.are(0, 0)
    assert field.sync_state.state == DEVICE
    assert (on_host(field) == 3).all()


def test_a_failed_assignment_changes_nothing(copies: Counted) -> None:
    for state in (CLEAN, HOST, DEVICE):
        field = pair(state)
        with pytest.raises((ValueError, dl.Error)):
            field[...] = np.zeros((5, 5))
        assert field.sync_state.state == state
        with pytest.raises(IndexError):
            field[9, 9] = 1.0
        assert copies.are(0, 0)


@pytest.mark.parametrize(
    ("value", "device"),
    [
        (lambda: 1.0, False),
        (lambda: np.ones(3), False),
        (lambda: dl.ones(3), False),
        (lambda: storage.ones((3,)), False),
        (lambda: on_gpu(np.ones(3)), True),
        (lambda: storage.ones((3,), device="gpu", managed=None), True),
        (lambda: storage.ones((3,), device="gpu", managed="cuda"), True),
        (lambda: storage.ones((3,), device="gpu"), True),
        (lambda: changed(storage.ones((3,), device="gpu"), DEVICE), True),
        (lambda: changed(storage.ones((3,), device="gpu"), HOST), False),
    ],
)
def test_where_a_value_is_written(value: Callable[[], Any], device: bool) -> None:
    field = pair()
    field[1] = value()
    assert field.sync_state.state == (DEVICE if device else HOST)
    assert on_host(field).tolist() == [[0, 0, 0], [1, 1, 1], [0, 0, 0], [0, 0, 0]]


def changed(field: Any, state: int) -> Any:
    field.sync_state.state = state
    return field


def test_a_value_with_the_data_interface_is_acquired_and_released() -> None:
    log: list[str] = []
    inside = on_gpu(np.ones(3))
    entry = {**inside.__gt_data_interface__["gpu"]}
    entry |= {"acquire": lambda: log.append("acquire"), "release": lambda: log.append("release")}
    field = pair()
    field[0] = Exposing(__gt_data_interface__={"gpu": entry}, kept=inside)
    assert log == ["acquire", "release"]
    assert field.sync_state.state == DEVICE
    assert (on_host(field)[0] == 1).all()


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_a_stencil_synchronizes_and_marks(device: str) -> None:
    spec = dl.FieldSpec("float64", "IJ", access="rw")
    field = pair(DEVICE if device == "cpu" else HOST)
    state = field.sync_state
    with dl.Signature(x=spec, device=device).bind(x=field) as fields:
        assert fields.x.device == device
        assert state.state == CLEAN
    assert state.state == (HOST if device == "cpu" else DEVICE)
    with dl.Signature(x=dl.FieldSpec("float64", "IJ"), device=device).bind(x=field):
        pass
    assert state.state == (HOST if device == "cpu" else DEVICE)


def test_what_is_handed_out_counts_as_modified() -> None:
    field = pair(DEVICE)
    field.to_numpy()[0, 0] = 1.0
    assert field.sync_state.state == HOST
    assert on_device(field)[0, 0] == 1
    field.set_synchronized()
    assert (np.array(field.__array__(copy=True))).shape == (4, 3)
    assert field.sync_state.state == CLEAN
    np.asarray(field)[0, 0] = 2.0
    assert field.sync_state.state == HOST
    assert field.__cuda_array_interface__["shape"] == (4, 3)
    assert field.sync_state.state == DEVICE
    assert on_host(field)[0, 0] == 2
    assert field.data is not None
    assert field.sync_state.state == HOST


@pytest.mark.parametrize("state", [CLEAN, HOST, DEVICE])
def test_copy_has_a_state_of_its_own(copies: Counted, state: int) -> None:
    field = pair(halo=(1, 0))
    if state == HOST:
        field[...] = 4.0
    if state == DEVICE:
        field[...] = on_gpu(np.full((4, 3), 4.0))
    copies.now()
    copies = Counted(copies.driver)
    other = copy.deepcopy(field)
    assert copies.are(0, 0)
    assert other.sync_state is not field.sync_state
    assert other.sync_state.state == state
    assert other.halo == field.halo
    other[0, 0] = 9.0
    assert on_host(field)[0, 0] == on_device(field)[0, 0] == (0 if state == CLEAN else 4)
    assert on_device(other)[0, 0] == 9


def test_as_storage_of_one_side(copies: Counted) -> None:
    array = np.arange(12.0).reshape(4, 3)
    field: Any = storage.as_storage(array, device="gpu")
    assert (type(field), field.sync_state.state) == (storage.SoftwareManagedGPUStorage, HOST)
    assert copies.are(0, 0)
    assert (on_device(field) == array).all()
    inside = on_gpu(array)
    field = storage.as_storage(device_data=inside, managed="gt4py")
    assert field.sync_state.state == DEVICE
    assert (on_host(field) == array).all()
    assert type(storage.as_storage(inside)) is storage.GPUStorage
    assert type(storage.as_storage(device_data=inside, device="gpu")) is storage.GPUStorage


def test_as_storage_of_both_sides_of_a_storage() -> None:
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
    assert storage.as_storage(field).sync_state is field.sync_state  # type: ignore[attr-defined]


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
        assert field.sync_state.state == {"host": HOST, "device": DEVICE, "both": CLEAN}[given]  # type: ignore[attr-defined]
    assert field.layout == (1, 0)
    assert (on_device_of(field) == array).all()
    array[...] = 0.0
    assert (on_device_of(field) == np.arange(12.0).reshape(4, 3)).all()


def test_storage_takes_the_side_that_is_up_to_date() -> None:
    old, new = np.zeros((2, 2)), np.ones((2, 2))
    field = storage.storage(old, on_gpu(new), sync_state=SyncState(DEVICE))
    assert (on_host(field) == 1).all()
    field = storage.storage(new, on_gpu(old), sync_state=SyncState(HOST))
    assert (on_device(field) == 1).all()
    assert type(storage.storage(new, defaults="gtcuda")) is storage.SoftwareManagedGPUStorage
    on_the_host = storage.storage(old, on_gpu(new), device="cpu", sync_state=SyncState(DEVICE))
    assert type(on_the_host) is storage.CPUStorage
    assert (on_host(on_the_host) == 1).all()
    with pytest.raises(dl.NoSuchBufferError, match="device_data"):
        storage.storage(new, device="gpu", sync_state=SyncState(DEVICE))


def test_halo_is_set_on_both_sides() -> None:
    field = pair()
    field.halo = ((1, 1), 0)
    interface = field.__gt_data_interface__
    assert {entry["halo"] for entry in interface.values()} == {((1, 1), (0, 0))}
    field.domain_view[...] = 1.0
    assert on_device(field).tolist() == [[0, 0, 0], [1, 1, 1], [1, 1, 1], [0, 0, 0]]


def test_as_storage_of_one_side_of_a_storage(copies: Counted) -> None:
    field = pair(halo=(1, 0))
    field[...] = on_gpu(np.full((4, 3), 4.0))
    copies = Counted(copies.driver)
    host = storage.as_storage(field, device="cpu")
    assert copies.are(0, 1)
    assert (type(host), host.halo) == (storage.CPUStorage, ((1, 1), (0, 0)))
    host[0, 0] = 5.0
    device = storage.as_storage(field, managed=None)
    assert copies.are(1, 0)
    assert type(device) is storage.GPUStorage
    assert (on_device_of(device)[0] == [5, 4, 4]).all()
    assert field.sync_state.state == DEVICE
    with pytest.raises(dl.NoSuchBufferError, match="storage"):
        storage.as_storage(field, managed="cuda")
    with pytest.raises(dl.ExchangeError, match="alone"):
        storage.as_storage(field, on_gpu(np.zeros((4, 3))))


def test_storage_casts_on_both_sides() -> None:
    array = np.arange(12, dtype="f4").reshape(4, 3)
    for values in (array, on_gpu(array)):
        for managed in ("gt4py", "cuda", None):
            field = storage.storage(values, device="gpu", managed=managed, dtype="f8")
            assert field.dtype == np.dtype("f8")
            assert (on_device_of(field) == array).all()


def test_repr_and_pickle() -> None:
    field = pair()
    assert "device='cuda:0'" in repr(field)
    assert repr(field).endswith("sync_state=SyncState(SYNC_CLEAN))")
    with pytest.raises(TypeError, match="to_numpy"):
        pickle.dumps(field)


def test_values_of_another_device(driver: Driver) -> None:
    other = f"cuda:{driver.device_count - 1}"
    field = storage.zeros((3,), device=other)
    field[...] = on_gpu(np.ones(3))
    assert (on_host(field) == 1).all()
    field[...] = storage.full((3,), 2.0, device="gpu")
    assert (on_host(field) == 2).all()
    assert storage.empty_like(field).device == other
