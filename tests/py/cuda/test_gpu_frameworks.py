"""Device memory exchanged with JAX and with PyTorch's kernels, both ways; on a GPU only."""

from typing import Any

import numpy as np
import pytest

import dlfield as dl

SHAPE = (4, 8)
VALUES = np.arange(32.0, dtype="f4").reshape(SHAPE)


@pytest.fixture
def jax() -> Any:
    module = pytest.importorskip("jax")
    if not any(device.platform == "gpu" for device in module.local_devices()):
        pytest.skip("JAX finds no GPU")
    return module


def field_on(**keywords: Any) -> dl.Tensor:
    return dl.from_array(VALUES, device="cuda:0", **keywords)


@pytest.mark.parametrize("options", [{}, {"alignment_size": 64}, {"backend": "F"}])
@pytest.mark.usefixtures("torch")
def test_kernels_of_pytorch(options: dict[str, Any]) -> None:
    field = field_on(**options)
    tensor = dl.as_torch(field, copy=False)
    tensor += 1
    assert (np.asarray(field.to_device("cpu")) == VALUES + 1).all()


def test_kernels_of_pytorch_in_another_stream(torch: Any) -> None:
    with torch.cuda.stream(torch.cuda.Stream()):
        field = dl.from_dlpack(torch.full((1 << 24,), 3.0, device="cuda"))
    assert float(np.asarray(field.to_device("cpu")).sum()) == 3.0 * (1 << 24)


def test_devices_of_jax(jax: Any) -> None:
    device = jax.local_devices(backend="gpu")[0]
    assert str(dl.zeros(3, device=device).device) == "cuda:0"
    assert str(dl.zeros(3, device=jax.numpy.zeros(3).device).device) == "cuda:0"


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
