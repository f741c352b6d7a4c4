"""`dlfield.gt4py` returns CuPy arrays for GPU presets, as gt4py.storage does, and allocates fields of gt4py.next."""

from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield import gt4py
from driver import Driver

# Before any test replaces CuPy: GT4Py looks for it when it is imported.
pytest.importorskip("gt4py.next")

from gt4py import next as gtx
from gt4py._core import definitions as core
from gt4py.next import common
from gt4py.storage.allocators import TensorBuffer

VALUES = np.arange(24.0).reshape(2, 3, 4)
GPU = [name for name, preset in dl.presets().items() if preset.device == "cuda:0"]


def on_host(array: Any) -> Any:
    return np.asarray(dl.from_dlpack(array).to_device("cpu"))


@pytest.mark.parametrize("backend", GPU)
def test_arrays_are_cupys(cupy: Any, backend: str) -> None:
    layout = dl.empty((2, 3, 4), backend=backend, device="cpu").layout
    for array, expected in (
        (gt4py.zeros((2, 3, 4), backend=backend), np.zeros((2, 3, 4))),
        (gt4py.ones((2, 3, 4), "int32", backend=backend), np.ones((2, 3, 4), "int32")),
        (gt4py.full((2, 3, 4), 2.7, int, backend=backend), np.full((2, 3, 4), 2)),
        (gt4py.from_array(VALUES, backend=backend), VALUES),
        (gt4py.from_array(VALUES, "int16", backend=backend), VALUES.astype("int16")),
        (gt4py.from_array(dl.as_cupy(dl.from_array(VALUES, device="cuda:0")), "float32", backend=backend), VALUES),
    ):
        assert type(array) is cupy.ndarray
        assert dl.describe(array).layout == layout
        assert np.array_equal(on_host(array), expected)
    assert type(gt4py.empty((2, 3, 4), backend=backend)) is cupy.ndarray


def test_values_of_a_device_go_to_the_host(cupy: Any) -> None:  # noqa: ARG001 (as_cupy needs it)
    field = dl.from_array(VALUES, device="cuda:0")
    for data in (field, dl.as_cupy(field)):
        array = gt4py.from_array(data, backend="gt:cpu_ifirst")
        assert type(array) is np.ndarray
        assert np.array_equal(array, VALUES)


def test_a_registered_preset_for_a_gpu(cupy: Any) -> None:
    gt4py.register("gpu in rows", {**gt4py.from_name("gt:gpu"), "alignment": 16, "layout_map": lambda _dims: (1, 0)})
    try:
        array: Any = gt4py.ones((5, 3), "float32", backend="gpu in rows", aligned_index=(2, 0))
    finally:
        gt4py.register("gpu in rows", None)
    assert type(array) is cupy.ndarray
    assert (array.strides, (array.data.ptr + 2 * 4) % 64) == ((4, 64), 0)
    assert np.array_equal(on_host(array), np.ones((5, 3)))


def test_the_other_byte_order_to_a_gpu(cupy: Any) -> None:
    array = gt4py.from_array(VALUES.astype(">f4"), None, backend="gt:gpu")
    assert (type(array), array.dtype) == (cupy.ndarray, np.dtype("f4"))
    assert np.array_equal(on_host(array), VALUES)
    with pytest.raises(dl.DTypeError, match="float128"):
        gt4py.zeros((2, 3), "longdouble", backend="gt:gpu")


def test_arrays_are_on_cupys_current_device(cupy: Any, driver: Driver) -> None:
    for number in range(driver.device_count):
        with cupy.cuda.Device(number):
            for array in (gt4py.zeros((2, 3), backend="gt:gpu"), gt4py.from_array(VALUES, backend="dace:gpu")):
                assert dl.describe(array).device == f"cuda:{number}"


def allocate(memory: gt4py.Allocator, **keywords: Any) -> TensorBuffer[Any, Any]:
    horizontal, vertical = gtx.Dimension("I"), gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
    domain = common.domain({horizontal: (-2, 5), vertical: 4})
    buffer: TensorBuffer[Any, Any] = memory.__gt_allocate__(
        domain, core.dtype(np.float64), aligned_index=[common.NamedIndex(horizontal, 0)], **keywords
    )
    return buffer


def test_allocator_gives_cupy_arrays_on_its_device(cupy: Any, driver: Driver) -> None:
    for number in range(driver.device_count):
        memory = gt4py.allocator(f"cuda:{number}")
        assert memory.__gt_device_type__ is core.DeviceType.CUDA
        with cupy.cuda.Device(number):
            # gt4py.next passes 0 if its caller names no device.
            for buffer in (allocate(memory), allocate(memory, device_id=number)):
                assert type(buffer.ndarray) is cupy.ndarray
                assert buffer.device == core.Device(core.DeviceType.CUDA, number)
                assert dl.describe(buffer.ndarray).device == buffer.buffer.device == f"cuda:{number}"
                assert buffer.memory_address == buffer.ndarray.data.ptr == buffer.buffer.ptr
                assert (buffer.ndarray.strides, buffer.layout_map) == ((8, 128), (1, 0))
                assert (buffer.memory_address + 2 * 8) % 128 == 0
                buffer.ndarray[...] = 2.5
                assert np.array_equal(on_host(buffer.ndarray), np.full((7, 4), 2.5))
                assert (buffer.buffer.dims, buffer.buffer.aligned_index) == (("I", "K"), (2, 0))


def test_allocator_of_another_or_no_device(cupy: Any, driver: Driver) -> None:  # noqa: ARG001 (the arrays are CuPy's)
    assert gt4py.allocator("gpu") == gt4py.allocator("cuda:0")
    with pytest.raises(dl.DeviceError, match="device_id: found 1, must be 0, this allocator is for cuda:0"):
        allocate(gt4py.allocator("gpu"), device_id=1)
    with pytest.raises(dl.DeviceError):
        allocate(gt4py.allocator(f"cuda:{driver.device_count}"))
