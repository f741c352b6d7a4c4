"""The classes of the interface's own document, with what it leaves open filled in, as fields of calls and as values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield import storage


class SomeStorage:
    """A class with a buffer on each side."""

    NONE_MODIFIED, HOST_MODIFIED, DEVICE_MODIFIED = 0, 1, 2

    def __init__(self, shape: tuple[int, ...], dtype: str) -> None:
        self.host = np.zeros(shape, dtype)
        self.device = dl.zeros(shape, dtype, device="cuda:0")
        self.modified = self.NONE_MODIFIED

    def touch_host(self) -> None:
        self.modified = self.HOST_MODIFIED

    def touch_device(self) -> None:
        self.modified = self.DEVICE_MODIFIED

    def host_to_device(self) -> None:
        if self.modified == self.HOST_MODIFIED:
            self.device[...] = self.host
            self.modified = self.NONE_MODIFIED

    def device_to_host(self) -> None:
        if self.modified == self.DEVICE_MODIFIED:
            self.host[...] = self.device.to_device("cpu").to_numpy()
            self.modified = self.NONE_MODIFIED

    @property
    def __gt_interface__(self) -> dict[str | None, dict[str, Any]]:
        host = {**self.host.__array_interface__, "acquire": self.device_to_host, "touch": self.touch_host}
        host["strides"] = self.host.strides
        device = {**self.device.__cuda_array_interface__, "acquire": self.host_to_device, "touch": self.touch_device}
        return {None: host, "gpu": device}


class StorageWrapper:
    """A storage, with labels."""

    def __init__(self, *arguments: Any, dims: str = "IJK", **keywords: Any) -> None:
        self.storage: Any = storage.storage(*arguments, **keywords)
        self.dims = tuple(dims)

    @property
    def __gt_interface__(self) -> dict[str | None, dict[str, Any]]:
        interface: dict[str | None, dict[str, Any]] = self.storage.__gt_data_interface__
        for entry in interface.values():
            entry["dims"] = self.dims
        return interface


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_a_class_with_two_buffers_is_a_field(device: str) -> None:
    field = SomeStorage((4, 3), "f8")
    field.host[...] = 5.0
    field.touch_host()
    with dl.Signature(x=dl.FieldSpec("f8", "IJ", access="w"), device=device).bind(x=field) as fields:
        assert fields.x.device == device
        assert (np.array(field.device.to_device("cpu")) == (0 if device == "cpu" else 5)).all()
    assert field.modified == (field.HOST_MODIFIED if device == "cpu" else field.DEVICE_MODIFIED)


def test_a_class_with_two_buffers_is_a_value() -> None:
    field, value = storage.zeros((4, 3), device="gpu"), SomeStorage((4, 3), "f8")
    value.host[...] = 5.0
    value.touch_host()
    field[...] = value
    # It has a buffer on the device, so that is where the values go.
    assert value.modified == value.NONE_MODIFIED
    assert field.sync_state.state == storage.SyncState.SYNC_DEVICE_DIRTY  # type: ignore[union-attr]
    assert (np.asarray(field) == 5).all()
    on_the_host = storage.zeros((4, 3))
    value.device[...] = 6.0
    value.touch_device()
    on_the_host[...] = value
    assert (np.asarray(on_the_host) == 6).all()


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_a_storage_is_wrapped_to_add_labels(device: str) -> None:
    wrapper = StorageWrapper(np.arange(12.0).reshape(4, 3), dims="KI", device="gpu")
    assert dl.get_dims(wrapper) == ("K", "I")
    spec = dl.FieldSpec("f8", "IK", access="rw")
    with dl.Signature(x=spec, device=device).bind(x=wrapper) as fields:
        assert fields.x.shape == (3, 4)
    state = wrapper.storage.sync_state
    assert state.state == (state.SYNC_HOST_DIRTY if device == "cpu" else state.SYNC_DEVICE_DIRTY)


def test_a_data_array_has_the_interface() -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("dlfield.xarray")
    array = np.arange(12.0).reshape(4, 3)
    data_array = xarray.DataArray(array, dims=("J", "I"))
    with dl.Signature(x=dl.FieldSpec("f8", "IJ", access="rw")).bind(x=data_array) as fields:
        assert fields.x.shape == (3, 4)
    field = storage.zeros((4, 3), device="gpu")
    field[...] = data_array
    assert (np.asarray(field) == array).all()
