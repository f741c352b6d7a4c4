"""What is done with the result of a call: all of its elements are read, and its memory has to be where it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import dlfield as dl
from adversary import actions
from adversary.consumers import consume
from adversary.memory import suspicious

if TYPE_CHECKING:
    from adversary.case import Case

# Parts of the names of functions whose result has elements that nobody has set, or padding. For `gt4py.full` NumPy's
# scalar types read, also in an array that its own `__array_finalize__` has resized.
UNINITIALIZED = ("empty", "storage.storage", "as_storage", "block", "gt4py.full")
# Functions that take any bytes for bools.
ANY_BYTES = ("frombuffer", "from_pointer", "_rebuild")
# Element types that every NumPy has.
PLAIN = ("bool", "int32", "int64", "uint8", "float32", "float64")


def read(case: Case, result: Any, depth: int = 0) -> None:
    """Use a result: all elements of arrays, the fields of a bound call, parts of sequences."""
    if isinstance(result, dl.Descriptor):
        read(case, case.rng.choice((dl.as_numpy, dl.from_dlpack, dl.describe, dl.from_array))(result), depth)
    elif isinstance(result, dl.BoundCall):
        _enter(case, result)
    elif isinstance(result, dl.Tensor):
        # Its values are read again below, in a tenth of the time.
        if case.rng.random() < 0.2:
            repr(result)
        if result.dtype in PLAIN:
            _check(case, np.asarray(result))
        if case.rng.random() < 0.5:
            consume(case, result)
    elif isinstance(result, torch.Tensor):
        _read_torch(case, result)
    elif isinstance(result, np.ndarray):
        case.note(f"  an array of {result.dtype}, {result.shape}, base {type(result.base).__name__}")
        _check(case, result)
    elif isinstance(result, (np.generic, memoryview)):
        _check(case, np.asarray(result))
    elif isinstance(result, (tuple, list)) and depth < 3:
        for each in result[:4]:
            read(case, each, depth + 1)
    elif isinstance(result, dict) and depth < 3:
        for each in list(result.values())[:4]:
            read(case, each, depth + 1)
    elif type(result).__name__ == "PyCapsule":
        read(case, dl.from_dlpack(result), depth)
    elif type(result).__module__.startswith("jax"):
        _check(case, np.asarray(result))


def _read_torch(case: Case, result: Any) -> None:
    # The methods of a subclass act, and PyTorch reads on where that frees the storage.
    case.moving += 1
    try:
        # Perhaps it was an argument, and a callback has freed its storage.
        last = result.storage_offset() + sum(
            (size - 1) * step for size, step in zip(result.shape, result.stride(), strict=True)
        )
        if result.numel() == 0 or (last + 1) * result.itemsize <= result.untyped_storage().nbytes():
            _check(case, result.detach().cpu().numpy())
    finally:
        case.moving -= 1


def check_in_place(case: Case, result: Any) -> None:
    """Check what a function has just returned: nobody can have moved that memory since."""
    if isinstance(result, dl.BoundCall) and case.rng.random() < 0.5:
        final = case.final
        with result as fields:
            if case.final == final:
                check_in_place(case, fields[case.rng.choice(list(fields))])
    elif isinstance(result, dl.BoundCall):
        check_in_place(case, result[case.rng.choice(list(result))])
    elif isinstance(result, dl.Descriptor):
        quiet, case.budget = case.budget, 0
        try:
            dl.describe(result)
        except dl.ExchangeError as error:
            if "moved: " in str(error):
                case.found(f"a description was returned of memory that was moved before: {error}")
        case.budget = quiet


def _enter(case: Case, bound: Any) -> None:
    with bound as fields:
        for name in list(fields)[:4]:
            field = fields[name]
            if isinstance(field, dl.Descriptor):
                writable = not field.readonly
                values = dl.as_numpy(field)
                _check(case, values)
                if writable and values.flags.writeable and case.rng.random() < 0.5:
                    values[...] = 1
                del values
        if case.rng.random() < 0.5:
            actions.move_all(case)


def _check(case: Case, values: np.ndarray[Any, Any]) -> None:
    is_any = any(part in case.entry.name for part in UNINITIALIZED) or (
        values.dtype == bool and case.entry.name in ANY_BYTES
    )
    if not values.dtype.hasobject and not is_any:
        why = suspicious(values)
        if why:
            case.found(why)
