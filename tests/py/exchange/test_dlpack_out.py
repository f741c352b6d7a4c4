"""`Tensor.__dlpack__`: both ABIs, field by field, and all four of its arguments."""

import ctypes
import threading
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from catalog import CODES, CPU_PRESETS, SUBBYTE_CODES, dtype_named
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


def exported(field: dl.Tensor, **keywords: Any) -> tuple[DLTensor, int, object]:
    """The DLTensor, flags and capsule of a versioned export."""
    capsule = field.__dlpack__(max_version=(1, 3), **keywords)
    managed = versioned(capsule)
    return managed.dl_tensor, managed.flags, capsule


@pytest.fixture
def field() -> dl.Tensor:
    """3 x 4 with padded rows, values 0 to 11."""
    made = dl.zeros((3, 4), "f4", alignment_size=64)
    made[...] = np.arange(12).reshape(3, 4)
    return made


@pytest.mark.parametrize("max_version", [None, (0, 0), (0, 8)])
def test_old_consumers_get_a_legacy_capsule(field: dl.Tensor, max_version: tuple[int, int] | None) -> None:
    capsule = field.__dlpack__(max_version=max_version)
    assert capsule_name(capsule) == LEGACY
    tensor = legacy(capsule).dl_tensor
    assert (tensor.data, shape_of(tensor), strides_of(tensor)) == (field.ptr, (3, 4), (16, 1))
    assert capsule_name(field.__dlpack__()) == LEGACY


@pytest.mark.parametrize("max_version", [(1, 0), (1, 1), (1, 3), (1, 99), (2, 0)])
def test_new_consumers_get_a_capsule_stamped_with_our_version(field: dl.Tensor, max_version: tuple[int, int]) -> None:
    capsule = field.__dlpack__(max_version=max_version)
    assert capsule_name(capsule) == VERSIONED
    managed = versioned(capsule)
    assert (managed.version.major, managed.version.minor) == (1, 3)
    assert managed.flags == 0
    assert managed.deleter


@pytest.mark.parametrize("preset", CPU_PRESETS)
@pytest.mark.parametrize("max_version", [None, (1, 3)])
def test_every_field_of_the_struct(preset: str, max_version: tuple[int, int] | None) -> None:
    field = dl.zeros((3, 4, 5), "i2", backend=preset, halo=(1, 1, 1))[1:, ::2]
    capsule = field.__dlpack__(max_version=max_version)
    tensor = (versioned(capsule) if max_version else legacy(capsule)).dl_tensor
    assert tensor.data == field.ptr
    assert tensor.byte_offset == 0, "some consumers drop it"
    assert (tensor.device.device_type, tensor.device.device_id) == (1, 0) == field.__dlpack_device__()
    assert tensor.ndim == 3
    assert shape_of(tensor) == field.shape
    assert strides_of(tensor) == tuple(step // 2 for step in field.strides)
    assert (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes) == (0, 16, 1)


@pytest.mark.parametrize("name", CODES)
def test_dtype_codes(name: str) -> None:
    tensor, flags, _capsule = exported(dl.zeros((2, 3), dtype_named(name)))
    assert (tensor.dtype.code, tensor.dtype.bits) == CODES[name]
    assert tensor.dtype.lanes == 1
    assert flags == (SUBBYTE_PADDED if name in SUBBYTE_CODES else 0)


@pytest.mark.parametrize("max_version", [None, (1, 3)])
def test_scalar_has_neither_shape_nor_strides(max_version: tuple[int, int] | None) -> None:
    field = dl.full((), 2.5)
    capsule = field.__dlpack__(max_version=max_version)
    tensor = (versioned(capsule) if max_version else legacy(capsule)).dl_tensor
    assert tensor.ndim == 0
    assert not tensor.shape
    assert not tensor.strides
    assert bytes_at(tensor, 8) == np.float64(2.5).tobytes()


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2)])
def test_empty_tensor_has_null_data_and_real_strides(shape: tuple[int, ...]) -> None:
    tensor, _flags, _capsule = exported(dl.zeros(shape))
    assert tensor.data is None
    assert shape_of(tensor) == shape
    assert tensor.strides


def test_empty_slice_has_null_data() -> None:
    tensor, _flags, _capsule = exported(dl.zeros((4, 4))[2:2])
    assert tensor.data is None
    assert shape_of(tensor) == (0, 4)


def test_each_call_makes_a_struct_of_its_own(field: dl.Tensor) -> None:
    capsules = [field.__dlpack__(max_version=(1, 3)) for _ in range(4)]
    managed = [versioned(capsule) for capsule in capsules]
    assert len({ctypes.addressof(struct) for struct in managed}) == 4
    assert len({ctypes.addressof(struct.dl_tensor.shape.contents) for struct in managed}) == 4
    assert {struct.dl_tensor.data for struct in managed} == {field.ptr}


@pytest.mark.parametrize("copy", [None, False])
def test_readonly_is_flagged_and_never_legacy(field: dl.Tensor, copy: bool | None) -> None:
    readonly = field.as_readonly()
    _tensor, flags, _capsule = exported(readonly, copy=copy)
    assert flags == READ_ONLY
    with pytest.raises(BufferError, match=r"(?i)read.?only"):
        readonly.__dlpack__(copy=copy)
    with pytest.raises(dl.ExchangeError, match="max_version"):
        readonly.__dlpack__(max_version=(0, 8), copy=copy)


def test_readonly_may_be_copied_for_a_legacy_consumer(field: dl.Tensor) -> None:
    tensor = legacy(capsule := field.as_readonly().__dlpack__(copy=True)).dl_tensor
    assert capsule_name(capsule) == LEGACY
    assert tensor.data != field.ptr
    assert bytes_at(tensor, 16) == np.arange(4, dtype="f4").tobytes()


@pytest.mark.parametrize("name", SUBBYTE_CODES)
def test_padded_subbyte_is_never_legacy(name: str) -> None:
    """A legacy capsule can't say that elements take a byte each, and its consumer would read them packed."""
    field = dl.zeros((2, 3), dtype_named(name))
    for copy in (None, False):
        with pytest.raises(BufferError, match=name):
            field.__dlpack__(copy=copy)


def test_copy_is_independent_flagged_and_keeps_strides(field: dl.Tensor) -> None:
    tensor, flags, _capsule = exported(field, copy=True)
    assert flags == IS_COPIED
    assert tensor.data != field.ptr
    assert strides_of(tensor) == (16, 1)
    field[...] = -1
    assert bytes_at(tensor, 16) == np.arange(4, dtype="f4").tobytes()


def test_copy_of_readonly_is_writable_and_of_subbyte_padded(field: dl.Tensor) -> None:
    assert exported(field.as_readonly(), copy=True)[1] == IS_COPIED
    assert exported(dl.zeros(3, dtype_named("int4")), copy=True)[1] == IS_COPIED | SUBBYTE_PADDED


def test_dl_device_of_ours_is_obeyed(field: dl.Tensor) -> None:
    tensor, _flags, _capsule = exported(field, dl_device=(1, 0))
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


@pytest.mark.parametrize("max_version", [None, (1, 3)])
def test_memory_outlives_the_tensor_until_the_deleter(max_version: tuple[int, int] | None) -> None:
    field = dl.full((1000,), 1.5)
    managed = take(field.__dlpack__(max_version=max_version))
    del field
    others = [dl.zeros((1000,)) for _ in range(8)]
    assert bytes_at(managed.dl_tensor, 8000) == np.full(1000, 1.5).tobytes()
    assert shape_of(managed.dl_tensor) == (1000,)
    assert all(other.ptr != managed.dl_tensor.data for other in others)
    thread = threading.Thread(target=release, args=(managed,))
    thread.start()
    thread.join()


def test_used_capsule_leaves_the_tensor_to_its_consumer(field: dl.Tensor) -> None:
    """Destroying a consumed capsule does nothing: the struct is read, and deleted, afterwards."""
    capsule = field.__dlpack__(max_version=(1, 3))
    managed = take(capsule)
    del capsule
    assert shape_of(managed.dl_tensor) == (3, 4)
    assert managed.dl_tensor.data == field.ptr
    release(managed)
    assert field.to_numpy().sum() == 66
