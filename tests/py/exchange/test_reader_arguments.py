"""Arguments of `describe` and `from_dlpack`: for memory of devices, for producers that copy, and of wrong types."""

import array
import mmap
from collections.abc import Callable
from typing import Any

import pytest

import dlfield as dl
from fakes import FakeTensor, Producer, exchange_type, int_matrix
from fakes_interfaces import NOWHERE, Exposing, cuda, device_interface, double_matrix, hip

READERS: list[Callable[..., Any]] = [dl.describe, dl.from_dlpack]
CUDA = (2, 0)
MATRIX = double_matrix()


def tensor(**fields: Any) -> FakeTensor:
    return FakeTensor(int_matrix(), **fields)


def gt(**buffers: dict[str, Any]) -> Exposing:
    return Exposing(__gt_data_interface__=buffers, kept=MATRIX)


ON_CUDA: dict[str, Callable[[], Any]] = {
    "dlfield": lambda: dl.describe(cuda()),
    "dlpack-c": lambda: exchange_type(tensor(device=CUDA))(),
    "dlpack": lambda: Producer(tensor(device=CUDA), CUDA),
    "dlpack capsule": lambda: tensor(device=CUDA).capsule(),
    "gt": lambda: gt(gpu=device_interface()),
    "cuda-array-interface": cuda,
}


@pytest.mark.parametrize("name", ON_CUDA)
def test_cuda_memory(name: str) -> None:
    make = ON_CUDA[name]
    found = dl.describe(make())
    assert found.device == "cuda:0"
    assert found.protocol == name.split()[0]
    assert dl.describe(make(), device="gpu", writable=True, dims="JI").dims == ("J", "I")
    assert dl.describe(make(), stream=-1).device == "cuda:0", "the caller synchronizes"
    wrong: tuple[Any, ...] = (0, "x", 1.5, -2)
    for stream in wrong:
        with pytest.raises(dl.ExchangeError, match="stream: "):
            dl.describe(make(), stream=stream)
    with pytest.raises(dl.DeviceError, match="on cuda:0, wanted on cpu"):
        dl.describe(make(), device="cpu")
    with pytest.raises(dl.DeviceError, match="cuda:0"):
        dl.from_dlpack(make())


@pytest.mark.parametrize("name", ["dlfield", "dlpack-c", "dlpack capsule"])
def test_streams_that_cannot_be_passed_on(name: str) -> None:
    with pytest.raises(dl.ExchangeError, match="stream: 7; allowed is None, or -1"):
        dl.describe(ON_CUDA[name](), stream=7)


def test_readonly_memory_of_devices() -> None:
    for make in (cuda, hip):
        found = make(data=(NOWHERE, True))
        assert dl.describe(found).readonly
        with pytest.raises(dl.ExchangeError, match="writable"):
            dl.describe(found, writable=True)


def test_a_producer_gets_the_keywords_that_a_description_needs() -> None:
    """A description asks for copy=False, as moved memory would not be the object's."""
    for read, passed in ((dl.describe, {"copy": False}), (dl.from_dlpack, {})):
        producer = Producer(tensor())
        with pytest.raises(dl.DeviceError):
            read(producer, device="cuda:1")
        assert producer.calls == [{"max_version": (1, 3), "dl_device": (2, 1), **passed}]
    producer = Producer(tensor(device=CUDA), CUDA)
    dl.describe(producer, stream=7)
    assert producer.calls == [{"max_version": (1, 3), "stream": 7}]


def test_descriptions_ask_no_framework_to_move_memory(torch: Any) -> None:
    with pytest.raises(ValueError, match="without copying"):
        dl.describe(torch.ones(3), device="cuda:0")


@pytest.mark.usefixtures("torch", "jax")
def test_host_memory_does_not_query_framework_streams(torch: Any, jnp: Any) -> None:
    for make in (torch.ones, jnp.ones):
        for read in READERS:
            with pytest.raises(dl.ExchangeError, match="stream: 1; allowed is None on the host"):
                read(make(3), stream=1)


def test_arguments_of_the_wrong_type() -> None:
    calls: list[Callable[[], Any]] = [
        lambda: dl.describe(MATRIX, writable=1),  # type: ignore[arg-type]
        lambda: dl.describe(MATRIX, device=3),  # type: ignore[arg-type]
        lambda: dl.from_dlpack(MATRIX, copy="no"),  # type: ignore[arg-type]
        lambda: dl.from_dlpack(MATRIX, origin=1),  # type: ignore[arg-type]
        lambda: dl.from_dlpack(MATRIX, dims=1),  # type: ignore[arg-type]
    ]
    for call, named in zip(calls, ("writable", "device", "copy", "origin", "dims"), strict=True):
        with pytest.raises((TypeError, dl.DimsError), match=f"^{named}: "):
            call()


def test_one_dimension_of_bytes() -> None:
    for make in (lambda: bytearray(8), lambda: array.array("d", [1.0]), lambda: mmap.mmap(-1, 8)):
        assert dl.describe(make(), writable=True, dims="K", device="cpu").dims == ("K",)
    with pytest.raises(dl.ExchangeError, match="writable"):
        dl.describe(b"12345678", writable=True)
