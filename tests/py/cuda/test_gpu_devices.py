"""Device objects of the frameworks, wherever a device is an argument."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable
from typing import Any

import pytest

import dlfield as dl
from dlfield import gt4py, storage
from driver import Driver
from untyped import np

VALUES = np.arange(12.0).reshape(3, 4)
SPEC = dl.FieldSpec("float64", "IJ")

# An object of each framework for the first device.
DEVICES: dict[str, Callable[[Any], Any]] = {
    "CuPy": lambda cupy: cupy.cuda.Device(0),
    "the device of a CuPy array": lambda cupy: cupy.asarray(VALUES).device,
    "PyTorch": lambda _: importlib.import_module("torch").device("cuda", 0),
    "cuda.core": lambda _: importlib.import_module("cuda.core").Device(0),
    "Numba": lambda _: importlib.import_module("numba.cuda").gpus[0],
}


def field_on(device: Any = "cuda:0") -> dl.Tensor:
    return dl.from_array(VALUES, device=device)


# Presets live as long as the process.
NUMBERS = itertools.count()


def preset(device: Any) -> Any:
    return dl.register_preset(f"test:devices {next(NUMBERS)}", device=device)


# Each returns what has the device; None where the call itself is the test.
USES: dict[str, Callable[[Any], Any]] = {
    "empty": lambda device: dl.empty(3, device=device),
    "zeros": lambda device: dl.zeros(3, device=device),
    "ones": lambda device: dl.ones(3, device=device),
    "full": lambda device: dl.full(3, 2.0, device=device),
    "zeros_like": lambda device: dl.zeros_like(VALUES, device=device),
    "from_array": field_on,
    "from_dlpack": lambda device: dl.from_dlpack(VALUES, device=device, copy=True),
    "from_pointer": lambda device: dl.from_pointer(field_on().ptr, (0,), "float64", device=device, owner=None),
    "describe": lambda device: dl.describe(field_on(), device=device),
    "to_device": lambda device: field_on("cpu").to_device(device),
    "register_preset": preset,
    "Signature": lambda device: dl.Signature(f=SPEC, device=device),
    "bind": lambda device: dl.Signature(f=SPEC, device=device).bind(f=field_on()).f,
    "storage.zeros": lambda device: storage.zeros((3, 4), device=device),
    "storage.storage": lambda device: storage.storage(VALUES, device=device),
    "gt4py.allocator": gt4py.allocator,
    "cuda.init": dl.cuda.init,
    "cuda.synchronize": dl.cuda.synchronize,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("framework", DEVICES)
def test_a_device_object_is_accepted(cupy: Any, framework: str, use: str) -> None:
    for module in ("torch", "cuda.core", "numba.cuda"):
        pytest.importorskip(module)
    found = USES[use](DEVICES[framework](cupy))
    assert found is None or str(found.device) == "cuda:0"


@pytest.mark.parametrize("framework", DEVICES)
def test_functions_of_dlfield_cuda(cupy: Any, driver: Driver, framework: str) -> None:
    device = DEVICES[framework](cupy)
    assert dl.cuda.memory_info(device)[1] == driver.memory_info()[1]
    assert dl.cuda.current_stream(device).device == 0
    with driver.stream() as handle, dl.cuda.stream(handle, device) as stream:
        assert stream == dl.cuda.Stream(handle, 0)


@pytest.mark.parametrize("use", [name for name in USES if name not in ("from_pointer", "describe", "bind")])
def test_pytorch_without_a_number_means_its_current_device(torch_with_its_streams: Any, use: str) -> None:
    found = USES[use](torch_with_its_streams.device("cuda"))
    assert found is None or str(found.device) == f"cuda:{torch_with_its_streams.cuda.current_device()}"


@pytest.mark.parametrize("device", ["cuda_managed", "cuda_host"])
def test_memory_of_every_device_is_that_of_the_first(driver: Driver, device: str) -> None:
    field = dl.zeros(3, device=device)
    assert dl.cuda.memory_info(field.device)[1] == dl.cuda.memory_info(device)[1] == driver.memory_info()[1]


def test_the_host_has_no_memory_info(cupy: Any) -> None:
    for device in ("cpu", dl.Device("cpu")):
        with pytest.raises(TypeError, match=r"^device: expected a CUDA device: .*, got .*cpu"):
            dl.cuda.memory_info(device)
    assert dl.cuda.memory_info(cupy.asarray(VALUES).device)[1] == dl.cuda.memory_info(0)[1]
