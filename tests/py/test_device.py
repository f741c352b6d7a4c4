"""`Device`: its spellings, and equality with both of them."""

from typing import Any

import pytest

import dlfield as dl

DEVICES = [
    ("cpu", (1, 0), "cpu", 0),
    ("cuda:0", (2, 0), "cuda", 0),
    ("cuda:3", (2, 3), "cuda", 3),
    ("cuda_host", (3, 0), "cuda_host", 0),
    ("cuda_managed", (13, 0), "cuda_managed", 0),
    ("rocm:0", (10, 0), "rocm", 0),
]


@pytest.mark.parametrize(("text", "pair", "kind", "number"), DEVICES)
def test_device_is_its_string_and_its_dlpack_tuple(text: str, pair: tuple[int, int], kind: str, number: int) -> None:
    for device in (dl.Device(text), dl.Device(pair), dl.Device(dl.Device(text))):
        assert device == text
        assert device == pair
        assert device == dl.Device(text)
        assert str(device) == text
        assert (device.type, device.id) == (kind, number)
        assert text in repr(device)


@pytest.mark.parametrize(("alias", "text"), [("gpu", "cuda:0"), ("cuda", "cuda:0")])
def test_aliases(alias: Any, text: str) -> None:
    assert str(dl.Device(alias)) == text
    assert dl.Device(alias) == dl.Device(text)


def test_devices_that_differ() -> None:
    assert dl.Device("cuda:0") != dl.Device("cuda:1")
    assert dl.Device("cpu") != "cuda:0"
    assert dl.Device("cpu") != (2, 0)
    assert dl.Device("cpu") != 1
    assert dl.Device("cpu") != "nonsense"


def test_device_is_a_dictionary_key() -> None:
    assert {dl.Device("cpu"): 1}[dl.Device((1, 0))] == 1
    assert len({dl.Device("gpu"), dl.Device("cuda:0"), dl.Device("cuda:1")}) == 2


def test_tensor_device() -> None:
    field = dl.zeros(3)
    assert field.device == "cpu" == str(field.device)
    assert field.to_device("cpu").ptr == field.ptr
    assert field.__dlpack_device__() == (1, 0)
