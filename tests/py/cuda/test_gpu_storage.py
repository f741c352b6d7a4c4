"""Host/device pairs make each needed copy and no other, also in several threads."""

from __future__ import annotations

import copy
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


def test_each_buffer_is_copied_once_on_its_first_use() -> None:
    field = pair()
    with copies():
        field[1, 1] = 3.0
        field[2, :] = [4.0, 5.0, 6.0]
    assert field.sync_state.state == HOST
    with copies(to_device=1):
        field.host_to_device()
        field.host_to_device()
    assert field.sync_state.state == CLEAN
    device_buffer(field)[0] = on_gpu([7.0, 8.0, 9.0])
    with copies():
        field.__gt_data_interface__["gpu"]["touch"]()
    assert field.sync_state.state == DEVICE
    with copies(to_host=1):
        assert on_host(field).tolist() == [[7, 8, 9], [0, 3, 0], [4, 5, 6], [0, 0, 0]]
        assert field[2, 1] == 5
        assert field[[0, 1]].shape == (2, 3)


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
        (lambda: 1.0, False),
        (lambda: np.ones(3), False),
        (lambda: dl.ones(3), False),
        (lambda: storage.ones((3,)), False),
        (lambda: on_gpu(np.ones(3)), True),
        (lambda: storage.ones((3,), device="gpu", managed=None), True),
        (lambda: storage.ones((3,), device="gpu", managed="cuda"), True),
        (lambda: pair(CLEAN, np.ones(3)), True),
        (lambda: pair(DEVICE, np.ones(3)), True),
        (lambda: pair(HOST, np.ones(3)), False),
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
