"""`dlfield.Tensor._c_api` through ctypes: the table by which extensions in Rust describe and make tensors."""

import ctypes
from ctypes import POINTER, c_bool, c_int, c_int64, c_size_t, c_uint8, c_uint32, c_void_p, py_object
from typing import Any

import numpy as np

import dlfield as dl
from dlpack_structs import DLDataType, DLDevice, capsule_pointer

NAME = b"dlfield.Tensor._c_api"


class Field(ctypes.Structure):
    _fields_ = (
        ("data", c_void_p),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("ndim", c_size_t),
        ("device", DLDevice),
        ("dtype", DLDataType),
        ("readonly", c_bool),
        ("waited", c_bool),
    )


class Label(ctypes.Structure):
    _fields_ = (("kind", c_uint32), ("number", c_uint32), ("text", c_void_p), ("len", c_size_t))


class FieldMetadata(ctypes.Structure):
    _fields_ = (
        ("ndim", c_size_t),
        ("labels", POINTER(Label)),
        ("origin", POINTER(c_int64)),
        ("halo", c_void_p),
        ("halo_is_cut", c_bool),
    )


class FieldPromise(ctypes.Structure):
    _fields_ = (
        ("ndim", c_size_t),
        ("alignment_size", c_int64),
        ("aligned_index", POINTER(c_int64)),
        ("has_layout", c_bool),
        ("is_padded", c_bool),
        ("layout", c_uint8 * 64),
    )


class SharedTensor(ctypes.Structure):
    field: Field
    promise: FieldPromise
    owner: int
    _fields_ = (("field", Field), ("promise", FieldPromise), ("owner", c_void_p))


RELEASE = ctypes.PYFUNCTYPE(None, c_void_p)


class NewTensor(ctypes.Structure):
    _fields_ = (
        ("field", Field),
        ("metadata", FieldMetadata),
        ("promise", c_void_p),
        ("owner", c_void_p),
        ("release", RELEASE),
    )


class TensorApi(ctypes.Structure):
    version: int
    create: int
    share: int
    retain: int
    release: int
    _fields_ = (
        ("version", c_uint32),
        ("describe", c_void_p),
        ("synchronize", c_void_p),
        ("metadata", c_void_p),
        ("create", c_void_p),
        ("share", c_void_p),
        ("retain", c_void_p),
        ("release", c_void_p),
    )


def module_table() -> TensorApi:
    table = TensorApi.from_address(capsule_pointer(vars(dl.Tensor)["_c_api"], NAME))
    assert table.version == 1
    return table


def create(parts: NewTensor) -> Any:
    """The tensor that the module's table makes."""
    table = module_table()
    function = ctypes.PYFUNCTYPE(c_int, POINTER(NewTensor), POINTER(c_void_p))(table.create)
    out = c_void_p()
    assert function(ctypes.byref(parts), ctypes.byref(out)) == 0
    made = ctypes.cast(out, ctypes.py_object).value
    # `made` is a second reference.
    ctypes.pythonapi.Py_DecRef(out)
    return made


def share(tensor: dl.Tensor) -> SharedTensor:
    """The parts of a tensor as the module's table shares them, with an owner to be released."""
    shared = SharedTensor()
    function = ctypes.PYFUNCTYPE(c_int, py_object, POINTER(SharedTensor))(module_table().share)
    assert function(tensor, ctypes.byref(shared)) == 0
    return shared


class Parts:
    """The parts of a tensor of two float64 with one label. Counts how often the owner is released."""

    def __init__(self, label: bytes) -> None:
        self.memory, self.released = np.arange(2.0), 0
        self.numbers, self.text = (c_int64 * 2)(2, 1), ctypes.create_string_buffer(label)
        self.label = (Label * 1)(Label(4, 0, ctypes.addressof(self.text), len(label)))
        shape, strides = (ctypes.cast(ctypes.byref(self.numbers, at), POINTER(c_int64)) for at in (0, 8))
        dtype, device = DLDataType(2, 64, 1), DLDevice(1, 0)
        field = Field(self.memory.ctypes.data, shape, strides, 1, device, dtype, False, False)
        metadata = FieldMetadata(1, ctypes.cast(self.label, POINTER(Label)), None, None, False)
        self.new = NewTensor(field, metadata, None, id(self), RELEASE(self._release))

    def _release(self, owner: int) -> None:
        assert owner == id(self)
        self.released += 1
