"""Threads that import, export, view and drop the same tensors, and switch in the middle of calls."""

from __future__ import annotations

import gc
import pickle
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlpack_structs import release, take
from fakes import FakeTensor, Producer
from fakes_interfaces import FakeBuffer, Hooked
from interleaved_threads import run_in_threads
from leak_checks import live

SHAPE = (3, 4)
VALUES: Any = np.arange(12.0).reshape(SHAPE)
THREADS, TURNS = 4, 1500


class Shared:
    """A tensor that all threads use. `released` tells how often its memory was released."""

    def __init__(self, source: Any, released: Callable[[], int] | None = None) -> None:
        self.source, self.released = source, released
        self.field = dl.from_dlpack(source)


def from_fake() -> Shared:
    fake = FakeTensor(VALUES.copy())
    return Shared(Producer(fake), lambda: fake.deleted)


def from_buffer() -> Shared:
    fake: Any = FakeBuffer(VALUES.copy())
    return Shared(fake, lambda: int(fake.released == fake.requested))


def from_hooks() -> Shared:
    log: list[str] = []
    hooked = Hooked(VALUES.copy(), log)
    return Shared(hooked, lambda: log.count("release x") - log.count("acquire x") + 1)


KINDS: dict[str, Callable[[], Shared]] = {
    "a tensor": lambda: Shared(dl.from_array(VALUES, dims="IJ", halo=(1, 1))),
    "an array": lambda: Shared(VALUES.copy()),
    "a managed tensor": from_fake,
    "a buffer": from_buffer,
    "a data interface": from_hooks,
}


def export_and_release(field: Any) -> Any:
    managed = take(field.__dlpack__(max_version=(1, 3)))
    found = dl.from_dlpack(field).to_numpy().copy()
    release(managed)
    return found


def override_halo(field: Any) -> Any:
    """Any thread may set the halo of a view; the tensor keeps its own."""
    view = field[:]
    view.halo = ((1, 0), (0, 1))
    assert view.halo == ((1, 0), (0, 1))
    return view


# Each returns the elements by another way. The last user may be any of them, in any thread.
USES: list[Callable[[Any], Any]] = [
    lambda field: np.from_dlpack(field),
    lambda field: dl.from_dlpack(np.from_dlpack(field)[:]),
    lambda field: memoryview(field),
    lambda field: dl.from_dlpack(memoryview(field)),
    lambda field: dl.from_dlpack(field.__dlpack__(max_version=(1, 3))),
    lambda field: dl.from_dlpack(dl.describe(field)),
    lambda field: np.asarray(dl.from_dlpack(dl.describe(np.asarray(field)))),
    lambda field: field.T.T,
    lambda field: field.as_readonly()[...],
    lambda field: field.copy(),
    lambda field: pickle.loads(pickle.dumps(field, 5)),
    lambda field: np.stack([field[0], field[1:2].reshape(4), field[-1]]),
    lambda field: field + 0,
    lambda field: field.__array__(),
    export_and_release,
    override_halo,
]


@pytest.mark.parametrize("name", KINDS)
def test_threads_use_and_drop_the_same_tensor(name: str) -> None:
    gc.collect()
    before = live()
    shared = KINDS[name]()
    field, released, source = shared.field, shared.released, shared.source
    slots: list[Any] = [field] * THREADS

    def work(number: int) -> None:
        drawn = random.Random(number)
        kept: list[Any] = []
        for _ in range(TURNS):
            # The last value of this or another thread.
            found = drawn.choice(USES)(dl.from_dlpack(drawn.choice(slots)))
            assert np.array_equal(np.asarray(found), VALUES)
            kept.append(found)
            if drawn.random() < 0.3:
                # Another thread drops it.
                slots[drawn.randrange(THREADS)] = found
            if len(kept) > 8:
                kept.pop(drawn.randrange(len(kept)))

    run_in_threads(work, range(THREADS))
    assert np.array_equal(np.asarray(field), VALUES)
    del shared, field
    slots.clear()
    gc.collect()
    assert released is None or released() == 1
    del source
    gc.collect()
    assert live() == before


def test_threads_import_at_once_what_can_be_taken_once() -> None:
    """Several threads ask for the same capsule: one of them gets the tensor, the others an error."""
    fakes = [FakeTensor(VALUES.copy()) for _ in range(100)]
    capsules = [fake.capsule() for fake in fakes]
    taken: list[int] = []

    def work(_number: int) -> None:
        for index, capsule in enumerate(capsules):
            try:
                field = dl.from_dlpack(capsule)
            except dl.ExchangeError:
                pass
            else:
                taken.append(index)
                assert np.array_equal(np.from_dlpack(field), VALUES)

    run_in_threads(work, range(THREADS))
    assert sorted(taken) == list(range(100))
    assert [fake.deleted for fake in fakes] == [1] * 100


def test_threads_copy_while_others_change_the_number_of_threads() -> None:
    """A pool that is replaced finishes the copies that it has begun."""
    source: Any = np.arange(2.0**18).reshape(64, 64, 64)

    def work(number: int) -> None:
        for turn in range(12):
            if number == 0:
                dl.set_num_threads(1 + turn % 4)
            field: Any = dl.from_array(source + number, backend="F")
            assert (field.to_numpy() == source + number).all()
            field.fill(turn)
            assert (field.astype("float32").to_numpy() == turn).all()

    try:
        run_in_threads(work, range(THREADS))
    finally:
        dl.set_num_threads(0)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="shared memory is an anonymous file of Linux")
def test_threads_share_and_drop_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that goes is taken off the list, also if another thread's block has got its address meanwhile."""
    ignored: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: ignored.append(args.exc_value))

    def work(_number: int) -> None:
        for _ in range(2000):
            dl.from_array(VALUES).share()
            shared = dl.from_array(VALUES).share()
            attached = dl.attach(dl.shared_name(shared))
            # It was found by its address, and then by its name.
            assert attached.ptr == shared.ptr
            assert np.array_equal(attached.to_numpy(), VALUES)

    run_in_threads(work, range(THREADS))
    assert ignored == []
