"""Two storages with views, used in random order: the values equal those of an array, and no copy is needless."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, multiple, rule, run_state_machine_as_test

import dlfield as dl
from dlfield import storage
from dlfield.storage import SyncState
from driver import IS_FAKE
from fakes_interfaces import Exposing
from storages import copied

SHAPE = (4, 3)
KEYS = [..., (1, 2), 0, (slice(1, 3),), (..., slice(1, None)), (slice(None, None, -1), slice(None)), (slice(2, 2),)]


@dataclass
class Model:
    """The value of each cell, which buffers are up to date, and the number of needed copies."""

    values: Any
    host: bool = True
    device: bool = True
    to_device: int = 0
    to_host: int = 0

    def used(self, side: str) -> None:
        if self.values.size == 0 and not getattr(self, side):
            # There is nothing to copy.
            self.host = self.device = True
        if side == "host" and not self.host:
            self.to_host, self.host = self.to_host + 1, True
        if side == "device" and not self.device:
            self.to_device, self.device = self.to_device + 1, True

    def written(self, side: str, *, whole: bool = False) -> None:
        if not whole:
            self.used(side)
        self.host, self.device = side == "host", side == "device"

    @property
    def state(self) -> int:
        if self.host and self.device:
            return SyncState.SYNC_CLEAN
        return SyncState.SYNC_HOST_DIRTY if self.host else SyncState.SYNC_DEVICE_DIRTY


@dataclass
class View:
    """A view of a storage, and the same view of its model."""

    field: Any
    values: Any
    model: Model


@contextmanager
def counted(*views: View) -> Iterator[None]:
    """Check that the body makes as many copies as the models count, and that the states are those of the models."""
    models = {id(view.model): view.model for view in views}.values()
    for model in models:
        model.to_device = model.to_host = 0
    before = copied()
    yield
    after = copied()
    found, expected = np.subtract(after, before), (sum(m.to_device for m in models), sum(m.to_host for m in models))
    assert not IS_FAKE or tuple(found) == expected
    for view in views:
        assert view.field.sync_state.state == view.model.state


def operand(view: View, number: int, modified: str | None) -> View:
    """Another storage of the same shape and labels, all of one number, with its host or device buffer modified."""
    values = np.full(view.values.shape, float(number))
    field: Any = storage.full(values.shape, float(number), dims=view.field.dims, device="gpu")
    if modified is not None:
        field.sync_state.state = SyncState.SYNC_HOST_DIRTY if modified == "host" else SyncState.SYNC_DEVICE_DIRTY
    return View(field, values, Model(values, modified != "device", modified != "host"))


def computed(*operands: View) -> str:
    """Where a result is computed: on the device if one operand is up to date there, to which all are copied."""
    side = "device" if any(view.model.device for view in operands) else "host"
    for view in operands:
        view.model.used(side)
    return side


MODIFIED = st.sampled_from([None, "host", "device"])


class Storages(RuleBasedStateMachine):
    views = Bundle("views")

    @initialize(target=views)
    def start(self) -> Any:
        return multiple(*(self.view(storage.zeros(SHAPE, dims="IJ", device="gpu", halo=(1, 1))) for _ in range(2)))

    def view(self, field: Any) -> View:
        model = Model(np.zeros(SHAPE))
        return View(field, model.values, model)

    @rule(target=views, view=views, start=st.integers(0, 2), step=st.sampled_from([1, 2, -1]), axis=st.integers(0, 1))
    def look_at_a_part(self, view: View, start: int, step: int, axis: int) -> View:
        if axis >= view.field.ndim:
            return view
        key = (slice(None),) * axis + (slice(start, None) if step > 0 else slice(None, None, step),)
        with counted(view):
            return View(view.field[key], view.values[key], view.model)

    @rule(target=views, view=views)
    def turn(self, view: View) -> View:
        with counted(view):
            return View(view.field.transpose(), view.values.T, view.model)

    @rule(view=views, key=st.sampled_from(KEYS), number=st.integers(0, 99))
    def write_a_number(self, view: View, key: Any, number: int) -> None:
        self.write(view, key, float(number), "host", number)

    @rule(view=views, key=st.sampled_from(KEYS), number=st.integers(0, 99))
    def write_an_array_of_the_device(self, view: View, key: Any, number: int) -> None:
        try:
            shape = np.shape(view.values[key])
        except IndexError:
            return
        value = dl.full(shape, float(number), device="cuda:0")
        self.write(view, key, value, "device", number)

    def write(self, view: View, key: Any, value: Any, side: str, number: int) -> None:
        try:
            selected = view.values[key]
        except IndexError:
            return
        with counted(view):
            view.field[key] = value
            view.model.written(side, whole=np.size(selected) == view.model.values.size)
        view.values[key] = number

    @rule(view=views, other=views)
    def write_a_storage(self, view: View, other: View) -> None:
        # Assigned by labels, which a transposed view has transposed.
        values = other.values if view.field.dims == other.field.dims else other.values.T
        if view.values.shape != values.shape or view.model is other.model:
            return
        side = "device" if other.model.device else "host"
        with counted(view, other):
            view.field[...] = other.field
            view.model.written(side, whole=view.values.size == view.model.values.size)
        view.values[...] = values

    @rule(view=views)
    def read_on_the_host(self, view: View) -> None:
        with counted(view):
            found = view.field.__array__(copy=True)
            view.model.used("host")
        assert (found == view.values).all()

    @rule(view=views)
    def read_a_number(self, view: View) -> None:
        if view.values.size:
            with counted(view):
                found = view.field[(0,) * view.field.ndim]
                view.model.used("host")
            assert found == view.values[(0,) * view.values.ndim]

    @rule(view=views)
    def read_on_the_device(self, view: View) -> None:
        entry = view.field.__gt_data_interface__["gpu"]
        with counted(view):
            entry["acquire"]()
            view.model.used("device")
        found = self.buffer(view.field, "cuda:0").to_device("cpu")
        assert (np.array(found) == view.values).all()

    def buffer(self, field: Any, device: str) -> dl.Tensor:
        """Import a buffer without calling its hooks."""
        entries = field.__gt_data_interface__
        if device == "cpu":
            return dl.from_dlpack(Exposing(__array_interface__=entries[None], kept=field))
        return dl.from_dlpack(Exposing(__cuda_array_interface__=entries["gpu"], kept=field))

    @rule(view=views, device=st.sampled_from(["cpu", "cuda:0"]), access=st.sampled_from(["r", "rw"]))
    def run_a_stencil(self, view: View, device: str, access: Any) -> None:
        spec = dl.FieldSpec("float64", view.field.dims, access=access)
        side = "host" if device == "cpu" else "device"
        with counted(view), dl.Signature(x=spec, device=device).bind(x=view.field):
            view.model.used(side)
            if access == "rw":
                self.buffer(view.field, device)[...] = 50.0
                view.model.written(side)
        if access == "rw":
            view.values[...] = 50

    @rule(view=views, device=st.sampled_from([None, "cpu", "cuda:0"]), writable=st.booleans())
    def describe(self, view: View, device: str | None, writable: bool) -> None:
        side = "device" if device == "cuda:0" else "host"
        with counted(view):
            seen = dl.describe(view.field, device=device, writable=writable)
            if writable:
                view.model.written(side)
            else:
                view.model.used(side)
        assert (np.array(dl.from_array(seen, device="cpu")) == view.values).all()

    @rule(
        view=views,
        way=st.sampled_from(
            ["from_dlpack", "as_numpy", "asarray", "dlpack", "memoryview", "np.from_dlpack", "to_cupy"]
        ),
        device=st.sampled_from(["cpu", "cuda:0"]),
        number=st.integers(0, 99),
    )
    def write_to_an_export(self, view: View, way: str, device: str, number: int) -> None:
        side = "device" if way == "to_cupy" or (device == "cuda:0" and way in ("from_dlpack", "dlpack")) else "host"
        with counted(view):
            exported: Any
            if way == "from_dlpack":
                exported = dl.from_dlpack(view.field, device=device, copy=False)
            elif way == "dlpack":
                kind = (2, 0) if side == "device" else (1, 0)
                exported = dl.from_dlpack(view.field.__dlpack__(max_version=(1, 3), dl_device=kind))
            elif way == "to_cupy":
                exported = dl.from_dlpack(view.field.to_cupy())
            elif way == "memoryview":
                exported = np.asarray(view.field.data)
            elif way == "np.from_dlpack":
                exported = np.from_dlpack(view.field, device="cpu")
            else:
                exported = dl.as_numpy(view.field) if way == "as_numpy" else np.asarray(view.field)
            view.model.written(side)
        exported[...] = number
        view.values[...] = number

    @rule(view=views, device=st.sampled_from(["cpu", "cuda:0"]), way=st.sampled_from(["array", "dlpack", "assigned"]))
    def copy_to_a_tensor(self, view: View, device: str, way: str) -> None:
        target = dl.zeros(view.values.shape, dims=view.field.dims, device=device)
        with counted(view):
            if way == "array":
                target = dl.from_array(view.field, device=device)
            elif way == "dlpack":
                target = dl.from_dlpack(view.field, device=device, copy=True)
            else:
                target[...] = view.field
            view.model.used("host" if device == "cpu" else "device")
        assert (np.array(target.to_device("cpu")) == view.values).all()

    @rule(view=views)
    def look(self, view: View) -> None:
        with counted(view):
            assert dl.zeros_like(view.field).shape == view.values.shape
            assert dl.get_dims(view.field) == view.field.dims
            dl.preflight(view.field, "numpy")

    @rule(target=views, view=views)
    def pickle(self, view: View) -> View:
        with counted(view):
            pickled = pickle.dumps(view.field)
            # Pickling copies to the host and leaves the storage's state as it is.
            view.model.to_host += int(not view.model.host and view.values.size > 0)
        values = view.values.copy()
        return View(pickle.loads(pickled), values, Model(values, device=False))

    @rule(target=views, view=views)
    def copy(self, view: View) -> View:
        with counted(view):
            field = view.field.copy()
        values = view.values.copy()
        return View(field, values, Model(values, view.model.host, view.model.device))

    @rule(view=views)
    def synchronize(self, view: View) -> None:
        with counted(view):
            view.field.synchronize()
            view.model.used("device")
            view.model.used("host")

    @rule(target=views, view=views, number=st.integers(1, 99), modified=MODIFIED)
    def add(self, view: View, number: int, modified: str | None) -> View:
        other = operand(view, number, modified)
        with counted(view, other):
            field = view.field + other.field
            side = computed(view, other)
        values = view.values + number
        assert (field.copy().__array__(copy=True) == values).all()
        return View(field, values, Model(values, side == "host", side == "device"))

    @rule(view=views, number=st.integers(1, 99), modified=MODIFIED)
    def compute_into(self, view: View, number: int, modified: str | None) -> None:
        other = operand(view, number, modified)
        with counted(view, other):
            np.negative(other.field, out=view.field)
            view.model.written(computed(other), whole=view.values.size == view.model.values.size)
        view.values[...] = -number

    @rule(view=views, number=st.integers(1, 99), modified=MODIFIED)
    def subtract_in_place(self, view: View, number: int, modified: str | None) -> None:
        other, field = operand(view, number, modified), view.field
        with counted(view, other):
            field -= other.field
            view.model.written(computed(view, other))
        view.values[...] -= number

    @rule(view=views)
    def sum(self, view: View) -> None:
        with counted(view):
            found = np.sum(view.field, axis=0)
            assert found.sync_state.state == (SyncState.SYNC_DEVICE_DIRTY if view.model.device else view.model.state)
        assert (found.__array__(copy=True) == view.values.sum(axis=0)).all()


@pytest.mark.hypothesis
@pytest.mark.usefixtures("cupy")
def test_any_order_of_uses() -> None:
    # Each example has many steps.
    examples = settings().max_examples * 3 // 10
    run_state_machine_as_test(
        Storages,
        settings=settings(max_examples=examples, stateful_step_count=30, suppress_health_check=list(HealthCheck)),
    )
