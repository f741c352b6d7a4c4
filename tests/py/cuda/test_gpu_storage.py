"""Host/device pairs make each needed copy and no other."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield import storage
from driver import Driver
from fakes_interfaces import Exposing
from storages import CLEAN, DEVICE, HOST, Counted, changed, device_buffer, on_device, on_gpu, on_host, pair


@pytest.fixture
def copies(driver: Driver) -> Counted:
    return Counted(driver)


def test_each_buffer_is_copied_once_on_its_first_use(copies: Counted) -> None:
    field = pair()
    field[1, 1] = 3.0
    field[2, :] = [4.0, 5.0, 6.0]
    assert field.sync_state.state == HOST
    assert copies.are(0, 0)
    field.host_to_device()
    field.host_to_device()
    assert copies.are(1, 0)
    assert field.sync_state.state == CLEAN
    side = device_buffer(field)
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


def test_a_value_with_the_data_interface_is_acquired_and_released() -> None:
    log: list[str] = []
    inside = dl.ones(3, dims="J", device="cuda:0")
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


def test_exported_memory_counts_as_modified() -> None:
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


def test_halo_is_set_on_both_buffers() -> None:
    field = pair()
    field.halo = ((1, 1), 0)
    interface = field.__gt_data_interface__
    assert {entry["halo"] for entry in interface.values()} == {((1, 1), (0, 0))}
    field.domain_view[...] = 1.0
    assert on_device(field).tolist() == [[0, 0, 0], [1, 1, 1], [1, 1, 1], [0, 0, 0]]


def test_repr() -> None:
    field = pair()
    assert "device='cuda:0'" in repr(field)
    assert repr(field).endswith("sync_state=SyncState(SYNC_CLEAN))")


@pytest.mark.parametrize("state", [CLEAN, HOST, DEVICE])
def test_a_pickle_has_the_up_to_date_values(copies: Counted, state: int) -> None:
    field = pair(halo=(1, 0), dims="KI", layout=(1, 0), alignment_size=32)
    field[...] = on_gpu(np.full((4, 3), 4.0)) if state == DEVICE else np.full((4, 3), 4.0)
    if state == CLEAN:
        field.synchronize()
    copies.restart()
    pickled = [pickle.dumps(field, protocol) for protocol in (2, 5)]
    assert copies.are(0, 2 if state == DEVICE else 0)
    assert field.sync_state.state == state
    buffers: list[pickle.PickleBuffer] = []
    out_of_band = pickle.dumps(field, 5, buffer_callback=buffers.append)
    for made in (*map(pickle.loads, pickled), pickle.loads(out_of_band, buffers=buffers)):
        assert isinstance(made, storage.SoftwareManagedGPUStorage)
        assert made.sync_state is not field.sync_state
        assert (made.halo, made.dims, made.layout, made.alignment_size, str(made.device)) == (
            field.halo,
            field.dims,
            field.layout,
            32,
            "cuda:0",
        )
        assert (on_device(made) == 4).all()
        assert (on_host(made) == 4).all()
    view, whole = pickle.loads(pickle.dumps((field[1:3], field)))
    view[...] = 7.0
    assert (on_host(whole) == 4).all()
    assert (on_device(view) == 7).all()


@pytest.mark.parametrize(
    "key",
    [
        (slice(None, None, -1),),
        (slice(None), slice(None, None, -1)),
        (slice(None, None, -1), slice(None, None, -1)),
        (slice(None, None, -2),),
        (slice(3, 0, -1), slice(1, None)),
        (slice(None, None, 2), slice(None, None, -2)),
        (2, slice(None, None, -1)),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_a_pickle_of_a_part_takes_one_copy(copies: Counted, key: Any, turned: bool) -> None:
    field = pair(dims="IJ", halo=(1, 1))
    part = field[key].transpose() if turned else field[key]
    values = np.arange(float(part.size)).reshape(part.shape)
    part[...] = on_gpu(values)
    copies.restart()
    pickled = pickle.dumps(part)
    assert copies.are(0, 1)
    assert field.sync_state.state == DEVICE
    assert (on_host(pickle.loads(pickled)) == values).all()


def test_buffers_with_opposite_strides_are_synchronized_by_one_copy(copies: Counted) -> None:
    host, values = np.zeros((4, 3))[::-1], np.arange(12.0).reshape(4, 3)
    field = storage.as_storage(host, device="gpu")
    assert isinstance(field, storage.SoftwareManagedGPUStorage)
    assert field.strides == host.strides
    field.set_host_modified()
    copies.restart()
    field.synchronize()
    assert copies.are(1, 0)
    field[...] = on_gpu(values)
    copies.restart()
    field.synchronize()
    assert copies.are(0, 1)
    assert (host == values).all()


def test_values_of_another_device(driver: Driver) -> None:
    other = f"cuda:{driver.device_count - 1}"
    field = storage.zeros((3,), device=other)
    field[...] = on_gpu(np.ones(3))
    assert (on_host(field) == 1).all()
    field[...] = storage.full((3,), 2.0, device="gpu")
    assert (on_host(field) == 2).all()
    assert storage.empty_like(field).device == other
