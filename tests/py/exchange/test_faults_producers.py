"""Producers that fail at the n-th step of their protocol, for every n, and deleters that misbehave.

The producer's own exception reaches the caller; what was acquired before is released, once, and no reference is left.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from fakes import FakeTensor, int_matrix

SHAPE = (3, 4)


class StepError(Exception):
    """What a producer raises at the step at which it fails."""


class Steps:
    """Counts the steps of a producer, and fails at one of them."""

    def __init__(self, failing: int | None) -> None:
        self.failing, self.done = failing, 0
        self.error = StepError(failing)
        # `acquire` calls that have succeeded, and `release` calls.
        self.acquired = self.released = 0

    def __call__(self) -> None:
        number = self.done
        self.done += 1
        if number == self.failing:
            raise self.error


class Size:
    """A size, origin or halo that is asked for by `__index__`."""

    def __init__(self, steps: Steps, value: int) -> None:
        self.steps, self.value = steps, value

    def __index__(self) -> int:
        self.steps()
        return self.value


class Sequence:
    """A sequence whose every method is a step."""

    def __init__(self, steps: Steps, values: tuple[Any, ...]) -> None:
        self.steps, self.values = steps, values

    def __len__(self) -> int:
        self.steps()
        return len(self.values)

    def __getitem__(self, at: int) -> Any:
        self.steps()
        return self.values[at]

    def __iter__(self) -> Iterator[Any]:
        self.steps()
        for value in self.values:
            self.steps()
            yield value


class Producer:
    """The base: memory of its own, and a weak reference that tells whether anybody keeps the producer."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.array = np.arange(12.0).reshape(SHAPE)
        self.tensor = FakeTensor(self.array)


class Dlpack(Producer):
    def __dlpack_device__(self) -> Any:
        self.steps()
        return (1, 0)

    def __dlpack__(self, **keywords: Any) -> Any:
        self.steps()
        # It knows no keywords, so it is asked twice.
        if keywords:
            raise TypeError("__dlpack__() takes no keyword arguments")
        self.steps()
        return self.tensor.capsule()


class Labelled(Dlpack):
    @property
    def dims(self) -> Any:
        self.steps()
        return Sequence(self.steps, ("I", "J"))


class Interface(Producer):
    @property
    def __array_interface__(self) -> dict[str, Any]:
        self.steps()
        sizes = tuple(Size(self.steps, size) for size in SHAPE)
        return {**self.array.__array_interface__, "shape": sizes}


class Array(Producer):
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        self.steps()
        return self.array


class Hooks(Producer):
    """GT4Py's data interface, with labels, an origin, and hooks."""

    @property
    def __gt_dims__(self) -> Any:
        self.steps()
        return Sequence(self.steps, ("I", "J"))

    @property
    def __gt_origin__(self) -> Any:
        self.steps()
        return (Size(self.steps, 1), 0)

    @property
    def __gt_data_interface__(self) -> dict[Any, Any]:
        self.steps()
        return {None: self.entry}

    def entry(self) -> dict[str, Any]:
        self.steps()
        hooks = {"acquire": self.acquire, "touch": self.steps, "release": self.release}
        return {**self.array.__array_interface__, **hooks}

    def acquire(self) -> None:
        self.steps()
        self.steps.acquired += 1

    def release(self) -> None:
        self.steps.released += 1
        self.steps()


PRODUCERS = {kind.__name__: kind for kind in (Dlpack, Labelled, Interface, Array, Hooks)}

SPEC = dl.FieldSpec("float64", "IJ", access="rw", layout=(1, 0))
COPYING = dl.Signature(on_mismatch="copy", a=SPEC)
PLAIN = dl.Signature(a=dl.FieldSpec("float64", "IJ"), b=dl.FieldSpec("float64", "IJ", access="w"))


def bind(producer: Any) -> None:
    with PLAIN.bind(a=producer, b=np.zeros(SHAPE)) as fields:
        _ = fields.a.ptr


def bind_copies(producer: Any) -> None:
    with COPYING.bind(a=producer) as fields:
        dl.from_dlpack(fields.a)[...] = 1


CALLS: dict[str, Callable[[Any], Any]] = {
    "from_dlpack": dl.from_dlpack,
    "from_dlpack, copy": lambda producer: dl.from_dlpack(producer, copy=True),
    "describe": dl.describe,
    "from_array": dl.from_array,
    "as_numpy": dl.as_numpy,
    "zeros_like": dl.zeros_like,
    "get_dims": dl.get_dims,
    "get_origin": dl.get_origin,
    "preflight": lambda producer: dl.preflight(producer, "numpy"),
    "assignment": lambda producer: dl.zeros(SHAPE).__setitem__(..., producer),
    "arithmetic": lambda producer: dl.ones(SHAPE, dims="IJ") + producer,
    "bind": bind,
    "bind with copies": bind_copies,
    "dims": lambda producer: dl.zeros(SHAPE, dims=Sequence(producer.steps, ("I", "J"))),  # type: ignore[arg-type]
    "shape": lambda producer: dl.zeros(Sequence(producer.steps, SHAPE)),  # type: ignore[arg-type]
    "index": lambda producer: dl.zeros(SHAPE)[Size(producer.steps, 1), Size(producer.steps, 2) :],
}


def attempt(call: Callable[[Any], Any], steps: Steps, kind: type[Producer]) -> BaseException | None:
    """Make a producer, call, drop the result and the producer. Return what was raised, without its traceback."""
    producer = kind(steps)
    gone, tensor = weakref.ref(producer), producer.tensor
    raised = None
    try:
        call(producer)
    except BaseException as error:
        raised = error
        # The frames in the traceback, and those in the tracebacks of the contexts, refer to the producer.
        while error is not None:
            error = error.with_traceback(None).__context__  # type: ignore[assignment]
    del producer
    gc.collect()
    assert gone() is None, "the producer is kept"
    assert tensor.settled(), "the managed tensor is not released once"
    assert steps.acquired == steps.released, "acquire and release do not match"
    return raised


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
@pytest.mark.parametrize("kind", PRODUCERS)
@pytest.mark.parametrize("name", CALLS)
def test_the_exception_of_each_step_reaches_the_caller(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    unraisable: list[BaseException] = []
    # Its traceback refers to the producer.
    monkeypatch.setattr(sys, "unraisablehook", lambda args: unraisable.append(args.exc_value.with_traceback(None)))
    before = dl.memory_report().nbytes
    whole = Steps(None)
    usual = attempt(CALLS[name], whole, PRODUCERS[kind])
    for number in range(whole.done):
        steps = Steps(number)
        raised = attempt(CALLS[name], steps, PRODUCERS[kind])
        # The error of a release that comes when memory is dropped has nobody to go to.
        assert raised is steps.error or steps.error in unraisable, f"step {number}: {raised!r}"
        assert type(raised) in {StepError, type(usual)}
    raised = None
    unraisable.clear()
    gc.collect()
    assert dl.memory_report().nbytes == before


def test_the_producers_are_accepted_and_have_steps() -> None:
    for name, call in CALLS.items():
        for kind in PRODUCERS.values():
            steps = Steps(None)
            refused = attempt(call, steps, kind)
            assert refused is None, f"{name}, {kind.__name__}: {refused!r}"
    for kind in PRODUCERS.values():
        steps = Steps(None)
        attempt(dl.from_dlpack, steps, kind)
        assert steps.done > 0


class Deleting(FakeTensor):
    """A managed tensor whose deleter does something."""

    def __init__(self, action: Callable[[], object], **fields: Any) -> None:
        super().__init__(int_matrix(), **fields)
        self.action = action

    def _count(self, address: int) -> None:
        super()._count(address)
        self.action()


def use(tensor: FakeTensor) -> None:
    """Take a managed tensor by each way that drops it again."""
    field = dl.from_dlpack(tensor.capsule())
    views = [field[1:], np.from_dlpack(field), dl.describe(field), memoryview(field)]
    del field
    views.clear()


def test_a_deleter_may_use_dlfield() -> None:
    """Also to import and drop another managed tensor, whose deleter does the same: it nests."""
    done: list[int] = []

    def again(depth: int) -> None:
        use(Deleting(lambda: again(depth - 1) if depth else None))
        assert dl.from_array(int_matrix()).sum() == 15
        done.append(depth)

    use(Deleting(lambda: again(40)))
    assert sorted(done) == list(range(41))


def test_threads_work_while_a_deleter_takes_long() -> None:
    """The deleter gives the GIL to a thread that takes, and drops, memory of the same kind."""
    threads = [threading.Thread(target=use, args=(FakeTensor(int_matrix()),)) for _ in range(4)]

    def wait() -> None:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

    slow = Deleting(wait)
    use(slow)
    assert slow.deleted == 1
    assert not any(thread.is_alive() for thread in threads)


def test_a_deleter_may_be_called_while_an_exception_is_on_its_way() -> None:
    """A consumer that fails drops what it took; its own exception is what comes out."""
    fake = Deleting(lambda: suppress(ZeroDivisionError).__exit__(None, None, None))
    with pytest.raises(dl.DimsError):
        dl.from_dlpack(fake.capsule(), dims="II")
    assert fake.settled()


def test_an_exception_that_a_deleter_leaves_set_is_unraisable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A deleter in C may do so. Its exception must not surface in the next statement."""
    seen: list[type[BaseException]] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: seen.append(args.exc_type))
    fake = FakeTensor(int_matrix())
    # Sets MemoryError for all arguments.
    fake.managed.deleter = ctypes.cast(ctypes.pythonapi.PyErr_NoMemory, ctypes.c_void_p).value
    field = dl.from_dlpack(fake.capsule())
    views = [field[1:], dl.describe(field)]
    del field
    views.clear()
    assert seen == [MemoryError]
