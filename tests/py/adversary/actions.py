"""What a hostile callback does: move memory, drop references, raise, call again, collect garbage."""

from __future__ import annotations

import array
import gc
import mmap
import threading
import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import torch

import dlfield as dl

if TYPE_CHECKING:
    from adversary.case import Case

Move = Callable[[Any], object]

# Parts of the names of functions that pass PyTorch's own tensors on: `clone` crashes for one whose storage was freed, and NumPy,
# which reads fill values and for GT4Py's functions, allocates memory for it and leaves that as it is.
READ_BY_OTHERS = ("as_torch", "gt4py.", "full", "fill")

# Bytes of an array that has grown, perhaps several times.
LARGEST = 1 << 24


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


def _set(name: str, value: Callable[[Any], Any]) -> Move:
    """A move that sets an attribute, without NumPy's warning that it is deprecated."""

    def move(found: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            setattr(found, name, value(found))

    return move


def _grow(found: Any, factor: int) -> None:
    if factor * found.nbytes > LARGEST:
        raise MemoryError("it has grown enough")
    # NumPy clears the new elements of writable arrays only.
    found.setflags(write=True)
    found.resize(factor * found.size + 1, refcheck=False)


# Not `__setstate__`: NumPy then frees memory that has users, views of its own included.
MOVES_OF_NUMPY: dict[str, Move] = {
    "grow": lambda found: _grow(found, 4),
    "grow further": lambda found: _grow(found, 64),
    "shrink": lambda found: found.resize(1, refcheck=False),
    "reshape": _set("shape", lambda found: (1, found.size)),
    "swap the axes": _set("strides", lambda found: (0,) * found.ndim),
    "set the dtype": _set("dtype", lambda found: f"V{found.itemsize}"),
    "freeze": lambda found: found.setflags(write=False),
    "thaw": lambda found: found.setflags(write=True),
}


def _resized_storage(found: Any) -> None:
    if not found.untyped_storage().resizable():
        # PyTorch raises after it has set the shape, which then reaches past the storage.
        raise RuntimeError("not resizable")
    found.resize_(4 * found.numel() + 1)
    _fill_storage(found)


def _grown_storage(found: Any) -> None:
    found.untyped_storage().resize_(1 << 20)
    _fill_storage(found)


def _fill_storage(found: Any) -> None:
    # PyTorch leaves new memory as it is, and other tensors may be on it.
    torch.empty(0, dtype=torch.uint8).set_(found.untyped_storage()).fill_(1)


MOVES_OF_TORCH: dict[str, Move] = {
    "set data": lambda found: setattr(found, "data", torch.zeros(3, dtype=found.dtype)),
    "set_": lambda found: found.set_(),
    "resize_": _resized_storage,
    "free the storage": lambda found: found.untyped_storage().resize_(0),
    "grow the storage": _grown_storage,
    "transpose": lambda found: found.t_(),
    "require a gradient": lambda found: found.requires_grad_(),
    "swap": lambda found: torch.utils.swap_tensors(found, torch.zeros(2, dtype=found.dtype)),
}
MOVES_OF_LISTS: dict[str, Move] = {
    "clear": lambda found: found.clear(),
    "append": lambda found: found.append(1),
    "pop": lambda found: found.pop(),
    "lengthen": lambda found: found.extend([1] * 1000),
}
MOVES: dict[type, dict[str, Move]] = {
    np.ndarray: MOVES_OF_NUMPY,
    torch.Tensor: MOVES_OF_TORCH,
    list: MOVES_OF_LISTS,
    dict: {
        "clear": lambda found: found.clear(),
        "pop": lambda found: found.popitem(),
        "insert": lambda found: found.update({f"other {number}": None for number in range(100)}),
    },
    bytearray: {"clear": lambda found: found.clear(), "lengthen": lambda found: found.extend(bytes(1 << 20))},
    array.array: {"pop": lambda found: found.pop(), "lengthen": lambda found: found.extend([1] * 100_000)},
    memoryview: {"release": lambda found: found.release()},
    # Not larger: the system has no memory for what is added to one without a file.
    mmap.mmap: {"close": lambda found: found.close(), "shrink": lambda found: found.resize(1)},
    jax.Array: {"delete": lambda found: found.delete()},
    dl.Tensor: {"set the halo": lambda found: setattr(found, "halo", ((0, 0),) * found.ndim)},
    object: {
        "delete the attributes": lambda found: found.__dict__.clear(),
        "change the class": lambda found: setattr(found, "__class__", type("Other", (), {})),
    },
}


def moves_of(found: Any) -> dict[str, Move]:
    """What can be done to an object, by the first class in the table that is its own or a base: `__class__` may act."""
    return next(moves for kind, moves in MOVES.items() if issubclass(type(found), kind))


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
            # NumPy reads a list, and reads on in one that is shortened meanwhile.
            case.reading += type(chosen) is list
            try:
                case.read(case.rng.choice(calls)(chosen))
            finally:
                case.reading -= type(chosen) is list


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
