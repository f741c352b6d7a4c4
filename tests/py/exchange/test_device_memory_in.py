"""`describe` of memory of devices, which is not touched: no GPU is needed."""

import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from fakes import FakeTensor, Producer, exchange_type, int_matrix
from fakes_interfaces import (
    MISSING,
    NOWHERE,
    Exposing,
    cuda,
    device_interface,
    double_matrix,
    hip,
    interface_of,
)

CUDA = (2, 0)
ON_CUDA: dict[str, Callable[[], Any]] = {
    "dlfield": lambda: dl.describe(cuda()),
    "dlpack-c": lambda: exchange_type(FakeTensor(int_matrix(), device=CUDA))(),
    "dlpack": lambda: Producer(FakeTensor(int_matrix(), device=CUDA), CUDA),
    "dlpack capsule": lambda: FakeTensor(int_matrix(), device=CUDA).capsule(),
    "gt": lambda: Exposing(__gt_data_interface__={"gpu": device_interface()}),
    "cuda-array-interface": cuda,
    "hip-array-interface": hip,
}


@pytest.mark.parametrize("name", ON_CUDA)
def test_memory_of_devices_is_described_and_not_owned(name: str) -> None:
    make, device = ON_CUDA[name], "rocm:0" if name.startswith("hip") else "cuda:0"
    found = dl.describe(make())
    assert (str(found.device), found.protocol, found.shape) == (device, name.split()[0], (2, 3))
    assert dl.describe(make(), device=device, writable=True, dims="JI").dims == ("J", "I")
    assert dl.describe(make(), stream=-1).device == device, "the caller synchronizes"
    wrong: tuple[Any, ...] = (1 if device == "rocm:0" else 0, "x", 1.5, -2)
    for stream in wrong:
        with pytest.raises(dl.ExchangeError, match="stream: "):
            dl.describe(make(), stream=stream)
    with pytest.raises(dl.DeviceError, match=f"expected memory on cpu, got memory on {device}"):
        dl.describe(make(), device="cpu")
    for refuse in (dl.from_dlpack, dl.as_numpy, dl.from_array, lambda obj: dl.zeros(6).__setitem__(..., obj)):
        with pytest.raises((dl.DeviceError, dl.NoSuchBufferError), match=device):
            refuse(make())


@pytest.mark.parametrize("name", ["dlfield", "dlpack-c", "dlpack capsule"])
def test_streams_that_cannot_be_passed_on(name: str) -> None:
    with pytest.raises(dl.ExchangeError, match=r"stream: expected None, or -1 .* got 7$"):
        dl.describe(ON_CUDA[name](), stream=7)


SIDES = [(cuda, "__cuda_array_interface__", "cuda:0"), (hip, "__hip_array_interface__", "rocm:0")]


@pytest.mark.parametrize(("make", "attribute", "device"), SIDES)
def test_memory_is_described_and_not_touched(make: Any, attribute: str, device: str) -> None:
    producer = make()
    found = dl.describe(producer)
    assert (found.ptr, found.shape, found.strides, found.dtype) == (NOWHERE, (2, 3), (12, 4), np.dtype("f4"))
    assert (str(found.device), found.readonly, found.owner) == (device, False, producer)
    assert found.protocol == attribute.strip("_").replace("_", "-")
    readonly = make(data=(NOWHERE, True))
    assert dl.describe(readonly).readonly
    with pytest.raises(dl.ExchangeError, match="writable"):
        dl.describe(readonly, writable=True)
    assert dl.describe(make(strides=(4, 8))).layout == (1, 0)
    assert dl.describe(make(strides=MISSING)).strides == (12, 4)
    assert dl.describe(make(shape=(0, 3), data=(0, False))).size == 0


@pytest.mark.parametrize("device", ["cuda:0", "cuda:3", "cuda_managed"])
def test_the_caller_states_the_gpu(device: Any) -> None:
    assert dl.describe(cuda(), device=device).device == device
    with pytest.raises(dl.DeviceError, match="rocm:0"):
        dl.describe(hip(), device=device)


def test_the_caller_states_the_rocm_gpu() -> None:
    assert dl.describe(hip(), device="rocm:2").device == "rocm:2"
    with pytest.raises(dl.DeviceError, match="cuda:0"):
        dl.describe(cuda(), device="rocm:2")
    both = Exposing(__cuda_array_interface__=device_interface(), __hip_array_interface__=device_interface())
    assert dl.describe(both).protocol == "cuda-array-interface"
    assert dl.describe(both, device="rocm:1").protocol == "hip-array-interface"


def test_objects_with_host_and_device_memory() -> None:
    array = double_matrix()
    both = Exposing(__cuda_array_interface__=device_interface(), __array_interface__=interface_of(array), kept=array)
    assert dl.describe(both).device == "cuda:0"
    assert dl.describe(both, device="cpu").ptr == array.ctypes.data
    assert dl.from_dlpack(both, device="cpu").to_numpy().tolist() == array.tolist()
    with pytest.raises(dl.DeviceError, match=r"cuda:0.*cpu"):
        dl.describe(cuda(), device="cpu")


@pytest.mark.parametrize(("make", "attribute", "device"), SIDES)
@pytest.mark.parametrize("version", [2, 3])
def test_versions_that_are_read(make: Any, attribute: str, device: str, version: int) -> None:
    assert dl.describe(make(version=version)).device == device
    for wrong in (0, 1, 4, -1):
        with pytest.raises(dl.ExchangeError, match=rf'{attribute}\["version"\]: .* got {wrong}$'):
            dl.describe(make(version=wrong))


@pytest.mark.parametrize(
    ("make", "legal", "illegal"), [(cuda, (None, 1, 2, 1 << 40), (0, -1)), (hip, (None, 0, 1 << 40), (1, 2, -1))]
)
def test_streams(make: Any, legal: tuple[Any, ...], illegal: tuple[Any, ...]) -> None:
    for stream in legal:
        assert dl.describe(make(stream=stream)).shape == (2, 3)
        assert dl.describe(make(stream=stream), stream=stream).shape == (2, 3), "the same stream: nothing to wait for"
        assert dl.describe(make(), stream=stream).shape == (2, 3), "nothing is going on on any stream"
        assert dl.describe(make(stream=stream), stream=-1).shape == (2, 3), "the caller synchronizes"
    for stream in illegal:
        with pytest.raises(dl.ExchangeError, match=rf'\["stream"\]: .* got {stream}$'):
            dl.describe(make(stream=stream))
    with pytest.raises(dl.ExchangeError, match=r"stream: .* got 99$"):
        dl.describe(make(stream=1 << 40), stream=99)
    for stream in (*(value for value in illegal if value != -1), "x", 1.5, -2):
        with pytest.raises(dl.ExchangeError, match="stream"):
            dl.describe(make(), stream=stream)


def test_objects_are_kept_and_released() -> None:
    producer = cuda()
    gone, interface = weakref.ref(producer), producer.__cuda_array_interface__
    before = sys.getrefcount(interface)
    found = dl.describe(producer)
    del producer
    assert gone() is not None
    del found
    assert gone() is None
    assert sys.getrefcount(interface) == before - 1, "what the object had"


def test_void_elements_are_read_by_the_objects_own_dtype(torch: Any) -> None:
    producer = Exposing(__cuda_array_interface__=device_interface(typestr="<V2"), dtype=torch.bfloat16)
    assert dl.describe(producer).dtype == dl.zeros(1, "bfloat16").dtype
