"""Streams and devices that do not exist, by every function that takes one."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import dlfield as dl
from driver import Driver

DEVICES = ("cuda:0", "cuda_host", "cuda_managed")
SPEC = dl.FieldSpec("float64", "I")


def field_on(device: str = "cuda:0") -> dl.Tensor:
    return dl.zeros(3, device=device)


def zeros_on(device: str, stream: Any) -> dl.Tensor:
    return dl.zeros(3, device=device, stream=stream)


def export_of(device: str, stream: Any) -> object:
    return field_on(device).__dlpack__(stream=stream)


STREAMS: dict[str, Callable[[Any], Any]] = {
    **{f"zeros on {device}": partial(zeros_on, device) for device in DEVICES},
    **{f"export of {device}": partial(export_of, device) for device in DEVICES},
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
        with pytest.raises(dl.ExchangeError, match=r"^stream: expected "):
            STREAMS[name](stream)


@pytest.mark.two_devices
def test_streams_of_another_device(driver: Driver) -> None:
    with driver.stream(1) as handle:
        for name in ("cuda.synchronize", "cuda.stream of a device"):
            with pytest.raises(dl.DeviceError, match=f"stream: .* got {handle} of cuda:1"):
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
    return dl.Signature(f=SPEC, device=to_device).bind(f=field_on(from_device))


USES: dict[str, Callable[[Any], Any]] = {
    "zeros": lambda device: dl.zeros(3, device=device),
    **{f"to_device of {device}": partial(moved, device) for device in DEVICES},
    **{f"describe of {device}": partial(described, device) for device in DEVICES[1:]},
    **{f"bind of {device}": partial(bound, device) for device in DEVICES[1:]},
    "from_pointer": lambda device: dl.from_pointer(field_on("cpu").ptr, (3,), "float64", device=device, owner=None),
    "cuda.memory_info": dl.cuda.memory_info,
    "cuda.synchronize": dl.cuda.synchronize,
}


@pytest.mark.parametrize("name", USES)
def test_absent_devices(name: str) -> None:
    with pytest.raises(dl.DeviceError, match="cuda:99"):
        USES[name]("cuda:99")


@pytest.mark.parametrize("device", [99, -1, "cuda:99", 70000])
def test_numbers_of_absent_devices(device: Any) -> None:
    for ask in (dl.cuda.memory_info, dl.cuda.synchronize):
        with pytest.raises(dl.DeviceError, match="device: "):
            ask(device)


def test_devices_of_other_kinds() -> None:
    for name in ("zeros", "to_device of cuda:0"):
        with pytest.raises(dl.DeviceError, match="rocm:0"):
            USES[name]("rocm:0")
    for device in ("cpu", None, 1.5):
        with pytest.raises(TypeError, match="device: "):
            dl.cuda.memory_info(device)  # type: ignore[arg-type]


@pytest.mark.parametrize("pair", [(2, 99), (10, 0), (99, 0), (1, 1)])
def test_absent_devices_of_dlpack(pair: tuple[int, int]) -> None:
    with pytest.raises(BufferError, match=rf"dl_device: \({pair[0]}, {pair[1]}\) is not available"):
        field_on().__dlpack__(dl_device=pair)
