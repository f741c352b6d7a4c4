"""Device memory exchanged with CuPy, both ways: same elements, no needless copy, in stream order."""

from __future__ import annotations

import ast
import gc
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import cupy_double
import dlfield as dl
from dlfield import storage
from driver import DRIVER, IS_FAKE
from storages import copies

SHAPE = (4, 6)
VALUES = np.arange(24.0).reshape(SHAPE)
# Without memory pools an allocation waits for all queued work.
reports_races = pytest.mark.skipif(
    not (IS_FAKE and DRIVER is not None and DRIVER.has_pools), reason="only the double reports races, if nothing waits"
)


def field_on(device: str = "cuda:0", **keywords: Any) -> dl.Tensor:
    return dl.from_array(VALUES, device=device, **keywords)


def on_host(field: Any) -> Any:
    return np.asarray(field.to_device("cpu"))


FIELDS: dict[str, Callable[[], dl.Tensor]] = {
    "compact": field_on,
    "padded": lambda: field_on(alignment_size=64, padding="row"),
    "F order": lambda: field_on(backend="F"),
    "aligned": lambda: field_on(backend="gt:gpu", halo=(1, 1)),
    "managed": lambda: field_on("cuda_managed"),
    "last device": lambda: field_on(f"cuda:{dl.cuda.device_count() - 1}"),
}
VIEWS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda array: array,
    "inner": lambda array: array[1:3, 2:],
    "backwards": lambda array: array[::-1, ::-2],
    "turned": lambda array: array.T[1:],
    "row": lambda array: array[2],
    "element": lambda array: array[1:2, 3:4][0, :][:1],
    "empty": lambda array: array[:0],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("make", FIELDS.values(), ids=FIELDS)
def test_the_same_elements(cupy: Any, make: Callable[[], dl.Tensor], view: Callable[[Any], Any]) -> None:
    field = make()
    part, expected = view(field), VALUES.copy()
    array = dl.as_cupy(part, copy=False)
    assert isinstance(array, cupy.ndarray)
    assert (array.shape, array.dtype) == (part.shape, part.dtype)
    assert cupy.asnumpy(array).tolist() == view(VALUES).tolist()
    if part.size:
        assert (array.data.ptr, array.strides) == (part.ptr, part.strides)
        assert array.device.id == part.device.id
    with cupy.cuda.Device(part.device.id):
        array *= 10
    view(expected)[...] *= 10
    assert on_host(field).tolist() == expected.tolist()


def test_to_cupy_and_to_ndarray_copy_nothing(cupy: Any) -> None:
    field = field_on(alignment_size=64)
    with copies():
        for array in (field.to_cupy(), field.to_ndarray(), dl.as_cupy(field), dl.as_cupy(field, copy=False)):
            assert isinstance(array, cupy.ndarray)
            assert array.data.ptr == field.ptr
        assert dl.as_cupy(array) is array
        other = dl.as_cupy(field, copy=True)
        assert other.data.ptr != field.ptr
        other[...] = 0
    assert on_host(field).tolist() == VALUES.tolist()


def test_a_scalar_field(cupy: Any) -> None:
    field = dl.full((), 2.5, device="cuda:0")
    array = field.to_cupy()
    assert (array.shape, cupy.asnumpy(array)) == ((), 2.5)
    array[...] = 4
    assert float(on_host(field)) == 4


def test_the_pointer_of_a_storage(cupy: Any) -> None:
    field = storage.storage(VALUES, device="gpu", managed=None)
    pointer = field.device_data
    assert isinstance(pointer, cupy.cuda.MemoryPointer)
    assert pointer.ptr == field.to_cupy().data.ptr
    del field
    gc.collect()
    assert cupy.asnumpy(cupy.ndarray(SHAPE, "float64", pointer)).tolist() == VALUES.tolist()


def test_read_only_memory(cupy: Any) -> None:
    field: Any = field_on().as_readonly()
    assert dl.preflight(field, "cupy").verdict == "copy"
    for refused in (field.to_cupy, field.to_ndarray, lambda: dl.as_cupy(field, copy=False)):
        with pytest.raises(dl.ExchangeError, match="read-only"):
            refused()
    with copies():
        array = dl.as_cupy(field)
        array[...] = 0
    with pytest.raises(dl.ExchangeError, match="read-only"):
        field[VALUES > 5] = 0
    assert field[VALUES > 5].shape == (18,)
    assert on_host(field).tolist() == VALUES.tolist()
    assert cupy.asnumpy(array).tolist() == np.zeros(SHAPE).tolist()


def test_memory_of_the_host(cupy: Any) -> None:
    field = dl.from_array(VALUES)
    with copies(), pytest.raises(dl.NoSuchBufferError):
        field.to_cupy()
    with copies(), pytest.raises(dl.ExchangeError, match="copy=False"):
        dl.as_cupy(field, copy=False)
    with copies(to_device=1):
        array = dl.as_cupy(field)
    assert cupy.asnumpy(array).tolist() == VALUES.tolist()


def test_there_and_back(cupy: Any) -> None:
    made = cupy.asarray(VALUES)
    with copies():
        for read in (dl.from_dlpack, dl.describe):
            field = read(made[1:, ::2].T)
            assert (field.ptr, field.strides, str(field.device)) == (made.data.ptr + 48, (16, 48), "cuda:0")
            assert not field.readonly
        back = dl.as_cupy(dl.from_dlpack(made))
        assert (back.data.ptr, back.strides) == (made.data.ptr, made.strides)
        del made
        gc.collect()
        back[0, 0] = 7
    assert cupy.asnumpy(back)[0].tolist() == [7, 1, 2, 3, 4, 5]


KEYS: dict[str, Any] = {
    "list": [0, 2],
    "array": np.array([3, 0, 3]),
    "mask": VALUES % 5 == 0,
    "mask of rows": np.array([True, False, False, True]),
    "pairs": ([0, 2], [1, 5]),
    "row and list": (1, [0, 2]),
    "slice and list": (slice(None, None, 2), [4, 1]),
    "nothing": [],
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("name", [name for name in FIELDS if name != "managed"])
def test_positions(cupy: Any, name: str, key: Any) -> None:
    field, expected = FIELDS[name](), VALUES.copy()
    found = field[key]
    assert isinstance(found, cupy.ndarray)
    assert found.device.id == field.device.id
    with cupy.cuda.Device(field.device.id):
        assert cupy.asnumpy(found).tolist() == VALUES[key].tolist()
        found[...] = -1
    assert on_host(field).tolist() == VALUES.tolist()
    field[key] = expected[key] = -1
    assert on_host(field).tolist() == expected.tolist()


@pytest.mark.usefixtures("cupy")
def test_a_storage_is_only_read_where_it_is_assigned_to_positions() -> None:
    field, values = field_on(), storage.storage(-VALUES[:2], device="gpu")
    values.synchronize()
    with copies(to_device=1):
        field[np.array([1, 3])] = values
        # The positions are copied to the device.
    assert isinstance(values, storage.SoftwareManagedGPUStorage)
    assert values.sync_state.state == storage.SyncState.SYNC_CLEAN
    assert on_host(field)[[1, 3]].tolist() == (-VALUES[:2]).tolist()


def test_cupys_arrays_are_positions_and_values(cupy: Any) -> None:
    field, source = dl.zeros(SHAPE, alignment_size=64, device="cuda:0"), cupy.asarray(VALUES)
    positions = cupy.asarray(np.array([2, 0]))
    with copies():
        field[...] = source
        field[1:3, 2] = source[:2, 0]
        field[positions] = field[positions] * 2
    assert on_host(field)[:, 2].tolist() == [4, 0, 12, 20]


@contextmanager
def working_on(cupy: Any, names: str) -> Iterator[None]:
    """Set dlfield's and CuPy's current streams; CuPy's waits for the default stream only if that is dlfield's."""
    one, other = (cupy.cuda.Stream(non_blocking=names != "the default and one") for _ in range(2))
    ours, theirs = {
        "one and another": (one.ptr, other),
        "one and the default": (one.ptr, cupy.cuda.Stream.null),
        "the default and one": (1, one),
        "the same": (one.ptr, one),
    }[names]
    with theirs, dl.cuda.stream(ours):
        yield
    gc.collect()


streams = pytest.mark.parametrize(
    "streams", ["one and another", "one and the default", "the default and one", "the same"]
)


@streams
def test_cupy_works_after_us(cupy: Any, streams: str) -> None:
    with working_on(cupy, streams):
        field = dl.full(SHAPE, 2.5, device="cuda:0")
        assert cupy.asnumpy(field.to_cupy() * 2).tolist() == np.full(SHAPE, 5.0).tolist()
        del field


@streams
def test_we_work_after_cupy(cupy: Any, streams: str) -> None:
    with working_on(cupy, streams):
        field = dl.zeros(SHAPE, device="cuda:0")
        array = field.to_cupy()
        array += 3
        field = dl.from_dlpack(array)
        assert (field.ptr, on_host(field).tolist()) == (array.data.ptr, np.full(SHAPE, 3.0).tolist())
        field[1:] = 0
        array = field.to_cupy()
        array += 1
        made = dl.from_dlpack(array * 2)
        assert on_host(made).tolist() == [[8.0] * 6] + [[2.0] * 6] * 3
        del field, array, made


@streams
def test_positions_come_in_order(cupy: Any, streams: str) -> None:
    """CuPy's access by positions is ordered between dlfield's work before and after it."""
    with working_on(cupy, streams):
        field, new = dl.full(SHAPE, 2.0, device="cuda:0"), dl.full((2, 6), 5.0, device="cuda:0")
        field[[0, 2]] = new
        new[...] = 0
        found = field[[0, 1]]
        field[1] = 1
        assert on_host(field).tolist() == [[5.0] * 6, [1.0] * 6, [5.0] * 6, [2.0] * 6]
        assert cupy.asnumpy(found).tolist() == [[5.0] * 6, [2.0] * 6]
        del field, new, found


@streams
def test_arithmetic_comes_in_order(cupy: Any, streams: str) -> None:
    with working_on(cupy, streams):
        a, b = dl.full((4, 4), 2.0, device="cuda:0"), dl.full((4,), 3.0, dims="J", device="cuda:0")
        c: Any = a * b
        a[...] = 0
        c += b
        b[...] = 0
        total, wide = np.sum(c, axis=0), dl.empty((2, 4), dims=("0", "J"), device="cuda:0")
        np.sum(c, axis=0, out=wide)  # type: ignore[call-overload]
        c[...] = 0
        assert on_host(total).tolist() == [36.0] * 4
        assert on_host(wide).tolist() == [[36.0] * 4] * 2
        assert on_host(a + b + c).tolist() == np.zeros((4, 4)).tolist()
        del a, b, c, total, wide


@streams
def test_masks_come_in_order(cupy: Any, streams: str) -> None:
    with working_on(cupy, streams):
        a, mask = dl.full((8,), 2.0, device="cuda:0"), dl.zeros((8,), "?", device="cuda:0")
        mask[:4] = True
        a[mask] = 5
        mask[...] = True
        selected = a[mask]
        mask[...] = False
        a[...] = dl.zeros((8,), device="cuda:0")
        assert selected.get().tolist() == [5.0] * 4 + [2.0] * 4
        assert a.tolist() == [0.0] * 8
        del a, mask, selected


@streams
def test_memory_of_cupy_is_released_after_our_work(cupy: Any, streams: str) -> None:
    with working_on(cupy, streams):
        target = dl.zeros(SHAPE, device="cuda:0")
        field = dl.from_dlpack(cupy.asarray(VALUES) + 1)
        target[...] = field
        del field
        gc.collect()
        assert on_host(target).tolist() == (VALUES + 1).tolist()
        del target


@pytest.mark.misuse("races")
@reports_races
@pytest.mark.parametrize("reads", [False, True])
def test_the_double_sees_a_missing_wait(cupy: Any, reads: bool) -> None:
    """The test double reports the races that the tests above rule out, also if CuPy only reads."""
    with working_on(cupy, "one and another"):
        array = cupy.asarray(VALUES)
        if reads:
            result = array * 2
            dl.from_dlpack(array, stream=-1)[...] = 0
            del result
        else:
            array *= 2
            assert on_host(dl.from_dlpack(array, stream=-1)).tolist() != (VALUES * 2).tolist()
        del array


def test_cupy_asarray_waits_for_the_stream_of_the_interface(cupy: Any) -> None:
    """`cupy.asarray` waits for the stream that `__cuda_array_interface__` states."""
    with cupy.cuda.Stream(non_blocking=True) as other:
        field = field_on(alignment_size=64)
        array = cupy.asarray(field)
        assert (array.data.ptr, array.strides) == (field.ptr, field.strides)
        array += 1
        other.synchronize()
    assert on_host(field).tolist() == (VALUES + 1).tolist()


@pytest.mark.usefixtures("cupy")
def test_what_cupy_refuses() -> None:
    """CuPy rejects NumPy's arrays and other host values, and the test double accepts no more than CuPy."""
    array = field_on().to_cupy()
    for other in (VALUES, dl.from_array(VALUES), [1.0] * 6):
        # Where CuPy leaves the sum to a field, the error is the field's.
        with pytest.raises((TypeError, dl.DeviceError)):
            array + other
    with pytest.raises(TypeError):
        np.asarray(array)
    with pytest.raises(ValueError, match="non-scalar"):
        array[...] = VALUES


# The test double of CuPy takes the arguments that CuPy takes, so that a call which works there works on a GPU.

METHODS = ("astype", "copy", "flatten", "ravel")


def documented(method: Any) -> list[str]:
    """Names of the parameters of a method that Cython compiled: its docstring starts with the signature."""
    line = method.__doc__.strip().splitlines()[0].split("(", 1)[1].rpartition(")")[0]
    found = ast.parse(f"def method({line}): pass").body[0]
    assert isinstance(found, ast.FunctionDef)
    return [argument.arg for argument in found.args.args]


def named(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


@pytest.mark.parametrize("name", [*cupy_double.REDUCTIONS, *METHODS])
def test_arguments_are_cupys(name: str) -> None:
    cupy = pytest.importorskip("cupy")
    if name in METHODS:
        expected, found = documented(getattr(cupy.ndarray, name)), named(getattr(cupy_double.ndarray, name))
    else:
        expected, found = named(getattr(cupy, name)), named(cupy_double.REDUCTIONS[name])
    assert found == expected
