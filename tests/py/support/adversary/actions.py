"""What a hostile callback does: move memory, drop references, raise, call again, collect garbage."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import dlfield as dl
from adversary.moves import moves_of

if TYPE_CHECKING:
    from adversary.case import Case

# Parts of the names of functions that pass PyTorch's own tensors on: `clone` crashes for one whose storage was freed,
# and NumPy, which reads fill values and for GT4Py's functions, allocates memory for it and leaves that as it is.
READ_BY_OTHERS = ("as_torch", "gt4py.", "full", "fill")


class Thrown(Exception):  # noqa: N818
    """What a callback raises."""


class ThrownInterrupt(KeyboardInterrupt):
    """Ctrl+C in a callback."""


class ThrownExit(SystemExit):
    """`sys.exit` in a callback."""


class ThrownMemoryError(MemoryError):
    """No memory in a callback."""


class ThrownAttributeError(AttributeError):
    """Says that an attribute is absent, which many readers believe."""


THROWN: tuple[type[BaseException], ...] = (
    Thrown,
    ThrownInterrupt,
    ThrownExit,
    ThrownMemoryError,
    ThrownAttributeError,
    TypeError,
    ValueError,
    StopIteration,
    BufferError,
)


def move(case: Case) -> None:
    """Move or change one object that takes part."""
    if case.participants:
        _move(case, case.rng.choice(case.participants))


def move_all(case: Case) -> None:
    """Move or change every object that takes part."""
    for found in list(case.participants):
        _move(case, found)


def is_borrowed_by_rust_numpy(case: Case) -> bool:
    """Whether an argument is one of rust-numpy's, which aborts if an array that it has borrowed has other strides."""
    return case.entry.name.startswith("rust_extension.mixed.") and "read" in case.entry.name


def _move(case: Case, found: Any) -> None:
    name, do = case.rng.choice(list(moves_of(found).items()))
    if issubclass(type(found), np.ndarray) and name not in ("freeze", "thaw") and is_borrowed_by_rust_numpy(case):
        return
    if name == "free the storage" and any(part in case.entry.name for part in READ_BY_OTHERS):
        return
    if case.reading and issubclass(type(found), list):
        return
    # NumPy reads the memory that an entry of a list has stated after it has asked the next entry for its own.
    if case.reading_entries:
        return
    case.note(f"  {name}: {type(found).__name__}")
    # An `__array_finalize__` that resizes the array whose shape is being set has NumPy itself write to freed memory.
    # PyTorch leaves new memory as it is until `_fill_storage`.
    is_array = issubclass(type(found), (np.ndarray, torch.Tensor))
    case.moving += is_array
    try:
        do(found)
    except Exception as error:
        # Refusing is the other right answer.
        case.note(f"    refused: {error!r:.100}")
    finally:
        case.moving -= is_array


def drop(case: Case) -> None:
    """Drop a reference, often the last one, to an object that takes part."""
    kept = [holder for holder in case.holders if holder]
    if kept:
        holder = case.rng.choice(kept)
        del holder[case.rng.randrange(len(holder))]


def drop_all(case: Case) -> None:
    """Drop the case's references to all arguments."""
    for holder in case.holders:
        holder.clear()


def throw(case: Case) -> None:
    """Raise."""
    error = case.rng.choice(THROWN)("thrown by the adversary")
    case.note(f"  raise {type(error).__name__}")
    if not isinstance(error, Exception):
        case.interrupts.append(error)
    raise error


def call_again(case: Case) -> None:
    """Make the same call within the call."""
    with case.nested():
        case.call()


def call_without_end(case: Case) -> None:
    """Make the same call within each call, until Python's limit of recursion."""
    if any(part in case.entry.name for part in READ_BY_OTHERS):
        # NumPy drops the error, and reads the object again in another way: twice as often with each level.
        return
    case.unending = case.reached_the_limit = True
    try:
        case.call()
    finally:
        case.unending = False


def call_other(case: Case) -> None:
    """Make another call with an object that takes part."""
    calls: list[Callable[[Any], object]] = [
        dl.from_dlpack,
        dl.describe,
        dl.as_numpy,
        dl.as_torch,
        dl.from_array,
        dl.get_dims,
        dl.zeros_like,
        lambda found: dl.zeros(1) + found,
        lambda found: found.fill(1),
    ]
    with case.nested():
        found = [*case.participants, *(each for holder in case.holders for each in holder)]
        if found:
            case.calls += 1
            chosen = case.rng.choice(found)
            # NumPy reads a list.
            case.reading_entries += type(chosen) is list
            try:
                case.read(case.rng.choice(calls)(chosen))
            finally:
                case.reading_entries -= type(chosen) is list


def collect(_case: Case) -> None:
    """Collect garbage."""
    gc.collect()


def release_the_gil(_case: Case) -> None:
    """Let other threads run."""
    time.sleep(0)


def in_a_thread(case: Case) -> None:
    """Do something else in another thread, while this one waits without the GIL."""
    other = case.rng.choice([move, move_all, drop, drop_all, call_again, call_other, collect])

    def run() -> None:
        try:
            other(case)
        except BaseException as error:
            case.judge(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def nothing(_case: Case) -> None:
    """Behave well."""


ACTIONS: dict[Callable[[Case], None], int] = {
    nothing: 30,
    move: 40,
    move_all: 25,
    drop: 15,
    drop_all: 8,
    throw: 12,
    call_again: 8,
    call_without_end: 1,
    call_other: 12,
    collect: 6,
    release_the_gil: 4,
    in_a_thread: 10,
}
