"""Arithmetic on host/device pairs: where it is computed, what is copied for it, and what is outdated afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dlfield as dl
from dlfield import storage
from storages import CLEAN, DEVICE, HOST, copies, on_device, on_host
from storages import pair as pair_of
from untyped import np

pytestmark = pytest.mark.usefixtures("cupy")

VALUES = np.arange(12.0).reshape(4, 3)
STATES = {"clean": CLEAN, "host dirty": HOST, "device dirty": DEVICE}
states = pytest.mark.parametrize("state", STATES.values(), ids=STATES)


def pair(state: int = CLEAN, values: Any = VALUES, **keywords: Any) -> Any:
    return pair_of(state, values, **keywords)


def check(found: Any, expected: Any, state: int) -> None:
    """Check that a storage has this state and these values, with exactly one copy to the outdated buffer.

    A single number takes no copy to the device: it is set there.
    """
    assert isinstance(found, storage.SoftwareManagedGPUStorage)
    assert found.sync_state.state == state
    # `on_device` copies the values to look at them.
    with copies(int(state == HOST and found.ndim > 0), int(state == DEVICE) + 1):
        for side in (on_device, on_host) if state == DEVICE else (on_host, on_device):
            assert np.array_equal(side(found), expected)


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
def test_where_it_is_computed(cupy: Any, first: str, second: str, swapped: bool) -> None:
    a, b = OPERANDS[first](cupy), OPERANDS[second](cupy)
    on_gpu = any(name in ON_DEVICE for name in (first, second))
    to_device = sum(name not in ANYWHERE for name in (first, second)) if on_gpu else 0
    expected = VALUES - 2.0 if "number" in second else VALUES * 0.0
    if swapped and second == "cupy":
        # CuPy's operators do not defer to the storage, so the other operand is a tensor.
        b = dl.from_dlpack(b)
    with copies(to_device, 0):
        found = b - a if swapped else a - b
    check(found, -expected if swapped else expected, DEVICE if on_gpu else HOST)
    assert found.sync_state is not a.sync_state
    for name, operand in ((first, a), (second, b)):
        if name in STATES:
            # After a copy both buffers are up to date.
            assert operand.sync_state.state == (CLEAN if name == "host dirty" and on_gpu else STATES[name])
            assert np.array_equal(on_host(operand), VALUES)


def test_a_storage_twice() -> None:
    a = pair(HOST)
    with copies():
        found = a * a
    check(found, VALUES**2, HOST)
    assert a.sync_state.state == HOST


@states
def test_labels_and_parameters(state: int) -> None:
    a = pair(state, dims="IJ", halo=(1, 0), alignment_size=64)
    b = pair(state, np.arange(5.0), dims="K")
    with copies():
        found = a + b
    check(found, VALUES[:, :, None] + np.arange(5.0), HOST if state == HOST else DEVICE)
    assert (found.dims, found.halo) == (("I", "J", "K"), ((1, 1), (0, 0), (0, 0)))
    one = storage.storage(VALUES, dims="IJ", halo=(1, 0), alignment_size=64)
    expected = one + storage.storage(np.arange(5.0), dims="K")
    for side in (found._host, found._device):
        for name in ("shape", "dims", "layout", "halo", "origin", "alignment_size", "aligned_index", "strides"):
            assert getattr(side, name) == getattr(expected, name)


@states
def test_views(state: int) -> None:
    a = pair(state)
    with copies():
        found = a[1:3] + a.transpose("J", "I")[::-1, :2].transpose("I", "J")
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
def test_out(state: int, part: Callable[[Any], Any], source: str) -> None:
    out, values, expected = pair(state), part(VALUES) + 3, VALUES.copy()
    operand = values if source == "array" else pair(STATES[source], values)
    target, on_gpu = part(out), source in ON_DEVICE
    is_behind = state == (HOST if on_gpu else DEVICE) and target.size < out.size
    with copies(int(on_gpu and is_behind), int(not on_gpu and is_behind)):
        assert np.negative(operand, out=target) is target
    part(expected)[...] = -values
    check(out, expected, DEVICE if on_gpu else HOST)


@states
def test_a_masked_result_keeps_the_other_elements(state: int) -> None:
    out, source, mask = pair(state), pair(CLEAN), pair(DEVICE, VALUES > 4)
    with copies(int(state == HOST), 0):
        np.add(source, 1, out=out, where=mask)
    check(out, np.where(VALUES > 4, VALUES + 1, VALUES), DEVICE)


def test_a_result_is_repeated() -> None:
    out = storage.zeros((4, 3, 2), device="gpu")
    np.multiply(pair(CLEAN), 2, out=out)
    check(out, np.broadcast_to(2 * VALUES[:, :, None], (4, 3, 2)), DEVICE)


@states
def test_in_place(state: int) -> None:
    a, expected = pair(state), VALUES.copy()
    before, on_gpu = a, state != HOST
    with copies(int(on_gpu), 0):
        a += 1
        a[1:3] *= 2
        a.transpose("J", "I")[0] -= np.arange(4.0)
    assert a is before
    expected += 1
    expected[1:3] *= 2
    expected[:, 0] -= np.arange(4.0)
    check(a, expected, DEVICE if on_gpu else HOST)


@states
def test_in_place_on_a_tensor(state: int) -> None:
    """The tensor is updated in place."""
    field = before = dl.ones((4, 3))
    field += pair(state)
    assert field is before
    assert field.to_numpy().tolist() == (VALUES + 1).tolist()


@pytest.mark.parametrize("place", ["array", "tensor", "device tensor"])
@states
def test_results_with_one_buffer(state: int, place: str) -> None:
    """The result is computed where the output's only buffer is."""
    out: Any = np.zeros((4, 3)) if place == "array" else dl.zeros((4, 3), device="cpu" if place == "tensor" else "gpu")
    a, b, on_gpu = pair(state), pair(state), place == "device tensor"
    with copies(2 * int(on_gpu and state == HOST), 2 * int(not on_gpu and state == DEVICE)):
        assert np.add(a, b, out=out) is out
    assert np.array_equal(out.to_device("cpu") if on_gpu else out, 2 * VALUES)


def test_two_results() -> None:
    a, place = pair(DEVICE, VALUES / 2), pair(HOST)
    with copies():
        fraction, whole = np.modf(a, out=(None, place))
    assert whole is place
    for found, expected in zip((fraction, whole), np.modf(VALUES / 2), strict=True):
        check(found, expected, DEVICE)
    quotient, rest = divmod(pair(HOST), 5)
    check(quotient, VALUES // 5, HOST)
    check(rest, VALUES % 5, HOST)


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
def test_reductions(state: int, reduction: Callable[[Any], Any]) -> None:
    a = pair(state)
    with copies():
        found = reduction(a)
    check(found, reduction(VALUES), HOST if state == HOST else DEVICE)
    assert a.sync_state.state == state


def test_a_reduction_along_a_label() -> None:
    check(np.add.reduce(pair(CLEAN, dims="KJ"), axis="K"), VALUES.sum(axis=0), DEVICE)
    out = pair(HOST, np.zeros(4))
    assert np.sum(pair(CLEAN), axis=1, out=out) is out
    check(out, VALUES.sum(axis=1), DEVICE)


@states
def test_numbers(state: int) -> None:
    total, largest = np.sum(pair(state)), np.max(pair(state, VALUES.astype(int)))
    with copies(0, int(state != HOST)):
        assert (float(total), int(total), complex(total), f"{total:.1f}") == (66.0, 66, 66 + 0j, "66.0")
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


@pytest.mark.two_devices
def test_two_devices() -> None:
    a, other = pair(), storage.storage(VALUES, device="cuda:1")
    other.synchronize()
    with pytest.raises(dl.DeviceError, match=r"cuda:0.*cuda:1"):
        a + other
    twice = other + other
    assert str(twice.device) == "cuda:1"
    assert np.array_equal(on_host(twice), 2 * VALUES)


@pytest.mark.parametrize(("state", "afterwards"), [(CLEAN, HOST), (DEVICE, DEVICE)])
def test_after_an_error_halfway_both_buffers_agree(state: int, afterwards: int) -> None:
    """What the host wrote before the error counts as modified, unless the device buffer was modified before."""
    a, b = pair(state, np.array([1.0, 3.0, 3.0])), pair(HOST, np.array([1.0, 0.0, 2.0]))
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        np.divide(1.0, b, out=a)
    assert a.sync_state.state == afterwards
    assert np.array_equal(on_host(a), on_device(a))
    assert state == CLEAN or on_host(a).tolist() == [1, 3, 3]


@states
def test_xarray_computes_with_pairs_by_label(state: int) -> None:
    """The host buffer, which is brought up to date."""
    xarray = pytest.importorskip("xarray")
    outer = xarray.DataArray(np.zeros((3, 4)), dims=("J", "I"))
    assert (outer - pair(state, dims="IJ")).values.tolist() == (-VALUES.T).tolist()
