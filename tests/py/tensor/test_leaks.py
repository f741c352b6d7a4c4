"""No use of a tensor leaks memory, counted to the byte in a process of its own."""

import copy
import ctypes
import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlpack_structs import release, take
from fakes import ProducerWithoutKeywords, int_matrix
from leak_checks import grown

MIB = 1 << 20


def consumed(max_version: tuple[int, int] | None) -> Callable[[dl.Tensor], object]:
    return lambda field: release(take(field.__dlpack__(max_version=max_version)))


def refused(call: Callable[..., object], *errors: type[BaseException]) -> Callable[..., None]:
    """Make the call without its error."""

    def run(*arguments: object) -> None:
        with suppress(*errors or (TypeError, ValueError)):
            call(*arguments)

    return run


ARRAY = int_matrix()
OLD = ProducerWithoutKeywords(ARRAY)
untyped: Any = dl
untyped_ufunc: Any = np.copysign


USES: dict[str, Callable[[dl.Tensor], object]] = {
    "nothing": lambda _field: None,
    "legacy capsule never consumed": lambda field: field.__dlpack__(),
    "versioned capsule never consumed": lambda field: field.__dlpack__(max_version=(1, 3)),
    "copied capsule never consumed": lambda field: field.__dlpack__(max_version=(1, 3), copy=True),
    "legacy capsule consumed": consumed(None),
    "versioned capsule consumed": consumed((1, 3)),
    "export refused": refused(
        lambda field: field.__dlpack__(max_version=(1, 3), dl_device=(2, 0), copy=True), BufferError
    ),
    "np.from_dlpack": np.from_dlpack,
    "np.from_dlpack copied": lambda field: np.from_dlpack(field, copy=True),
    "np.asarray": np.asarray,
    "np.array": np.array,
    "to_numpy": dl.Tensor.to_numpy,
    "memoryview": memoryview,
    "__array_interface__": lambda field: field.__array_interface__,
    "__gt_data_interface__": lambda field: field.__gt_data_interface__,
    "describe": dl.describe,
    "from_dlpack": dl.from_dlpack,
    "from_dlpack copied": lambda field: dl.from_dlpack(field, copy=True),
    "views": lambda field: (field[1:], field[::2].T, field.domain_view, field.as_readonly()),
    "copies": lambda field: (field.copy(), copy.copy(field), copy.deepcopy(field)),
    "like": lambda field: (dl.empty_like(field), dl.from_array(field)),
    "pickle": lambda field: pickle.loads(pickle.dumps(field)),
    "pickle out of band": lambda field: pickle.dumps(field, 5, buffer_callback=lambda _buffer: True),
    "setitem": lambda field: field.__setitem__(..., 2),
    "setitem refused": refused(lambda field: field.__setitem__(..., np.zeros(7))),
    "repr": lambda field: (repr(field), field._repr_html_()),
    "ufunc": lambda field: untyped_ufunc(field, field, out=field),
    "ufunc of Python refused": refused(np.frompyfunc(lambda x: x, 1, 1)),
    "ufunc of other sizes refused": refused(lambda field: field[:1] + dl.ones((3,))),
    "retry without keywords": lambda _field: dl.describe(OLD),
    "retry without keywords, owned": lambda _field: dl.from_dlpack(OLD),
    "unknown keyword": refused(lambda _field: untyped.describe(ARRAY, unknown=1)),
    "argument given twice": refused(lambda _field: untyped.describe(ARRAY, obj=ARRAY)),
    "wrong labels": refused(lambda _field: dl.describe(ARRAY, dims="I")),
    "wrong max_version": refused(lambda field: untyped.Tensor.__dlpack__(field, max_version="new")),
    "no array": refused(lambda _field: dl.describe(5)),
}


ALLOCATIONS: dict[str, Callable[[], object]] = {
    "a block that is kept for the next": lambda: dl.ones((8 * MIB,), "u1"),
    "a block too large to be kept": lambda: dl.empty((33 * MIB,), "u1"),
    "more than there is": refused(lambda: dl.zeros((1 << 45,), dims=("a long label of this dimension",)), MemoryError),
    "wrong layout": refused(lambda: dl.ones((MIB,), layout=(1,))),
    "a number as shape": lambda: dl.empty(5),
    "a list as shape": lambda: dl.zeros([5, 6]),
    "an array without dimensions as shape": lambda: dl.zeros(np.array(5)),
    "a value beyond 64 bits": lambda: dl.full((5, 6), 2**64),
    "an array of the other byte order": lambda: dl.from_array(np.zeros((5, 6), ">f4")[::2]),
    "a dtype of NumPy": lambda: dl.ones((5, 6), np.float32),
    "an element type by another name": lambda: dl.ones((5, 6), "f4"),
    "blocks of many sizes": lambda: [dl.empty((size,), "u1") for size in range(500, 70_000, 500)],
    "wrong value": refused(lambda: untyped.full((MIB,), "nonsense")),
}


def on_a_small_tensor() -> dict[str, Callable[[], object]]:
    field = dl.ones((4,))
    return {name: partial(use, field) for name, use in USES.items()}


def on_new_tensors() -> dict[str, Callable[[], object]]:
    def using(use: Callable[[dl.Tensor], object]) -> Callable[[], object]:
        return lambda: use(dl.empty((MIB // 32,)))

    return {**{name: using(use) for name, use in USES.items()}, **ALLOCATIONS}


@pytest.mark.parametrize(("uses", "rounds"), [("on_a_small_tensor", 500), ("on_new_tensors", 30)])
def test_a_use_leaves_nothing_behind(uses: str, rounds: int) -> None:
    """Many rounds on a small tensor find leaks of structs, shapes and labels."""
    found = grown("test_leaks", uses, rounds)
    assert found.keys() >= USES.keys()
    assert {name: growth for name, growth in found.items() if not growth.is_none_in(rounds)} == {}


def resident(field: dl.Tensor) -> int:
    """How many pages of the field's memory are in RAM."""
    page = 4096
    first, last = field.ptr // page, -(-(field.ptr + field.nbytes) // page)
    found = (ctypes.c_ubyte * (last - first))()
    assert ctypes.CDLL(None).mincore(ctypes.c_void_p(first * page), ctypes.c_size_t((last - first) * page), found) == 0
    return sum(byte & 1 for byte in found)


def test_large_zeros_take_no_memory_until_they_are_written() -> None:
    field = dl.zeros((64 * MIB,), "u1")
    assert resident(field) == 0
    assert field.ptr % (2 * MIB) < MIB // 4, "near a boundary of huge pages"
    field[...] = 1
    assert resident(field) <= 64 * MIB // 4096 + 1
