"""Consumers of a tensor that trust what it says: they read and write all that they were given."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import py_object
from typing import TYPE_CHECKING, Any

import numpy as np

import dlfield as dl
import py_buffer
from dlpack_structs import (
    READ_ONLY,
    DLManagedTensorVersioned,
    DLTensor,
    release,
    shape_of,
    strides_of,
    take,
)
from exchange_api import borrow, export

if TYPE_CHECKING:
    from adversary.case import Case

_memoryview = ctypes.pythonapi.PyMemoryView_FromBuffer
_memoryview.restype = py_object
_memoryview.argtypes = [ctypes.POINTER(py_buffer.PyBuffer)]

FLAGS = (py_buffer.WRITABLE, py_buffer.FORMAT, py_buffer.ND, py_buffer.STRIDES, 0x20, 0x40, 0x80, 0x100)
READ = 0x100


def _write(tensor: DLTensor) -> None:
    """Invert the first element, as a consumer that knows no read-only flag."""
    if 0 in shape_of(tensor) or tensor.device.device_type != 1:
        return
    assert tensor.data is not None
    if tensor.strides:
        assert len(strides_of(tensor)) == tensor.ndim
    size = max(1, tensor.dtype.bits * tensor.dtype.lanes // 8)
    start = tensor.data + tensor.byte_offset
    ctypes.memmove(start, bytes(byte ^ 1 for byte in ctypes.string_at(start, size)), size)


def by_table(_case: Case, tensor: dl.Tensor) -> None:
    """Take a managed tensor through the exchange table; as TVM FFI, drop its flags."""
    managed = export(tensor)
    _write(managed.dl_tensor)
    release(managed)


def borrowed(_case: Case, tensor: dl.Tensor) -> None:
    """Borrow a tensor through the exchange table."""
    _write(borrow(tensor))


def by_capsule(case: Case, tensor: dl.Tensor) -> None:
    """Consume a capsule, without flags or with them."""
    keywords: dict[str, Any] = {"max_version": (1, 0)} if case.rng.random() < 0.5 else {}
    managed = take(tensor.__dlpack__(**keywords))
    if not (isinstance(managed, DLManagedTensorVersioned) and managed.flags & READ_ONLY):
        _write(managed.dl_tensor)
    release(managed)


def by_buffer(case: Case, tensor: dl.Tensor) -> None:
    """Request a buffer with any flags, and read all of it through a memoryview of exactly that struct."""
    flags = sum(case.rng.sample(FLAGS, case.rng.randint(0, 4)))
    if flags == READ:
        # No flag of requests; from 3.13 on CPython refuses it before the exporter is asked.
        return
    with py_buffer.requested(tensor, flags) as view:
        case.note(f"  a buffer for {flags:#x}: {view.ndim} dimensions, {view.len} bytes")
        # Without an owner: `requested` releases the buffer.
        copy = py_buffer.PyBuffer.from_buffer_copy(view)
        copy.obj = None
        if copy.format is None and copy.itemsize != 1 and copy.shape:
            # CPython's memoryview takes elements without a format for bytes.
            return
        bytes(_memoryview(ctypes.byref(copy)).tobytes())
        if not view.readonly and view.len:
            assert view.buf is not None
            ctypes.memmove(view.buf, bytes([ctypes.string_at(view.buf, 1)[0] ^ 1]), 1)


def by_torch(_case: Case, tensor: dl.Tensor) -> None:
    """Write through PyTorch, which has no read-only tensors."""
    found = dl.as_torch(tensor)
    if found.numel():
        found.zero_()


def by_interface(_case: Case, tensor: dl.Tensor) -> None:
    """Write through an array interface."""
    found = np.asarray(tensor)
    if found.flags.writeable:
        found[...] = 0


CONSUMERS: tuple[Callable[[Any, Any], None], ...] = (
    by_table,
    borrowed,
    by_capsule,
    by_buffer,
    by_torch,
    by_interface,
)


def consume(case: Case, tensor: Any) -> None:
    """Pass a tensor to one consumer: read-only memory stays as it is."""
    if tensor.device != dl.Device("cpu"):
        return
    use = case.rng.choice(CONSUMERS)
    before = dl.as_numpy(tensor.copy()).tobytes() if tensor.readonly else None
    case.note(f"  consumed {use.__name__}")
    try:
        use(case, tensor)
    except BaseException as error:
        case.judge(error)
    if before is not None and dl.as_numpy(tensor.copy()).tobytes() != before:
        case.found(f"read-only memory was written {use.__name__}")
