"""Structs of `Tensor.__dlpack__` and of the exchange table, field by field, and the arguments of `__dlpack__`."""

import ctypes
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import dlfield as dl
from catalog import CODES, SUBBYTE_CODES, dtype_named
from dlpack_structs import (
    IS_COPIED,
    LEGACY,
    READ_ONLY,
    SUBBYTE_PADDED,
    VERSIONED,
    DLTensor,
    bytes_at,
    capsule_name,
    legacy,
    release,
    shape_of,
    strides_of,
    take,
    versioned,
)
from exchange_api import borrow, export


class Exported(NamedTuple):
    """A struct, its flags, if it has any, and what keeps it alive."""

    tensor: DLTensor
    flags: int | None
    keeper: object


def versioned_of(field: dl.Tensor, **keywords: Any) -> Exported:
    capsule = field.__dlpack__(max_version=(1, 3), **keywords)
    managed = versioned(capsule)
    return Exported(managed.dl_tensor, managed.flags, capsule)


def legacy_of(field: dl.Tensor, **keywords: Any) -> Exported:
    capsule = field.__dlpack__(**keywords)
    return Exported(legacy(capsule).dl_tensor, None, capsule)


def exported(field: dl.Tensor) -> Exported:
    managed = export(field)
    assert (managed.version.major, managed.version.minor) == (1, 3)
    return Exported(managed.dl_tensor, managed.flags, managed)


EXPORTS: dict[str, Callable[[dl.Tensor], Exported]] = {
    "versioned capsule": versioned_of,
    "legacy capsule": legacy_of,
    "exchange table": exported,
    "exchange table, borrowed": lambda field: Exported(borrow(field), None, field),
}


@pytest.fixture
def field() -> dl.Tensor:
    """3 x 4 with padded rows, values 0 to 11."""
    made = dl.zeros((3, 4), "f4", alignment_size=64)
    made[...] = np.arange(12).reshape(3, 4)
    return made


@pytest.mark.parametrize("name", EXPORTS)
def test_every_field_of_the_struct(name: str, field: dl.Tensor) -> None:
    whole = dl.zeros((3, 4, 5), "i2", backend="gtmc", halo=(1, 1, 1))
    for part, code in ((field, (2, 32, 1)), (whole[1:, ::2], (0, 16, 1)), (whole[::-1, :, ::-2], (0, 16, 1))):
        tensor, flags, _keeper = EXPORTS[name](part)
        assert (tensor.data, tensor.byte_offset) == (part.ptr, 0), "some consumers drop the offset"
        assert (tensor.device.device_type, tensor.device.device_id) == (1, 0) == part.__dlpack_device__()
        assert (tensor.ndim, shape_of(tensor)) == (part.ndim, part.shape)
        assert strides_of(tensor) == tuple(step // part.itemsize for step in part.strides)
        assert (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) == code
        assert flags in (None, 0)


@pytest.mark.parametrize("name", EXPORTS)
def test_codes_of_dtypes(name: str) -> None:
    """Who has no flags can't say that elements take a byte each, and a consumer would read them packed."""
    for dtype, code in CODES.items():
        field = dl.zeros((2, 3), dtype_named(dtype))
        if dtype in SUBBYTE_CODES and name in ("legacy capsule", "exchange table, borrowed"):
            with pytest.raises(BufferError, match=dtype):
                EXPORTS[name](field)
            continue
        tensor, flags, _keeper = EXPORTS[name](field)
        assert (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) == (*code, 1)
        assert flags in (None, SUBBYTE_PADDED if dtype in SUBBYTE_CODES else 0)


@pytest.mark.parametrize("name", EXPORTS)
def test_scalars_and_empties(name: str) -> None:
    """A scalar has neither shape nor strides; who has no elements has no address, but strides."""
    scalar = dl.full((), 2.5)
    tensor, _flags, _keeper = EXPORTS[name](scalar)
    assert (tensor.ndim, bool(tensor.shape), bool(tensor.strides)) == (0, False, False)
    assert bytes_at(tensor, 8) == np.float64(2.5).tobytes()
    for empty in (dl.zeros(0), dl.zeros((3, 0, 2)), dl.zeros((4, 4))[2:2]):
        tensor, _flags, _keeper = EXPORTS[name](empty)
        assert (tensor.data, shape_of(tensor), bool(tensor.strides)) == (None, empty.shape, True)


@pytest.mark.parametrize("name", EXPORTS)
def test_only_a_versioned_capsule_can_say_read_only(name: str, field: dl.Tensor) -> None:
    """Consumers of the table ignore its flag; those that respect it get a BufferError and may call `__dlpack__`."""
    if name == "versioned capsule":
        assert EXPORTS[name](field.as_readonly()).flags == READ_ONLY
        return
    with pytest.raises(dl.ExchangeError, match="read-only; "):
        EXPORTS[name](field.as_readonly())


@pytest.mark.parametrize("name", list(EXPORTS)[:3])
def test_memory_outlives_the_tensor_until_the_deleter_runs_on_any_thread(name: str) -> None:
    field = dl.full((1000,), 1.5)
    managed = export(field) if name == "exchange table" else take(EXPORTS[name](field).keeper)
    del field
    others = [dl.zeros((1000,)) for _ in range(8)]
    assert bytes_at(managed.dl_tensor, 8000) == np.full(1000, 1.5).tobytes()
    assert shape_of(managed.dl_tensor) == (1000,)
    assert all(other.ptr != managed.dl_tensor.data for other in others)
    thread = threading.Thread(target=release, args=(managed,))
    thread.start()
    thread.join()


def test_each_call_makes_a_struct_of_its_own(field: dl.Tensor) -> None:
    capsules = [field.__dlpack__(max_version=(1, 3)) for _ in range(4)]
    managed = [versioned(capsule) for capsule in capsules]
    assert len({ctypes.addressof(struct) for struct in managed}) == 4
    assert len({ctypes.addressof(struct.dl_tensor.shape.contents) for struct in managed}) == 4
    assert {struct.dl_tensor.data for struct in managed} == {field.ptr}


# Arguments of `__dlpack__`


@pytest.mark.parametrize("max_version", [None, (0, 0), (0, 8)])
def test_old_consumers_get_a_legacy_capsule(field: dl.Tensor, max_version: tuple[int, int] | None) -> None:
    assert capsule_name(field.__dlpack__(max_version=max_version)) == LEGACY
    with pytest.raises(dl.ExchangeError, match="max_version"):
        field.as_readonly().__dlpack__(max_version=max_version)


@pytest.mark.parametrize("max_version", [(1, 0), (1, 1), (1, 3), (1, 99), (2, 0)])
def test_new_consumers_get_a_capsule_stamped_with_our_version(field: dl.Tensor, max_version: tuple[int, int]) -> None:
    capsule = field.__dlpack__(max_version=max_version)
    assert capsule_name(capsule) == VERSIONED
    managed = versioned(capsule)
    assert (managed.version.major, managed.version.minor) == (1, 3)
    assert managed.flags == 0
    assert managed.deleter


@pytest.mark.parametrize("make", [versioned_of, legacy_of])
def test_copies_are_independent_flagged_and_keep_strides(make: Callable[..., Exported], field: dl.Tensor) -> None:
    for part in (field, field.as_readonly()):
        tensor, flags, _keeper = make(part, copy=True)
        assert flags in (None, IS_COPIED)
        assert tensor.data != field.ptr
        assert strides_of(tensor) == (16, 1)
        before = field.copy()
        field[...] = -1
        assert bytes_at(tensor, 16) == np.arange(4, dtype="f4").tobytes()
        field[...] = before
    tensor, flags, _keeper = make(field, copy=False)
    assert (tensor.data, flags or 0) == (field.ptr, 0)
    assert versioned_of(field.as_readonly(), copy=False).flags == READ_ONLY
    with pytest.raises(BufferError, match="read-only"):
        legacy_of(field.as_readonly(), copy=False)


@pytest.mark.parametrize("name", SUBBYTE_CODES)
def test_copies_of_subbyte_elements_are_padded(name: str) -> None:
    field = dl.zeros((2, 3), dtype_named(name))
    assert versioned_of(field, copy=True).flags == IS_COPIED | SUBBYTE_PADDED
    with pytest.raises(BufferError, match=name):
        legacy_of(field, copy=False)


def test_dl_device_of_ours_is_obeyed(field: dl.Tensor) -> None:
    tensor, _flags, _capsule = versioned_of(field, dl_device=(1, 0))
    assert tensor.data == field.ptr


@pytest.mark.parametrize("dl_device", [(2, 0), (1, 1), (10, 0), (99, 0)])
@pytest.mark.parametrize("copy", [None, True])
def test_another_dl_device_is_refused(field: dl.Tensor, dl_device: tuple[int, int], copy: bool | None) -> None:
    with pytest.raises(dl.ExchangeError, match=f"dl_device.*{dl_device[0]}"):
        field.__dlpack__(max_version=(1, 3), dl_device=dl_device, copy=copy)


@pytest.mark.parametrize("stream", [-1, 0, 1, 2, 12345, "main"])
def test_stream_on_the_host_is_refused(field: dl.Tensor, stream: Any) -> None:
    with pytest.raises(dl.ExchangeError, match=f"stream.*{stream}"):
        field.__dlpack__(stream=stream)


@pytest.mark.parametrize(
    "keywords",
    [
        {"max_version": "1.3"},
        {"max_version": 1},
        {"dl_device": "cpu:0"},
        {"dl_device": 1},
        {"copy": "yes"},
        {"unknown": None},
    ],
)
def test_arguments_of_wrong_types_are_refused(field: dl.Tensor, keywords: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=next(iter(keywords))):
        field.__dlpack__(**keywords)


@pytest.mark.parametrize("keywords", [{"max_version": (1,)}, {"max_version": (1, 2, 3)}, {"dl_device": (1,)}])
def test_pairs_have_two_numbers(field: dl.Tensor, keywords: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError), match=next(iter(keywords))):
        field.__dlpack__(**keywords)


def test_arguments_are_keywords_only(field: dl.Tensor) -> None:
    with pytest.raises(TypeError):
        field.__dlpack__(None)  # type: ignore[call-arg]


def test_used_capsule_leaves_the_tensor_to_its_consumer(field: dl.Tensor) -> None:
    """Destroying a consumed capsule does nothing: the struct is read, and deleted, afterwards."""
    capsule = field.__dlpack__(max_version=(1, 3))
    managed = take(capsule)
    del capsule
    assert shape_of(managed.dl_tensor) == (3, 4)
    assert managed.dl_tensor.data == field.ptr
    release(managed)
    assert field.to_numpy().sum() == 66
