"""A host/device pair exported by every protocol: right values, no needless copy, the right state afterwards."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield import storage
from driver import Driver
from fakes_interfaces import Exposing
from storages import CLEAN, DEVICE, HOST, VALUES, copies, on_device, on_host, pair

states = pytest.mark.parametrize("state", [CLEAN, HOST, DEVICE])


def holding(state: int) -> Any:
    return pair(state, VALUES, halo=(1, 0))


@dataclass
class Way:
    """A way to export a storage: the function, whether it gives the device buffer, and whether it may be written."""

    read: Callable[[Any], Any]
    on_device: bool = False
    writes: bool = True


def consumed(**keywords: Any) -> Callable[[Any], Any]:
    return lambda field: dl.from_dlpack(field.__dlpack__(max_version=(1, 3), **keywords))


def assigned(field: Any, device: str) -> Any:
    target = dl.empty((4, 3), device=device)
    target[...] = field
    return target


def through(attribute: str) -> Callable[[Any], Any]:
    return lambda field: dl.from_dlpack(Exposing(**{attribute: getattr(field, attribute)}, kept=field))


def bound(device: str, access: Any) -> Callable[[Any], Any]:
    def call(field: Any) -> Any:
        spec = dl.FieldSpec("float64", "IJ", access=access)
        own, before = HOST if device == "cpu" else DEVICE, field.sync_state.state
        with dl.Signature(x=spec, device=device).bind(x=field) as fields:
            assert fields.x.device == device
            assert field.sync_state.state == (own if before == own else CLEAN)
            return dl.from_array(fields.x, device="cpu")

    return call


WAYS = {
    "describe": Way(dl.describe, writes=False),
    "describe to write": Way(lambda field: dl.describe(field, writable=True)),
    "describe on the device": Way(lambda field: dl.describe(field, device="cuda:0"), True, False),
    "describe on the device to write": Way(lambda field: dl.describe(field, device="gpu", writable=True), True),
    "describe and take over": Way(lambda field: dl.from_dlpack(dl.describe(field))),
    "from_dlpack": Way(dl.from_dlpack),
    "from_dlpack on the host": Way(lambda field: dl.from_dlpack(field, device="cpu", copy=False)),
    "from_dlpack on the device": Way(lambda field: dl.from_dlpack(field, device="cuda:0", copy=False), True),
    "from_dlpack copied": Way(lambda field: dl.from_dlpack(field, copy=True), writes=False),
    "from_dlpack copied on the device": Way(lambda field: dl.from_dlpack(field, device="gpu", copy=True), True, False),
    "to_numpy": Way(lambda field: field.to_numpy()),
    "__array__ copied": Way(on_host, writes=False),
    "as_numpy": Way(dl.as_numpy),
    "as_numpy copied": Way(lambda field: dl.as_numpy(field, copy=True), writes=False),
    "np.asarray": Way(np.asarray),
    # NumPy reads the array interface before it copies, and the storage cannot tell that it will only copy.
    "np.array": Way(np.array),
    "np.from_dlpack": Way(lambda field: np.from_dlpack(field, device="cpu")),
    "np.from_dlpack copied": Way(lambda field: np.from_dlpack(field, device="cpu", copy=True), writes=False),
    "memoryview": Way(lambda field: np.asarray(field.data)),
    "array interface": Way(through("__array_interface__")),
    "CUDA array interface": Way(through("__cuda_array_interface__"), True),
    "DLPack": Way(consumed(), True),
    "DLPack on the device": Way(consumed(dl_device=(2, 0)), True),
    "DLPack on the host": Way(consumed(dl_device=(1, 0), copy=False)),
    "DLPack copied": Way(consumed(copy=True), True, False),
    "from_array": Way(dl.from_array, writes=False),
    "from_array on the device": Way(lambda field: dl.from_array(field, device="cuda:0"), True, False),
    "assignment on the host": Way(lambda field: assigned(field, "cpu"), writes=False),
    "assignment on the device": Way(lambda field: assigned(field, "cuda:0"), True, False),
    "assignment in managed memory": Way(lambda field: assigned(field, "cuda_managed"), False, False),
    "a number": Way(lambda field: np.array([[field[i, j] for j in range(3)] for i in range(4)]), writes=False),
    "positions": Way(lambda field: field[[0, 1, 2, 3]], writes=False),
    "a stencil that reads": Way(bound("cpu", "r"), writes=False),
    "a stencil that writes": Way(bound("cpu", "rw")),
    "a stencil on the device that reads": Way(bound("cuda:0", "r"), True, False),
    "a stencil on the device that writes": Way(bound("cuda:0", "rw"), True),
}

# These copy from either up-to-date buffer.
EITHER = {"assignment in managed memory"}
# These make a copy on the host of their own, which they return.
COPYING = {"a stencil on the device that reads", "a stencil on the device that writes"}


@states
@pytest.mark.parametrize("name", WAYS)
def test_every_export(name: str, state: int) -> None:
    way, field = WAYS[name], holding(state)
    if name in COPYING | EITHER:
        found = way.read(field)
    else:
        with copies(int(way.on_device and state == HOST), int(not way.on_device and state == DEVICE)):
            found = way.read(field)
    if way.writes:
        assert field.sync_state.state == (DEVICE if way.on_device else HOST)
    elif name in EITHER or state == (DEVICE if way.on_device else HOST):
        assert field.sync_state.state == state
    else:
        assert field.sync_state.state == CLEAN
    values = found if isinstance(found, np.ndarray) else np.array(dl.from_array(found, device="cpu"))
    assert (values == VALUES).all()


WRITABLE_EXPORTS = [name for name, way in WAYS.items() if way.writes and "stencil" not in name and name != "np.array"]


@pytest.mark.parametrize("name", WRITABLE_EXPORTS)
def test_writes_reach_the_other_buffer(name: str) -> None:
    field = holding(CLEAN)
    found = WAYS[name].read(field)
    if isinstance(found, dl.Descriptor):
        found = dl.from_dlpack(found)
    found[...] = 5.0
    del found
    gc.collect()
    assert (on_device(field) == 5).all()
    assert (on_host(field) == 5).all()


@states
def test_as_torch_takes_the_host_buffer(torch: Any, state: int) -> None:
    field = holding(state)
    with copies(to_host=int(state == DEVICE)):
        tensor = dl.as_torch(field)
    assert (tensor.device.type, field.sync_state.state) == ("cpu", HOST)
    assert (tensor.numpy() == VALUES).all()
    field.set_synchronized()
    assert (dl.as_torch(field, copy=True).numpy() == VALUES).all()
    assert field.sync_state.state == CLEAN
    del tensor
    assert torch.from_dlpack(field).device.type == "cuda"
    assert field.sync_state.state == DEVICE


@states
def test_inspection_copies_and_marks_nothing(state: int) -> None:
    field = holding(state)
    with copies():
        assert dl.preflight(field, "numpy")
        assert dl.preflight(field, "cupy")
        assert dl.get_dims(field) == ("I", "J")
        assert dl.get_origin(field) == (1, 0)
        assert dl.zeros_like(field).halo == ((1, 1), (0, 0))
        assert field.__dlpack_device__() == (2, 0)
    assert field.sync_state.state == state


def test_managed_memory_is_exported_as_device_memory() -> None:
    field: Any = storage.as_storage(np.zeros(3), dl.zeros(3, device="cuda_managed"))
    for keywords in ({"dl_device": (2, 0)}, {"dl_device": (13, 0)}, {}):
        field.synchronize()
        taken = dl.from_dlpack(field.__dlpack__(max_version=(1, 3), **keywords))
        taken[...] = taken.shape[0] + len(keywords)
        assert on_host(field).tolist() == [3 + len(keywords)] * 3


def test_labels_and_alignment_are_kept() -> None:
    field = storage.zeros((4, 3), device="gpu", dims="KI", halo=(1, 0), alignment_size=64)
    for device in (None, "cuda:0"):
        found = dl.from_dlpack(field, device=device)
        assert (found.dims, found.halo, found.alignment_size) == (("K", "I"), ((1, 1), (0, 0)), 64)
        seen = dl.describe(field, device=device)
        assert (seen.dims, seen.halo, seen.protocol) == (("K", "I"), ((1, 1), (0, 0)), "dlfield")
    assert dl.from_dlpack(field, dims="IJ").dims == ("I", "J")


def test_a_device_without_a_buffer(driver: Driver) -> None:
    field, other = holding(HOST), f"cuda:{driver.device_count - 1}"
    if driver.device_count > 1:
        assert (np.array(dl.from_dlpack(field, device=other).to_device("cpu")) == VALUES).all()
        assert field.sync_state.state == HOST
        with pytest.raises(dl.ExchangeError):
            dl.from_dlpack(field, device=other, copy=False)
        with pytest.raises(dl.DeviceError, match=other):
            dl.describe(field, device=other)
    assert field.sync_state.state == HOST
    assert (np.array(dl.from_dlpack(field, device="cuda_host")) == VALUES).all()


@pytest.mark.parametrize(
    ("keywords", "error"),
    [
        ({"dl_device": (99, 0)}, BufferError),
        ({"dl_device": "cpu"}, TypeError),
        ({"dl_device": (1, 0), "stream": 1}, BufferError),
        ({"copy": 5}, TypeError),
        ({"max_version": 1}, TypeError),
        ({"stream": 0}, BufferError),
    ],
)
def test_every_argument_of_dlpack_is_obeyed_or_refused(keywords: Any, error: type[Exception]) -> None:
    field = holding(CLEAN)
    with pytest.raises(error):
        field.__dlpack__(**keywords)
    assert field.sync_state.state == CLEAN


def test_a_tensor_of_one_buffer_keeps_the_memory() -> None:
    field = holding(DEVICE)
    found = dl.from_dlpack(field)
    del field
    gc.collect()
    assert (np.asarray(found) == VALUES).all()


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_a_pair_is_assigned_by_its_labels(device: str) -> None:
    """The pair's default label counts: it is repeated along I, a plain array would be along J."""
    target = dl.zeros((3, 3), device=device)
    target[...] = storage.storage(np.arange(3.0), device="gpu")
    assert np.asarray(target.to_device("cpu")).tolist() == [[0] * 3, [1] * 3, [2] * 3]


def test_a_pinned_host_buffer_fits_every_gpu() -> None:
    pinned = dl.from_array(VALUES, device="cuda_host")
    field: Any = storage.as_storage(pinned, dl.from_array(VALUES, device="cuda:0"))
    with copies():
        for device, expected in (("cpu", pinned), ("cuda:1", pinned), ("cuda:0", field._device)):
            assert dl.describe(field, device=device).ptr == expected.ptr
