"""`describe` and `from_dlpack` through `__array_struct__`: NumPy's own structs, and malformed ones."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from fakes_interfaces import Exposing, interface_of

NOTSWAPPED, WRITEABLE, HAS_DESCR = 0x200, 0x400, 0x800


class ArrayInterface(ctypes.Structure):
    """NumPy's `PyArrayInterface`."""

    _fields_ = [
        ("two", ctypes.c_int),
        ("nd", ctypes.c_int),
        ("typekind", ctypes.c_char),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("data", ctypes.c_void_p),
        ("descr", ctypes.c_void_p),
    ]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def made(name: bytes | None = None, **fields: Any) -> Exposing:
    """An object with a struct for two rows of three float64, except for the given fields."""
    array = np.arange(6.0).reshape(2, 3)
    shape, strides = (ctypes.c_ssize_t * 2)(2, 3), (ctypes.c_ssize_t * 2)(24, 8)
    sound = {
        "two": 2,
        "nd": 2,
        "typekind": b"f",
        "itemsize": 8,
        "flags": NOTSWAPPED | WRITEABLE,
        "shape": shape,
        "strides": strides,
        "data": array.ctypes.data,
    }
    struct = ArrayInterface(**(sound | fields))
    capsule = new_capsule(ctypes.addressof(struct), name, None)
    return Exposing(__array_struct__=capsule, kept=(array, struct, shape, strides))


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"two": 3}, r'__array_struct__\["two"\]: .* got 3'),
        ({"nd": -1}, r'\["nd"\]: .* got -1'),
        ({"nd": 65}, r'\["nd"\]: .* got 65'),
        ({"itemsize": 0}, r'\["itemsize"\]: .* got 0'),
        ({"itemsize": -8}, r'\["itemsize"\]: .* got -8'),
        ({"itemsize": 7}, "f7"),
        ({"typekind": b"\xff"}, "typestr"),
        ({"shape": None}, r'\["shape"\]: .* got a null pointer'),
        ({"data": None}, "data: .* got NULL"),
        ({"shape": (ctypes.c_ssize_t * 2)(2, -3)}, "-3"),
        ({"shape": (ctypes.c_ssize_t * 2)(2**62, 2**62)}, "address space"),
        ({"strides": (ctypes.c_ssize_t * 2)(12, 8)}, "12 bytes"),
        ({"flags": WRITEABLE}, "byte order"),
        ({"name": b"dltensor_of_another"}, "__array_struct__.*capsule without a name"),
    ],
)
def test_malformed_structs(read: Callable[..., Any], fields: dict[str, Any], match: str) -> None:
    with pytest.raises(dl.Error, match=match):
        read(made(**fields))


def test_optional_fields() -> None:
    assert dl.describe(made(strides=None)).strides == (24, 8)
    assert dl.describe(made(nd=0, shape=None, strides=None)).shape == ()
    # Without the flag, `descr` may be anything.
    assert dl.describe(made(descr=1)).shape == (2, 3)


@pytest.mark.parametrize("wrong", [None, 3, "text", {}, object()])
def test_other_objects_than_capsules(wrong: object) -> None:
    with pytest.raises(dl.ExchangeError, match=r"__array_struct__.*capsule"):
        dl.describe(Exposing(__array_struct__=wrong))


def test_the_dictionary_comes_first() -> None:
    array = np.zeros(3)
    both = Exposing(__array_struct__=array.__array_struct__, __array_interface__=interface_of(array))
    assert dl.describe(both).protocol == "array-interface"
    assert dl.describe(np.float64(3)).protocol != "array-struct", "that of a scalar is a temporary"
