"""Devices and streams as arguments: objects of frameworks, which memory a device reaches, and what does not exist."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import dlfield as dl
from dlfield import gt4py, storage
from driver import Driver
from fakes_interfaces import Exposing
from stream_producers import Exporter
from untyped import np

VALUES = np.arange(12.0).reshape(3, 4)
SHARED = ("cuda_host", "cuda_managed")
KINDS = ("cuda:0", *SHARED)

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


def signature(device: Any, **keywords: Any) -> dl.Signature:
    return dl.Signature(f=dl.FieldSpec("float64", "IJ", **keywords), device=device)


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
    "Signature": signature,
    "bind": lambda device: signature(device).bind(f=field_on()).f,
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


@pytest.mark.parametrize("device", SHARED)
def test_memory_of_every_device_is_that_of_the_first(driver: Driver, device: str) -> None:
    field = dl.zeros(3, device=device)
    assert dl.cuda.memory_info(field.device)[1] == dl.cuda.memory_info(device)[1] == driver.memory_info()[1]


def test_the_host_has_no_memory_info() -> None:
    wrong: list[Any] = ["cpu", dl.Device("cpu"), None, 1.5]
    for device in wrong:
        with pytest.raises(TypeError, match=r"^device: expected a (CUDA d|D)evice"):
            dl.cuda.memory_info(device)


# Pinned and managed memory is an argument for the host and for GPUs, after the work on it.

SOURCES: dict[str, Callable[[dl.Tensor], Any]] = {
    "tensor": lambda field: field,
    "description": dl.describe,
    "dlpack": Exporter,
    "data interface": lambda field: Exposing(__gt_data_interface__=field.__gt_data_interface__, kept=field),
}
# The data interface of pinned memory has no buffer for a GPU.
WAYS = [(source, device, user) for source in SOURCES for device in SHARED for user in ("cpu", "cuda:0")]
WAYS.remove(("data interface", "cuda_host", "cuda:0"))


@pytest.mark.parametrize(("source", "device", "user"), WAYS)
@pytest.mark.parametrize("on_mismatch", ["raise", "copy"])
def test_a_stencil_gets_the_memory_itself(source: str, device: str, user: str, on_mismatch: Any) -> None:
    field = field_on(device)
    for access in ("r", "w", "rw"):
        spec = dl.FieldSpec("float64", "IJ", access=access)
        with dl.Signature(f=spec, device=user, on_mismatch=on_mismatch).bind(f=SOURCES[source](field)) as bound:
            assert bound.f.ptr == field.ptr
    if source != "data interface":
        found = dl.describe(SOURCES[source](field), device=user, writable=True)
        assert (found.ptr, str(found.device)) == (field.ptr, device)
        assert dl.from_dlpack(SOURCES[source](field), device=user).ptr == field.ptr


OUT_OF_REACH = [("cpu", "cuda:0"), ("cuda:0", "cpu"), ("cpu", "cuda_managed"), ("cuda:0", "cuda_managed")]
OUT_OF_REACH += [("cuda_managed", "cuda_host"), ("cuda_host", "cuda_managed")]


@pytest.mark.parametrize(
    ("device", "user"), [*OUT_OF_REACH, pytest.param("cuda:1", "cuda:0", marks=pytest.mark.two_devices)]
)
def test_memory_that_a_device_does_not_reach_is_refused(device: str, user: str) -> None:
    field = field_on(device)
    with pytest.raises(dl.DeviceError, match=f'field "f": device: expected memory on {user}, got memory on {device}'):
        signature(user).bind(f=field)
    with pytest.raises(dl.DeviceError, match=f"expected memory on {user}, got memory on {device}"):
        dl.describe(field, device=user)


@pytest.mark.parametrize("device", SHARED)
@pytest.mark.parametrize("source", ["tensor", "dlpack"])
@pytest.mark.parametrize("name", ["bind", "describe", "from_dlpack"])
def test_the_current_stream_of_the_gpu_waits(driver: Driver, name: str, source: str, device: str) -> None:
    """Also that of another GPU than the one that wrote."""
    last = driver.device_count - 1
    user = f"cuda:{last}"
    uses: dict[str, Callable[[Any], Any]] = {
        "bind": lambda x: signature(user).bind(f=x).f,
        "describe": lambda x: dl.describe(x, device=user),
        "from_dlpack": lambda x: dl.from_dlpack(x, device=user),
    }
    with driver.stream() as writes, driver.stream(last) as reads:
        with dl.cuda.stream(writes):
            field, ones = dl.empty((10, 100), device=device), dl.ones((10, 100), device="cuda:0")
            field.to_device("cuda:0")[...] = ones
        with dl.cuda.stream(reads, last):
            argument = uses[name](SOURCES[source](field))
            found = driver.read(argument.ptr, field.nbytes, reads, last)
        assert np.array_equal(np.frombuffer(found), np.ones(1000))
        del field, ones, argument


# Streams and devices that do not exist.


def zeros_on(device: str, stream: Any) -> dl.Tensor:
    return dl.zeros(3, device=device, stream=stream)


def export_of(device: str, stream: Any) -> object:
    return field_on(device).__dlpack__(stream=stream)


STREAMS: dict[str, Callable[[Any], Any]] = {
    **{f"zeros on {device}": partial(zeros_on, device) for device in KINDS},
    **{f"export of {device}": partial(export_of, device) for device in KINDS},
    "describe": lambda stream: dl.describe(field_on(), stream=stream),
    "from_dlpack": lambda stream: dl.from_dlpack(field_on(), stream=stream),
    "to_device": lambda stream: field_on().to_device("cpu", stream=stream),
    "cuda.stream": lambda stream: dl.cuda.stream(stream).__enter__(),
    "cuda.stream of a device": lambda stream: dl.cuda.stream(stream, device=0).__enter__(),
    "cuda.synchronize": lambda stream: dl.cuda.synchronize(0, stream),
}
# Without an order of the consumer's work, which is a value for exports and imports.
NO_ORDER = [name for name in STREAMS if name.startswith(("zeros", "cuda"))]


@pytest.mark.parametrize("name", STREAMS)
def test_invalid_streams(name: str) -> None:
    wrong = [0, -2, "x", 1.5, 1 << 70, (0, 1)] + [-1] * (name in NO_ORDER) + [None] * name.startswith("cuda.stream")
    for stream in wrong:
        with pytest.raises(dl.ExchangeError, match=r"^stream: expected .*, got "):
            STREAMS[name](stream)


@pytest.mark.two_devices
def test_streams_of_another_device(driver: Driver) -> None:
    with driver.stream(1) as handle:
        for name in ("cuda.synchronize", "cuda.stream of a device"):
            with pytest.raises(dl.DeviceError, match=f"stream: expected a stream of .*, got {handle} of cuda:1"):
                STREAMS[name](handle)


def test_the_host_has_no_streams() -> None:
    for use in (
        lambda: dl.zeros(3, stream=1),
        lambda: dl.from_array([1, 2], stream=1),
        lambda: dl.zeros(3).to_device("cpu", stream=1),
        lambda: field_on().__dlpack__(dl_device=(1, 0), stream=1),
    ):
        with pytest.raises(dl.ExchangeError, match=r"^stream: expected None on the host"):
            use()


def moved(from_device: str, to_device: Any) -> dl.Tensor:
    return field_on(from_device).to_device(to_device)


def described(from_device: str, to_device: Any) -> dl.Descriptor:
    return dl.describe(field_on(from_device), device=to_device)


def bound(from_device: str, to_device: Any) -> Any:
    return signature(to_device).bind(f=field_on(from_device))


ABSENT: dict[str, Callable[[Any], Any]] = {
    "zeros": USES["zeros"],
    **{f"to_device of {device}": partial(moved, device) for device in KINDS},
    **{f"describe of {device}": partial(described, device) for device in SHARED},
    **{f"bind of {device}": partial(bound, device) for device in SHARED},
    "from_pointer": lambda device: dl.from_pointer(field_on("cpu").ptr, (3,), "float64", device=device, owner=None),
    "cuda.memory_info": dl.cuda.memory_info,
    "cuda.synchronize": dl.cuda.synchronize,
}


@pytest.mark.parametrize("name", ABSENT)
def test_absent_devices(name: str) -> None:
    with pytest.raises(dl.DeviceError, match="cuda:99"):
        ABSENT[name]("cuda:99")
    if name.startswith("cuda."):
        for device in (99, -1, 70000):
            with pytest.raises(dl.DeviceError, match="device: "):
                ABSENT[name](device)
    if name in ("zeros", "to_device of cuda:0"):
        with pytest.raises(dl.DeviceError, match="rocm:0"):
            ABSENT[name]("rocm:0")


@pytest.mark.parametrize("pair", [(2, 99), (10, 0), (99, 0), (1, 1)])
def test_absent_devices_of_dlpack(pair: tuple[int, int]) -> None:
    with pytest.raises(BufferError, match=rf"dl_device: \({pair[0]}, {pair[1]}\) is not available"):
        field_on().__dlpack__(dl_device=pair)
