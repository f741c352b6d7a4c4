"""Without a driver: functions that need a GPU name the missing library, and everything else works as usual.

The tests of device memory are in `cuda/`, on a test double of the driver (`make test-sim`).
"""

import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from childproc import run_python
from fakes import FakeTensor, Producer, exchange_type
from fakes_interfaces import cuda
from forged_memory import forged, header, state

LOOKED_FOR = r"cannot be used: .*(libcuda\.so|driver finds no device|cuInit|driver supports CUDA|without the feature)"
CUDA = (2, 0)


@pytest.fixture(autouse=True)
def no_gpu() -> None:
    """Skip these tests on a machine with a GPU."""
    if dl.cuda.is_available():
        pytest.skip("this machine has a GPU: its tests are those of make test-cuda")


def test_why_not() -> None:
    reason = dl.cuda.unavailable_reason()
    assert reason is not None
    assert dl.cuda.device_count() == 0
    with pytest.raises(dl.DeviceError) as caught:
        dl.cuda.memory_info()
    assert reason in str(caught.value)


def enter(stream: Any, device: Any = None) -> None:
    with dl.cuda.stream(stream, device):
        pass


def fake() -> FakeTensor:
    return FakeTensor(np.ones(3), device=CUDA)


def unpickled() -> Any:
    function, (data, state) = dl.zeros(3).__reduce_ex__(5)[:2]
    return function(data, tuple(("cuda:0", False) if part == ("cpu", False) else part for part in state))


ENTRIES: dict[str, Callable[[], Any]] = {
    "memory_info": dl.cuda.memory_info,
    "synchronize": dl.cuda.synchronize,
    "synchronize a stream": lambda: dl.cuda.synchronize(0, 2),
    "stream": lambda: enter(1),
    "stream of a device": lambda: enter(2, 1),
    "stream of an object": lambda: enter(dl.cuda.Stream(2)),
    "empty": lambda: dl.empty(3, device="cuda:0"),
    "zeros": lambda: dl.zeros(3, device="cuda_host"),
    "zeros in a stream": lambda: dl.zeros(3, device="cuda:0", stream=1),
    "ones": lambda: dl.ones(3, device="cuda_managed"),
    "full": lambda: dl.full(3, 2.0, device="gpu"),
    "like": lambda: dl.zeros_like(np.ones(3), device="cuda:0"),
    "preset": lambda: dl.zeros((3, 4, 5), backend="gt:gpu"),
    "from_array": lambda: dl.from_array([1, 2], device="cuda:0"),
    "from_array of a GPU's": lambda: dl.from_array(cuda(shape=(3,))),
    "nothing": lambda: dl.empty(0, device="cuda:0"),
    "to_device": lambda: dl.zeros(3).to_device("cuda:0"),
    "to_device in a stream": lambda: dl.zeros(3).to_device("cuda:1", stream=2),
    "from_dlpack elsewhere": lambda: dl.from_dlpack(np.ones(3), device="cuda:0"),
    "from_dlpack": lambda: dl.from_dlpack(Producer(fake(), CUDA)),
    "from_dlpack of a capsule": lambda: dl.from_dlpack(fake().capsule()),
    "from_dlpack by the C exchange API": lambda: dl.from_dlpack(exchange_type(fake())()),
    "pickle": unpickled,
    "from_dlpack of an interface": lambda: dl.from_dlpack(cuda(shape=(3,))),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_errors_name_the_missing_library(name: str) -> None:
    with pytest.raises(dl.DeviceError, match=LOOKED_FOR):
        ENTRIES[name]()


def test_dl_device() -> None:
    """Consumers expect a `BufferError`."""
    with pytest.raises(BufferError, match=LOOKED_FOR):
        dl.zeros(3).__dlpack__(dl_device=CUDA)


def test_invalid_streams() -> None:
    with pytest.raises(dl.ExchangeError, match=r"stream: .* got 0"):
        enter(0, 0)
    assert dl.cuda.current_stream() == dl.cuda.current_stream(np.int64(0)) == dl.cuda.Stream(1, 0)


def test_device_memory_is_described_without_a_driver() -> None:
    for thing in (cuda(shape=(3,)), Producer(fake(), CUDA)):
        assert dl.describe(thing).device == "cuda:0"
        assert dl.describe(thing, device="cuda:0", stream=7).shape == (3,)


def test_memory_of_another_process() -> None:
    """What another process says of memory on its GPU needs a driver here."""
    name, file = forged(header([*state(device=["cuda:0", False]), "01" * 16, "01" * 64]))
    output = run_python(f"""
        import dlfield as dl
        try:
            dl.attach({name!r})
        except dl.DeviceError as error:
            print(error)
    """)
    os.close(file)
    assert re.match(f"device: cuda:0 {LOOKED_FOR}", output)
