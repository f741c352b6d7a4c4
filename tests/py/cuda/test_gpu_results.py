"""What a tensor on a device and its results are used for there as on the host: numbers, masks, keys."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

import dlfield as dl
from dlfield import storage
from driver import IS_FAKE, Driver
from fakes_interfaces import Exposing
from storages import CLEAN, DEVICE, HOST, copies, on_device, on_host
from untyped import np

VALUES = np.arange(24.0).reshape(2, 3, 4)


def field(device: str = "cuda:0", **keywords: Any) -> dl.Tensor:
    return dl.from_array(VALUES, device=device, **keywords)


@pytest.fixture
def no_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the import of CuPy fail as if it were not installed."""
    if not IS_FAKE:
        pytest.skip("CuPy may be installed")
    monkeypatch.delitem(sys.modules, "cupy", raising=False)


# Numbers, without CuPy.


@pytest.mark.parametrize("device", ["cuda:0", "cuda_managed", "cuda_host"])
@pytest.mark.usefixtures("no_cupy")
def test_one_element_is_a_number(device: str) -> None:
    a, counter = field(device), dl.full((), 2, "int64", device=device)
    assert (float(a[1, 2, 3]), bool(a[0, 0, 0]), bool(a[0, 0, 1])) == (23.0, False, True)
    assert (a.item(5), a.item(-1), a.item((0, 1, 0)), str(a[0, 0, 1])) == (5.0, 23.0, 4.0, "1.0")
    assert ([10, 20, 30][counter], a[0, counter].tolist()) == (30, [8.0, 9.0, 10.0, 11.0])


@pytest.mark.usefixtures("no_cupy")
def test_only_one_element_is_copied() -> None:
    a = field()
    with copies():
        for convert in (float, bool, dl.Tensor.item, "{:.2f}".format):
            with pytest.raises((TypeError, ValueError)):
                convert(a)
        with pytest.raises(IndexError):
            a.item(24)
    with copies(to_host=1):
        assert a.item(7) == 7.0


@pytest.mark.usefixtures("no_cupy")
def test_what_needs_cupy_says_so() -> None:
    a, mask = field(), dl.from_array(VALUES > 5)
    for work in (lambda: a[mask], lambda: a.__setitem__(mask, 0), lambda: a[[0]], lambda: a[..., None]):
        with pytest.raises(ImportError, match=r"indexing by an array or None on cuda:0 needs cupy"):
            work()
    with pytest.raises(ImportError, match=r"arithmetic on cuda:0 needs cupy.*pip install"):
        a + 1


def test_streams_of_numbers(driver: Driver) -> None:
    with driver.stream() as one, dl.cuda.stream(one, 0):
        a = dl.full((4,), 1.0, device="cuda:0")
        a[...] = dl.full((4,), 2.0, device="cuda:0")
        assert (float(a[0]), a.tolist(), a.astype("f4").tolist()) == (2.0, [2.0] * 4, [2.0] * 4)
        del a


# Keys.

MAKE: dict[str, Callable[[Any], Any]] = {
    "tensor": lambda array: dl.from_array(array, device="cuda:0"),
    "tensor on the host": dl.from_array,
    "managed tensor": lambda array: dl.from_array(array, device="cuda_managed"),
    "numpy": lambda array: array,
    "pair": lambda array: storage.storage(array, device="gpu"),
    "cupy": lambda array: sys.modules["cupy"].asarray(array),
    "cuda interface": lambda array: exposing(dl.from_array(array, device="cuda:0")),
    "data interface": lambda array: Exposing(__gt_data_interface__={None: array.__array_interface__}, kept=array),
}


def exposing(tensor: dl.Tensor) -> Exposing:
    return Exposing(__cuda_array_interface__=tensor.__cuda_array_interface__, kept=tensor)


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
@pytest.mark.parametrize("device", ["cuda:0", "cuda_managed", "cpu"])
def test_keys_from_everywhere(make: Callable[[Any], Any], device: str) -> None:
    a, expected = field(device), VALUES.copy()
    mask = expected > 5
    for key, plain in ((make(mask), mask), (make(np.array([1, 0])), [1, 0]), ((0, make(np.array([2]))), (0, [2]))):
        found = a[key]
        assert (found.get() if device == "cuda:0" else found).tolist() == expected[plain].tolist()
    a[make(mask)] = 0
    expected[mask] = 0
    a[:, make(np.array([0]))] = 7
    expected[:, [0]] = 7
    assert a.tolist() == expected.tolist()
    del a, key, found


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
@pytest.mark.parametrize("managed", ["gt4py", "cuda"])
@pytest.mark.parametrize("plain", [VALUES > 5, np.array([1, 0])], ids=["mask", "positions"])
def test_keys_of_storages(make: Callable[[Any], Any], managed: Any, plain: Any) -> None:
    expected, field = VALUES.copy(), storage.storage(VALUES, device="gpu", managed=managed)
    assert field[make(plain)].tolist() == expected[plain].tolist()
    # Also a value on the device, to which the write goes.
    for number, value in ((2.0, 2.0), (3.0, dl.full((), 3.0, device="cuda:0"))):
        field[make(plain)] = value
        expected[plain] = number
        assert on_host(field).tolist() == expected.tolist()
    del field


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_masks_of_storages_are_matched_by_label(device: str) -> None:
    pair = storage.storage(VALUES, device="gpu")
    levels = np.array([True, False, True, False])
    mask = dl.from_array(levels, dims="K", device=device)
    assert pair[mask].tolist() == VALUES[..., levels].ravel().tolist()
    for value in (-1.0, dl.full((), -2.0, device="cuda:0")):
        pair[mask] = value
        assert on_host(pair).tolist() == np.where(levels, float(value), VALUES).tolist()


@pytest.mark.usefixtures("cupy")
def test_masks_for_writes_on_the_device_stay_there() -> None:
    pair, mask = storage.storage(VALUES, device="gpu"), dl.from_array(VALUES > 5, device="cuda:0")
    pair.synchronize()
    value = dl.full((), 3.0, device="cuda:0")
    with copies():
        pair[mask] = value
    assert on_host(pair).tolist() == np.where(VALUES > 5, 3, VALUES).tolist()


@pytest.mark.parametrize("state", [CLEAN, HOST, DEVICE])
def test_views_of_storages_with_new_axes_are_up_to_date_and_may_be_written(state: int) -> None:
    pair: Any = storage.storage(VALUES, device="gpu")
    pair.synchronize()
    pair.sync_state.state = state
    view = pair[None]
    assert type(view) is np.ndarray
    assert view.tolist() == [VALUES.tolist()]
    view[...] = 7
    assert (on_device(pair) == 7).all()


@pytest.mark.usefixtures("cupy")
def test_results_on_the_device_are_used_there() -> None:
    a = field(alignment_size=64)
    with copies():
        selected = a[a < 2]
    a[a > 5] = 0
    with copies(to_host=1):
        assert bool(np.all(a >= 0)) is True
    assert not np.any(a < 0)
    if (a == 99).any():
        pytest.fail("a reduction in an if statement")
    assert selected.get().tolist() == [0.0, 1.0]
    assert (float(a.sum()), a.max().item(), f"{a.mean():.3f}") == (15.0, 5.0, "0.625")
    assert a.sum("K").dims == ("I", "J")
    assert np.isclose(a.std().item(), np.where(VALUES > 5, 0, VALUES).std())
    del selected


@pytest.mark.usefixtures("cupy")
def test_masks_are_matched_by_label_on_the_device() -> None:
    a = dl.from_array(np.arange(9.0).reshape(3, 3), device="cuda:0")
    a[(a > 2).T] = 0
    assert a.tolist() == [[0, 1, 2], [0, 0, 0], [0, 0, 0]]


@pytest.mark.usefixtures("cupy")
def test_none_gives_an_array_on_the_same_memory_of_the_device() -> None:
    a = field()
    found = a[0, ..., None]
    assert (found.shape, found.data.ptr) == ((3, 4, 1), a.ptr)
    a[..., None] = VALUES[..., None] + 1
    assert a.tolist() == (VALUES + 1).tolist()
    a[None] = 5
    assert a.ravel().get().tolist() == a.flatten("F").get().tolist() == [5.0] * 24
    assert a.ravel().data.ptr == a.ptr != a.flatten().data.ptr
    del found


# Copies to the host.


@pytest.mark.parametrize("device", ["cuda:0", "cuda_managed", "cuda_host"])
def test_as_numpy_copies_from_a_device(device: str) -> None:
    a = field(device, backend="F")
    found = dl.as_numpy(a, copy=True)
    assert (found.tolist(), found.strides, found.flags.writeable) == (VALUES.tolist(), a.strides, True)
    assert found.ctypes.data != a.ptr
    assert dl.as_numpy(exposing(field()), copy=True).tolist() == VALUES.tolist()


@pytest.mark.usefixtures("no_cupy")
def test_flags_and_absent_methods_on_a_device() -> None:
    a: Any = field(alignment_size=64)
    assert (a.flags.c_contiguous, a.flags.writeable, field().flags.c_contiguous) == (False, True, True)
    with pytest.raises(AttributeError, match=r"use to_cupy\(\)\.cumsum"):
        a.cumsum()
