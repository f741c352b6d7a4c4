"""GPU memory exchanged with CuPy, PyTorch and JAX, both ways; on a GPU only, with the installed ones."""

from typing import Any

import numpy as np
import pytest

import dlfield as dl
from driver import Driver

SHAPE = (4, 8)
VALUES = np.arange(32.0, dtype="f4").reshape(SHAPE)


@pytest.fixture
def cupy() -> Any:
    return pytest.importorskip("cupy")


@pytest.fixture
def torch() -> Any:
    module = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.skip("PyTorch finds no GPU")
    return module


@pytest.fixture
def jax() -> Any:
    module = pytest.importorskip("jax")
    if not any(device.platform == "gpu" for device in module.local_devices()):
        pytest.skip("JAX finds no GPU")
    return module


def field_on(device: str = "cuda:0", **keywords: Any) -> dl.Tensor:
    return dl.from_array(VALUES, device=device, **keywords)


def test_cupy(cupy: Any) -> None:
    for options in ({}, {"alignment_size": 64}, {"backend": "F"}):
        field = field_on(**options)
        array = dl.as_cupy(field, copy=False)
        assert (array.data.ptr, array.strides) == (field.ptr, field.strides)
        assert (cupy.asnumpy(array) == VALUES).all()
        array += 1
        assert (np.asarray(field.to_device("cpu")) == VALUES + 1).all()
    assert field.to_cupy().data.ptr == field.to_ndarray().data.ptr == field.ptr
    assert cupy.asnumpy(field[[0, 2]]).shape == (2, 8)
    field[[0, 2]] = 0
    back = dl.from_dlpack(array)
    assert (back.ptr, str(back.device)) == (array.data.ptr, "cuda:0")
    assert cupy.from_dlpack(field).data.ptr == cupy.asarray(field).data.ptr == field.ptr


def test_cupy_streams(cupy: Any) -> None:
    stream = cupy.cuda.Stream(non_blocking=True)
    with dl.cuda.stream(stream.ptr):
        field = dl.zeros(1 << 24, "float32", device="cuda:0")
        field[...] = 3
    with cupy.cuda.Stream(non_blocking=True) as other:
        array = cupy.from_dlpack(field)
        assert float(array.sum()) == 3 * (1 << 24)
        other.synchronize()
    stream.synchronize()


@pytest.mark.usefixtures("torch")
def test_torch() -> None:
    for options in ({}, {"alignment_size": 64}, {"backend": "F"}):
        field = field_on(**options)
        assert dl.preflight(field, "torch", write=True)
        tensor = dl.as_torch(field, copy=False)
        assert (tensor.data_ptr(), str(tensor.device)) == (field.ptr, "cuda:0")
        tensor += 1
        assert (np.asarray(field.to_device("cpu")) == VALUES + 1).all()
        for read in (dl.describe, dl.from_dlpack):
            back = read(tensor)
            assert (back.ptr, str(back.device), back.strides) == (field.ptr, "cuda:0", field.strides)
    assert dl.as_torch(field_on("cuda_managed"), copy=False).device.type == "cuda"
    assert dl.as_torch(field_on("cuda_host"), copy=False).device.type == "cpu"
    with pytest.raises(dl.ExchangeError, match="read-only"):
        dl.as_torch(field.as_readonly(), copy=False)
    assert (dl.as_torch(field_on().as_readonly()).cpu().numpy() == VALUES).all()


def test_torch_streams(torch: Any) -> None:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        tensor = torch.full((1 << 24,), 3.0, device="cuda")
        field = dl.from_dlpack(tensor)
    assert float(np.asarray(field.to_device("cpu")).sum()) == 3.0 * (1 << 24)


def test_jax(jax: Any) -> None:
    field = field_on()
    assert dl.preflight(field, "jax")
    array = dl.as_jax(field, copy=False)
    assert array.unsafe_buffer_pointer() == field.ptr
    assert (np.asarray(array) == VALUES).all()
    assert dl.preflight(field_on(alignment_size=64), "jax").verdict == "copy"
    assert (np.asarray(dl.as_jax(field_on(alignment_size=64))) == VALUES).all()
    made = jax.numpy.ones(SHAPE) * 2
    back = dl.from_dlpack(made)
    assert (back.ptr, str(back.device), back.readonly) == (made.unsafe_buffer_pointer(), "cuda:0", True)


@pytest.mark.usefixtures("torch")
def test_fields_on_the_second_gpu(driver: Driver) -> None:
    if driver.device_count < 2:
        return  # There is only one.
    field = dl.from_array(VALUES, device="cuda:1")
    assert str(dl.as_torch(field).device) == "cuda:1"
