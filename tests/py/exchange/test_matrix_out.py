"""Every consumer with tensors of every layout and dtype: it sees dlfield's memory, and keeps it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from catalog import CODES, CPU_PRESETS, dtype_named
from matrix import build, seen, skip_without_library
from matrix_out import CONSUMERS, READONLY_FROM_DLPACK, Consumer


@pytest.fixture(params=CONSUMERS)
def consumer(request: pytest.FixtureRequest) -> Consumer:
    skip_without_library(request.param)
    return CONSUMERS[request.param]


def check(consumer: Consumer, field: dl.Tensor, array: Any, name: str) -> None:
    """Check what the consumer sees of a field with the elements of `array`."""
    what = seen(consumer.take(field))
    assert (what.shape, what.dtype) == (field.shape, field.dtype.name), name
    assert what.memory().tobytes() == array.tobytes(), name
    if field.size:
        steps = zip(what.strides, field.strides, field.shape, strict=True)
        assert what.ptr == field.ptr, name
        assert all(theirs == ours for theirs, ours, extent in steps if extent > 1), name
    assert consumer.never_writes or not what.readonly, name
    if consumer.readonly == "refused" and field.size:
        with pytest.raises(dl.ExchangeError, match="read-only"):
            consumer.take(field.as_readonly())
    elif consumer.readonly != "any" and field.size:
        taken = seen(consumer.take(field.as_readonly()))
        assert (taken.ptr, taken.readonly or False) == (field.ptr, consumer.readonly == "kept"), name


def test_every_layout(consumer: Consumer) -> None:
    dtype = "float64" if "float64" in consumer.dtypes else "float32"
    for layout in consumer.layouts:
        array = build(layout, dtype).array
        check(consumer, dl.from_dlpack(array), array, layout)


def test_every_preset(consumer: Consumer) -> None:
    for preset in CPU_PRESETS:
        if preset == "gtmc" and "row-padded" not in consumer.layouts:
            continue
        field = dl.zeros((3, 4, 5), "float32", backend=preset, dims="JKI", halo=(1, 1, 1))
        array = np.arange(60, dtype="float32").reshape(field.shape)
        field[...] = array
        check(consumer, field, array, preset)


def test_every_dtype(consumer: Consumer) -> None:
    for dtype in CODES:
        field = dl.ones((2, 3), dtype_named(dtype))
        if dtype in consumer.dtypes:
            check(consumer, field, np.ones((2, 3), field.dtype), dtype)


def test_the_memory_outlives_the_tensor(consumer: Consumer) -> None:
    taken = consumer.take(dl.full((1000,), 1.5, "float32"))
    others = [dl.zeros((1000,), "float32") for _ in range(8)]
    assert seen(taken).memory().tolist() == [1.5] * 1000
    assert not any(other[0] for other in others)


COPIES: dict[str, Callable[[dl.Tensor], Any]] = {
    "np.array": np.array,
    "np.from_dlpack": lambda field: np.from_dlpack(field, copy=True),
    "__array__": lambda field: field.__array__(copy=True),
    "as_numpy": lambda field: dl.as_numpy(field, copy=True),
    "versioned capsule": lambda field: field.__dlpack__(max_version=(1, 3), copy=True),
    "legacy capsule": lambda field: field.__dlpack__(copy=True),
    "as_torch": lambda field: dl.as_torch(field, copy=True),
    "as_jax": lambda field: dl.as_jax(field, copy=True),
}


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("preset", ["C", "F", "gtmc"])
def test_copies_are_independent_and_writable(name: str, preset: str) -> None:
    skip_without_library(name)
    for dtype in ("float64", "float32", "bfloat16"):
        if dtype == "bfloat16" and name == "np.from_dlpack":
            continue
        whole = dl.ones((3, 4), dtype_named(dtype), backend=preset)
        for field in (whole, whole.as_readonly()):
            taken = COPIES[name](field)
            what = seen(taken)
            assert what.dtype == dtype
            assert not what.readonly or (name == "np.from_dlpack" and READONLY_FROM_DLPACK)
            assert what.ptr != field.ptr
            assert what.memory().tobytes() == np.ones((3, 4), field.dtype).tobytes()
