"""Python's numbers as fill values: the same bits, errors and warnings as from `numpy.full`, whoever converts them."""

import itertools
import math
import struct
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import dlfield as dl

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
