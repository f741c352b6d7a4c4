"""Refusals of storages, and values in other forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield import storage
from dlfield.storage import SyncState

DATA = np.arange(12.0).reshape(4, 3)
# The error of `storage` and `as_storage`, its words, and the parameters.
REFUSED: list[tuple[type[Exception], str, dict[str, Any]]] = [
    (dl.LayoutError, "shape", {}),
    (dl.LayoutError, "shape", {"data": DATA, "shape": (3, 4)}),
    (dl.LayoutError, r"^shape: expected \(4, 3\), as .*data has, got \(4,\)", {"data": DATA, "shape": 4}),
    (dl.DimsError, "dims", {"data": DATA, "dims": "IJK"}),
    (dl.DimsError, "dims", {"data": DATA, "dims": "II"}),
    (dl.LayoutError, "halo", {"data": DATA, "halo": (1,)}),
    (dl.LayoutError, "layout", {"data": DATA, "layout": (0, 0)}),
    (dl.LayoutError, "aligned_index", {"data": DATA, "aligned_index": (0,)}),
    (dl.LayoutError, "defaults", {"data": DATA, "defaults": "fast"}),
    (dl.LayoutError, "defaults", {"data": DATA, "defaults": ["C"]}),
    (dl.LayoutError, "managed", {"data": DATA, "managed": "me"}),
    (dl.LayoutError, "^device: expected .*, got 'cuda_.*managed='cuda'", {"shape": (4, 3), "device": "cuda_managed"}),
    (dl.LayoutError, "^device: expected .*, got 'cuda_.*managed='cuda'", {"shape": (4, 3), "device": "cuda_host"}),
    (dl.Error, "device_data", {"data": DATA, "sync_state": SyncState(SyncState.SYNC_DEVICE_DIRTY)}),
    (dl.ExchangeError, r"SyncState\(1\)", {"data": DATA, "sync_state": SyncState.SYNC_HOST_DIRTY}),
    (dl.ExchangeError, "sync_state", {"shape": (3,), "sync_state": SyncState()}),
    (TypeError, "sync_status", {"data": DATA, "sync_status": None}),
]


@pytest.mark.parametrize("copies", [True, False])
@pytest.mark.parametrize(("error", "words", "parameters"), REFUSED)
def test_a_wrong_parameter_is_named(
    error: type[Exception], words: str, parameters: dict[str, Any], copies: bool
) -> None:
    with pytest.raises(error, match=words):
        storage.storage(copy=copies, **parameters)


OF_BUFFERS: list[tuple[type[Exception], str, dict[str, Any]]] = [
    (dl.DTypeError, "dtype", {"dtype": "f4"}),
    (dl.DTypeError, "dtype", {"dtype": (np.float64, (3,))}),
    (dl.LayoutError, "layout", {"layout": (1, 0)}),
    (dl.LayoutError, "defaults", {"defaults": "F"}),
    (dl.LayoutError, "alignment_size", {"alignment_size": 64, "aligned_index": (0, 1)}),
    (dl.NoSuchBufferError, "device_data", {"device": "cpu", "device_data": np.zeros((4, 3))}),
]


@pytest.mark.parametrize(("error", "words", "parameters"), OF_BUFFERS)
def test_buffers_are_checked_against_the_parameters(
    error: type[Exception], words: str, parameters: dict[str, Any]
) -> None:
    with pytest.raises(error, match=words):
        storage.as_storage(np.asarray(dl.zeros((4, 3))), **parameters)


def test_buffers_that_have_the_parameters() -> None:
    array = np.asarray(dl.zeros((4, 3)))
    kept = storage.as_storage(array, dtype="f8", layout=(0, 1), defaults="C", alignment_size=64, shape=(4, 3))
    assert kept.alignment_size == 64
    assert np.shares_memory(kept.to_numpy(), array)
    for copies in (True, False):
        assert storage.storage(np.ones(3), shape=3, copy=copies).shape == (3,)


def test_types_of_other_libraries_are_types(torch: Any) -> None:
    assert storage.as_storage(np.ones(3), dtype=torch.float64).dtype == np.float64
    with pytest.raises(dl.DTypeError, match="dtype"):
        storage.as_storage(np.ones(3), dtype=torch.float32)


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
    with pytest.raises(dl.ExchangeError, match="state: expected"):
        SyncState(state)
    assert SyncState().state == SyncState.SYNC_CLEAN
    assert repr(SyncState(True)) == "SyncState(SYNC_HOST_DIRTY)"


ALIGNMENTS: list[dict[str, Any]] = [
    *({"alignment_size": size} for size in ("x", 2.5, 0)),
    *({"aligned_index": index, "alignment_size": 8} for index in (3, (0,))),
    {"aligned_index": (0,)},
]


@pytest.mark.parametrize("keywords", ALIGNMENTS)
def test_an_alignment_is_refused_as_in_allocations(keywords: dict[str, Any]) -> None:
    with pytest.raises((dl.LayoutError, TypeError), match=next(iter(keywords))):
        storage.as_storage(np.zeros((4, 3)), **keywords)
    with pytest.raises((dl.LayoutError, TypeError), match=next(iter(keywords))):
        storage.zeros((4, 3), **keywords)


@pytest.mark.parametrize(("name", "given"), [("data", ([1.0],)), ("device_data", (None, [1.0]))])
def test_values_without_memory_have_to_be_copied(name: str, given: tuple[Any, ...]) -> None:
    with pytest.raises(dl.NotAnArrayError, match=rf"^{name}: <class 'list'>.*storage\(\)"):
        storage.as_storage(*given)
