"""Keys that are arrays of any library, masks with labels, and None, on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dlfield as dl
from calls import torch_of
from catalog import numbered
from fakes_interfaces import Exposing, interface_of
from untyped import np


def field(**keywords: Any) -> dl.Tensor:
    return numbered((2, 3, 4), "f8", **keywords)


def labelled(array: Any, dims: Any) -> Any:
    return pytest.importorskip("xarray").DataArray(array, dims=tuple(dims))


KEYS: dict[str, Callable[[Any], Any]] = {
    "tensor": dl.from_array,
    "torch": torch_of,
    "jax": lambda array: pytest.importorskip("jax").numpy.asarray(array),
    "xarray": lambda array: labelled(array, "IJK"[: np.ndim(array)]),
    "data interface": lambda array: Exposing(__gt_data_interface__={None: interface_of(array)}, kept=array),
    "array interface": lambda array: Exposing(__array_interface__=interface_of(array), kept=array),
    "struct": lambda array: Exposing(__array_struct__=array.__array_struct__, kept=array),
}


@pytest.mark.parametrize("make", KEYS.values(), ids=KEYS)
def test_keys_of_every_library(make: Callable[[Any], Any]) -> None:
    values = field()
    expected = values.to_numpy().copy()
    mask, places = expected > 5, np.array([1, 0, 1])
    for key, plain in ((make(mask), mask), (make(places), places), ((0, make(places)), (0, places))):
        found = values[key]
        assert type(found) is np.ndarray
        assert found.tolist() == expected[plain].tolist()
    values[make(mask)] = 0
    expected[mask] = 0
    values[:, make(places[:2])] = 7
    expected[:, places[:2]] = 7
    assert values.tolist() == expected.tolist()
    values[make(expected == 7)] = np.arange(16.0)
    expected[expected == 7] = np.arange(16.0)
    assert values.tolist() == expected.tolist()


INDICES: list[Any] = [
    *([0, 1], ([0, 1], [1, 2]), (slice(None), [0, 2]), [], True, np.True_, np.array([1]), np.array([], int)),
    *(np.array([True, False]), np.array([[True, False, True]] * 2), (np.array([1, 0]), 2)),
]


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_advanced_indexing_is_numpys(index: Any) -> None:
    values = numbered((2, 3), backend="gtmc")
    expected = values.to_numpy().copy()
    found = values[index]
    assert type(found) is np.ndarray
    assert found.tolist() == expected[index].tolist()
    found[...] = -1
    assert values.tolist() == expected.tolist(), "a copy, as in NumPy"
    values[index] = -1
    expected[index] = -1
    assert values.tolist() == expected.tolist()


def test_arrays_of_one_position_are_arrays() -> None:
    torch = pytest.importorskip("torch")
    values = field()
    assert values[torch.tensor([1])].shape == (1, 3, 4)
    assert values[torch.tensor(1)].dims == ("J", "K")
    assert values[torch.tensor(True)].shape == (1, 2, 3, 4)
    assert values[dl.full((), True, "?")].shape == (1, 2, 3, 4)
    assert values[dl.full((), 1, "i4")].dims == ("J", "K")


def test_masks_are_matched_by_label() -> None:
    values = numbered((3, 3), "f8")
    mask = (values > 2).T
    assert values[mask].tolist() == values.to_numpy()[values.to_numpy() > 2].tolist()
    values[mask] = 0
    assert values.tolist() == [[1, 2, 0], [0, 0, 0], [0, 0, 0]]
    rows = dl.from_array([True, False, True], dims="J")
    values[rows] = 5
    assert values.tolist() == [[5, 2, 5], [5, 0, 5], [5, 0, 5]]
    assert values[dl.from_array([True, False, False])].tolist() == [[5, 2, 5]], "the first dimension, as in NumPy"
    for points in (1, 2):
        for label in "IJ":
            with pytest.raises(IndexError, match=rf"{points}$"):
                values[dl.from_array([True] * points, dims=label)]


@pytest.mark.parametrize("wrap", [lambda mask, dims: dl.from_array(mask, dims=dims), labelled])
@pytest.mark.parametrize(
    ("key", "at"), [("M", "K"), (":M", "I"), ("M:", "J"), ("M.", "J"), (".M", "I"), ("M0", "J"), ("0M", "I")]
)
def test_masks_with_other_labels_are_refused(wrap: Any, key: str, at: str) -> None:
    """A mask that states labels goes by them: the label of its place in a tuple, any of the field's alone."""
    values, flags = numbered((3, 3), "f8"), [True, False, True]
    parts = {":": slice(None), ".": ..., "0": 0}

    def made(label: str) -> Any:
        found = tuple(wrap(flags, (label,)) if part == "M" else parts[part] for part in key)
        return found if len(found) > 1 else found[0]

    with pytest.raises(dl.DimsError, match=rf"got dims \({at}\); mask.to_numpy\(\) goes by position$"):
        values[made(at)]
    with pytest.raises(dl.DimsError, match=rf"got dims \({at}\)"):
        values[made(at)] = 1
    right = "J" if key in (":M", ".M", "0M") else "I"
    plain: Any = tuple(np.array(flags) if part == "M" else parts[part] for part in key)
    assert values[made(right)].tolist() == values.to_numpy()[plain].tolist()
    assert values.tolist() == numbered((3, 3), "f8").tolist()


@pytest.mark.parametrize("key", [None, (..., None), (0, None), (None, 1, 2, 3), (slice(1), None, ..., 2)])
def test_none_gives_an_array_on_the_same_memory(key: Any) -> None:
    values = field()
    found, expected = values[key], values.to_numpy()[key]
    assert type(found) is np.ndarray
    assert (found.shape, found.strides, found.tolist()) == (expected.shape, expected.strides, expected.tolist())
    assert np.shares_memory(found, values.to_numpy())
    values[key] = -expected.copy()
    assert values.to_numpy()[key].tolist() == found.tolist()
    assert found.max() < 0


def test_none_and_readonly_memory() -> None:
    values = field().as_readonly()
    assert not values[None].flags.writeable
    with pytest.raises(dl.ExchangeError, match="read-only"):
        values[..., None] = 1
    with pytest.raises(IndexError):
        field()[None, 0, 0, 0, 0]


def test_a_key_may_change_nothing_that_is_released() -> None:
    """The hooks of a key's data interface run around its use."""
    calls: list[str] = []
    mask = np.array([True, False])
    entry = interface_of(mask) | {
        "acquire": lambda: calls.append("acquire"),
        "release": lambda: calls.append("release"),
    }
    values = field()
    assert values[Exposing(__gt_data_interface__={None: entry})].shape == (1, 3, 4)
    assert calls == ["acquire", "release"]


@pytest.mark.parametrize("key", [b"\1\0", (0, b"\1"), 1.5, {0}, {}, "I", (0, "I")])
def test_objects_that_are_no_keys_are_an_index_error(key: Any) -> None:
    has_label = key == "I" or key == (0, "I")
    words = "^index: expected .*, got 'I'; labels select no points$" if has_label else "valid indices"
    with pytest.raises(IndexError, match=words):
        field()[key]
    with pytest.raises(IndexError, match=words):
        field()[key] = 0
