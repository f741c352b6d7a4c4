"""Classes as Cython compiles them: their module is part of their C name, and no entry of their dictionary."""

from __future__ import annotations

import ctypes
from typing import Any, cast


class _Field(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("doc", ctypes.c_char_p))


class _Description(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("doc", ctypes.c_char_p),
        ("fields", ctypes.POINTER(_Field)),
        ("n_in_sequence", ctypes.c_int),
    )


# Static types are never freed.
_KEPT: list[Any] = []


def static_type(name: str, field: str) -> Any:
    """Return a class whose instances, made of a sequence with one value, have that value as an attribute."""
    fields = (_Field * 2)(_Field(field.encode()), _Field())
    description = _Description(name.encode(), None, fields, 1)
    # Larger than a type of any version of Python; the interpreter refers to it until the process ends.
    memory = ctypes.create_string_buffer(8192)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))
    _KEPT.extend([fields, description])
    if ctypes.pythonapi.PyStructSequence_InitType2(memory, ctypes.byref(description)):
        raise RuntimeError(f"the class {name} cannot be made")
    address = ctypes.c_void_p(ctypes.addressof(memory))
    return cast("Any", ctypes.py_object.from_buffer(address).value)
