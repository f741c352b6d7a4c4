"""`Tensor.__dlpack_c_exchange_api__`: its five C functions, called as a C consumer calls them."""

import ctypes
import re
from ctypes import POINTER, byref, c_void_p
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from catalog import CODES
from dlpack_structs import (
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


def test_readonly_memory_is_not_exported(field: dl.Tensor) -> None:
    """Consumers of the table ignore its flag; those that respect it get a BufferError and may call `__dlpack__`."""
    out = c_void_p(SENTINEL)
    with pytest.raises(dl.ExchangeError, match=r"read-only; .*obj\.copy\(\), .*__dlpack__\(max_version=\(1, 0\)\)"):
        FROM_OBJECT(api().managed_tensor_from_py_object_no_sync)(field.as_readonly(), byref(out))
    assert out.value is None


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
