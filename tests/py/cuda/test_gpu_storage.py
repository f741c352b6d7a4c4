"""Host/device pairs make each needed copy and no other, also for other libraries and in several threads."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield import storage
from driver import Driver
from fakes_interfaces import Exposing
from storages import CLEAN, DEVICE, HOST, VALUES, copies, device_buffer, on_device, on_gpu, on_host, pair

THREADS = 8
states = pytest.mark.parametrize("state", [CLEAN, HOST, DEVICE])


def test_touch_marks_the_device_buffer_as_modified() -> None:
    field = pair()
    field[1, 1] = 3.0
    device_buffer(field)[0] = on_gpu([7.0, 8.0, 9.0])
    with copies():
        field.__gt_data_interface__["gpu"]["touch"]()
    assert field.sync_state.state == DEVICE
    with copies(to_host=1):
        assert on_host(field).tolist() == [[7, 8, 9], [0, 3, 0], [0, 0, 0], [0, 0, 0]]


def test_views_share_the_state_and_synchronize_all() -> None:
    field = pair(halo=(1, 1))
    view, turned = field[1:3], field.transpose("J", "I")
    assert view.sync_state is field.sync_state is turned.sync_state is field.domain_view.sync_state
    field[3] = 5.0
    with copies(to_device=1):
        view.host_to_device()
    assert (on_device(field)[3] == 5).all()
    view.device_to_host(force=True)
    turned[0, 0] = 2.0
    assert (on_device(field)[0] == [2, 0, 0]).all()


@states
def test_a_failed_assignment_changes_nothing(state: int) -> None:
    field = pair(state)
    for key, value, error in ((..., np.zeros((5, 5)), (ValueError, dl.Error)), ((9, 9), 1.0, IndexError)):
        with copies(), pytest.raises(error):
            field[key] = value
        assert field.sync_state.state == state


@pytest.mark.parametrize("key", [..., slice(None), [0, 1, 2]])
@states
def test_after_an_assignment_that_fails_halfway_both_buffers_agree(key: Any, state: int) -> None:
    field = pair(state, np.zeros(3, "f4"))
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        field[key] = [1.0, 1e300, 2.0]
    first, second = on_host(field), on_device(field)
    assert (first == second).all()


@pytest.mark.parametrize(
    ("value", "device"),
    [
        (lambda: storage.ones((3,)), False),
        (lambda: storage.ones((3,), device="gpu", managed=None), True),
        (lambda: storage.ones((3,), device="gpu", managed="cuda"), True),
        (lambda: pair(CLEAN, np.ones(3)), True),
        (lambda: pair(DEVICE, np.ones(3)), True),
        (lambda: pair(HOST, np.ones(3)), False),
    ],
)
def test_where_a_storage_is_written(value: Callable[[], Any], device: bool) -> None:
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


@states
def test_copy_has_a_state_of_its_own(state: int) -> None:
    field = pair(state, VALUES, halo=(1, 0))
    with copies():
        other = copy.deepcopy(field)
    assert other.sync_state is not field.sync_state
    assert (other.sync_state.state, other.halo) == (state, field.halo)
    other[1, 1] = 9.0
    assert on_host(field)[1, 1] == on_device(field)[1, 1] == 4
    assert on_device(other)[1, 1] == 9


def test_halo_is_set_on_both_buffers() -> None:
    field = pair()
    field.halo = ((1, 1), 0)
    interface = field.__gt_data_interface__
    assert {entry["halo"] for entry in interface.values()} == {((1, 1), (0, 0))}
    field.domain_view[...] = 1.0
    assert on_device(field).tolist() == [[0, 0, 0], [1, 1, 1], [1, 1, 1], [0, 0, 0]]


@states
def test_a_pickle_has_the_up_to_date_values(state: int) -> None:
    field = pair(state, VALUES, halo=(1, 0), dims="KI", layout=(1, 0), alignment_size=32)
    with copies(to_host=2 if state == DEVICE else 0):
        pickled = [pickle.dumps(field, protocol) for protocol in (2, 5)]
    assert field.sync_state.state == state
    buffers: list[pickle.PickleBuffer] = []
    out_of_band = pickle.dumps(field, 5, buffer_callback=buffers.append)
    for made in (*map(pickle.loads, pickled), pickle.loads(out_of_band, buffers=buffers)):
        assert isinstance(made, storage.SoftwareManagedGPUStorage)
        assert made.sync_state is not field.sync_state
        for name in ("halo", "dims", "layout", "alignment_size", "device"):
            assert getattr(made, name) == getattr(field, name)
        assert (on_device(made) == VALUES).all()
        assert (on_host(made) == VALUES).all()
    view, whole = pickle.loads(pickle.dumps((field[1:3], field)))
    view[...] = 7.0
    assert (on_host(whole) == VALUES).all()
    assert (on_device(view) == 7).all()


REVERSED = [np.s_[::-1], np.s_[:, ::-1], np.s_[::-1, ::-1], np.s_[::-2], np.s_[3:0:-1, 1:], np.s_[::2, ::-2]]


@pytest.mark.parametrize("key", [*REVERSED, np.s_[2, ::-1]])
@pytest.mark.parametrize("turned", [False, True])
def test_a_pickle_of_a_part_takes_one_copy(key: Any, turned: bool) -> None:
    field = pair(dims="IJ", halo=(1, 1))
    part = field[key].transpose() if turned else field[key]
    values = np.arange(float(part.size)).reshape(part.shape)
    part[...] = on_gpu(values)
    with copies(to_host=1):
        pickled = pickle.dumps(part)
    assert field.sync_state.state == DEVICE
    assert (on_host(pickle.loads(pickled)) == values).all()


def test_buffers_with_opposite_strides_are_synchronized_by_one_copy() -> None:
    host = np.zeros((4, 3))[::-1]
    field: Any = storage.as_storage(host, device="gpu")
    assert field.strides == host.strides
    field.set_host_modified()
    with copies(to_device=1):
        field.synchronize()
    field[...] = on_gpu(VALUES)
    with copies(to_host=1):
        field.synchronize()
    assert (host == VALUES).all()


def test_values_of_another_device(driver: Driver) -> None:
    other = f"cuda:{driver.device_count - 1}"
    field = storage.zeros((3,), device=other)
    field[...] = on_gpu(np.ones(3))
    assert (on_host(field) == 1).all()
    field[...] = storage.full((3,), 2.0, device="gpu")
    assert (on_host(field) == 2).all()
    assert storage.empty_like(field).device == other


# What other libraries and devices get; test_gpu_storage_uses.py has exports in each state.


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


@pytest.mark.two_devices
def test_a_device_without_a_buffer() -> None:
    field = holding(HOST)
    assert (np.array(dl.from_dlpack(field, device="cuda:1").to_device("cpu")) == VALUES).all()
    assert field.sync_state.state == HOST
    with pytest.raises(dl.ExchangeError):
        dl.from_dlpack(field, device="cuda:1", copy=False)
    with pytest.raises(dl.DeviceError, match="cuda:1"):
        dl.describe(field, device="cuda:1")
    assert field.sync_state.state == HOST


def test_pinned_memory_instead_of_a_buffer() -> None:
    field = holding(HOST)
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


@pytest.mark.two_devices
def test_a_pinned_host_buffer_fits_every_gpu() -> None:
    pinned = dl.from_array(VALUES, device="cuda_host")
    field: Any = storage.as_storage(pinned, dl.from_array(VALUES, device="cuda:0"))
    with copies():
        for device, expected in (("cpu", pinned), ("cuda:1", pinned), ("cuda:0", field._device)):
            assert dl.describe(field, device=device).ptr == expected.ptr


# In several threads no write is lost, nothing is copied twice, nothing deadlocks.


def at_once(*bodies: Callable[[], object]) -> None:
    """Run each body in a thread of its own, and raise their errors here."""
    with ThreadPoolExecutor(len(bodies)) as pool:
        for running in [pool.submit(body) for body in bodies]:
            running.result(timeout=120)


def test_buffers_are_synchronized_once() -> None:
    field: Any = storage.zeros((200, 300), device="gpu")
    for _ in range(20):
        field[...] = 3.0
        with copies(to_device=1):
            at_once(*[field.host_to_device] * THREADS)
        field.set_device_modified()
        with copies(to_host=1):
            at_once(*[field.synchronize, lambda: dl.describe(field), lambda: field[0, 0]] * 3)


def test_no_modification_is_lost() -> None:
    field = storage.zeros((THREADS, 500), device="gpu")
    rounds = 30

    def write(row: int) -> None:
        view = field[row]
        for number in range(1, rounds + 1):
            if (row + number) % 2:
                view[...] = float(number)
            else:
                view[...] = dl.full((500,), float(number), device="cuda:0")
            if number % 5 == row % 5:
                view.synchronize()
            if number % 7 == row % 7:
                assert (dl.from_array(view).to_numpy() == number).all()

    at_once(*[lambda row=row: write(row) for row in range(THREADS)])
    assert (on_host(field) == rounds).all()
    assert (on_device(field) == rounds).all()


def assign(one: Any, other: Any, number: int) -> None:
    one[...] = other
    one[number] = 1.0
    one.host_to_device()


def add(one: Any, other: Any, _number: int) -> None:
    np.add(one, 1, out=one)
    np.add(other, one * 0, out=other)


@pytest.mark.parametrize("use", [assign, add])
@pytest.mark.usefixtures("cupy")
def test_threads_that_need_the_same_storages(use: Callable[[Any, Any, int], None]) -> None:
    one, other = (storage.zeros((50, 60), device="gpu") for _ in range(2))

    def work(first: Any, second: Any) -> None:
        for number in range(20):
            use(first, second, number)

    at_once(lambda: work(one, other), lambda: work(other, one), lambda: work(one, one[...]))
    for found in (one, other):
        assert np.array_equal(on_host(found), on_device(found))


def test_copies_are_consistent_snapshots() -> None:
    field: Any = storage.zeros((100, 100), device="gpu")
    stop: list[bool] = []

    def write() -> None:
        for number in range(40):
            field[...] = float(number)
            field[...] = dl.full((100, 100), float(number), device="cuda:0")
        stop.append(True)

    def read() -> None:
        while not stop:
            for found in (storage.storage(field), field.copy()):
                values = on_host(found)
                assert values.min() == values.max()

    at_once(write, read, read)
    assert field.sync_state.state == DEVICE
    assert (on_host(field) == 39).all()
