"""A host/device pair in several threads: no write is lost, nothing is copied twice, nothing deadlocks."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dlfield as dl
from dlfield import storage
from driver import Driver
from storages import DEVICE, Counted, on_device, on_host

THREADS = 8


def at_once(*bodies: Callable[[], object]) -> None:
    """Run each body in a thread of its own, and raise their errors here."""
    with ThreadPoolExecutor(len(bodies)) as pool:
        for running in [pool.submit(body) for body in bodies]:
            running.result(timeout=120)


@pytest.fixture
def copies(driver: Driver) -> Counted:
    return Counted(driver)


def test_buffers_are_synchronized_once(copies: Counted) -> None:
    field = storage.zeros((200, 300), device="gpu")
    for _ in range(20):
        field[...] = 3.0
        copies.restart()
        at_once(*[field.host_to_device] * THREADS)
        assert copies.are(1, 0)
        field.set_device_modified()
        at_once(*[field.synchronize, lambda: dl.describe(field), lambda: field[0, 0]] * 3)
        assert copies.are(0, 1)


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


def test_two_storages_that_are_assigned_to_each_other() -> None:
    one, other = (storage.zeros((50, 60), device="gpu") for _ in range(2))

    def assign(to: storage.Storage, value: storage.Storage) -> None:
        for number in range(30):
            to[...] = value
            to[number % 50] = 1.0
            assert isinstance(to, storage.SoftwareManagedGPUStorage)
            to.host_to_device()

    at_once(lambda: assign(one, other), lambda: assign(other, one), lambda: assign(one, one[...]))
    one.synchronize()
    assert (np.asarray(on_host(one)) == on_device(one)).all()


def test_copies_are_consistent_snapshots() -> None:
    field = storage.zeros((100, 100), device="gpu")
    stop: list[bool] = []

    def write() -> None:
        for number in range(40):
            field[...] = float(number)
            field[...] = dl.full((100, 100), float(number), device="cuda:0")
        stop.append(True)

    def copy() -> None:
        while not stop:
            values = on_host(storage.storage(field))
            assert values.min() == values.max()
            values = on_host(field.copy())
            assert values.min() == values.max()

    at_once(write, copy, copy)
    assert isinstance(field, storage.SoftwareManagedGPUStorage)
    assert field.sync_state.state == DEVICE
    assert (on_host(field) == 39).all()
