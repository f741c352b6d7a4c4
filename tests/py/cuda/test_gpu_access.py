"""Pinned and managed memory is an argument for the host and for GPUs, after the work on it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from driver import Driver
from fakes_interfaces import Exposing
from stream_producers import Exporter

SHARED = ("cuda_host", "cuda_managed")
USERS = ("cpu", "cuda:0")
SPEC = dl.FieldSpec("float64", "I")
N = 1000


SOURCES: dict[str, Callable[[dl.Tensor], Any]] = {
    "tensor": lambda field: field,
    "description": dl.describe,
    "dlpack": Exporter,
    "data interface": lambda field: Exposing(__gt_data_interface__=field.__gt_data_interface__, kept=field),
}


# The data interface of pinned memory has no buffer for a GPU.
WAYS = [(source, device, user) for source in SOURCES for device in SHARED for user in USERS]
WAYS.remove(("data interface", "cuda_host", "cuda:0"))


@pytest.mark.parametrize(("source", "device", "user"), WAYS)
@pytest.mark.parametrize("on_mismatch", ["raise", "copy"])
def test_a_stencil_gets_the_memory_itself(source: str, device: str, user: str, on_mismatch: Any) -> None:
    field = dl.ones(N, device=device)
    for access in ("r", "w", "rw"):
        spec = dl.FieldSpec("float64", "I", access=access)
        with dl.Signature(f=spec, device=user, on_mismatch=on_mismatch).bind(f=SOURCES[source](field)) as bound:
            assert bound.f.ptr == field.ptr
    if source != "data interface":
        found = dl.describe(SOURCES[source](field), device=user, writable=True)
        assert (found.ptr, str(found.device)) == (field.ptr, device)
        assert dl.from_dlpack(SOURCES[source](field), device=user).ptr == field.ptr


def test_memory_that_a_device_does_not_reach_is_refused() -> None:
    cases = [("cpu", "cuda:0"), ("cuda:0", "cpu"), ("cpu", "cuda_managed"), ("cuda:0", "cuda_managed")]
    cases += [("cuda_managed", "cuda_host"), ("cuda_host", "cuda_managed")]
    for device, user in cases:
        field = dl.zeros(N, device=device)
        with pytest.raises(dl.DeviceError, match=f'field "f": device: expected memory on {user}, got memory on {device}'):
            dl.Signature(f=SPEC, device=user).bind(f=field)
        with pytest.raises(dl.DeviceError, match=f"expected memory on {user}, got memory on {device}"):
            dl.describe(field, device=user)


@pytest.mark.two_devices
def test_memory_of_another_gpu_is_refused() -> None:
    with pytest.raises(dl.DeviceError, match="expected memory on cuda:0, got memory on cuda:1"):
        dl.Signature(f=SPEC, device="cuda:0").bind(f=dl.zeros(N, device="cuda:1"))


@pytest.mark.parametrize("device", SHARED)
@pytest.mark.parametrize("source", ["tensor", "dlpack"])
@pytest.mark.parametrize("name", ["bind", "describe", "from_dlpack"])
def test_the_current_stream_of_the_gpu_waits(driver: Driver, name: str, source: str, device: str) -> None:
    """Also that of another GPU than the one that wrote."""
    last = driver.device_count - 1
    user = f"cuda:{last}"
    uses: dict[str, Callable[[Any], Any]] = {
        "bind": lambda x: dl.Signature(f=SPEC, device=user).bind(f=x).f,
        "describe": lambda x: dl.describe(x, device=user),
        "from_dlpack": lambda x: dl.from_dlpack(x, device=user),
    }
    with driver.stream() as writes, driver.stream(last) as reads:
        with dl.cuda.stream(writes):
            field, ones = dl.empty(N, device=device), dl.ones(N, device="cuda:0")
            field.to_device("cuda:0")[...] = ones
        with dl.cuda.stream(reads, last):
            argument = uses[name](SOURCES[source](field))
            found = driver.read(argument.ptr, field.nbytes, reads, last)
        assert np.array_equal(np.frombuffer(found), np.ones(N))
        del field, ones, argument
