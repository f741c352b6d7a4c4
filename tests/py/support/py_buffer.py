"""`PyObject_GetBuffer` through ctypes: a buffer request with exactly the flags of the test."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_char_p, c_int, c_ssize_t, c_void_p, py_object
from typing import Any

SIMPLE = 0
WRITABLE = 0x1
FORMAT = 0x4
ND = 0x8
STRIDES = 0x10 | ND
C_CONTIGUOUS = 0x20 | STRIDES
F_CONTIGUOUS = 0x40 | STRIDES
ANY_CONTIGUOUS = 0x80 | STRIDES
INDIRECT = 0x100 | STRIDES
FULL = INDIRECT | WRITABLE | FORMAT
FULL_RO = INDIRECT | FORMAT
RECORDS_RO = STRIDES | FORMAT


class PyBuffer(ctypes.Structure):
    buf: int | None
    len: int
    itemsize: int
    readonly: int
    ndim: int
    format: bytes | None
    shape: Any
    strides: Any
    suboffsets: int | None
    _fields_ = [
        ("buf", c_void_p),
        ("obj", c_void_p),
        ("len", c_ssize_t),
        ("itemsize", c_ssize_t),
        ("readonly", c_int),
        ("ndim", c_int),
        ("format", c_char_p),
        ("shape", ctypes.POINTER(c_ssize_t)),
        ("strides", ctypes.POINTER(c_ssize_t)),
        ("suboffsets", c_void_p),
        ("internal", c_void_p),
    ]


_get = ctypes.pythonapi.PyObject_GetBuffer
_get.argtypes = [py_object, ctypes.POINTER(PyBuffer), c_int]
_release = ctypes.pythonapi.PyBuffer_Release
_release.argtypes = [ctypes.POINTER(PyBuffer)]
_release.restype = None


@contextmanager
def requested(value: object, flags: int) -> Iterator[PyBuffer]:
    """The buffer of `value` for `flags`, released at the end; raises what the exporter raises."""
    view = PyBuffer()
    _get(value, ctypes.byref(view), flags)
    try:
        yield view
    finally:
        _release(ctypes.byref(view))
