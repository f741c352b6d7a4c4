"""`dlfield.Tensor._c_api` through ctypes: the table by which extensions in Rust share and make tensors."""

import ctypes
from ctypes import POINTER, c_int, c_int64, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p, py_object
from typing import Any

import numpy as np

import dlfield as dl
from dlpack_structs import DLDataType, DLDevice, DLTensor, capsule_pointer

NAME = b"dlfield.Tensor._c_api"
RELEASE = ctypes.PYFUNCTYPE(None, c_void_p)
READ_ONLY, IS_PADDED, IS_LENT = 1, 1 << 33, 1 << 35
UNORDERED, FOR_STREAM, FOR_HOST = 0, 1, 2


class Label(ctypes.Structure):
    _fields_ = (("text", c_void_p), ("len", c_size_t))


class RawTensor(ctypes.Structure):
    tensor: DLTensor
    flags: int
    owner: int
    alignment_size: int
    _fields_ = (
        ("tensor", DLTensor),
        ("flags", c_uint64),
        ("owner", c_void_p),
        ("release", RELEASE),
        ("labels", POINTER(Label)),
        ("origin", POINTER(c_int64)),
        ("halo", c_void_p),
        ("layout", POINTER(c_uint8)),
        ("aligned_index", POINTER(c_int64)),
        ("alignment_size", c_int64),
    )


class TensorApi(ctypes.Structure):
    version: int
    share: int
    create: int
    release: int
    _fields_ = (("version", c_uint32), ("share", c_void_p), ("create", c_void_p), ("release", c_void_p))


def module_table() -> TensorApi:
    table = TensorApi.from_address(capsule_pointer(vars(dl.Tensor)["_c_api"], NAME))
    assert table.version == 2
    return table


def create(parts: RawTensor) -> Any:
    """The tensor that the module's table makes."""
    table = module_table()
    function = ctypes.PYFUNCTYPE(c_int, POINTER(RawTensor), POINTER(c_void_p))(table.create)
    out = c_void_p()
    assert function(ctypes.byref(parts), ctypes.byref(out)) == 0
    made = ctypes.cast(out, ctypes.py_object).value
    # `made` is a second reference.
    ctypes.pythonapi.Py_DecRef(out)
    return made


def share(tensor: dl.Tensor) -> RawTensor:
    """The parts of a tensor as the module's table shares them, with an owner to be released."""
    shared, labels = RawTensor(), (Label * 64)()
    function = ctypes.PYFUNCTYPE(c_int, py_object, c_int, c_void_p, POINTER(RawTensor))(module_table().share)
    assert function(tensor, FOR_STREAM, ctypes.addressof(labels), ctypes.byref(shared)) == 0
    shared.kept = labels
    return shared


def release(shared: RawTensor) -> None:
    """Releases the owner of a shared tensor."""
    RELEASE(module_table().release)(shared.owner)


class Parts:
    """The parts of a tensor of two float64 with one label. Counts how often the owner is released."""

    def __init__(self, label: bytes) -> None:
        self.memory, self.released = np.arange(2.0), 0
        self.numbers, self.text = (c_int64 * 2)(2, 1), ctypes.create_string_buffer(label)
        self.label = (Label * 1)(Label(ctypes.addressof(self.text), len(label)))
        shape, strides = (ctypes.cast(ctypes.byref(self.numbers, at), POINTER(c_int64)) for at in (0, 8))
        dtype, device = DLDataType(2, 64, 1), DLDevice(1, 0)
        tensor = DLTensor(self.memory.ctypes.data, device, 1, dtype, shape, strides, 0)
        labels = ctypes.cast(self.label, POINTER(Label))
        self.new = RawTensor(tensor, 0, id(self), RELEASE(self._release), labels, alignment_size=1)

    def _release(self, owner: int) -> None:
        assert owner == id(self)
        self.released += 1
