"""NumPy, tvm-ffi, and all array libraries on the same memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from catalog import CPU_PRESETS, count_up


@pytest.mark.parametrize("preset", CPU_PRESETS)
def test_numpy_round_trip(preset: str) -> None:
    field = count_up(preset)
    for array in (np.from_dlpack(field), np.asarray(field), dl.as_numpy(field)):
        assert (array.ctypes.data, array.strides) == (field.ptr, field.strides)
        assert dl.from_dlpack(array).ptr == field.ptr


def test_numpy_from_dlpack_obeys_its_arguments() -> None:
    field = count_up("gtmc")
    assert np.from_dlpack(field, copy=True).ctypes.data != field.ptr
    assert np.from_dlpack(field, copy=False).ctypes.data == field.ptr
    assert np.from_dlpack(field, device="cpu").ctypes.data == field.ptr
    assert not np.from_dlpack(field.as_readonly()).flags.writeable


def test_as_numpy() -> None:
    field, array = count_up("gtmc", "bfloat16"), np.zeros(3)
    found = dl.as_numpy(field)
    assert (found.ctypes.data, found.dtype) == (field.ptr, field.dtype)
    assert dl.as_numpy(array) is array
    assert dl.as_numpy(array, copy=False) is array
    copied = dl.as_numpy(field, copy=True)
    assert copied.ctypes.data != field.ptr
    assert copied.tolist() == field.to_numpy().tolist()
    assert not dl.as_numpy(field.as_readonly()).flags.writeable
    assert dl.as_numpy(field.as_readonly(), copy=True).flags.writeable


def test_as_numpy_of_frameworks(torch: Any, jnp: Any) -> None:
    tensor, array = torch.zeros((2, 3), dtype=torch.bfloat16), jnp.zeros((2, 3))
    assert dl.as_numpy(tensor).ctypes.data == tensor.data_ptr()
    assert dl.as_numpy(tensor).dtype.name == "bfloat16"
    assert dl.as_numpy(array).ctypes.data == array.unsafe_buffer_pointer()
    assert not dl.as_numpy(array).flags.writeable


def test_numpy_keeps_dlpack_memory_until_its_last_view() -> None:
    view = np.from_dlpack(dl.full((100, 100), 2.5))[50:, 50:]
    others = [dl.zeros((100, 100)) for _ in range(8)]
    assert (view == 2.5).all()
    assert len(others) == 8


# tvm-ffi


@pytest.mark.parametrize("preset", CPU_PRESETS)
def test_tvm_ffi_round_trip(tvm_ffi: Any, preset: str) -> None:
    field = count_up(preset)
    tensor = tvm_ffi.from_dlpack(field)
    assert tuple(tensor.shape) == (3, 4)
    assert np.from_dlpack(tensor).ctypes.data == field.ptr
    back = dl.from_dlpack(tensor)
    assert (back.ptr, back.strides) == (field.ptr, field.strides)
    del field, tensor
    assert back.to_numpy().ravel().tolist() == list(range(12))


def test_readonly_numpy_arrays_stay_readonly() -> None:
    """tvm-ffi, and JAX before 0.12, refuse such arrays."""
    array = np.arange(3.0)
    array.flags.writeable = False
    assert dl.describe(array).readonly
    assert dl.from_dlpack(array).readonly


# All together


def test_one_memory_for_all(torch: Any, jnp: Any, tvm_ffi: Any) -> None:
    field = dl.zeros((4, 4), "f4", backend="gt:cpu_kfirst")
    seen = {
        np.from_dlpack(field).ctypes.data,
        np.asarray(torch.from_dlpack(field)).ctypes.data,
        jnp.from_dlpack(field).unsafe_buffer_pointer(),
        dl.from_dlpack(tvm_ffi.from_dlpack(field)).ptr,
        dl.from_dlpack(torch.from_dlpack(np.asarray(field))).ptr,
    }
    assert seen == {field.ptr}


@pytest.mark.parametrize("convert", [dl.as_numpy, dl.as_torch, dl.as_jax])
@pytest.mark.usefixtures("torch", "jax")
def test_conversion_of_no_array(convert: Callable[..., Any]) -> None:
    with pytest.raises(dl.NotAnArrayError, match="object"):
        convert(object())
