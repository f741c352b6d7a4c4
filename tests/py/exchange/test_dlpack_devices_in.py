"""Devices whose memory dlfield cannot own: refused by the producer's `__dlpack_device__`, before the export."""

from typing import Any

import pytest

import dlfield as dl
from fakes import FakeTensor, Producer, int_matrix
from oracle import values

ROWS = int_matrix().tolist()
# OpenCL, Vulkan, Metal, VPI, ROCm, one of an extension, oneAPI, WebGPU, Hexagon, MAIA, Trainium.
FOREIGN = [(4, 0), (7, 0), (8, 0), (9, 0), (10, 1), (12, 0), (14, 0), (15, 0), (16, 0), (17, 0), (18, 0)]


@pytest.mark.parametrize("device", FOREIGN)
@pytest.mark.parametrize(
    "take", [dl.from_dlpack, lambda obj: dl.from_dlpack(obj, copy=True), dl.as_numpy, dl.from_array]
)
def test_memory_that_cannot_be_owned_is_refused_before_the_export(take: Any, device: tuple[int, int]) -> None:
    producer = Producer(FakeTensor(int_matrix(), device=device), device)
    name = str(dl.describe(producer).device)
    producer.calls.clear()
    with pytest.raises(dl.DeviceError, match=f"the memory is on {name}, .* copy it to the host first"):
        take(producer)
    assert not producer.calls


def test_a_producer_gets_dl_device_for_a_copy_to_the_host() -> None:
    producer = Producer(FakeTensor(int_matrix()), (8, 0))
    assert values(dl.from_dlpack(producer, device="cpu")) == ROWS
    assert [call["dl_device"] for call in producer.calls] == [(1, 0)]


def test_no_producer_gets_dl_device_for_a_device_without_support() -> None:
    producer = Producer(FakeTensor(int_matrix()))
    with pytest.raises(dl.DeviceError, match="metal:0"):
        dl.from_dlpack(producer, device="metal:0")
    assert not producer.calls
