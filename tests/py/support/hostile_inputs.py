"""Arrays whose producers break the rules or move what they have lent, and what happens to a process that takes one."""

import gc
import os
import signal
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

from dlpack_structs import USED, capsule_name
from fakes import DevicelessProducer, FakeTensor, OldProducer, Producer, RaisingProducer, ReturningProducer
from fakes_interfaces import NOWHERE, FakeBuffer, double_matrix, host

VALUES = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
READ_ONLY = 1
# Large enough that freeing it returns it to the system, so that a later read ends the process.
LARGE = 5_000_000


class Made(NamedTuple):
    """An array to take, and whether its memory was released exactly once when it is gone again."""

    taken: Any
    is_settled: Callable[[], bool] = lambda: True


@dataclass(frozen=True)
class HostileInput:
    """An input and the values that a right import of it reads; None if only an error is right.

    `move` is done between the import and the reading.
    """

    what: str
    make: Callable[[], Made]
    values: Sequence[float] | None = None
    move: Callable[[Any], None] = lambda _taken: None
    is_readonly: bool = False


@dataclass(frozen=True)
class Consumer:
    """A library that takes an array; `values` are the first six elements of what `take` returned."""

    take: Callable[[Any], Any]
    values: Callable[[Any], list[float]]
    set_first: Callable[[Any], object]


def _is_released(tensor: FakeTensor) -> bool:
    """Whether the deleter was called once, or the capsule still has to call it."""
    is_taken = any(capsule_name(capsule) == USED[tensor.name] for capsule in tensor.capsules)
    return tensor.deleted == 1 or (tensor.deleted == 0 and not is_taken)


def _dlpack(kind: type[Any] = Producer, **fields: Any) -> Made:
    tensor = FakeTensor(double_matrix(), **fields)
    return Made(kind(tensor), partial(_is_released, tensor))


def _without_deleter() -> Made:
    return Made(Producer(FakeTensor(double_matrix(), null_deleter=True)))


def _named_otherwise() -> Made:
    return Made(ReturningProducer(FakeTensor(double_matrix()).capsule(b"dltensor_other")))


def _on_another_device() -> Made:
    """`__dlpack_device__` says the host, the tensor a GPU."""
    tensor = FakeTensor(double_matrix(), device=(2, 0))
    return Made(Producer(tensor, device=(1, 0)), partial(_is_released, tensor))


def _used_twice() -> Made:
    tensor = FakeTensor(double_matrix())
    producer: Any = ReturningProducer(tensor.capsule())
    np.from_dlpack(producer)
    return Made(producer)


def _misaligned() -> Made:
    memory = bytearray(8 * 6 + 1)
    values = np.frombuffer(memory, np.float64, 6, offset=1).reshape(2, 3)
    values[...] = double_matrix()
    tensor = FakeTensor(values)
    return Made(Producer(tensor), partial(_is_released, tensor))


def _interface(**changes: Any) -> Made:
    return Made(host(double_matrix(), **changes))


def _buffer(**fields: Any) -> Made:
    return Made(FakeBuffer(double_matrix(), **fields))


def _readonly_numpy() -> Made:
    values = double_matrix()
    values.flags.writeable = False
    return Made(values)


def _readonly_interface() -> Made:
    return Made(host(_readonly_numpy().taken))


def _large_torch() -> Made:
    return Made(torch.arange(float(LARGE), dtype=torch.float64))


def _lazy_torch() -> Made:
    return Made(torch.tensor([1 - 2j, 3 - 4j]).conj().imag)


def _grow(taken: Any) -> None:
    with suppress(BufferError):
        taken.extend(taken * 10_000)


def _without_storage(taken: Any) -> None:
    with suppress(RuntimeError):
        taken.untyped_storage().resize_(0)


def _given_other_data(taken: Any) -> None:
    taken.data = torch.zeros(3, dtype=torch.float64)


DLPACK = [
    HostileInput("legacy capsule without strides", partial(_dlpack, version=None, null_strides=True), VALUES),
    HostileInput("`__dlpack__` knows no `max_version`", partial(_dlpack, OldProducer, version=None), VALUES),
    HostileInput("no `__dlpack_device__`", partial(_dlpack, DevicelessProducer), VALUES),
    HostileInput("`byte_offset` 64", partial(_dlpack, byte_offset=64), VALUES),
    HostileInput("deleter NULL", _without_deleter, VALUES),
    HostileInput("address not aligned", _misaligned, VALUES),
    HostileInput("flag READ_ONLY", partial(_dlpack, flags=READ_ONLY), VALUES, is_readonly=True),
    HostileInput(
        "strides of an extent of 1 are nonsense", partial(_dlpack, shape=(1, 3), strides=(-(2**62), 1)), VALUES[:3]
    ),
    HostileInput("size 0 with an invalid address", partial(_dlpack, shape=(0, 3), null_data=True), []),
    HostileInput("`data` NULL", partial(_dlpack, null_data=True)),
    HostileInput("`shape` NULL", partial(_dlpack, null_shape=True)),
    HostileInput("`ndim` -1", partial(_dlpack, ndim=-1)),
    HostileInput("`ndim` 2**31 - 1", partial(_dlpack, ndim=2**31 - 1)),
    HostileInput("an extent of -3", partial(_dlpack, shape=(2, -3))),
    HostileInput("extents whose product overflows", partial(_dlpack, shape=(2**33, 2**33))),
    HostileInput("a stride that overflows", partial(_dlpack, strides=(2**61, 1))),
    HostileInput("2 lanes", partial(_dlpack, dtype=(2, 32, 2))),
    HostileInput("type code 99", partial(_dlpack, dtype=(99, 64, 1))),
    HostileInput("floats of 24 bits", partial(_dlpack, dtype=(2, 24, 1))),
    HostileInput("device type 99", partial(_dlpack, device=(99, 0))),
    HostileInput("`__dlpack_device__` and tensor disagree", _on_another_device),
    HostileInput("version 2.0", partial(_dlpack, version=(2, 0))),
    HostileInput("capsule of another name", _named_otherwise),
    HostileInput("capsule that is used up", _used_twice),
    HostileInput("`__dlpack__` returns 5", lambda: Made(ReturningProducer(5))),
    HostileInput("`__dlpack__` raises SystemExit", lambda: Made(RaisingProducer(SystemExit()))),
]

INTERFACE = [
    HostileInput("`data` (0, False)", partial(_interface, data=(0, False))),
    HostileInput("`data` -8", partial(_interface, data=(-8, False))),
    HostileInput("`shape` (2, -3)", partial(_interface, shape=(2, -3))),
    HostileInput("`shape` (2**40, 2**40)", partial(_interface, shape=(2**40, 2**40))),
    HostileInput("`strides` of another length", partial(_interface, strides=(8,))),
    HostileInput('`typestr` "<f99999999999999"', partial(_interface, typestr="<f99999999999999")),
    HostileInput("`typestr` of Python objects", partial(_interface, typestr="|O8", data=(NOWHERE, False))),
    HostileInput("`data` a buffer that is too short", partial(_interface, data=bytearray(8), strides=None)),
    HostileInput("`mask`", partial(_interface, mask=np.ones((2, 3), bool))),
    HostileInput("`data` (address, True)", _readonly_interface, VALUES, is_readonly=True),
]

BUFFER = [
    HostileInput("`suboffsets`", partial(_buffer, suboffsets=(0, -1))),
    HostileInput('`format` "T{d:x:}"', partial(_buffer, format=b"T{d:x:}")),
    HostileInput("`buf` NULL", partial(_buffer, buf=None)),
    HostileInput("`itemsize` 0", partial(_buffer, itemsize=0)),
]

MOVED = [
    HostileInput("`array.array` that grows", lambda: Made(array("d", VALUES)), VALUES, _grow),
    HostileInput("PyTorch, then `untyped_storage().resize_(0)`", _large_torch, VALUES, _without_storage),
    HostileInput("PyTorch, then `x.data = other`", _large_torch, VALUES, _given_other_data),
    HostileInput("PyTorch, lazily conjugated and negated", _lazy_torch, [2.0, 4.0]),
    HostileInput("NumPy, byte order of another machine", lambda: Made(double_matrix().astype(">f8")), VALUES),
    HostileInput("NumPy, read-only", _readonly_numpy, VALUES, is_readonly=True),
]

INPUTS = {"DLPack": DLPACK, "Array interface": INTERFACE, "Buffer protocol": BUFFER, "Arrays of libraries": MOVED}


def result(consumer: Consumer, hostile: HostileInput) -> str:
    """Return what happens in this process: "correct", "error", "wrong data", "writes" or "panic".

    "writes" is a write to read-only memory. ", leaks" is added if the memory is not released exactly once.
    """
    made = hostile.make()
    try:
        kept = consumer.take(made.taken)
        hostile.move(made.taken)
        values = consumer.values(kept)
        is_right = values == hostile.values
    except BaseException as error:
        found = "panic" if type(error).__name__ == "PanicException" else "error"
        del error
    else:
        found = "correct" if is_right else "wrong data"
        if hostile.is_readonly and is_right:
            try:
                consumer.set_first(kept)
            except Exception:
                pass
            else:
                found = "writes" if consumer.values(kept) != values else found
        del kept
    gc.collect()
    return found if made.is_settled() else f"{found}, leaks"


def outcome(consumer: Consumer, hostile: HostileInput) -> str:
    """Return what happens in a fork of this process: a `result`, or "crash".

    Call it before PyTorch has computed anything: its threads are missing in a fork.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        # A process that hangs is ended by a signal, as one that crashes.
        signal.alarm(60)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.write(writing, result(consumer, hostile).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf8") as pipe:
        found = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return found if status == 0 else f"crash ({signal.Signals(-status).name})" if status < 0 else f"exit ({status})"
