"""Memory of CUDA that other code has allocated: by its address, and as room for new fields."""

import gc
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from driver import Driver

DEVICES = ("cuda:0", "cuda_host", "cuda_managed")


class Owner:
    """An owner that notes when it goes."""

    def __init__(self, log: list[str], keeps: Any) -> None:
        self.log, self.keeps = log, keeps

    def __del__(self) -> None:
        self.log.append("released")


@pytest.mark.parametrize("device", DEVICES)
def test_memory_by_its_address(driver: Driver, device: str) -> None:
    block, log = dl.full((100,), 3.0, device=device), list[str]()
    field = dl.from_pointer(block.ptr + 80, (5, 4), "float64", device=device, dims="JI", owner=Owner(log, block))
    del block
    assert (str(field.device), field.dims, field.strides) == (device, ("J", "I"), (32, 8))
    assert field.to_device("cpu").tolist() == [[3.0] * 4] * 5
    field[...] = 5.0
    assert (np.frombuffer(driver.read(field.ptr, 160), "f8") == 5.0).all()
    view = field[1:]
    del field
    gc.collect()
    assert log == []
    del view
    gc.collect()
    assert log == ["released"]


def test_the_driver_checks_the_address() -> None:
    host = dl.zeros((10,))
    with pytest.raises(dl.DeviceError, match="no CUDA memory is at"):
        dl.from_pointer(host.ptr, (10,), "float64", device="cuda:0", owner=host)


def test_the_work_is_done_before_the_owner_frees_the_memory(driver: Driver) -> None:
    class Allocated:
        def __init__(self) -> None:
            self.address = driver.allocate(512)

        def __del__(self) -> None:
            driver.free(self.address)

    with driver.stream() as stream, dl.cuda.stream(stream):
        memory = Allocated()
        field = dl.from_pointer(memory.address, (64,), "float64", device="cuda:0", owner=memory)
        del memory
        field[...] = 1.0
        del field
        gc.collect()


@pytest.mark.parametrize("device", DEVICES)
def test_fields_in_memory_of_a_device(driver: Driver, device: str) -> None:
    block = dl.full((100,), 7.0, device=device)
    for create, value in ((dl.zeros, 0.0), (dl.ones, 1.0)):
        field = create((3, 5), alignment_size=64, device=device, buffer=block)
        assert (field.ptr, field.strides, str(field.device)) == (block.ptr, (64, 8), device)
        assert field.to_device("cpu").tolist() == [[value] * 5] * 3
        assert value or driver.read(field.ptr, 192) == bytes(192), "the padding of zeros"
    copied = dl.from_array(np.arange(15.0).reshape(3, 5), device=device, buffer=block)
    assert copied.to_device("cpu").tolist() == np.arange(15.0).reshape(3, 5).tolist()
    # By another cast than that of the device, and one of NumPy alone.
    cast = dl.from_array(dl.from_array(np.arange(4), device=device), "float32", device=device, buffer=block)
    assert cast.to_device("cpu").tolist() == [0.0, 1.0, 2.0, 3.0]
    assert block[90:].to_device("cpu").tolist() == [7.0] * 10
    with pytest.raises(dl.LayoutError, match="buffer: 800 bytes for a field of 808"):
        dl.zeros((101,), device=device, buffer=block)
    with pytest.raises(dl.DeviceError, match=f"buffer: memory on {device} for a field on cpu.*or device='{device}'"):
        dl.zeros((10,), buffer=block)


def test_streams_are_those_of_the_memory(driver: Driver) -> None:
    """A field in a block of another stream: the block is freed after the work on both."""
    with driver.stream() as one, driver.stream() as other:
        block = dl.zeros((64,), device="cuda:0", stream=one)
        field = dl.ones((3, 5), alignment_size=64, device="cuda:0", buffer=block, stream=other)
        del block
        held = np.frombuffer(driver.read(field.ptr, 40, other), "f8")
        assert (held == 1.0).all()
        del field


def test_saved_fields_of_a_device(tmp_path: Any) -> None:
    field = dl.ones((6, 5, 4), backend="gt:gpu", halo=(1, 1, 0))
    dl.save_field(tmp_path / "field.dlf", field)
    again = dl.open_field(tmp_path / "field.dlf")
    assert (again.device, again.strides, again.halo) == ("cpu", field.strides, field.halo)
    assert float(again.sum()) == 120.0
