"""Lifetimes of imported memory beyond a single use: no leaks, cycles are collected, descriptions of descriptions."""

import gc
import threading
import weakref
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from fakes_interfaces import Arrays, Exposing, FakeBuffer, cuda, double_matrix, host, interface_of
from leak_checks import Growth, grown
from matrix import PRODUCERS
from oracle import values

ROWS = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def buffered() -> Exposing:
    data = bytearray(double_matrix().tobytes())
    return Exposing(__array_interface__=interface_of(double_matrix(), data=data, strides=None))


# Those whose objects can be read again and again, and one whose interface has a buffer in place of an address.
READ_OFTEN = ("numpy", "gt", "array-interface", "array-struct", "buffer", "buffer of C", "array", "xarray")
MAKERS: dict[str, Callable[[], Any]] = {
    **{name: lambda name=name: PRODUCERS[name].show(double_matrix()) for name in READ_OFTEN},  # type: ignore[misc]
    "array-interface of a buffer": buffered,
}
USES: dict[str, Callable[[Any], object]] = {
    "describe": dl.describe,
    "from_dlpack": dl.from_dlpack,
    "from_dlpack copied": lambda producer: dl.from_dlpack(producer, copy=True),
    "views": lambda producer: dl.from_dlpack(producer)[1:],
    "as_numpy": dl.as_numpy,
    "from_array": dl.from_array,
    "get_dims": dl.get_dims,
    "get_origin": dl.get_origin,
}


def pairs() -> dict[str, Callable[[], object]]:
    """Each use of one producer of each kind, for `leak_checks`."""

    def using(use: Callable[[Any], object], producer: Any) -> Callable[[], object]:
        def run() -> None:
            use(producer)
            if isinstance(producer, Arrays):
                producer.calls.clear()

        return run

    return {f"{name}, {use}": using(USES[use], make()) for name, make in MAKERS.items() for use in USES}


ROUNDS = 300


@cache
def growth() -> dict[str, Growth]:
    return grown("test_interface_lifetime", "pairs", ROUNDS)


@pytest.mark.parametrize("name", MAKERS)
def test_no_use_of_a_producer_leaks(name: str) -> None:
    for use in USES:
        growth()[f"{name}, {use}"].assert_none_in(ROUNDS)


def tensor_of_torch() -> Any:
    return pytest.importorskip("torch").zeros(3)


OWN_MAKERS = [lambda: host(double_matrix()), buffered, MAKERS["gt"], MAKERS["array-struct"], MAKERS["array"], cuda]


@pytest.mark.parametrize("make", [*OWN_MAKERS, tensor_of_torch])
def test_an_object_may_hold_its_own_description(make: Callable[[], Any]) -> None:
    producer = make()
    producer.described = dl.describe(producer)
    gone = weakref.ref(producer)
    del producer
    gc.collect()
    assert gone() is None


# The buffer of an interface, and the array in a wrapper, are owned themselves: the object around them may go.
OWNED_INSIDE = ("array-interface of a buffer", "xarray")


@pytest.mark.parametrize("name", MAKERS)
def test_a_tensor_of_a_description_keeps_the_memory(name: str) -> None:
    """An interface's dictionary has only an address; the object keeps the memory alive."""
    producer = MAKERS[name]()
    field = dl.from_dlpack(dl.describe(producer))
    gone = weakref.ref(producer)
    del producer
    gc.collect()
    assert (gone() is None) == (name in OWNED_INSIDE)
    others = [np.full((2, 3), 9.0) for _ in range(100)]
    assert (field.tolist(), len(others)) == (ROWS, 100)


def test_many_threads_read() -> None:
    producers = [make() for make in MAKERS.values()]
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(100):
                for producer in producers:
                    assert values(dl.describe(producer)) == ROWS
                    dl.from_dlpack(producer)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    buffer = next(producer for producer in producers if isinstance(producer, FakeBuffer))
    assert buffer.requested == buffer.released == 2 * 6 * 100
