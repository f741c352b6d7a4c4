"""`acquire` and `release` of data interfaces, around every use of their memory except stencils."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from calls import array
from fakes_interfaces import Hooked
from matrix import ENTRANCES

# Without stencils, which run the hooks when they are entered.
ENTERED: dict[str, Callable[[Any], Any]] = {
    name: lambda obj, row=row: row.enter(obj, array())  # type: ignore[misc]
    for name, row in ENTRANCES.items()
    if name != "bind"
}
SHARING: dict[str, Callable[[Any], Any]] = {
    **{name: enter for name, enter in ENTERED.items() if ENTRANCES[name].shares},
    "a view": lambda obj: dl.from_dlpack(obj)[1:],
    "a memoryview": lambda obj: memoryview(dl.from_dlpack(obj)),
    "another's tensor": lambda obj: np.from_dlpack(dl.from_dlpack(obj)),
}

COPY: dict[str, Callable[[Any], Any]] = {
    **{name: enter for name, enter in ENTERED.items() if not ENTRANCES[name].shares},
    "as_numpy": lambda obj: dl.as_numpy(obj, copy=True),
    "an operand": lambda obj: dl.ones((3, 4)) + obj,
    "an operand of a ufunc": lambda obj: np.subtract(obj, dl.ones((3, 4))),
    "assignment at positions": lambda obj: dl.zeros((5, 4), "float64").__setitem__(([0, 2, 4],), obj),
}

LOOK: dict[str, Callable[[Any], Any]] = {
    "preflight": lambda obj: dl.preflight(obj, "numpy"),
    "get_dims": dl.get_dims,
    "get_origin": dl.get_origin,
    "zeros_like": dl.zeros_like,
}


@pytest.mark.parametrize("share", SHARING.values(), ids=SHARING)
def test_shared_memory_is_released_by_its_last_user(share: Callable[[Any], Any]) -> None:
    log: list[str] = []
    shared = share(Hooked(array(), log))
    assert log == ["acquire x"]
    del shared
    gc.collect()
    assert log == ["acquire x", "release x"]


@pytest.mark.parametrize("copy", COPY.values(), ids=COPY)
def test_copied_memory_is_released_at_once(copy: Callable[[Any], Any]) -> None:
    log: list[str] = []
    kept = copy(Hooked(array(), log))
    assert log == ["acquire x", "release x"]
    del kept
    assert len(log) == 2


@pytest.mark.parametrize("look", LOOK.values(), ids=LOOK)
def test_inspection_runs_no_hooks(look: Callable[[Any], Any]) -> None:
    log: list[str] = []
    look(Hooked(array(), log))
    assert log == []


def test_the_values_are_those_after_acquire() -> None:
    memory = np.zeros((3, 4))

    def acquire() -> None:
        memory[...] = 7.0

    for read in (dl.as_numpy, dl.from_array, lambda obj: dl.as_numpy(obj, copy=True)):
        memory[...] = 0.0
        assert (np.asarray(read(Hooked(memory, [], acquire=acquire))) == 7).all()


class FailureError(Exception):
    pass


def fail() -> None:
    raise FailureError


@pytest.mark.parametrize("read", [*SHARING.values(), *COPY.values()])
def test_an_error_in_acquire_is_raised_and_nothing_is_released(read: Callable[[Any], Any]) -> None:
    log: list[str] = []
    with pytest.raises(FailureError):
        read(Hooked(array(), log, acquire=fail))
    assert log == []


@pytest.mark.parametrize("copy", COPY.values(), ids=COPY)
def test_an_error_in_release_is_raised_after_a_copy(copy: Callable[[Any], Any]) -> None:
    with pytest.raises(FailureError):
        copy(Hooked(array(), [], release=fail))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("share", SHARING.values(), ids=SHARING)
def test_an_error_in_a_late_release_is_unraisable(share: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Any] = []
    monkeypatch.setattr("sys.unraisablehook", lambda event: heard.append(event.exc_type))
    shared = share(Hooked(array(), [], release=fail))
    del shared
    gc.collect()
    assert heard == [FailureError]


def test_a_failed_use_is_released() -> None:
    log: list[str] = []
    with pytest.raises(ValueError, match="shape"):
        dl.zeros((2, 2))[...] = Hooked(array(), log)
    assert log == ["acquire x", "release x"]
    with pytest.raises(dl.ExchangeError):
        dl.describe(Hooked(array(), log), stream=5)
    assert log == ["acquire x", "release x"] * 2


def test_a_pending_exception_survives_a_release() -> None:
    """A tensor in a frame is released while the frame's exception propagates."""

    def body() -> None:
        shared = dl.from_dlpack(Hooked(array(), log))
        raise KeyError(shared.ndim)

    log: list[str] = []
    with pytest.raises(KeyError, match="2"):
        body()
    gc.collect()
    assert log == ["acquire x", "release x"]


class Labelled(np.ndarray[Any, Any]):
    """An array subclass that is read by its type and has hooks."""

    log: list[str]

    @property
    def __gt_data_interface__(self) -> dict[Any, Any]:
        hooks = {"acquire": lambda: self.log.append("acquire"), "release": lambda: self.log.append("release")}
        return {None: {**self.__array_interface__, **hooks}}


def test_hooks_run_for_arrays_read_by_their_type() -> None:
    memory = array().view(Labelled)
    memory.log = []
    shared = dl.from_dlpack(memory)
    assert (shared.ptr, memory.log) == (memory.ctypes.data, ["acquire"])
    del shared
    assert memory.log == ["acquire", "release"]


@pytest.mark.parametrize("key", ["acquire", "release"])
def test_hooks_that_cannot_be_called_are_refused(key: str) -> None:
    changes: dict[str, Any] = {key: 5}
    with pytest.raises(dl.ExchangeError, match=rf"{key}: .* got 5$"):
        dl.from_dlpack(Hooked(array(), [], **changes))


def test_arithmetic_reads_the_values_after_acquire() -> None:
    class Late:
        def __init__(self) -> None:
            self.memory = np.zeros((3, 4))

        def acquire(self) -> None:
            self.memory[...] = 5.0

        @property
        def __gt_data_interface__(self) -> dict[None, dict[str, Any]]:
            return {None: {**self.memory.__array_interface__, "acquire": self.acquire}}

    assert ((dl.ones((3, 4)) + Late()).to_numpy() == 6).all()
    field = dl.ones((3, 4))
    field += Late()
    assert (field.to_numpy() == 6).all()
