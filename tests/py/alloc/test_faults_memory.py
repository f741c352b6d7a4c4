"""Python has no memory for the n-th object of a call, for every n.

The call raises MemoryError, or what it raises anyway, or succeeds. Nothing leaks, and the process goes on.
"""

import gc
import operator
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import dlfield as dl
from childproc import run_cases
from dlfield import _native
from leak_checks import live

_testcapi = pytest.importorskip("_testcapi", reason="needs an interpreter with its own test modules")

ARRAY = np.arange(12.0).reshape(3, 4)
# NumPy's own getter crashes without memory, so this is asked for once.
INTERFACE = ARRAY.__array_interface__
FIELD = dl.ones((3, 4), dims="IJ", halo=(1, 0))


class Producer:
    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __dlpack__(self, **keywords: Any) -> Any:
        return ARRAY.__dlpack__(**keywords)


class Interface:
    __array_interface__ = INTERFACE


class Hooks:
    """GT4Py's data interface, with hooks and labels."""

    __gt_dims__ = ("I", "J")
    __gt_origin__ = (1, 0)

    @property
    def __gt_data_interface__(self) -> dict[Any, Any]:
        return {None: lambda: {**INTERFACE, "acquire": lambda: None, "release": lambda: None}}


# Its type knows Python's own containers only.
set_item: Callable[..., Any] = operator.setitem
READ = dl.FieldSpec("float64", "IJ")
WRITTEN = dl.FieldSpec("float64", "IJ", access="w")
SIGNATURE = dl.Signature(a=READ, b=WRITTEN)
COPYING = dl.Signature(on_mismatch="copy", a=dl.FieldSpec("float64", "IJ", layout=(1, 0)), b=WRITTEN)
OUTPUT = np.zeros((3, 4))
PRODUCER, EXPOSING, HOOKED = Producer(), Interface(), Hooks()
DESCRIBED = dl.describe(HOOKED)


@dl.kernel
def nothing(a: READ, b: WRITTEN) -> None:  # type: ignore[valid-type]
    """A stencil that does nothing."""


def rebuilt() -> Any:
    rebuild, state = FIELD.__reduce_ex__(5)
    return rebuild(*state)


# Operators and attributes are called as functions, whose results Python checks: its own loop reports an exception that
# was lost as it reports a traceback without memory. Nothing here ends in a function of NumPy that returns NULL without
# an exception without memory, as `reduce` does.
CALLS: dict[str, Callable[[], Any]] = {
    "zeros": lambda: dl.zeros((3, 4), "float32", backend="gtmc", dims="IJ", halo=(1, 1)),
    "full": lambda: dl.full((3, 4), 2.5, dims=("Cell", "K")),
    "zeros_like": lambda: dl.zeros_like(HOOKED),
    "from_array": lambda: dl.from_array(ARRAY, backend="F"),
    "from_dlpack, NumPy": lambda: dl.from_dlpack(ARRAY),
    "from_dlpack, DLPack": lambda: dl.from_dlpack(PRODUCER),
    "from_dlpack, array interface": lambda: dl.from_dlpack(EXPOSING),
    "from_dlpack, data interface": lambda: dl.from_dlpack(HOOKED),
    "from_dlpack, buffer": lambda: dl.from_dlpack(memoryview(ARRAY)),  # type: ignore[arg-type]
    "from_dlpack, copy": lambda: dl.from_dlpack(PRODUCER, copy=True),
    "from_pointer": lambda: dl.from_pointer(INTERFACE["data"][0], (3, 4), "float64", owner=ARRAY, dims="IJ"),
    "frombuffer": lambda: dl.frombuffer(bytearray(96), (3, 4), "float64"),
    "describe": lambda: dl.describe(HOOKED),
    "attributes of a description": lambda: attributes(DESCRIBED),
    "as_numpy": lambda: dl.as_numpy(PRODUCER),
    "get_dims": lambda: (dl.get_dims(HOOKED), dl.get_origin(HOOKED)),
    "preflight": lambda: (dl.preflight(PRODUCER, "numpy").verdict, dl.preflight(ARRAY, "torch").reason),
    "presets": lambda: sorted(dl.presets()),
    "memory_report": lambda: _native._memory_report()[0],
    "devices": lambda: (str(dl.Device("cuda:1")), hash(dl.Device((1, 0))), dl.Device("cpu") == "cpu"),
    "attributes": lambda: attributes(FIELD),
    "views": lambda: [operator.getitem(FIELD, key) for key in (slice(1, None), (1, 2), (slice(0, None, 2), ...))],
    "properties": lambda: (getattr(FIELD, "T"), getattr(FIELD, "domain_view"), FIELD.as_readonly()),  # noqa: B009
    "shapes": lambda: (FIELD.reshape(4, 3), FIELD.ravel(), FIELD.squeeze(), FIELD.transpose(1, 0), FIELD.copy()),
    "setitem": lambda: [set_item(FIELD, key, value) for key, value in ((..., 1), (0, ARRAY[0] * 0 + 1))],
    "to_numpy": lambda: FIELD.to_numpy(),
    "memoryview": lambda: memoryview(FIELD).tobytes(),
    "capsules": lambda: (FIELD.__dlpack__(), FIELD.__dlpack__(max_version=(1, 3)), FIELD.__dlpack_device__()),
    "interfaces": lambda: (FIELD.__array_interface__["shape"], sorted(FIELD.__gt_data_interface__[None])),
    "pickle": rebuilt,
    "arithmetic": lambda: (operator.add(FIELD, FIELD), operator.mul(FIELD, 2.0), operator.neg(FIELD)),
    "comparison": lambda: operator.lt(FIELD, 3),
    "FieldSpec": lambda: str(dl.FieldSpec("float64 | float32", "IJK", shape=("I", 4, None))),
    "Signature": lambda: str(dl.Signature(a=READ, b=WRITTEN)),
    "bind": lambda: SIGNATURE.bind(a=PRODUCER, b=OUTPUT).domain,
    "bind with hooks": lambda: list(SIGNATURE.bind(a=HOOKED, b=OUTPUT)),
    "bind with copies": lambda: bound(COPYING, PRODUCER),
    "kernel": lambda: nothing(HOOKED, OUTPUT),
    "wrong shape": lambda: dl.zeros((-1,)),
    "wrong dims": lambda: dl.zeros((2,), dims="II"),
    "wrong type": lambda: dl.zeros("x"),  # type: ignore[arg-type]
    "wrong keyword": lambda: dl.zeros((2,), shapes=2),  # type: ignore[call-arg]
    "wrong value": lambda: set_item(FIELD, ..., np.ones((2, 2))),
    "wrong key": lambda: operator.getitem(FIELD, "I"),
    "no array": lambda: dl.from_dlpack(3),
    "wrong argument": lambda: SIGNATURE.bind(a=PRODUCER, b=3),
    "missing argument": lambda: SIGNATURE.bind(a=PRODUCER),
}


def attributes(field: Any) -> list[Any]:
    names = "shape strides dims origin halo layout dtype ptr nbytes device readonly ndim size itemsize"
    return [getattr(field, name) for name in names.split()]


def bound(signature: dl.Signature, argument: Any) -> None:
    with signature.bind(a=argument, b=OUTPUT) as arguments:
        _ = (arguments.a, arguments["b"])


def summary(result: Any) -> Any:
    """What two results of a call have in common."""
    if isinstance(result, (tuple, list)):
        return [summary(item) for item in result]
    if isinstance(result, dl.Tensor):
        return result.shape, result.strides, result.dims, result.tobytes()
    if isinstance(result, np.ndarray):
        return result.shape, result.tobytes()
    return result if isinstance(result, (str, int, bytes, bool, type(None))) else type(result)


class Outcome(NamedTuple):
    """What a call returned or raised; without the message, which may have less in it for want of memory."""

    result: Any = None
    error: type[BaseException] | None = None


def outcome(call: Callable[[], Any]) -> Outcome:
    try:
        result = call()
    except BaseException as error:
        return Outcome(error=type(error))
    return Outcome(result=summary(result))


def without_memory(call: Callable[[], Any], number: int) -> Outcome:
    """Run the call; Python has no memory for one object, that with this number."""
    try:
        _testcapi.set_nomemory(number, number + 1)
        try:
            result = call()
        finally:
            _testcapi.remove_mem_hooks()
    except SystemError as error:
        # What Python says where it has no memory for a line of the traceback.
        return Outcome(error=MemoryError if str(error) == "error return without exception set" else SystemError)
    except BaseException as error:
        return Outcome(error=type(error))
    return Outcome(result=summary(result))


def faults(call: Callable[[], Any], expected: Outcome) -> Iterator[tuple[int, Outcome]]:
    """Yield the outcome for each object of the call. It has no further ones if it has gone well for so many numbers."""
    well = number = 0
    while well < 12:
        found = without_memory(call, number)
        well = well + 1 if found == expected else 0
        yield number, found
        number += 1


def grows(use: Callable[[], Any]) -> bool:
    """Whether each of some rounds leaves an object behind. The interpreter's own tables grow for hundreds of rounds."""
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(100):
        use()
    gc.collect()
    return sys.getallocatedblocks() - before >= 50


def check(name: str, counts: bool) -> None:
    """Print what is wrong with a call, also leaks if it `counts` objects; a crash ends the process."""
    # What PyO3 and Python say of errors that they cannot raise.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    call = CALLS[name]
    expected = outcome(call)
    for number, found in faults(call, expected):
        if found not in (expected, Outcome(error=MemoryError)):
            print(f"{name}, object {number}: {found}, not {expected}")
    before = live()
    list(faults(call, expected))
    if counts and all(grows(lambda: list(faults(call, expected))) for _ in range(8)):
        print(f"{name}: leaks objects")
    if live() != before:
        print(f"{name}: {live()} blocks and bytes, {before} before")


# Thousands of calls each, until the tables of the interpreter grow no more.
COUNTED = ("full", "from_dlpack, DLPack", "from_dlpack, data interface", "setitem", "bind with hooks", "wrong shape")
needs_memory = pytest.mark.skipif(
    sys.version_info >= (3, 13), reason="Python 3.13 crashes without memory for a dictionary, by itself too"
)


@needs_memory
def test_every_call_survives_each_failure() -> None:
    cases = {name: f"check({name!r}, {name in COUNTED})" for name in CALLS}
    run_cases("from test_faults_memory import check", cases)


@needs_memory
@pytest.mark.exhaustive
def test_no_call_leaks_objects() -> None:
    cases = {name: f"check({name!r}, True)" for name in CALLS if name not in COUNTED}
    run_cases("from test_faults_memory import check", cases)
