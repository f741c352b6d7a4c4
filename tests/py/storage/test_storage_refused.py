"""Refusals of storages, and values in other forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield import storage
from dlfield.storage import SyncState


@pytest.mark.parametrize("copies", [True, False])
def test_a_state_is_no_number(copies: bool) -> None:
    with pytest.raises(dl.ExchangeError, match=r"found 1, must be a SyncState, as SyncState\(1\)"):
        storage.storage(np.ones(3), sync_state=SyncState.SYNC_HOST_DIRTY, copy=copies)  # type: ignore[arg-type]


@pytest.mark.parametrize("copies", [True, False])
def test_one_size_is_a_shape(copies: bool) -> None:
    assert storage.storage(np.ones(3), shape=3, copy=copies).shape == (3,)
    with pytest.raises(dl.LayoutError, match=r"shape: found \(4,\), but .*data has \(3,\)"):
        storage.storage(np.ones(3), shape=4, copy=copies)


def test_types_of_other_libraries_are_types() -> None:
    torch = pytest.importorskip("torch")
    array = np.ones(3)
    assert storage.as_storage(array, dtype=torch.float64).dtype == array.dtype
    with pytest.raises(dl.DTypeError, match="dtype"):
        storage.as_storage(array, dtype=torch.float32)
    with pytest.raises(dl.DTypeError, match="dtype"):
        storage.as_storage(array, dtype=(np.float64, (3,)))


@pytest.mark.parametrize("device", ["cuda_managed", "cuda_host"])
def test_kinds_of_memory_are_no_device(device: str) -> None:
    with pytest.raises(dl.LayoutError, match=r"device: found 'cuda_.*managed='cuda'"):
        storage.zeros((4, 3), device=device)


def test_a_preset_has_a_name() -> None:
    with pytest.raises(dl.LayoutError, match="defaults"):
        storage.zeros((4, 3), defaults=["C"])  # type: ignore[arg-type]


def test_dims_rename_the_dimensions() -> None:
    """`dims` renames the dimensions and moves no values."""
    values = np.arange(9.0).reshape(3, 3)
    for data in (dl.from_array(values, dims="JI"), dl.from_array(values.astype("i4"), dims="JI")):
        field: Any = storage.storage(data, dtype="f8", dims="IJ")
        assert field.dims == ("I", "J")
        assert (field.to_numpy() == values).all()
    uneven = dl.from_array(np.arange(6.0).reshape(3, 2), dims="KI")
    assert storage.storage(uneven, dims="IJ").to_numpy().tolist() == [[0, 1], [2, 3], [4, 5]]


def test_a_class_derived_from_a_storage_is_one() -> None:
    derived = type("Derived", (storage.SoftwareManagedGPUStorage,), {"__slots__": ()})
    assert issubclass(derived, storage.Storage)
    assert not issubclass(derived, storage.CPUStorage)


@pytest.mark.parametrize("state", [3, -1, 1.0, "clean", None, np.array([1, 2])])
def test_a_state_is_one_of_three(state: Any) -> None:
    with pytest.raises(dl.ExchangeError, match="state: found"):
        SyncState(state)
    assert repr(SyncState(True)) == "SyncState(SYNC_HOST_DIRTY)"


@pytest.mark.parametrize(
    ("keywords", "says"),
    [
        ({"alignment_size": "x"}, "alignment_size"),
        ({"alignment_size": 2.5}, "alignment_size"),
        ({"alignment_size": 0}, "alignment_size"),
        ({"alignment_size": 8, "aligned_index": 3}, "aligned_index"),
        ({"alignment_size": 8, "aligned_index": (0,)}, "aligned_index"),
        ({"aligned_index": (0,)}, "aligned_index"),
    ],
)
def test_an_alignment_is_refused_as_in_allocations(keywords: Any, says: str) -> None:
    with pytest.raises((dl.LayoutError, TypeError), match=says):
        storage.as_storage(np.zeros((4, 3)), **keywords)
    with pytest.raises((dl.LayoutError, TypeError), match=says):
        storage.zeros((4, 3), **keywords)


@pytest.mark.parametrize(("name", "given"), [("data", ([1.0],)), ("device_data", (None, [1.0]))])
def test_values_without_memory_have_to_be_copied(name: str, given: tuple[Any, ...]) -> None:
    with pytest.raises(dl.NotAnArrayError, match=rf"^{name}: <class 'list'>.*storage\(\)"):
        storage.as_storage(*given)
