"""Each use of a host/device pair in each state, and uses in random order: right values, and no needless copy."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, multiple, rule, run_state_machine_as_test

import dlfield as dl
from dlfield import storage
from driver import IS_FAKE
from fakes_interfaces import Exposing
from storages import CLEAN, DEVICE, HOST, VALUES, copied, on_device, on_host, pair

pytestmark = pytest.mark.usefixtures("cupy")

SIDES = {CLEAN: {"host", "device"}, HOST: {"host"}, DEVICE: {"device"}}


class Model:
    """The value of each cell, which buffers are up to date, and the number of needed copies."""

    def __init__(self, values: Any, state: int = CLEAN) -> None:
        self.values, self.sides = values, SIDES[state]
        self.copies = {"device": 0, "host": 0}

    def used(self, side: str) -> None:
        if side not in self.sides:
            # Without elements there is nothing to copy.
            self.copies[side] += int(self.values.size > 0)
            self.sides = {"host", "device"}

    def written(self, side: str, *, whole: bool = False) -> None:
        if not whole:
            self.used(side)
        self.sides = {side}

    @property
    def state(self) -> int:
        return next(state for state, sides in SIDES.items() if sides == self.sides)


@dataclass
class View:
    """A view of a storage, and the same view of its model."""

    field: Any
    values: Any
    model: Model


def whole(field: Any, values: Any, state: int = CLEAN) -> View:
    return View(field, values, Model(values, state))


@contextmanager
def counted(*views: View) -> Iterator[None]:
    """Check that the body makes as many copies as the models count, and that the states are those of the models."""
    models = {id(view.model): view.model for view in views}.values()
    for model in models:
        model.copies = {"device": 0, "host": 0}
    before = copied()
    yield
    found = np.subtract(copied(), before).tolist()
    assert not IS_FAKE or found == [sum(model.copies[side] for model in models) for side in ("device", "host")]
    for view in views:
        assert view.field.sync_state.state == view.model.state


class Use(NamedTuple):
    """A use of one buffer of a storage, which makes or marks no copy of the other.

    It reads or copies the values, exports memory that may be written, marks the buffer as written although it gets a
    copy, or assigns a number to the elements of a key.
    """

    side: str
    kind: str
    run: Callable[[Any, float], Any]
    key: Any = ...
    by_element: bool = False


def consumed(**keywords: Any) -> Callable[[Any, float], Any]:
    return lambda field, _: dl.from_dlpack(field.__dlpack__(max_version=(1, 3), **keywords))


def assigned(field: Any, device: str) -> Any:
    target = dl.empty(field.shape, dims=field.dims, device=device)
    target[...] = field
    return target


def through(attribute: str) -> Callable[[Any, float], Any]:
    return lambda field, _: dl.from_dlpack(Exposing(**{attribute: getattr(field, attribute)}, kept=field))


def bound(device: str, access: Any) -> Callable[[Any, float], Any]:
    def call(field: Any, number: float) -> Any:
        spec = dl.FieldSpec("float64", field.dims, access=access)
        own, before = HOST if device == "cpu" else DEVICE, field.sync_state.state
        with dl.Signature(x=spec, device=device).bind(x=field) as fields:
            assert fields.x.device == device
            assert field.sync_state.state == (own if before == own else CLEAN)
            if access == "r":
                return dl.from_dlpack(fields.x, copy=True)
            dl.from_dlpack(fields.x)[...] = number
        return None

    return call


def acquired(field: Any, _: float) -> Any:
    entry = field.__gt_data_interface__["gpu"]
    entry["acquire"]()
    return dl.from_dlpack(Exposing(__cuda_array_interface__=entry, kept=field)).copy()


def setting(make: Callable[[tuple[int, ...], float], Any], key: Any = ...) -> Callable[[Any, float], Any]:
    """Assign a value to a key of a storage."""

    def call(field: Any, number: float) -> None:
        field[key] = make(np.empty(field.shape)[key].shape, number)

    return call


USES = {
    "describe": Use("host", "reads", lambda field, _: dl.describe(field)),
    "describe to write": Use("host", "exports", lambda field, _: dl.describe(field, writable=True)),
    "describe on the device": Use("device", "reads", lambda field, _: dl.describe(field, device="cuda:0")),
    "describe on the device to write": Use(
        "device", "exports", lambda field, _: dl.describe(field, device="gpu", writable=True)
    ),
    "describe and take over": Use("host", "exports", lambda field, _: dl.from_dlpack(dl.describe(field))),
    "from_dlpack": Use("host", "exports", lambda field, _: dl.from_dlpack(field)),
    "from_dlpack on the host": Use("host", "exports", lambda field, _: dl.from_dlpack(field, device="cpu", copy=False)),
    "from_dlpack on the device": Use(
        "device", "exports", lambda field, _: dl.from_dlpack(field, device="cuda:0", copy=False)
    ),
    "from_dlpack copied": Use("host", "copies", lambda field, _: dl.from_dlpack(field, copy=True)),
    "from_dlpack copied on the device": Use(
        "device", "copies", lambda field, _: dl.from_dlpack(field, device="gpu", copy=True)
    ),
    "to_numpy": Use("host", "exports", lambda field, _: field.to_numpy()),
    "to_cupy": Use("device", "exports", lambda field, _: dl.from_dlpack(field.to_cupy())),
    "as_numpy": Use("host", "exports", lambda field, _: dl.as_numpy(field)),
    "as_numpy copied": Use("host", "copies", lambda field, _: dl.as_numpy(field, copy=True)),
    "__array__ copied": Use("host", "copies", lambda field, _: on_host(field)),
    "np.asarray": Use("host", "exports", lambda field, _: np.asarray(field)),
    # NumPy reads the array interface before it copies, and the storage cannot tell that it will only copy.
    "np.array": Use("host", "marks", lambda field, _: np.array(field)),
    "np.from_dlpack": Use("host", "exports", lambda field, _: np.from_dlpack(field, device="cpu")),
    "np.from_dlpack copied": Use("host", "copies", lambda field, _: np.from_dlpack(field, device="cpu", copy=True)),
    "memoryview": Use("host", "exports", lambda field, _: np.asarray(field.data)),
    "array interface": Use("host", "exports", through("__array_interface__")),
    "CUDA array interface": Use("device", "exports", through("__cuda_array_interface__")),
    "data interface": Use("device", "reads", acquired),
    "DLPack": Use("device", "exports", consumed()),
    "DLPack on the device": Use("device", "exports", consumed(dl_device=(2, 0))),
    "DLPack on the host": Use("host", "exports", consumed(dl_device=(1, 0), copy=False)),
    "DLPack copied": Use("device", "copies", consumed(copy=True)),
    "from_array": Use("host", "reads", lambda field, _: dl.from_array(field, device="cpu")),
    "from_array on the device": Use("device", "reads", lambda field, _: dl.from_array(field, device="cuda:0")),
    "assigned on the host": Use("host", "reads", lambda field, _: assigned(field, "cpu")),
    "assigned on the device": Use("device", "reads", lambda field, _: assigned(field, "cuda:0")),
    "numbers": Use(
        "host",
        "reads",
        lambda field, _: np.array([field[at] for at in np.ndindex(field.shape)]).reshape(field.shape),
        by_element=True,
    ),
    "positions": Use("host", "reads", lambda field, _: field[list(range(len(field)))], by_element=True),
    "a stencil that reads": Use("host", "reads", bound("cpu", "r")),
    "a stencil that writes": Use("host", "stencil", bound("cpu", "rw")),
    "a stencil on the device that reads": Use("device", "reads", bound("cuda:0", "r")),
    "a stencil on the device that writes": Use("device", "stencil", bound("cuda:0", "rw")),
}
VALUES_OF: dict[str, tuple[str, Callable[[tuple[int, ...], float], Any]]] = {
    "a number": ("host", lambda _, number: number),
    "an array": ("host", np.full),
    "a tensor": ("host", dl.full),
    "a tensor on the device": ("device", lambda shape, number: dl.full(shape, number, device="cuda:0")),
}
KEYS = [..., (1, 2), 0, (slice(1, 3),), (..., slice(1, None)), (slice(None, None, -1), slice(None)), (slice(2, 2),)]
USES |= {
    f"{name} assigned to {key}": Use(side, "assigns", setting(make, key), key)
    for name, (side, make) in VALUES_OF.items()
    for key in KEYS
}


def apply(use: Use, view: View, number: float) -> None:
    """Use a storage, and check the copies, the state afterwards and the values."""
    field, values, model = view.field, view.values, view.model
    if use.by_element and not values.size:
        return
    with counted(view):
        found = use.run(field, number)
        if use.kind in ("reads", "copies"):
            model.used(use.side)
        else:
            model.written(use.side, whole=use.kind == "assigns" and values[use.key].size == model.values.size)
    if found is None:
        values[use.key] = number
        return
    assert (np.array(dl.from_array(found, device="cpu")) == values).all()
    if use.kind in ("exports", "copies"):
        (dl.from_dlpack(found) if isinstance(found, dl.Descriptor) else found)[...] = number
    if use.kind == "exports":
        values[...] = number


PARTS: list[Callable[[Any], Any]] = [
    lambda array: array,
    lambda array: array[1:4],
    lambda array: array[::-1],
    lambda array: array.transpose(),
]


@pytest.mark.parametrize("state", SIDES)
@pytest.mark.parametrize("name", USES)
def test_every_use(name: str, state: int) -> None:
    for part in PARTS:
        storage_of, values = pair(state, VALUES, dims="IJ", halo=(1, 0)), VALUES.copy()
        apply(USES[name], View(part(storage_of), part(values), Model(values, state)), 50.0)
        assert (on_device(storage_of) == values).all()
        assert (on_host(storage_of) == values).all()


def operand(view: View, number: int, state: int) -> View:
    """Another storage of the same shape and labels, all of one number."""
    values = np.full(view.values.shape, float(number))
    field: Any = storage.full(values.shape, float(number), dims=view.field.dims, device="gpu")
    field.sync_state.state = state
    return whole(field, values, state)


def computed(*operands: View) -> str:
    """Where a result is computed: on the device if one operand is up to date there, to which all are copied."""
    side = "device" if any("device" in view.model.sides for view in operands) else "host"
    for view in operands:
        view.model.used(side)
    return side


NUMBERS, STATES = st.integers(1, 99), st.sampled_from(list(SIDES))


class Storages(RuleBasedStateMachine):
    views = Bundle("views")

    @initialize(target=views)
    def start(self) -> Any:
        fields = [storage.zeros((4, 3), dims="IJ", device="gpu", halo=(1, 1)) for _ in range(2)]
        return multiple(*(whole(field, np.zeros((4, 3))) for field in fields))

    @rule(target=views, view=views, start=st.integers(0, 2), step=st.sampled_from([1, 2, -1]), axis=st.integers(0, 1))
    def look_at_a_part(self, view: View, start: int, step: int, axis: int) -> View:
        key = (slice(None),) * axis + (slice(start, None) if step > 0 else slice(None, None, step),)
        with counted(view):
            return View(view.field[key], view.values[key], view.model)

    @rule(target=views, view=views)
    def turn(self, view: View) -> View:
        with counted(view):
            return View(view.field.transpose(), view.values.T, view.model)

    @rule(view=views, name=st.sampled_from(sorted(USES)), number=NUMBERS)
    def use(self, view: View, name: str, number: int) -> None:
        try:
            view.values[USES[name].key]
        except IndexError:
            return
        apply(USES[name], view, float(number))

    @rule(view=views, other=views)
    def write_a_storage(self, view: View, other: View) -> None:
        # Assigned by labels, which a transposed view has transposed.
        values = other.values if view.field.dims == other.field.dims else other.values.T
        if view.values.shape != values.shape or view.model is other.model:
            return
        with counted(view, other):
            view.field[...] = other.field
            view.model.written(
                "device" if "device" in other.model.sides else "host",
                whole=view.values.size == view.model.values.size,
            )
        view.values[...] = values

    @rule(view=views)
    def look(self, view: View) -> None:
        with counted(view):
            assert dl.zeros_like(view.field).shape == view.field.shape == view.values.shape
            assert dl.get_dims(view.field) == view.field.dims
            dl.preflight(view.field, "numpy")

    @rule(target=views, view=views)
    def pickle(self, view: View) -> View:
        with counted(view):
            pickled = pickle.dumps(view.field)
            # Pickling copies to the host and leaves the storage's state as it is.
            view.model.copies["host"] += int("host" not in view.model.sides and view.values.size > 0)
        return whole(pickle.loads(pickled), view.values.copy(), HOST)

    @rule(target=views, view=views)
    def copy(self, view: View) -> View:
        with counted(view):
            return whole(view.field.copy(), view.values.copy(), view.model.state)

    @rule(view=views)
    def synchronize(self, view: View) -> None:
        with counted(view):
            view.field.synchronize()
            view.model.used("device")
            view.model.used("host")

    # Other arithmetic, in each state: test_gpu_pair_arithmetic.py.
    @rule(target=views, view=views, number=NUMBERS, state=STATES)
    def add(self, view: View, number: int, state: int) -> View:
        other = operand(view, number, state)
        with counted(view, other):
            field = view.field + other.field
            side = computed(view, other)
        values = view.values + number
        assert (on_host(field.copy()) == values).all()
        return whole(field, values, HOST if side == "host" else DEVICE)

    @rule(view=views, number=NUMBERS, states=st.tuples(STATES, STATES), in_place=st.booleans())
    def add_into_a_view(self, view: View, number: int, states: tuple[int, int], in_place: bool) -> None:
        first, second = (operand(view, number, state) for state in states)
        first = view if in_place else first
        with counted(view, first, second):
            assert np.add(first.field, second.field, out=view.field) is view.field
            side = computed(first, second)
            view.model.written(side, whole=view.values.size == view.model.values.size)
        view.values[...] = first.values + number


@pytest.mark.hypothesis
def test_any_order_of_uses() -> None:
    # Each example has many steps.
    examples = settings().max_examples * 3 // 10
    run_state_machine_as_test(
        Storages,
        settings=settings(max_examples=examples, stateful_step_count=30, suppress_health_check=list(HealthCheck)),
    )
