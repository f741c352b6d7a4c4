"""The C exchange API: the table of `Tensor`, called as a C consumer calls it, and imports through a producer's."""

import ctypes
import re
from collections.abc import Callable
from ctypes import POINTER, byref, c_void_p
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from catalog import CODES, READERS, dtype_named
from dlpack_structs import (
    READ_ONLY,
    DLDataType,
    DLDevice,
    DLManagedTensorVersioned,
    DLTensor,
    ExchangeAPI,
    capsule_pointer,
    release,
    shape_of,
)
from exchange_api import ALLOCATE, FROM_OBJECT, SENTINEL, SET_ERROR, WORK_STREAM, adopt, api, borrow
from fakes import FakeTensor, Producer, exchange_type, int_matrix


class Allocation:
    """One call of the allocator; `errors` holds the errors it set, `address` its result."""

    def __init__(
        self, shape: tuple[int, ...], *, dtype: tuple[int, int, int] = (2, 32, 1), device: tuple[int, int] = (1, 0)
    ) -> None:
        self.errors: list[tuple[int | None, str, str]] = []
        extents = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        prototype = DLTensor(device=DLDevice(*device), ndim=len(shape), dtype=DLDataType(*dtype))
        prototype.shape = ctypes.cast(extents, POINTER(ctypes.c_int64))
        out = c_void_p(SENTINEL)
        allocate = ALLOCATE(api().managed_tensor_allocator)
        self.status = allocate(byref(prototype), byref(out), SENTINEL, SET_ERROR(self._error))
        self.address = out.value

    def _error(self, context: int | None, kind: bytes, message: bytes) -> None:
        self.errors.append((context, kind.decode(), message.decode()))

    @property
    def managed(self) -> DLManagedTensorVersioned:
        assert self.address is not None
        return DLManagedTensorVersioned.from_address(self.address)


@pytest.fixture
def field() -> dl.Tensor:
    """3 x 4, its first dimension contiguous and padded to 64 bytes."""
    made = dl.zeros((3, 4), "f4", backend="gt:cpu_ifirst", alignment_size=64)
    made[...] = np.arange(12).reshape(3, 4)
    return made


def test_table_is_on_the_type_with_our_version() -> None:
    table = api()
    assert (table.version.major, table.version.minor) == (1, 3)
    assert table.prev_api is None
    assert "__dlpack_c_exchange_api__" in vars(dl.Tensor)
    functions = [name for name, _kind in ExchangeAPI._fields_[2:]]  # type: ignore[misc]
    assert len(functions) == 5
    assert all(getattr(table, name) for name in functions)


def test_table_is_one_for_the_process() -> None:
    name = b"dlpack_exchange_api"
    addresses = {capsule_pointer(dl.Tensor.__dlpack_c_exchange_api__, name) for _ in range(3)}
    assert addresses == {capsule_pointer(dl.zeros(2).__dlpack_c_exchange_api__, name)}


@pytest.mark.parametrize("value", [np.zeros(3), 3, None])
def test_export_of_another_type_is_an_error(value: object) -> None:
    out = c_void_p(SENTINEL)
    with pytest.raises((TypeError, BufferError)):
        FROM_OBJECT(api().managed_tensor_from_py_object_no_sync)(value, byref(out))
    assert out.value is None
    with pytest.raises((TypeError, BufferError)):
        borrow(value)


def test_work_stream_of_the_host_is_null() -> None:
    out = c_void_p(SENTINEL)
    assert WORK_STREAM(api().current_work_stream)(1, 0, byref(out)) == 0
    assert out.value is None


def test_work_stream_of_a_missing_device_is_an_error() -> None:
    out = c_void_p(SENTINEL)
    with pytest.raises(dl.DeviceError, match="cuda"):
        WORK_STREAM(api().current_work_stream)(2, 0, byref(out))


@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 0, 3)])
def test_allocator_follows_the_prototype(shape: tuple[int, ...]) -> None:
    allocation = Allocation(shape, dtype=(5, 128, 1))
    assert (allocation.status, allocation.errors) == (0, [])
    managed = allocation.managed
    assert (managed.version.major, managed.version.minor, managed.flags) == (1, 3, 0)
    assert (managed.dl_tensor.ndim, shape_of(managed.dl_tensor)) == (len(shape), shape)
    made = adopt(ctypes.addressof(managed))
    assert isinstance(made, dl.Tensor)
    assert (made.shape, made.dtype.name, made.readonly) == (shape, "complex128", False)
    made[...] = 1j
    assert (made.to_numpy() == 1j).all()


@pytest.mark.parametrize("name", CODES)
def test_allocator_knows_every_dtype_it_exports(name: str) -> None:
    allocation = Allocation((3,), dtype=(*CODES[name], 1))
    assert allocation.status == 0, allocation.errors
    assert (allocation.managed.dl_tensor.dtype.code, allocation.managed.dl_tensor.dtype.bits) == CODES[name]
    release(allocation.managed)


@pytest.mark.parametrize(
    ("keywords", "named"),
    [
        ({"shape": (3, -1)}, "-1"),
        ({"shape": (1 << 40, 1 << 40)}, "size|overflow|shape"),
        ({"shape": (1 << 45,)}, "memory|allocate|bytes"),
        ({"shape": (3,), "dtype": (2, 32, 4)}, "lanes"),
        ({"shape": (3,), "dtype": (99, 32, 1)}, "99"),
        ({"shape": (3,), "dtype": (2, 33, 1)}, "33"),
        ({"shape": (3,), "device": (2, 0)}, "cuda"),
        ({"shape": (3,), "device": (99, 0)}, "99"),
    ],
)
def test_allocator_sets_its_error_exactly_when_it_fails(keywords: dict[str, Any], named: str) -> None:
    allocation = Allocation(**keywords)
    assert allocation.status != 0
    assert allocation.address is None
    [(context, kind, message)] = allocation.errors
    assert context == SENTINEL
    assert kind.isidentifier()
    assert re.search(named, message)


ROWS = [[0, 1, 2], [3, 4, 5]]


def test_a_table_that_fails_without_an_exception_is_named(read: Callable[..., Any]) -> None:
    kind = exchange_type(None, silent=True)

    class Both(kind, Producer):  # type: ignore[misc, valid-type]
        pass

    for obj in (kind(), Both(FakeTensor(int_matrix()))):
        with pytest.raises(dl.ExchangeError) as caught:
            read(obj)
        message = str(caught.value)
        assert message.startswith("__dlpack_c_exchange_api__.managed_tensor_from_py_object_no_sync: ")
        assert type(obj).__name__ in message


def test_cuda_cores_view_of_bfloat16_is_an_error_that_names_it() -> None:
    """The view's table fails without an exception."""
    views = pytest.importorskip("cuda.core.utils").StridedMemoryView
    view = views.from_any_interface(dl.zeros(3, dtype_named("bfloat16")), stream_ptr=-1)
    for read in READERS:
        with pytest.raises(dl.ExchangeError, match=r"^__dlpack_c_exchange_api__\.\w+: .*StridedMemoryView"):
            read(view)


def test_a_table_that_raises_a_buffer_error_is_followed_by_dlpack(read: Callable[..., Any]) -> None:
    """dlfield's own table refuses read-only memory so: consumers of `__dlpack__` respect its read-only flag."""

    class Both(exchange_type(None, error=BufferError("not this way")), Producer):  # type: ignore[misc]
        pass

    fake = FakeTensor(int_matrix(), flags=READ_ONLY)
    found = read(Both(fake))
    assert (found.ptr, found.readonly) == (fake.data.ctypes.data, True)
    del found
    assert fake.settled()


def test_other_errors_of_a_table_are_final() -> None:
    class Both(exchange_type(None, error=RuntimeError("mine")), Producer):  # type: ignore[misc]
        pass

    producer = Both(FakeTensor(int_matrix()))
    with pytest.raises(RuntimeError, match="mine"):
        dl.from_dlpack(producer)
    assert not producer.calls
    with pytest.raises(BufferError, match="not this way"):
        dl.from_dlpack(exchange_type(None, error=BufferError("not this way"))())


def test_exchange_api_of_a_foreign_major_is_walked_back() -> None:
    older = exchange_type(FakeTensor(int_matrix()))
    address = capsule_pointer(older.__dlpack_c_exchange_api__, b"dlpack_exchange_api")
    newer = exchange_type(None, version=(2, 0), prev_api=address)
    assert dl.from_dlpack(newer()).to_numpy().tolist() == ROWS
    assert older.handed_out == 1


def test_exchange_api_of_a_foreign_major_alone_moves_on_to_dlpack() -> None:
    class Both(exchange_type(None, version=(2, 0)), Producer):  # type: ignore[misc]
        pass

    assert dl.from_dlpack(Both(FakeTensor(int_matrix()))).to_numpy().tolist() == ROWS


def test_exchange_attribute_that_is_no_capsule() -> None:
    class Odd:
        __dlpack_c_exchange_api__ = 3

    with pytest.raises(dl.Error, match="__dlpack_c_exchange_api__"):
        dl.from_dlpack(Odd())


@pytest.mark.parametrize("take", [dl.describe, dl.from_dlpack, lambda obj: dl.describe(obj, dims="I")])
def test_a_tensor_that_moves_during_the_import_is_described_at_its_new_address(torch: Any, take: Any) -> None:
    """A subclass may run any code in `is_neg`, which tells whether a tensor is negated lazily."""

    class Moving(torch.Tensor):  # type: ignore[misc]
        def is_neg(self) -> bool:
            self.untyped_storage().resize_(8 * 1_000_000)
            return False

    tensor = torch.ones(400_000, dtype=torch.float64).as_subclass(Moving)[::2]
    assert take(tensor).ptr == tensor.data_ptr()
