"""Arithmetic on host/device pairs: where it is computed, what is copied for it, and what is outdated afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dlfield as dl
from dlfield import storage
from dlfield.storage import SoftwareManagedGPUStorage
from driver import Driver
from storages import CLEAN, DEVICE, HOST, Counted, device_buffer, on_device, on_host
from untyped import np

pytestmark = pytest.mark.usefixtures("cupy")

VALUES = np.arange(12.0).reshape(4, 3)
STATES = {"clean": CLEAN, "host dirty": HOST, "device dirty": DEVICE}
# The values of an outdated buffer.
OLD = -99
states = pytest.mark.parametrize("state", STATES.values(), ids=STATES)


@pytest.fixture
def copies(driver: Driver) -> Counted:
    return Counted(driver)


def pair(state: int = CLEAN, values: Any = VALUES, **keywords: Any) -> Any:
    """A storage with these values in the up-to-date buffers, and `OLD` in the outdated one."""
    made = storage.storage(values, device="gpu", **keywords)
    assert isinstance(made, SoftwareManagedGPUStorage)
    made.synchronize()
    if state == HOST:
        device_buffer(made)[...] = OLD
    if state == DEVICE:
        made.to_numpy()[...] = OLD
    made.sync_state.state = state
    return made


def check(found: Any, expected: Any, state: int, copies: Counted) -> None:
    """Check that a storage has this state and these values, with exactly one copy to the outdated buffer.

    A single number takes no copy to the device: it is set there.
    """
    assert isinstance(found, SoftwareManagedGPUStorage)
    assert found.sync_state.state == state
    copies.are(0, 0)
    sides = [on_device(found), on_host(found)] if state == DEVICE else [on_host(found), on_device(found)]
    for side in sides:
        assert np.array_equal(side, expected)
    # `on_device` copies the values to look at them.
    assert copies.are(int(state == HOST and found.ndim > 0), int(state == DEVICE) + 1)


OPERANDS: dict[str, Callable[[Any], Any]] = {
    "clean": lambda _: pair(CLEAN),
    "host dirty": lambda _: pair(HOST),
    "device dirty": lambda _: pair(DEVICE),
    "number": lambda _: 2.0,
    "numpy's number": lambda _: np.float32(2),
    "array": lambda _: VALUES,
    "tensor": lambda _: dl.from_array(VALUES),
    "pinned tensor": lambda _: dl.from_array(VALUES, device="cuda_host"),
    "device tensor": lambda _: dl.from_array(VALUES, device="cuda:0"),
    "managed tensor": lambda _: dl.from_array(VALUES, device="cuda_managed"),
    "cupy": lambda cupy: cupy.asarray(VALUES),
}
ON_DEVICE = ("clean", "device dirty", "device tensor", "managed tensor", "cupy")
# A device reads pinned memory where it is.
ANYWHERE = (*ON_DEVICE, "number", "numpy's number", "pinned tensor")


@pytest.mark.parametrize("second", OPERANDS)
@pytest.mark.parametrize("first", ["clean", "host dirty", "device dirty"])
@pytest.mark.parametrize("swapped", [False, True], ids=["", "swapped"])
def test_where_it_is_computed(cupy: Any, copies: Counted, first: str, second: str, swapped: bool) -> None:
    a, b = OPERANDS[first](cupy), OPERANDS[second](cupy)
    on_gpu = any(name in ON_DEVICE for name in (first, second))
    to_device = sum(name not in ANYWHERE for name in (first, second)) if on_gpu else 0
    expected = VALUES - 2.0 if "number" in second else VALUES * 0.0
    if swapped and second == "cupy":
        # CuPy's operators do not defer to the storage, so the other operand is a tensor.
        b = dl.from_dlpack(b)
    copies = Counted(copies.driver)
    found = b - a if swapped else a - b
    assert copies.are(to_device, 0)
    check(found, -expected if swapped else expected, DEVICE if on_gpu else HOST, Counted(copies.driver))
    assert found.sync_state is not a.sync_state
    for name, operand in ((first, a), (second, b)):
        if name in STATES:
            # After a copy both buffers are up to date.
            assert operand.sync_state.state == (CLEAN if name == "host dirty" and on_gpu else STATES[name])
            assert np.array_equal(on_host(operand), VALUES)


def test_a_storage_twice(copies: Counted) -> None:
    a = pair(HOST)
    copies = Counted(copies.driver)
    found = a * a
    assert copies.are(0, 0)
    check(found, VALUES**2, HOST, copies)
    assert a.sync_state.state == HOST


@states
def test_labels_and_parameters(copies: Counted, state: int) -> None:
    a = pair(state, dims="IJ", halo=(1, 0), alignment_size=64)
    b = pair(state, np.arange(5.0), dims="K")
    copies = Counted(copies.driver)
    found = a + b
    assert copies.are(0, 0)
    check(found, VALUES[:, :, None] + np.arange(5.0), HOST if state == HOST else DEVICE, copies)
    assert (found.dims, found.halo) == (("I", "J", "K"), ((1, 1), (0, 0), (0, 0)))
    one = storage.storage(VALUES, dims="IJ", halo=(1, 0), alignment_size=64)
    expected = one + storage.storage(np.arange(5.0), dims="K")
    for side in (found._host, found._device):
        for name in ("shape", "dims", "layout", "halo", "origin", "alignment_size", "aligned_index", "strides"):
            assert getattr(side, name) == getattr(expected, name)


@states
def test_views(copies: Counted, state: int) -> None:
    a = pair(state)
    copies = Counted(copies.driver)
    found = a[1:3] + a.transpose("J", "I")[::-1, :2].transpose("I", "J")
    assert copies.are(0, 0)
    with pytest.raises(dl.LayoutError):
        a[1:3] + a
    assert a.sync_state.state == state
    assert np.array_equal(on_host(found), VALUES[1:3] + VALUES[:2, ::-1])


# Outputs.

PARTS: dict[str, Callable[[Any], Any]] = {
    "whole": lambda array: array,
    "turned": lambda array: array[::-1],
    "part": lambda array: array[1:3],
}


@states
@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("source", ["clean", "host dirty", "device dirty", "array"])
def test_out(copies: Counted, state: int, part: Callable[[Any], Any], source: str) -> None:
    out, values, expected = pair(state), part(VALUES) + 3, VALUES.copy()
    operand = values if source == "array" else pair(STATES[source], values)
    copies = Counted(copies.driver)
    target = part(out)
    assert np.negative(operand, out=target) is target
    on_gpu = source in ON_DEVICE
    is_behind = state == (HOST if on_gpu else DEVICE) and target.size < out.size
    assert copies.are(int(on_gpu and is_behind), int(not on_gpu and is_behind))
    part(expected)[...] = -values
    check(out, expected, DEVICE if on_gpu else HOST, copies)


@states
def test_a_masked_result_keeps_the_other_elements(copies: Counted, state: int) -> None:
    out, source, mask = pair(state), pair(CLEAN), pair(DEVICE, VALUES > 4)
    copies = Counted(copies.driver)
    np.add(source, 1, out=out, where=mask)
    assert copies.are(int(state == HOST), 0)
    check(out, np.where(VALUES > 4, VALUES + 1, VALUES), DEVICE, copies)


def test_a_result_is_repeated(copies: Counted) -> None:
    out = storage.zeros((4, 3, 2), device="gpu")
    np.multiply(pair(CLEAN), 2, out=out)
    check(out, np.broadcast_to(2 * VALUES[:, :, None], (4, 3, 2)), DEVICE, copies)


@states
def test_in_place(copies: Counted, state: int) -> None:
    a, expected = pair(state), VALUES.copy()
    before, on_gpu = a, state != HOST
    copies = Counted(copies.driver)
    a += 1
    a[1:3] *= 2
    a.transpose("J", "I")[0] -= np.arange(4.0)
    assert copies.are(int(on_gpu), 0)
    assert a is before
    expected += 1
    expected[1:3] *= 2
    expected[:, 0] -= np.arange(4.0)
    check(a, expected, DEVICE if on_gpu else HOST, copies)


@states
def test_in_place_on_a_tensor(state: int) -> None:
    """The tensor is updated in place."""
    field = before = dl.ones((4, 3))
    field += pair(state)
    assert field is before
    assert field.to_numpy().tolist() == (VALUES + 1).tolist()


@pytest.mark.parametrize("place", ["array", "tensor", "device tensor"])
@states
def test_results_with_one_buffer(copies: Counted, state: int, place: str) -> None:
    """The result is computed where the output's only buffer is."""
    out: Any = np.zeros((4, 3)) if place == "array" else dl.zeros((4, 3), device="cpu" if place == "tensor" else "gpu")
    a, b = pair(state), pair(state, VALUES.copy())
    copies = Counted(copies.driver)
    assert np.add(a, b, out=out) is out
    on_gpu = place == "device tensor"
    assert copies.are(2 * int(on_gpu and state == HOST), 2 * int(not on_gpu and state == DEVICE))
    assert np.array_equal(out.to_device("cpu") if on_gpu else out, 2 * VALUES)


def test_two_results(copies: Counted) -> None:
    a, place = pair(DEVICE, VALUES / 2), pair(HOST)
    copies = Counted(copies.driver)
    fraction, whole = np.modf(a, out=(None, place))
    assert copies.are(0, 0)
    assert whole is place
    for found, expected in zip((fraction, whole), np.modf(VALUES / 2), strict=True):
        check(found, expected, DEVICE, copies)
    quotient, rest = divmod(pair(HOST), 5)
    check(quotient, VALUES // 5, HOST, copies)
    check(rest, VALUES % 5, HOST, copies)


# Reductions and numbers.


@states
@pytest.mark.parametrize(
    "reduction",
    [
        np.sum,
        lambda a: np.sum(a, axis=0),
        lambda a: np.max(a, axis=1, keepdims=True),
        lambda a: np.all(a > 1, axis=0),
        lambda a: a - np.min(a),
    ],
)
def test_reductions(copies: Counted, state: int, reduction: Callable[[Any], Any]) -> None:
    a = pair(state)
    copies = Counted(copies.driver)
    found = reduction(a)
    assert copies.are(0, 0)
    check(found, reduction(VALUES), HOST if state == HOST else DEVICE, copies)
    assert a.sync_state.state == state


def test_a_reduction_along_a_label(copies: Counted) -> None:
    check(np.add.reduce(pair(CLEAN, dims="KJ"), axis="K"), VALUES.sum(axis=0), DEVICE, copies)
    out = pair(HOST, np.zeros(4))
    assert np.sum(pair(CLEAN), axis=1, out=out) is out
    check(out, VALUES.sum(axis=1), DEVICE, copies)


@states
def test_numbers(copies: Counted, state: int) -> None:
    total, largest = np.sum(pair(state)), np.max(pair(state, VALUES.astype(int)))
    copies = Counted(copies.driver)
    assert (float(total), int(total), complex(total), f"{total:.1f}") == (66.0, 66, 66 + 0j, "66.0")
    assert copies.are(0, int(state != HOST))
    assert range(20)[largest] == 11
    assert np.all(pair(state) >= 0)
    assert not np.any(pair(state) > 11)
    with pytest.raises(ValueError, match="truth"):
        bool(pair(state))


def test_equality_and_hash() -> None:
    a = pair()
    assert (a == None) is False  # noqa: E711
    assert (a != "text") is True
    assert np.array_equal(on_host(a == VALUES), np.full((4, 3), True))
    assert {a: 1}[a] == 1
    assert hash(a) != hash(pair())


# Refused operations.


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        (lambda a: a + pair(CLEAN, np.zeros((2, 2))), dl.LayoutError),
        (lambda a: np.add(a, 1, out=pair(CLEAN, np.zeros(4))), dl.DimsError),
        (lambda a: a @ a, TypeError),
        # Not `np.add.accumulate`: NumPy 2.4 leaks a reference if `__array_ufunc__` raises.
        (lambda a: a.__array_ufunc__(np.add, "accumulate", a), TypeError),
        (lambda a: a + object(), TypeError),
        (lambda a: np.add(a, a, out=a, nonsense=True), TypeError),
        (lambda a: np.add(a, a, out=storage.zeros((4, 3), dtype="int8", device="gpu")), TypeError),
    ],
)
@states
def test_refused_operations(state: int, operation: Callable[[Any], Any], error: type[Exception]) -> None:
    a = pair(state)
    with pytest.raises(error):
        operation(a)
    for side in (on_device(a), on_host(a)):
        assert np.array_equal(side, VALUES)


def test_two_devices(driver: Driver) -> None:
    if driver.device_count < 2:
        return  # There is only one.
    a, other = pair(), storage.storage(VALUES, device="cuda:1")
    other.synchronize()
    with pytest.raises(dl.DeviceError, match=r"cuda:0.*cuda:1"):
        a + other
    twice = other + other
    assert str(twice.device) == "cuda:1"
    assert np.array_equal(on_host(twice), 2 * VALUES)


def test_after_an_error_halfway_both_buffers_agree() -> None:
    """What the host wrote before the error counts as modified."""
    a = pair(CLEAN, np.array([3.0, 3.0, 3.0]))
    b = pair(HOST, np.array([1.0, 0.0, 2.0]))
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        np.divide(1.0, b, out=a)
    assert a.sync_state.state == HOST
    assert np.array_equal(on_host(a), on_device(a))


def test_an_error_halfway_keeps_the_up_to_date_buffer() -> None:
    a, b = pair(DEVICE, np.array([1.0, 0.0])), pair(HOST, np.array([1.0, 0.0]))
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        np.divide(1.0, b, out=a)
    assert a.sync_state.state == DEVICE
    assert on_host(a).tolist() == on_device(a).tolist() == [1, 0]


def test_threads_that_need_the_same_storages() -> None:
    a, b = pair(CLEAN, np.zeros((4, 3))), pair(HOST, np.zeros((4, 3)))

    def add(one: Any, other: Any) -> None:
        for _ in range(20):
            np.add(one, 1, out=one)
            np.add(other, one * 0, out=other)

    threads = [threading.Thread(target=add, args=both) for both in ((a, b), (b, a))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for found in (a, b):
        assert np.array_equal(on_host(found), on_device(found))


# Any order of uses, against a model that keeps one value per cell.


@dataclass
class Model:
    """The values of a storage, and which of its buffers have them."""

    values: Any
    sides: set[str] = field(default_factory=lambda: {"host", "device"})
    copied: dict[str, int] = field(default_factory=lambda: {"host": 0, "device": 0})

    def used(self, side: str) -> None:
        if side not in self.sides:
            self.sides.add(side)
            self.copied[side] += 1

    def written(self, side: str) -> None:
        self.sides = {side}

    @property
    def state(self) -> int:
        return CLEAN if len(self.sides) == 2 else HOST if "host" in self.sides else DEVICE


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["read", "write", "add", "out", "part", "in place", "sum"]),
        st.sampled_from(["host", "device"]),
        st.integers(0, 2),
        st.integers(0, 2),
        st.integers(0, 2),
    ),
    max_size=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(STEPS)
def test_any_order_of_uses(driver: Driver, steps: list[tuple[str, str, int, int, int]]) -> None:
    models = [Model(VALUES + number) for number in range(3)]
    fields = [pair(CLEAN, model.values) for model in models]
    copies, expected = Counted(driver), {"host": 0, "device": 0}
    for kind, side, first, second, third in steps:
        a, b, out = models[first], models[second], models[third]
        x, y, target = fields[first], fields[second], fields[third]
        if kind == "read":
            a.used(side)
            assert np.array_equal(on_host(x) if side == "host" else device_buffer(x).to_device("cpu"), a.values)
            expected["host"] += side == "device"
        elif kind == "write":
            a.used(side)
            a.written(side)
            a.values = a.values + 1
            if side == "host":
                x.to_numpy()[...] += 1
            else:
                dl.from_dlpack(x.to_cupy())[...] = dl.from_array(a.values, device="cuda:0")
                expected["device"] += 1
        elif kind == "sum":
            assert np.array_equal(on_host(np.sum(x, axis=0)), a.values.sum(axis=0))
            expected["host"] += "device" in a.sides
        else:
            there = "device" if "device" in a.sides | b.sides else "host"
            a.used(there)
            b.used(there)
            if kind == "add":
                fields[third], models[third] = x + y, Model(a.values + b.values, {there})
                expected = {name: expected[name] + out.copied[name] for name in expected}
            elif kind == "out":
                np.maximum(x, y, out=target)
                out.values = np.maximum(a.values, b.values)
                out.written(there)
            elif kind == "part":
                out.used(there)
                np.subtract(x[:2], y[2:], out=target[1:3])
                found = a.values[:2] - b.values[2:]
                out.values = out.values.copy()
                out.values[1:3] = found
                out.written(there)
            else:
                x += y
                a.values = a.values + b.values
                a.written(there)
        assert [found.sync_state.state for found in fields] == [model.state for model in models]
    counted = {name: expected[name] + sum(model.copied[name] for model in models) for name in expected}
    assert copies.are(counted["device"], counted["host"])
    for found, model in zip(fields, models, strict=True):
        assert np.array_equal(on_host(found), model.values)
        assert np.array_equal(on_device(found), model.values)
