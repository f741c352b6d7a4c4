"""The real array libraries on our memory and we on theirs: same pointer, kept alive, and what each peer gets wrong."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from catalog import CPU_PRESETS, dtype_named

COUNT = 12


def count_up(preset: str, dtype: str = "float32") -> dl.Tensor:
    """3 x 4 of 0 to 11, laid out by `preset`."""
    field = dl.zeros((3, 4), dtype_named(dtype), backend=preset, dims="JI")
    field[...] = np.arange(COUNT).reshape(3, 4)
    return field


# PyTorch


@pytest.mark.parametrize("preset", CPU_PRESETS)
def test_torch_shares_every_layout(torch: Any, preset: str) -> None:
    field = count_up(preset)
    for tensor in (torch.from_dlpack(field), torch.utils.dlpack.from_dlpack(field.__dlpack__()), dl.as_torch(field)):
        assert tensor.data_ptr() == field.ptr
        assert tensor.stride() == tuple(step // 4 for step in field.strides)
        assert tensor.tolist() == field.to_numpy().tolist()
        tensor += 1
        assert tensor.tolist() == field.to_numpy().tolist()


def test_torch_keeps_the_memory(torch: Any) -> None:
    field = dl.full((1000,), 1.5)
    tensor = torch.from_dlpack(field)
    del field
    others = [dl.zeros((1000,)) for _ in range(8)]
    assert tensor.tolist() == [1.5] * 1000
    assert not any(other[0] for other in others)


@pytest.mark.parametrize(
    "name",
    ["bool", "int8", "int64", "uint8", "uint16", "float16", "float64", "complex64", "bfloat16", "float8_e5m2"],
)
def test_torch_dtypes_both_ways(torch: Any, name: str) -> None:
    field = dl.ones((2, 3), dtype_named(name))
    tensor = torch.from_dlpack(field)
    assert str(tensor.dtype) == f"torch.{name}"
    back = dl.from_dlpack(tensor)
    assert (back.ptr, back.dtype, back.strides) == (field.ptr, field.dtype, field.strides)


@pytest.mark.parametrize("read", [dl.describe, dl.from_dlpack])
def test_torch_is_read_through_the_c_api(torch: Any, read: Callable[..., Any]) -> None:
    tensor = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4).permute(2, 0, 1)[1:]
    found = read(tensor)
    assert (found.ptr, found.shape) == (tensor.data_ptr(), (3, 2, 3))
    assert found.strides == tuple(4 * step for step in tensor.stride())
    assert not found.readonly
    assert dl.from_dlpack(tensor).to_numpy().tolist() == tensor.tolist()
    assert dl.describe(tensor).protocol == "dlpack-c"


def test_torch_memory_is_kept_by_us(torch: Any) -> None:
    field = dl.from_dlpack(torch.full((1000,), 2.5))
    others = [torch.zeros(1000) for _ in range(8)]
    assert field.to_numpy().tolist() == [2.5] * 1000
    assert len(others) == 8


@pytest.mark.parametrize("make", [lambda torch: torch.tensor(3.5), lambda torch: torch.zeros((2, 0, 3))])
def test_torch_scalars_and_empties(torch: Any, make: Callable[[Any], Any]) -> None:
    tensor = make(torch)
    assert dl.from_dlpack(tensor).to_numpy().tolist() == tensor.tolist()
    assert torch.from_dlpack(dl.zeros(tuple(tensor.shape))).shape == tensor.shape


@pytest.mark.parametrize("read", [dl.describe, dl.from_dlpack, dl.as_numpy])
@pytest.mark.parametrize(
    "make",
    [
        lambda torch: torch.tensor([1 + 2j]).conj(),
        lambda torch: torch.tensor([1 + 2j]).conj().imag,
        lambda torch: torch.zeros(3).to_sparse(),
        lambda torch: torch.zeros(3, device="meta"),
    ],
    ids=["conjugate", "negative", "sparse", "meta"],
)
def test_torch_tensors_that_memory_does_not_show_are_refused(torch: Any, make: Any, read: Callable[..., Any]) -> None:
    """PyTorch conjugates lazily: the memory holds other values than the tensor has."""
    with pytest.raises((BufferError, RuntimeError)):
        read(make(torch))


@pytest.mark.usefixtures("torch")
def test_torch_never_writes_into_readonly_memory() -> None:
    """PyTorch ignores read-only: NumPy lets it write into such arrays, with a warning at most."""
    readonly = dl.ones((2, 3)).as_readonly()
    with pytest.raises(dl.ExchangeError, match=r"(?i)read.?only"):
        dl.as_torch(readonly, copy=False)
    copied = dl.as_torch(readonly)
    copied += 1
    assert (readonly.to_numpy() == 1).all()
    array = np.ones(3)
    array.flags.writeable = False
    dl.as_torch(array)[...] = 5
    assert array.tolist() == [1, 1, 1]


@pytest.mark.usefixtures("torch")
def test_torch_has_no_negative_strides() -> None:
    field = dl.from_array(np.arange(6.0))[::-1]
    with pytest.raises(dl.ExchangeError, match=r"(?i)negative"):
        dl.as_torch(field, copy=False)
    assert dl.as_torch(field).tolist() == [5, 4, 3, 2, 1, 0]


def test_as_torch_copies(torch: Any) -> None:
    field, tensor = count_up("gtmc"), torch.zeros(3)
    assert dl.as_torch(field, copy=True).data_ptr() != field.ptr
    assert dl.as_torch(field, copy=True).tolist() == field.to_numpy().tolist()
    assert dl.as_torch(tensor) is tensor
    assert dl.as_torch(tensor, copy=True).data_ptr() != tensor.data_ptr()
    assert dl.as_torch(np.ones((2, 3), "f4")).shape == (2, 3)


# JAX


@pytest.mark.parametrize("shape", [(3,), (5, 7), (1, 1), (16, 16, 3)])
@pytest.mark.parametrize("dtype", ["float32", "int32", "bfloat16", "bool"])
@pytest.mark.parametrize("backend", [None, "jax", "gt:cpu_kfirst"])
def test_ordinary_fields_are_zero_copy_in_jax(jnp: Any, shape: Any, dtype: str, backend: str | None) -> None:
    """JAX copies from NumPy unless the address is a multiple of 64, without a word."""
    for _ in range(4):
        field = dl.ones(shape, dtype_named(dtype), backend=backend, halo=((1, 0),) + ((0, 0),) * (len(shape) - 1))
        array = jnp.from_dlpack(field)
        assert array.unsafe_buffer_pointer() == field.ptr
        assert array.tolist() == field.to_numpy().tolist()
        assert dl.as_jax(field, copy=False).unsafe_buffer_pointer() == field.ptr


@pytest.mark.parametrize("dtype", ["float64", "int64", "complex128"])
@pytest.mark.usefixtures("jax")
def test_as_jax_keeps_64_bit_dtypes(dtype: str) -> None:
    field = dl.ones((3, 4), dtype)
    array = dl.as_jax(field, copy=False)
    assert str(array.dtype) == dtype
    assert array.unsafe_buffer_pointer() == field.ptr


def test_jax_keeps_the_memory(jnp: Any) -> None:
    field = dl.full((1000,), 1.5, "f4")
    array = jnp.from_dlpack(field)
    del field
    others = [dl.zeros((1000,), "f4") for _ in range(8)]
    assert array.tolist() == [1.5] * 1000
    assert not any(other[0] for other in others)


@pytest.mark.parametrize("read", [dl.describe, dl.from_dlpack])
def test_jax_arrays_are_readonly(jnp: Any, read: Callable[..., Any]) -> None:
    """JAX arrays are immutable and their legacy capsules don't say so."""
    array = jnp.arange(6, dtype="float32").reshape(2, 3)
    found = read(array)
    assert (found.ptr, found.shape, found.dtype) == (array.unsafe_buffer_pointer(), (2, 3), np.float32)
    assert found.readonly
    assert dl.from_dlpack(array).to_numpy().tolist() == array.tolist()
    with pytest.raises(dl.ExchangeError, match=r"(?i)jax|read.?only"):
        dl.describe(array, writable=True)


@pytest.mark.usefixtures("torch")
def test_jax_memory_is_never_written_by_torch(jnp: Any) -> None:
    array = jnp.ones(3)
    dl.as_torch(array)[...] = 5
    assert array.tolist() == [1, 1, 1]
    with pytest.raises(dl.ExchangeError, match=r"(?i)read.?only"):
        dl.as_torch(array, copy=False)


@pytest.mark.usefixtures("jax")
def test_as_jax_compacts_where_jax_would_raise() -> None:
    """JAX raises on padded strides, also with copy=None."""
    field = count_up("numpy")
    padded = dl.from_array(field, alignment_size=64, padding="row")
    assert padded.strides == (64, 4)
    assert dl.as_jax(padded).tolist() == field.to_numpy().tolist()
    with pytest.raises(dl.ExchangeError, match=r"compact.*64"):
        dl.as_jax(padded, copy=False)
    with pytest.raises(dl.ExchangeError, match="64"):
        dl.as_jax(dl.zeros((5, 4), "f4")[1:], copy=False)
    assert dl.as_jax(field[1:, ::2]).tolist() == field.to_numpy()[1:, ::2].tolist()


@pytest.mark.usefixtures("jax")
def test_as_jax_copies(jnp: Any) -> None:
    field, array = dl.ones((3, 4), "f4"), jnp.ones(3)
    copied = dl.as_jax(field, copy=True)
    field[...] = 2
    assert (np.asarray(copied) == 1).all()
    assert dl.as_jax(array) is array
    assert dl.as_jax(array, copy=True).unsafe_buffer_pointer() != array.unsafe_buffer_pointer()


@pytest.mark.usefixtures("jax")
def test_as_jax_of_readonly_memory() -> None:
    field = dl.ones((3, 4), "f4").as_readonly()
    assert dl.as_jax(field).tolist() == [[1.0] * 4] * 3
    assert dl.as_jax(field, copy=False).unsafe_buffer_pointer() == field.ptr


def test_jax_writes_are_refused_not_lost(jnp: Any) -> None:
    field = dl.from_dlpack(jnp.ones(3))
    with pytest.raises(dl.ExchangeError, match=r"(?i)read.?only"):
        field[0] = 2
    copied = dl.from_dlpack(jnp.ones(3), copy=True)
    copied[0] = 2
    assert copied.to_numpy().tolist() == [2, 1, 1]


# NumPy


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
    assert back.to_numpy().ravel().tolist() == list(range(COUNT))


def test_readonly_numpy_that_tvm_ffi_and_jax_refuse(jnp: Any, tvm_ffi: Any) -> None:
    array = np.arange(3.0)
    array.flags.writeable = False
    for refuse in (jnp.from_dlpack, tvm_ffi.from_dlpack):
        with pytest.raises((BufferError, ValueError, RuntimeError)):
            refuse(array)
    assert dl.describe(array).readonly
    assert dl.from_dlpack(array).readonly


# All together


def test_one_memory_for_all(torch: Any, jnp: Any, tvm_ffi: Any) -> None:
    field = dl.zeros((4, 4), "f4", backend="gt:cpu_kfirst")
    seen = {
        np.from_dlpack(field).ctypes.data,
        np.from_dlpack(torch.from_dlpack(field)).ctypes.data,
        jnp.from_dlpack(field).unsafe_buffer_pointer(),
        dl.from_dlpack(tvm_ffi.from_dlpack(field)).ptr,
        dl.from_dlpack(torch.from_dlpack(np.from_dlpack(field))).ptr,
    }
    assert seen == {field.ptr}


@pytest.mark.parametrize("convert", [dl.as_numpy, dl.as_torch, dl.as_jax])
@pytest.mark.usefixtures("torch", "jax")
def test_conversion_of_no_array(convert: Callable[..., Any]) -> None:
    with pytest.raises(dl.NotAnArrayError, match="object"):
        convert(object())
