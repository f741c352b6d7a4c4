"""`Tensor.__dlpack_c_exchange_api__` through ctypes: its five C functions, called as a C consumer calls them."""

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_void_p, py_object
from typing import Any

import dlfield as dl
from dlpack_structs import DLManagedTensorVersioned, DLTensor, ExchangeAPI, capsule_pointer

SENTINEL = 0xDEAD

# Functions that may set a Python error are called with the GIL held; ctypes raises that error.
SET_ERROR = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)
ALLOCATE = ctypes.CFUNCTYPE(c_int, POINTER(DLTensor), POINTER(c_void_p), c_void_p, SET_ERROR)
FROM_OBJECT = ctypes.PYFUNCTYPE(c_int, py_object, POINTER(c_void_p))
BORROW = ctypes.PYFUNCTYPE(c_int, py_object, POINTER(DLTensor))
WORK_STREAM = ctypes.PYFUNCTYPE(c_int, c_int32, c_int32, POINTER(c_void_p))
TO_OBJECT = ctypes.PYFUNCTYPE(c_int, c_void_p, POINTER(c_void_p))


def api() -> ExchangeAPI:
    return ExchangeAPI.from_address(capsule_pointer(dl.Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))


def export(value: object) -> DLManagedTensorVersioned:
    """The managed tensor of `value`, through the C function."""
    out = c_void_p(SENTINEL)
    assert FROM_OBJECT(api().managed_tensor_from_py_object_no_sync)(value, byref(out)) == 0
    assert out.value is not None
    return DLManagedTensorVersioned.from_address(out.value)


def adopt(address: int) -> Any:
    """The Python object that the C function creates from the managed tensor at `address`."""
    out = c_void_p(SENTINEL)
    assert TO_OBJECT(api().managed_tensor_to_py_object_no_sync)(address, byref(out)) == 0
    made = ctypes.cast(out, py_object).value
    # `made` is a second reference; the caller drops the one that the function returned.
    ctypes.pythonapi.Py_DecRef(out)
    return made


def borrow(value: object) -> DLTensor:
    out = DLTensor()
    assert BORROW(api().dltensor_from_py_object_no_sync)(value, byref(out)) == 0
    return out
