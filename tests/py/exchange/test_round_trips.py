"""Memory that goes to an extension in Rust, or into DLPack structs, and comes back: no chain of owners, one release."""

import gc
import threading
import weakref
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from leak_checks import Growth, grown
from round_trips import TRIPS, repeated
from tensor_api import Parts, create

rx = pytest.importorskip("rust_extension")

# Run five times.
ROUNDS = 4_000


def going_to_and_fro() -> dict[str, Callable[[], object]]:
    others: dict[str, Callable[[], dl.Tensor]] = {
        "read-only": lambda: dl.zeros((4, 5)).as_readonly(),
        "of NumPy": lambda: dl.from_dlpack(np.zeros((4, 5))),
        "of Rust": lambda: rx.make_field((4, 5, 6)),
    }
    returned = TRIPS["an argument that is returned"]
    uses: dict[str, Callable[[], object]] = {name: repeated(trip, dl.zeros((4, 5))) for name, trip in TRIPS.items()}
    return uses | {name: repeated(returned, make()) for name, make in others.items()}


@cache
def growth() -> dict[str, Growth]:
    return grown("test_round_trips", "going_to_and_fro", ROUNDS)


@pytest.mark.parametrize("name", going_to_and_fro())
def test_memory_that_comes_back_often_takes_no_more_of_it(name: str) -> None:
    growth()[name].assert_none_in(ROUNDS)


ATTRIBUTES = ("ptr", "shape", "strides", "dtype", "dims", "origin", "halo", "readonly")
PROMISED = ("layout", "alignment_size", "aligned_index")


@pytest.mark.parametrize("name", TRIPS)
def test_the_tensor_is_the_same_after_a_trip(name: str) -> None:
    labels: dict[str, Any] = {"dims": ("K", "cell"), "halo": ((1, 0), (0, 2)), "origin": (2, 1)}
    field = dl.zeros((4, 5), alignment_size=128, aligned_index=(1, 2), **labels)
    # Its strides would be those of another layout, too.
    column = dl.zeros((4, 1), layout=(1, 0))
    # A capsule has neither labels nor promises, and no address of no elements.
    attributes = ATTRIBUTES + PROMISED if "argument" in name else ATTRIBUTES[1:4]
    for there in (field, field.as_readonly(), field[1:, ::2], column, dl.zeros((2, 0)), dl.from_array(np.array(2.5))):
        back = TRIPS[name](TRIPS[name](there))
        for attribute in attributes:
            assert getattr(back, attribute) == getattr(there, attribute), attribute


@pytest.mark.parametrize("name", TRIPS)
def test_memory_is_released_once_after_its_last_user(name: str) -> None:
    parts = Parts(b"cell")
    field = create(parts.new)
    passed = [TRIPS[name](field) for _ in range(3)]
    passed.append(TRIPS[name](passed[0]))
    del field
    while passed:
        assert (parts.released, passed[-1].to_numpy().tolist()) == (0, [0.0, 1.0])
        thread = threading.Thread(target=passed.pop)
        thread.start()
        thread.join()
    assert parts.released == 1


@pytest.mark.parametrize("name", TRIPS)
def test_the_array_of_numpy_is_released(name: str) -> None:
    class Array(np.ndarray[Any, Any]):
        pass

    array = np.arange(6.0).view(Array)
    field, gone = dl.from_dlpack(array), weakref.ref(array)
    del array
    for _ in range(5):
        field = TRIPS[name](field)
    assert field.to_numpy().sum() == 15.0
    gc.collect()
    assert gone() is not None
    del field
    gc.collect()
    assert gone() is None


def test_threads_pass_the_same_memory() -> None:
    parts = Parts(b"cell")
    fields = [create(parts.new)]

    def run() -> None:
        field = fields[0]
        for _ in range(200):
            for trip in TRIPS.values():
                field = trip(field)
        assert field.to_numpy().tolist() == [0.0, 1.0]

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert parts.released == 0
    fields.clear()
    assert parts.released == 1


@pytest.mark.parametrize("name", TRIPS)
def test_functions_of_rust_do_not_read_memory_that_came_back(name: str) -> None:
    """Python has it, and may write to it."""
    for field in (dl.zeros(3), rx.kinds.Shared("cpu").given()):
        *reads, writes = rx.kinds_views.read_kept(TRIPS[name](field))
        assert all("to which others may write" in error for error in reads), reads
        assert "not this crate's" in writes
