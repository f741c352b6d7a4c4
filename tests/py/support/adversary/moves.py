"""How objects that take part are moved or changed, by their class."""

from __future__ import annotations

import array
import mmap
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import torch

import dlfield as dl

Move = Callable[[Any], object]

# Bytes of an array that has grown, perhaps several times.
LARGEST = 1 << 24


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
    # Not larger: the system has no memory for the added part of one without a file.
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
