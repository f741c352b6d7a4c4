"""What storages on a device are created from, their classes, and the buffers and values that are refused."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dlfield as dl
from dlfield import storage
from dlfield.storage import SyncState
from fakes_interfaces import Exposing
from storages import CLEAN, DEVICE, HOST, VALUES, copies, on_device, on_gpu, on_host, pair

KINDS: dict[Any, type[storage.Storage]] = {
    "gt4py": storage.SoftwareManagedGPUStorage,
    "cuda": storage.CUDAManagedGPUStorage,
    None: storage.GPUStorage,
}
all_kinds = pytest.mark.parametrize("managed", KINDS)
states = pytest.mark.parametrize("state", [CLEAN, HOST, DEVICE])


def device_interface(field: Any) -> Exposing:
    """The device buffer of a storage alone."""
    return Exposing(__cuda_array_interface__=field.__cuda_array_interface__, kept=field)


def test_allocation_copies_nothing() -> None:
    with copies():
        for make in (storage.empty, storage.zeros, storage.ones):
            made: Any = make((4, 3), defaults="gtcuda")
            assert made.sync_state.state == CLEAN
        field = storage.full((4, 3), 7.0, device="gpu")
        like = storage.full_like(field, 8.0)
        assert type(like) is storage.SoftwareManagedGPUStorage
        assert (on_host(field) == 7).all()
        assert (on_host(like) == 8).all()
    assert (on_device(field) == 7).all()
    assert (on_device(like) == 8).all()


@all_kinds
def test_kinds(managed: Any) -> None:
    field = storage.ones((4, 3), defaults="gtcuda", managed=managed, halo=(1, 0))
    assert isinstance(field, KINDS[managed])
    assert field.device == ("cuda_managed" if managed == "cuda" else "cuda:0")
    assert (field.layout, field.halo) == ((1, 0), ((1, 1), (0, 0)))
    assert field.domain_view.shape == (2, 3)
    for made in (storage.zeros_like(field), field.transpose(), field[1:], copy.deepcopy(field), field.domain_view):
        assert isinstance(made, KINDS[managed])
    for nothing in (field.host_to_device, field.device_to_host, field.synchronize, field.set_synchronized):
        nothing()
    if managed is not None:
        assert (on_host(field) == 1).all()
    assert (on_device(field) == 1).all()


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


def test_as_storage_of_one_buffer() -> None:
    array = VALUES.copy()
    with copies():
        field: Any = storage.as_storage(array, device="gpu")
    assert (type(field), field.sync_state.state) == (storage.SoftwareManagedGPUStorage, HOST)
    assert (on_device(field) == array).all()
    inside = on_gpu(array)
    field = storage.as_storage(device_data=inside, managed="gt4py")
    assert field.sync_state.state == DEVICE
    assert (on_host(field) == array).all()
    assert isinstance(storage.as_storage(inside), storage.GPUStorage)
    assert isinstance(storage.as_storage(device_data=inside, device="gpu"), storage.GPUStorage)


@pytest.mark.two_devices
def test_as_storage_on_the_second_device() -> None:
    other = storage.as_storage(dl.zeros((4, 3), device="cuda:1"), device="cuda:1", managed="gt4py")
    assert other.device == "cuda:1"


def test_as_storage_of_both_buffers_of_a_storage() -> None:
    field = pair()
    view = field[1:]
    host, device = view.to_numpy(), device_interface(view)
    again: Any = storage.as_storage(host, device, sync_state=field.sync_state)
    assert again.sync_state is field.sync_state
    again[0, 0] = 5.0
    assert on_device(field)[1, 0] == 5
    for other in (field[:3].to_numpy(), view.to_numpy()[::-1], np.zeros((3, 3))):
        with pytest.raises(dl.ExchangeError, match="sync_state"):
            storage.as_storage(other, device, sync_state=field.sync_state)
    assert storage.as_storage(field).sync_state is field.sync_state  # type: ignore[union-attr]


def test_as_storage_of_parts_of_buffers_with_opposite_strides() -> None:
    field: Any = storage.as_storage(VALUES.copy()[::-1, :], device="gpu")
    for view in (field[1:], field[:, ::-1], field.transpose()[::2], field[2:3]):
        again = storage.as_storage(view.to_numpy(), device_interface(view), sync_state=field.sync_state)
        assert (on_host(again) == on_host(view)).all()
    with pytest.raises(dl.ExchangeError, match="sync_state"):
        storage.as_storage(field[:, ::-1].to_numpy(), device_interface(field), sync_state=field.sync_state)


def test_as_storage_of_one_buffer_of_a_storage() -> None:
    field = pair(DEVICE, VALUES, halo=(1, 0))
    with copies(to_host=1):
        host: Any = storage.as_storage(field, device="cpu")
    assert isinstance(host, storage.CPUStorage)
    assert host.halo == ((1, 1), (0, 0))
    host[0, 0] = 5.0
    with copies(to_device=1):
        device = storage.as_storage(field, managed=None)
    assert isinstance(device, storage.GPUStorage)
    assert on_device(device)[0].tolist() == [5, 1, 2]
    assert field.sync_state.state == DEVICE


def test_buffers_whose_halos_differ() -> None:
    host, device = dl.zeros((4, 3), halo=(1, 1)), dl.zeros((4, 3), device="cuda:0")
    with pytest.raises(dl.LayoutError, match="device_data: its halo"):
        storage.as_storage(host, device)
    field = storage.as_storage(host, device, halo=(1, 0))
    field.domain_view[...] = 2.0
    assert on_device(field)[:, 0].tolist() == [0, 2, 2, 0]
    assert host.halo == ((1, 1), (1, 1))


def test_an_allocated_buffer_has_the_requested_alignment() -> None:
    given = np.asarray(dl.zeros((6, 5), alignment_size=128, aligned_index=(1, 1)))
    field: Any = storage.as_storage(given, device="gpu", alignment_size=128, aligned_index=(1, 1))
    device = dl.describe(field, device="cuda:0")
    assert (device.ptr + sum(device.strides)) % 128 == 0
    field[1, 1] = 3.0
    assert on_device(field)[1, 1] == 3


ZEROS = np.zeros((4, 3))
NO_BUFFER = dl.NoSuchBufferError
as_storage = storage.as_storage


def zeros_on_gpu(**keywords: Any) -> dl.Tensor:
    return dl.zeros((4, 3), device="cuda:0", **keywords)


def behind() -> SyncState:
    """A state whose host buffer is outdated."""
    return SyncState(DEVICE)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "another shape": (lambda: as_storage(ZEROS, on_gpu(ZEROS.T)), dl.LayoutError, "device_data"),
    "another dtype": (lambda: as_storage(ZEROS, zeros_on_gpu(dtype="f4")), dl.DTypeError, "device_data"),
    "another layout": (lambda: as_storage(ZEROS, zeros_on_gpu(layout=(1, 0))), dl.LayoutError, "device_data"),
    "other labels": (lambda: as_storage(ZEROS, zeros_on_gpu(dims="JI")), dl.DimsError, "device_data"),
    "two of the host": (lambda: as_storage(ZEROS, ZEROS), NO_BUFFER, "device_data"),
    "two of the device": (lambda: as_storage(on_gpu(ZEROS), on_gpu(ZEROS)), NO_BUFFER, "data: found a buffer on cuda"),
    "no buffer of the state": (lambda: as_storage(ZEROS, device="gpu", sync_state=behind()), NO_BUFFER, "device_data"),
    "no values": (lambda: storage.storage(ZEROS, device="gpu", sync_state=behind()), NO_BUFFER, "device_data"),
    "a second state": (lambda: as_storage(pair(), sync_state=SyncState()), dl.ExchangeError, "sync_state"),
    "two buffers for one": (lambda: as_storage(ZEROS, on_gpu(ZEROS), managed=None), dl.LayoutError, "managed"),
    "host for device": (lambda: as_storage(ZEROS, device="gpu", managed=None), NO_BUFFER, "storage"),
    "device for host": (lambda: as_storage(on_gpu(ZEROS), device="cpu"), NO_BUFFER, "storage"),
    "a storage and a buffer": (lambda: as_storage(pair(), on_gpu(ZEROS)), dl.ExchangeError, "alone"),
    "a view of the host": (lambda: storage.zeros(3, device="gpu", managed=None).to_numpy(), NO_BUFFER, "to_device"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    make, error, says = REFUSED[name]
    with pytest.raises(error, match=says):
        make()


@pytest.mark.two_devices
@pytest.mark.parametrize("managed", ["gt4py", None])
@pytest.mark.parametrize("kind", [dl, storage])
def test_a_buffer_of_another_device_is_refused(kind: Any, managed: Any) -> None:
    with pytest.raises(dl.NoSuchBufferError, match="device: found 'cuda:0', but the buffer is on cuda:1"):
        storage.as_storage(kind.zeros((4, 3), device="cuda:1"), device="cuda:0", managed=managed)


def test_a_refused_conversion_marks_nothing() -> None:
    for keywords in ({"device": "cpu"}, {"managed": None}):
        field = pair()
        with pytest.raises(dl.LayoutError, match="shape"):
            storage.as_storage(field, shape=(9, 9), **keywords)
        with pytest.raises(dl.NoSuchBufferError, match="storage"):
            storage.as_storage(field, managed="cuda")
        assert field.sync_state.state == CLEAN


# Copies.


@all_kinds
@pytest.mark.parametrize("given", ["host", "device", "both"])
def test_storage_copies_the_values(managed: Any, given: str) -> None:
    array = VALUES.copy()
    inside = on_gpu(array)
    data = None if given == "device" else array
    device_data = None if given == "host" else inside
    keywords: Any = {"device": "gpu", "managed": managed, "layout": (1, 0), "dtype": "f8"}
    if managed == "gt4py":
        with copies():
            field: Any = storage.storage(data, device_data, **keywords)
        assert field.sync_state.state == {"host": HOST, "device": DEVICE, "both": CLEAN}[given]
    else:
        field = storage.storage(data, device_data, **keywords)
    assert field.layout == (1, 0)
    array[...] = 0.0
    assert (on_device(field) == VALUES).all()


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


@all_kinds
@states
def test_values_whose_shapes_differ_are_refused(managed: Any, state: int) -> None:
    with pytest.raises(dl.LayoutError, match=r"device_data: its shape \(4,\) must be that of data, \(3,\)"):
        storage.storage(np.ones(3), on_gpu(np.ones(4)), managed=managed, sync_state=SyncState(state))


def test_values_for_the_device_in_any_form() -> None:
    field: Any = storage.storage(device_data=[1.0, 2.0, 3.0])
    assert isinstance(field, storage.SoftwareManagedGPUStorage)
    assert on_host(field).tolist() == [1, 2, 3]


@pytest.mark.parametrize("place", [np.asarray, on_gpu])
@all_kinds
def test_storage_casts_host_and_device_values(place: Callable[[Any], Any], managed: Any) -> None:
    field = storage.storage(place(VALUES.astype("f4")), device="gpu", managed=managed, dtype="f8")
    assert field.dtype == np.dtype("f8")
    assert (on_device(field) == VALUES).all()


@states
def test_dims_rename_the_dimensions(state: int) -> None:
    data = pair(values=VALUES[:3], dims="JI")
    data.sync_state.state = state
    field = storage.storage(data, dims="IJ")
    assert (on_host(field) == VALUES[:3]).all()
    assert (on_device(field) == VALUES[:3]).all()


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_a_stencil_takes_dtypes_without_a_type_string(device: str) -> None:
    field: Any = storage.full((4, 3), 2.0, ml_dtypes.bfloat16, device="gpu", halo=(1, 1))
    signature = dl.Signature(x=dl.FieldSpec("bfloat16", "IJ", access="rw"), device=device)
    with signature.bind(x=field) as fields, copies():
        assert fields.x.device == device
        assert fields.x.origin == (1, 1)
        dl.from_dlpack(fields.x)[1, 1] = 3.0
    other = "cpu" if device != "cpu" else "cuda:0"
    found = dl.from_array(field, device=other).to_device("cpu").to_numpy().astype(float)
    assert math.isclose(found.sum(), 25.0)
