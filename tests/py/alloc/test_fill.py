"""The values that the allocation functions write, for every dtype and every way to name one."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import dlfield as dl
from catalog import CODES, CPU_PRESETS, dtype_named

BITS = {1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "V16"}


def bits(tensor: dl.Tensor) -> npt.NDArray[Any]:
    """The elements of `tensor` as raw bits."""
    return tensor.to_numpy().view(BITS[tensor.itemsize])


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("preset", CPU_PRESETS)
def test_zeros_are_zero_bits_however_laid_out(name: str, preset: str) -> None:
    for _ in range(3):
        dirty = dl.empty((3, 4, 5), dtype_named(name), backend=preset)
        dirty.to_numpy().view(f"V{dirty.itemsize}")[...] = b"\xff" * dirty.itemsize
        del dirty
        assert set(dl.zeros((3, 4, 5), dtype_named(name), backend=preset).to_numpy().tobytes()) == {0}


def test_dtype_defaults_to_float64() -> None:
    assert dl.empty(2).dtype == dl.ones(2).dtype == dl.full(2, np.float32(1.5)).dtype == np.float64
    assert dl.full(2, 1.5, "bfloat16").to_numpy().astype("f8").tolist() == [1.5, 1.5]


NAMES: list[Any] = [float, int, bool, complex, "f4", "float16", "=i4", "<u8", np.int16, np.dtype("c8")]
NAMES += [ml_dtypes.bfloat16, np.dtype(ml_dtypes.float8_e5m2), "bfloat16"]


@pytest.mark.parametrize("given", NAMES, ids=str)
def test_dtypes_by_any_name_numpy_knows(given: Any) -> None:
    assert dl.zeros(2, given).dtype == np.dtype(given)


# A dtype of PyTorch or JAX, and its name in NumPy.
OTHERS = {"half": "float16", "bool_": "bool"}
OF_TORCH = ["float64", "float32", "half", "bfloat16", "float8_e4m3fn", "uint8", "int64", "bool", "complex64"]
OF_JAX = ["float32", "bfloat16", "int32", "bool_", "float8_e4m3fn", "int4"]


@pytest.mark.parametrize(
    ("module", "name"), [*(("torch", name) for name in OF_TORCH), *(("jax.numpy", name) for name in OF_JAX)]
)
def test_dtypes_of_frameworks(module: str, name: str) -> None:
    given = getattr(pytest.importorskip(module), name)
    assert dl.zeros(2, given).dtype == dtype_named(OTHERS.get(name, name))


@pytest.mark.parametrize("dims", [None, "JI"])
def test_subarray_dtype_adds_data_dimensions(dims: str | None) -> None:
    vector = np.dtype((np.float32, (5, 2)))
    field = dl.full((3, 4), 2.5, vector, dims=dims, backend="gt:cpu_kfirst", aligned_index=(1, 1))
    assert field.dtype == np.float32
    assert field.shape == (3, 4, 5, 2)
    assert field.dims == (*(dims or "IJ"), "0", "1")
    assert field.aligned_index == (1, 1, 0, 0)
    assert field.layout == ((3, 2, 0, 1) if dims else (2, 3, 0, 1))
    assert (field.to_numpy() == 2.5).all()


@pytest.mark.parametrize(
    ("dtype", "pattern"),
    [
        ("f2", 0x7C01),
        ("f4", 0x7FA00001),
        ("f4", 0xFFC12345),
        ("f4", 0x80000000),
        ("c8", 0x7FC0000080000000),
        ("f8", 0x7FF0DEADBEEF0001),
        ("f8", 0xFFF8000000000123),
        ("f8", 0x8000000000000000),
        (ml_dtypes.bfloat16, 0xFFA1),
        (ml_dtypes.bfloat16, 0x8000),
        (ml_dtypes.float8_e5m2, 0x7D),
    ],
)
@pytest.mark.parametrize("layout", [(0, 1), (1, 0)])
def test_fill_values_keep_every_bit(dtype: Any, pattern: int, layout: tuple[int, int]) -> None:
    value = np.array(pattern, BITS[np.dtype(dtype).itemsize]).view(dtype)[()]
    for field in (
        dl.full((3, 5), value, dtype, layout=layout, alignment_size=64),
        dl.full_like(dl.empty((3, 5), dtype, layout=layout), value),
        dl.full((3, 5), np.array(value), dtype, layout=layout),
    ):
        assert (bits(field) == pattern).all()
