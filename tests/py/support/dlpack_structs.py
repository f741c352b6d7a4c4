"""The structs of DLPack 1.3 through ctypes, and what a consumer does with a capsule."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p, py_object
from typing import Any

READ_ONLY = 1
IS_COPIED = 2
SUBBYTE_PADDED = 4

LEGACY = b"dltensor"
VERSIONED = b"dltensor_versioned"
# A capsule keeps only a pointer to its name, so the names must stay alive here.
USED = {LEGACY: b"used_dltensor", VERSIONED: b"used_dltensor_versioned"}


class DLDevice(ctypes.Structure):
    device_type: int
    device_id: int
    _fields_ = [("device_type", c_int32), ("device_id", c_int32)]


class DLDataType(ctypes.Structure):
    code: int
    bits: int
    lanes: int
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(ctypes.Structure):
    data: int | None
    device: DLDevice
    ndim: int
    dtype: DLDataType
    shape: Any
    strides: Any
    byte_offset: int
    _fields_ = [
        ("data", c_void_p),
        ("device", DLDevice),
        ("ndim", c_int32),
        ("dtype", DLDataType),
        ("shape", ctypes.POINTER(c_int64)),
        ("strides", ctypes.POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class DLManagedTensor(ctypes.Structure):
    dl_tensor: DLTensor
    manager_ctx: int | None
    deleter: int | None
    _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", c_void_p), ("deleter", c_void_p)]


class DLPackVersion(ctypes.Structure):
    major: int
    minor: int
    _fields_ = [("major", c_uint32), ("minor", c_uint32)]


class DLManagedTensorVersioned(ctypes.Structure):
    version: DLPackVersion
    manager_ctx: int | None
    deleter: int | None
    flags: int
    dl_tensor: DLTensor
    _fields_ = [
        ("version", DLPackVersion),
        ("manager_ctx", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("dl_tensor", DLTensor),
    ]


class ExchangeAPI(ctypes.Structure):
    version: DLPackVersion
    prev_api: int | None
    managed_tensor_allocator: int
    managed_tensor_from_py_object_no_sync: int
    managed_tensor_to_py_object_no_sync: int
    dltensor_from_py_object_no_sync: int
    current_work_stream: int
    _fields_ = [
        ("version", DLPackVersion),
        ("prev_api", c_void_p),
        ("managed_tensor_allocator", c_void_p),
        ("managed_tensor_from_py_object_no_sync", c_void_p),
        ("managed_tensor_to_py_object_no_sync", c_void_p),
        ("dltensor_from_py_object_no_sync", c_void_p),
        ("current_work_stream", c_void_p),
    ]


DELETER = ctypes.CFUNCTYPE(None, c_void_p)

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = py_object
new_capsule.argtypes = [c_void_p, c_char_p, c_void_p]
_capsule_name = ctypes.pythonapi.PyCapsule_GetName
_capsule_name.restype = c_char_p
_capsule_name.argtypes = [py_object]
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = c_void_p
_capsule_pointer.argtypes = [py_object, c_char_p]
_rename_capsule = ctypes.pythonapi.PyCapsule_SetName
_rename_capsule.argtypes = [py_object, c_char_p]


def kept_for_good(made: Any) -> Any:
    """`made`, with a reference to it that nobody drops.

    For callbacks: the interpreter empties modules at its end, and what it destroys after them may call back. Without
    the GIL that is so for most objects, as functions and classes are destroyed at the end.
    """
    ctypes.pythonapi.Py_IncRef(py_object(made))
    return made


def capsule_name(capsule: object) -> bytes:
    name: bytes = _capsule_name(capsule)
    return name


def capsule_pointer(capsule: object, name: bytes) -> int:
    address: int = _capsule_pointer(capsule, name)
    return address


def legacy(capsule: object) -> DLManagedTensor:
    """The struct in a legacy capsule; the capsule keeps it alive."""
    return DLManagedTensor.from_address(capsule_pointer(capsule, LEGACY))


def versioned(capsule: object) -> DLManagedTensorVersioned:
    """The struct in a versioned capsule; the capsule keeps it alive."""
    return DLManagedTensorVersioned.from_address(capsule_pointer(capsule, VERSIONED))


def take(capsule: object) -> DLManagedTensor | DLManagedTensorVersioned:
    """Consume a capsule of either kind; the caller owns its managed tensor and calls `release` on it."""
    name = capsule_name(capsule)
    managed = legacy(capsule) if name == LEGACY else versioned(capsule)
    _rename_capsule(capsule, USED[name])
    return managed


def release(managed: DLManagedTensor | DLManagedTensorVersioned) -> None:
    """Call the deleter as a C consumer does: through the pointer, without the GIL."""
    assert managed.deleter is not None
    DELETER(managed.deleter)(ctypes.addressof(managed))


def shape_of(tensor: DLTensor) -> tuple[int, ...]:
    return tuple(tensor.shape[: tensor.ndim])


def strides_of(tensor: DLTensor) -> tuple[int, ...]:
    """Strides in elements."""
    return tuple(tensor.strides[: tensor.ndim])


def bytes_at(tensor: DLTensor, count: int) -> bytes:
    """The first `count` bytes from element 0 on."""
    assert tensor.data is not None
    return ctypes.string_at(tensor.data + tensor.byte_offset, count)
