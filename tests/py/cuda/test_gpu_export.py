"""Exports of device memory: the right memory, and the consumer's work after dlfield's."""

import ctypes
from ctypes import byref, c_void_p
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlpack_structs import (
    IS_COPIED,
    READ_ONLY,
    DLDataType,
    DLDevice,
    DLManagedTensorVersioned,
    DLTensor,
    capsule_name,
    capsule_pointer,
    release,
)
from driver import IS_FAKE, LEGACY, PER_THREAD, Driver
from exchange_api import ALLOCATE, SET_ERROR, WORK_STREAM, api, borrow, export

CPU, CUDA, PINNED, MANAGED = (1, 0), (2, 0), (3, 0), (13, 0)
PAIRS = {"cuda:0": CUDA, "cuda_host": PINNED, "cuda_managed": MANAGED}
NBYTES = 512


def exported(field: dl.Tensor, **keywords: Any) -> tuple[DLTensor, int, object]:
    capsule = field.__dlpack__(max_version=(1, 3), **keywords)
    assert capsule_name(capsule) == b"dltensor_versioned"
    managed = DLManagedTensorVersioned.from_address(capsule_pointer(capsule, b"dltensor_versioned"))
    return managed.dl_tensor, managed.flags, capsule


@pytest.mark.parametrize("device", PAIRS)
def test_device(device: str) -> None:
    field = dl.zeros((3, 4), "float32", alignment_size=64, device=device)
    assert field.__dlpack_device__() == PAIRS[device]
    tensor, flags, _capsule = exported(field)
    assert (tensor.data, flags) == (field.ptr, 0)
    assert (tensor.device.device_type, tensor.device.device_id) == PAIRS[device]
    assert [tensor.strides[axis] for axis in range(2)] == [16, 1]
    assert capsule_name(field.__dlpack__()) == b"dltensor"
    assert exported(field.as_readonly())[1] == READ_ONLY
    with pytest.raises(dl.ExchangeError, match="read-only"):
        field.as_readonly().__dlpack__()


def test_the_consumers_work_comes_after_ours(driver: Driver) -> None:
    """A consumer finishes its work before it releases the memory."""
    with driver.stream() as ours, driver.stream() as theirs:
        for number, passed in ((theirs, theirs), (theirs, dl.cuda.Stream(theirs)), (LEGACY, None), (LEGACY, 1), (2, 2)):
            with dl.cuda.stream(ours):
                field = dl.ones(64, device="cuda:0")
                _tensor, _flags, capsule = exported(field, stream=passed)
            driver.fill(field.ptr, 7, NBYTES, number)
            assert driver.read(field.ptr, NBYTES, number) == b"\7" * NBYTES
            driver.fill(field.ptr, 8, NBYTES, number)
            driver.synchronize(number)
            del field, capsule


@pytest.mark.parametrize("name", ["dlpack", "interface", "table", "lent by the table"])
def test_the_consumers_work_comes_after_that_of_all_recorded_streams(driver: Driver, name: str) -> None:
    with driver.stream() as ours, driver.stream() as other, driver.stream() as theirs:
        with dl.cuda.stream(ours):
            field = dl.ones(64, device="cuda:0")
        with dl.cuda.stream(other):
            exported(field, stream=other)
            driver.fill(field.ptr, 6, NBYTES, other)
        if name == "dlpack":
            exported(field, stream=theirs)
        with dl.cuda.stream(theirs):
            if name == "interface":
                assert field.__cuda_array_interface__["stream"] == theirs
            if name == "table":
                release(export(field))
            if name == "lent by the table":
                assert borrow(field).data == field.ptr
        driver.fill(field.ptr, 7, NBYTES, theirs)
        assert driver.read(field.ptr, NBYTES, theirs) == b"\7" * NBYTES
        driver.synchronize(theirs)
        del field


def test_no_host_waits(driver: Driver) -> None:
    if not IS_FAKE:
        return  # Only the test double counts.
    with driver.stream() as ours, driver.stream() as theirs, dl.cuda.stream(ours):
        before = driver.report()
        field = dl.zeros(64, device="cuda:0")
        for stream in (theirs, None, 1, 2, -1):
            exported(field, stream=stream)
        assert field.__cuda_array_interface__["stream"] == ours
        del field
        after = driver.report()
        for name in ("stream_syncs", "event_syncs", "context_syncs"):
            assert after[name] == before[name]


@pytest.mark.misuse("races")
@pytest.mark.skipif(not IS_FAKE, reason="a race is seen on the double only")
def test_stream_minus_1_orders_nothing(driver: Driver) -> None:
    with driver.stream() as ours, driver.stream() as theirs:
        field = dl.zeros(64, device="cuda:0", stream=ours)
        exported(field, stream=-1)
        driver.fill(field.ptr, 7, NBYTES, theirs)
        driver.synchronize(theirs)
        del field


@pytest.mark.parametrize("device", ["cuda_host", "cuda_managed"])
def test_pinned_and_managed_memory(driver: Driver, device: str) -> None:
    """An export without a stream waits for the device, because the consumer may be the host."""
    with driver.stream() as ours, driver.stream(blocking=True) as theirs:
        with dl.cuda.stream(ours):
            field = dl.zeros(64, device=device)
            # This consumer passes its stream, and works there.
            exported(field, stream=theirs)
            driver.fill(field.ptr, 7, NBYTES, theirs)
            held = exported(field)
        assert ctypes.string_at(field.ptr, NBYTES) == b"\7" * NBYTES
        driver.fill(field.ptr, 8, NBYTES, theirs)
        assert field.to_numpy().tobytes() == b"\10" * NBYTES
        driver.fill(field.ptr, 9, NBYTES, theirs)
        assert bytes(memoryview(field)) == b"\11" * NBYTES
        driver.fill(field.ptr, 10, NBYTES, theirs)
        assert np.asarray(field).tobytes() == b"\12" * NBYTES
        driver.fill(field.ptr, 11, NBYTES, theirs)
        interface = field.__array_interface__
        assert ctypes.string_at(interface["data"][0], NBYTES) == b"\13" * NBYTES
        del field, held


@pytest.mark.parametrize("device", PAIRS)
def test_on_the_host(device: str) -> None:
    """`dl_device` of the host shares pinned and managed memory, and copies device memory."""
    field = dl.full((3, 4), 2.5, alignment_size=64, device=device)
    tensor, flags, _capsule = exported(field, dl_device=CPU)
    shared = device != "cuda:0"
    assert (tensor.device.device_type, tensor.data == field.ptr, flags) == (1, shared, 0 if shared else IS_COPIED)
    assert ctypes.string_at(tensor.data or 0, 8) == np.float64(2.5).tobytes()
    assert [tensor.strides[axis] for axis in range(2)] == [8, 1]
    tensor, flags, _capsule = exported(field, dl_device=CPU, copy=True)
    assert (tensor.data != field.ptr, flags) == (True, IS_COPIED)
    if shared:
        assert exported(field, dl_device=CPU, copy=False)[0].data == field.ptr
    else:
        with pytest.raises(BufferError, match="copy: False, but the memory is on cuda:0"):
            exported(field, dl_device=CPU, copy=False)


@pytest.mark.parametrize("device", ["cpu", *PAIRS])
def test_on_a_gpu(driver: Driver, device: str) -> None:
    field = dl.full(64, 2.5, device=device)
    with driver.stream() as theirs:
        tensor, _flags, _capsule = exported(field, dl_device=CUDA, stream=theirs)
        assert (tensor.device.device_type, tensor.data == field.ptr) == (2, device != "cpu")
        assert driver.read(tensor.data or 0, 8, theirs) == np.float64(2.5).tobytes()
        last = driver.device_count - 1
        tensor, _flags, _capsule = exported(field, dl_device=(2, last))
        assert driver.read(tensor.data or 0, 8, device=last) == np.float64(2.5).tobytes()
        # The memory must be freed before the stream is destroyed.
        del field, _capsule


def test_copies(driver: Driver) -> None:
    field = dl.full((3, 4), 2.5, alignment_size=64, device="cuda:0")
    tensor, flags, _capsule = exported(field, copy=True)
    assert (tensor.data != field.ptr, flags, tensor.device.device_type) == (True, IS_COPIED, 2)
    assert driver.read(tensor.data or 0, 8) == np.float64(2.5).tobytes()


@pytest.mark.parametrize("device", PAIRS)
def test_interface(driver: Driver, device: str) -> None:
    field = dl.zeros((3, 4), "float32", alignment_size=64, device=device).as_readonly()
    with driver.stream() as ours:
        with dl.cuda.stream(ours):
            interface = field.__cuda_array_interface__
        del field
    assert interface["version"] == 3
    assert (interface["shape"], interface["strides"], interface["typestr"]) == ((3, 4), (64, 4), "<f4")
    assert (interface["data"][1], interface["stream"]) == (True, ours)


def test_absent_interfaces() -> None:
    assert not hasattr(dl.zeros(3), "__cuda_array_interface__")
    field = dl.zeros(3, device="cuda:0")
    assert not hasattr(field, "__array_interface__")
    assert hasattr(dl.zeros(3, device="cuda_managed"), "__array_interface__")
    assert dl.zeros(0, device="cuda:0").__cuda_array_interface__["data"] == (0, False)
    assert not hasattr(dl.zeros(3, "bfloat16", device="cuda:0"), "__cuda_array_interface__")


def test_data_interface() -> None:
    field = dl.zeros((3, 4), device="cuda:0", halo=(1, 0))
    buffers = field.__gt_data_interface__
    assert list(buffers) == ["gpu"]
    assert (buffers["gpu"]["dims"], buffers["gpu"]["halo"]) == (("I", "J"), ((1, 1), (0, 0)))
    assert list(dl.zeros(3, device="cuda_managed").__gt_data_interface__) == ["gpu", None]
    assert list(dl.zeros(3, device="cuda_host").__gt_data_interface__) == [None]


def test_the_host_cannot_read_device_memory() -> None:
    field = dl.zeros(3, device="cuda:0")
    for read in (dl.Tensor.to_numpy, np.asarray, dl.as_numpy):
        with pytest.raises(dl.NoSuchBufferError, match=r"^device: cuda:0 has no host buffer; .*to_device\('cpu'\)"):
            read(field)
    with pytest.raises(
        BufferError,
        match="expected memory that the host can read, of cpu, cuda_host or cuda_managed, got memory on cuda:0",
    ):
        memoryview(field)
    with pytest.raises((RuntimeError, BufferError)):
        np.from_dlpack(field)


# The C exchange API


def work_stream(kind: int, number: int) -> int | None:
    out = c_void_p(77)
    assert WORK_STREAM(api().current_work_stream)(kind, number, byref(out)) == 0
    return out.value


def test_work_stream(driver: Driver) -> None:
    assert work_stream(1, 0) is None
    for kind in (2, 3, 13):
        assert work_stream(kind, 0) == LEGACY
    last = driver.device_count - 1
    with driver.stream(last) as ours, dl.cuda.stream(ours):
        assert work_stream(2, last) == ours
    with dl.cuda.stream(PER_THREAD):
        assert work_stream(2, 0) == PER_THREAD
    with pytest.raises(dl.DeviceError, match="cuda:99"):
        work_stream(2, 99)
    with pytest.raises(dl.DeviceError, match="rocm"):
        work_stream(10, 0)


def test_allocator(driver: Driver) -> None:
    messages = []
    report = SET_ERROR(lambda _context, kind, message: messages.append((kind, message)))
    shape = (ctypes.c_int64 * 2)(3, 4)
    prototype = DLTensor(ndim=2, dtype=DLDataType(2, 64, 1), shape=shape)
    for kind in (2, 3, 13):
        prototype.device = DLDevice(kind, 0)
        out = c_void_p()
        with driver.stream() as ours, dl.cuda.stream(ours):
            assert ALLOCATE(api().managed_tensor_allocator)(byref(prototype), byref(out), None, report) == 0
            managed = DLManagedTensorVersioned.from_address(out.value or 0)
            assert managed.dl_tensor.device.device_type == kind
            driver.fill(managed.dl_tensor.data or 0, 1, 96, ours)
            release(managed)
    prototype.device = DLDevice(2, 99)
    assert ALLOCATE(api().managed_tensor_allocator)(byref(prototype), byref(out), None, report) == -1
    assert messages[0][0] == b"RuntimeError"
    assert b"cuda:99" in messages[0][1]
