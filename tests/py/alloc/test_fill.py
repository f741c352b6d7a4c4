"""The values that the allocation functions write: for every dtype, and of Python's numbers as `numpy.full` does."""

import itertools
import math
import struct
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dlfield as dl
from catalog import CODES, CPU_PRESETS, dtype_named

BITS = {1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "V16"}


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


OF_TORCH = ["float64", "float32", "half", "bfloat16", "float8_e4m3fn", "uint8", "int64", "bool", "complex64"]
OF_JAX = ["float32", "bfloat16", "int32", "bool_", "float8_e4m3fn", "int4"]


@pytest.mark.parametrize(("module", "names"), [("torch", OF_TORCH), ("jax.numpy", OF_JAX)])
def test_dtypes_of_frameworks(module: str, names: list[str]) -> None:
    for name in names:
        given = getattr(pytest.importorskip(module), name)
        assert dl.zeros(2, given).dtype == dtype_named({"half": "float16", "bool_": "bool"}.get(name, name)), name


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
        assert (field.to_numpy().view(BITS[field.itemsize]) == pattern).all()


# Python's numbers: the same bits, errors and warnings as from `numpy.full`, whoever converts them.


DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]

# The ends of `float32`: its largest number and the halfway point above, its smallest normal number and smaller ones.
LARGEST = [3.4028234663852886e38, 3.4028235677973366e38, 3.5e38]
SMALLEST = [2.0**-126, math.nextafter(2.0**-126, 0), 2.0**-149, 1e-300]
FLOATS = [0.0, 1.0, 2.5, 0.1, 1 / 3, 1e10, 65504.0, 65520.0, math.pi, math.inf, 5e-324, 1.7976931348623157e308]
FLOATS += LARGEST + SMALLEST
SIGNED_NAN = struct.unpack("d", struct.pack("Q", 0xFFF8_0000_0000_1234))[0]
INTS = [2**bits + more for bits in (0, 7, 8, 15, 16, 24, 31, 32, 53, 63, 64, 100) for more in (-1, 0, 1)]


class OtherFloat(float):
    """A number that converts itself to another one."""

    def __float__(self) -> float:
        return 7.0

    def __complex__(self) -> complex:
        return 7j


class OtherInt(int):
    def __int__(self) -> int:
        return 7

    def __index__(self) -> int:
        return 7


class OtherComplex(complex):
    def __complex__(self) -> complex:
        return 7j


VALUES: list[Any] = [
    *(sign * number for number in FLOATS for sign in (1, -1)),
    *(sign * number for number in INTS for sign in (1, -1)),
    *(math.nan, SIGNED_NAN, True, False, 1j, -0.0j, complex(-0.0, -0.0), complex(1e39, 0), complex(0, 1e-40)),
    *(complex(math.nan, 1), complex(1, math.inf), complex(0.1, 1 / 3)),
    *(OtherFloat(2.5), OtherInt(3), OtherComplex(1, 2)),
    *(np.float64(0.1), np.float32(0.1), np.int64(300), np.bool_(True), np.array(3.5), np.array([4])),
    *("5", b"6", None, [7]),
]


def outcome(make: Callable[[], Any]) -> tuple[Any, ...]:
    """Return the bits, or else the type of the error, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result: Any = np.asarray(make()).tobytes()
        except Exception as error:
            result = TypeError if isinstance(error, dl.DTypeError) else type(error)
    return result, [(warning.category, str(warning.message)) for warning in caught]


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_are_converted_as_by_numpy(dtype: str) -> None:
    for value in VALUES:
        ours, numpys = (outcome(partial(full, (3,), value, dtype)) for full in (dl.full, np.full))
        if isinstance(value, np.integer) and np.dtype(dtype).kind in "iu":
            # `np.full` wraps its own integers around, `np.zeros(3, dtype)[0] = value` does not.
            numpys = outcome(partial(np.full, (3,), int(value), dtype))
        assert ours == numpys, repr(value)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["over", "under", "invalid"])
def test_numpys_error_state_counts(dtype: str, kind: str) -> None:
    for value in VALUES:
        if isinstance(value, float | complex):
            with np.errstate(**{kind: "raise"}):  # type: ignore[arg-type]
                ours, numpys = (outcome(partial(full, (3,), value, dtype)) for full in (dl.full, np.full))
            assert ours == numpys, repr(value)


@pytest.mark.parametrize("dtype", ["i1", "f2", "f4", "f8", "c16"])
@pytest.mark.parametrize("keywords", [{}, {"alignment_size": 64}, {"halo": (1, 1, 1)}, {"backend": "gtmc"}])
def test_every_element_is_filled_in_every_layout(dtype: str, keywords: dict[str, Any]) -> None:
    shapes = [(), (0,), (1,), (5,), (8, 8, 8), (1, 7, 1), (3, 1, 5), (40, 50, 60), (4, 0, 2)]
    for shape in shapes:
        options = keywords | ({"halo": (0,) * len(shape)} if "halo" in keywords else {})
        layouts = [None] if "backend" in keywords else list(itertools.permutations(range(len(shape))))
        for layout in layouts:
            field = dl.full(shape, 3, dtype, layout=layout, **options)
            assert field.shape == shape
            assert (np.asarray(field) == 3).all()
