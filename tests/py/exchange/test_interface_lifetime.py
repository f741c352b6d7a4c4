"""Lifetimes of memory imported by an interface, a buffer or a wrapper: no leaks, and cycles are collected."""

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
from oracle import values

ROWS = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def gt() -> Exposing:
    array = double_matrix()
    return Exposing(
        __gt_data_interface__={None: lambda: {**interface_of(array), "dims": ("K", "I"), "halo": ((1, 0), (0, 1))}}
    )


def held() -> Exposing:
    data = bytearray(double_matrix().tobytes())
    return Exposing(__array_interface__=interface_of(double_matrix(), data=data, strides=None))


def array() -> Arrays:
    kept = double_matrix()
    return Arrays(lambda: kept)


def wrapped() -> Any:
    xarray = pytest.importorskip("xarray")
    return xarray.DataArray(double_matrix(), dims=("x", "y"))


PRODUCERS: dict[str, Callable[[], Any]] = {
    "array interface": lambda: host(double_matrix()),
    "array interface of a buffer": held,
    "data interface": gt,
    "buffer": lambda: FakeBuffer(double_matrix()),
    "bytearray": lambda: bytearray(double_matrix().tobytes()),
    "__array__": array,
    "DataArray": wrapped,
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

    return {f"{name}, {use}": using(USES[use], make()) for name, make in PRODUCERS.items() for use in USES}


ROUNDS = 300


@cache
def growth() -> dict[str, Growth]:
    return grown("test_interface_lifetime", "pairs", ROUNDS)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", PRODUCERS)
def test_no_use_of_a_producer_leaks(name: str, use: str) -> None:
    found = growth()[f"{name}, {use}"]
    found.assert_none_in(ROUNDS)


@pytest.mark.parametrize("name", ["array interface", "array interface of a buffer", "data interface", "__array__"])
def test_an_object_may_hold_its_own_description(name: str) -> None:
    producer = PRODUCERS[name]()
    producer.described = dl.describe(producer)
    gone = weakref.ref(producer)
    del producer
    gc.collect()
    assert gone() is None


def test_an_object_on_a_gpu_may_hold_its_own_description() -> None:
    producer = cuda()
    producer.__dict__["described"] = dl.describe(producer)
    gone = weakref.ref(producer)
    del producer
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("name", PRODUCERS)
def test_a_tensor_outlives_everything_else(name: str) -> None:
    field = dl.from_dlpack(PRODUCERS[name]())
    view = np.asarray(field)
    del field
    gc.collect()
    assert view.ravel().view("f8").tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize("name", PRODUCERS)
def test_a_tensor_of_a_description_keeps_what_the_description_kept(name: str) -> None:
    """An interface's dictionary has only an address; the object keeps the memory alive."""
    producer = PRODUCERS[name]()
    field = dl.from_dlpack(dl.describe(producer))
    if not isinstance(producer, bytearray):
        gone = weakref.ref(producer)
        del producer
        gc.collect()
        assert gone() is not None
    assert field.to_numpy().ravel().view("f8").tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_description_keeps_the_replaced_array_of_a_wrapper() -> None:
    xarray = pytest.importorskip("xarray")

    class Duck(Exposing):
        """A duck array that xarray wraps unchanged."""

        shape, dtype, ndim = (2, 3), np.dtype("f8"), 2

        def __array_function__(self, *_: object) -> Any:
            return NotImplemented

        def __array_ufunc__(self, *_: object, **__: object) -> Any:
            return NotImplemented

    array = double_matrix()
    duck = Duck(__array_interface__=interface_of(array), array=array)
    gone = weakref.ref(duck)
    wrapper = xarray.DataArray(duck, dims=("x", "y"))
    found = dl.describe(wrapper)
    wrapper.data = double_matrix()
    del duck, array
    gc.collect()
    assert gone() is not None
    assert values(found) == ROWS


def test_many_threads_read() -> None:
    producers = [make() for make in PRODUCERS.values()]
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(100):
                for producer in producers:
                    found = dl.describe(producer)
                    assert found.nbytes == 48
                    assert found.ndim == 1 or values(found) == ROWS
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
