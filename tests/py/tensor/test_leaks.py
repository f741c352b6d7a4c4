"""No use of a tensor leaks memory, counted to the byte in a process of its own."""

import copy
import ctypes
import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlpack_structs import release, take
from leak_checks import Growth, grown

MIB = 1 << 20
ROUNDS, ROUNDS_OF_NEW = 500, 30


def consumed(max_version: tuple[int, int] | None) -> Callable[[dl.Tensor], object]:
    return lambda field: release(take(field.__dlpack__(max_version=max_version)))


def failed_setitem(field: dl.Tensor) -> None:
    with suppress(ValueError):
        field[...] = np.zeros(7)


def failed_export(field: dl.Tensor) -> None:
    with suppress(BufferError):
        field.__dlpack__(max_version=(1, 3), dl_device=(2, 0), copy=True)


USES: dict[str, Callable[[dl.Tensor], object]] = {
    "nothing": lambda _field: None,
    "legacy capsule never consumed": lambda field: field.__dlpack__(),
    "versioned capsule never consumed": lambda field: field.__dlpack__(max_version=(1, 3)),
    "copied capsule never consumed": lambda field: field.__dlpack__(max_version=(1, 3), copy=True),
    "legacy capsule consumed": consumed(None),
    "versioned capsule consumed": consumed((1, 3)),
    "export refused": failed_export,
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
    "setitem refused": failed_setitem,
    "repr": lambda field: (repr(field), field._repr_html_()),
}


def failing(error: type[Exception], *args: Any, **keywords: Any) -> Callable[[], None]:
    def allocate() -> None:
        with suppress(error):
            dl.full(*args, **keywords)

    return allocate


ALLOCATIONS: dict[str, Callable[[], object]] = {
    "a block that is kept for the next": lambda: dl.ones((8 * MIB,), "u1"),
    "a block too large to be kept": lambda: dl.ones((33 * MIB,), "u1"),
    "more than there is": failing(MemoryError, (1 << 45,), 0.0, dims=("a long label of this dimension",)),
    "wrong layout": failing(dl.LayoutError, (MIB,), 1, layout=(1,)),
    "a number as shape": lambda: dl.empty(5),
    "a list as shape": lambda: dl.zeros([5, 6]),
    "an array without dimensions as shape": lambda: dl.zeros(np.array(5)),
    "a value beyond 64 bits": lambda: dl.full((5, 6), 2**64),
    "an array of the other byte order": lambda: dl.from_array(np.zeros((5, 6), ">f4")[::2]),
    "a dtype of NumPy": lambda: dl.ones((5, 6), np.float32),
    "an element type by another name": lambda: dl.ones((5, 6), "f4"),
    "blocks of many sizes": lambda: [dl.empty((size,), "u1") for size in range(500, 70_000, 500)],
    "wrong value": failing((TypeError, ValueError), (MIB,), "nonsense"),  # type: ignore[arg-type]
}
LARGE = [*USES, *ALLOCATIONS]


def on_a_small_tensor() -> dict[str, Callable[[], object]]:
    field = dl.ones((4,))
    return {name: partial(use, field) for name, use in USES.items()}


def on_new_tensors() -> dict[str, Callable[[], object]]:
    def using(use: Callable[[dl.Tensor], object]) -> Callable[[], object]:
        return lambda: use(dl.ones((MIB // 8,)))

    return {**{name: using(use) for name, use in USES.items()}, **ALLOCATIONS}


@cache
def small() -> dict[str, Growth]:
    return grown("test_leaks", "on_a_small_tensor", ROUNDS)


@cache
def large() -> dict[str, Growth]:
    return grown("test_leaks", "on_new_tensors", ROUNDS_OF_NEW)


@pytest.mark.parametrize("name", USES)
def test_a_use_of_a_tensor_leaves_nothing_behind(name: str) -> None:
    """Many rounds on a small tensor find leaks of structs, shapes and labels."""
    found = small()[name]
    found.assert_none_in(ROUNDS)


@pytest.mark.parametrize("name", LARGE)
def test_a_use_of_a_new_tensor_leaves_nothing_behind(name: str) -> None:
    found = large()[name]
    found.assert_none_in(ROUNDS_OF_NEW)


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
