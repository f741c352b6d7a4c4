"""Storages on the host: their sources, the search order of parameters, and refusals."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield import storage
from dlfield.storage import SyncState


def numbers(*shape: int) -> Any:
    return np.arange(float(np.prod(shape))).reshape(shape)


@pytest.mark.parametrize(
    ("make", "like", "value"), [(storage.zeros, storage.zeros_like, 0), (storage.ones, storage.ones_like, 1)]
)
def test_allocation(make: Callable[..., Any], like: Callable[..., Any], value: int) -> None:
    field = make((4, 5, 3), "int32", defaults="gtx86", dims="KJI", halo=(1, (0, 2), 0), alignment_size=64)
    assert type(field) is dl.Tensor
    assert isinstance(field, storage.CPUStorage)
    assert (field.layout, field.dims, field.halo) == ((2, 1, 0), ("K", "J", "I"), ((1, 1), (0, 2), (0, 0)))
    assert (field.shape, field.ndim, field.nbytes, field.dtype) == ((4, 5, 3), 3, 240, np.dtype("i4"))
    assert (field.alignment_size, field.aligned_index, field.device) == (64, (1, 0, 0), dl.Device("cpu"))
    assert (np.asarray(field) == value).all()
    other = like(field, "f4", halo=(0, 0, 0))
    assert (other.layout, other.dims, other.halo, other.dtype) == (field.layout, field.dims, ((0, 0),) * 3, "f4")
    assert (np.asarray(other) == value).all()


@pytest.mark.parametrize(
    ("defaults", "layouts"),
    [("F", ((2, 1, 0), (2, 1, 0))), ("C", ((0, 1, 2), (0, 1, 2))), ("gtx86", ((0, 1, 2), (2, 1, 0)))],
)
def test_the_layouts_of_the_document(defaults: str, layouts: tuple[tuple[int, ...], ...]) -> None:
    for dims, layout in zip(("IJK", "KJI"), layouts, strict=True):
        assert storage.empty((4, 5, 3), dims=dims, defaults=defaults).layout == layout
        for device in ("cpu", None):
            assert storage.storage(numbers(4, 5, 3), dims=dims, defaults=defaults, device=device).layout == layout


def test_search_order() -> None:
    data = dl.from_array(numbers(4, 3), dims="KI", layout=(1, 0), halo=(1, 0), alignment_size=64)
    found = storage.storage(data)
    assert (found.dims, found.layout, found.halo, found.alignment_size) == (("K", "I"), (1, 0), ((1, 1), (0, 0)), 64)
    assert storage.storage(data, defaults="C").layout == (0, 1)
    assert storage.storage(data, defaults="C", layout=(1, 0)).layout == (1, 0)
    assert storage.storage(data, halo=(0, 1)).halo == ((0, 0), (1, 1))
    assert storage.storage(numbers(4, 3)).dims == ("I", "J")
    assert storage.storage([[1, 2], [3, 4]]).dtype == np.dtype("i8")
    assert storage.storage([[1, 2], [3, 4]], dtype="f4").to_numpy().tolist() == [[1, 2], [3, 4]]
    assert storage.storage(shape=(2, 2)).dtype == np.dtype("f8")
    assert storage.as_storage(shape=(2, 2), dtype="i4").dtype == np.dtype("i4")


def test_storage_copies_and_as_storage_does_not() -> None:
    array = numbers(4, 3)
    copied, shared = storage.storage(array), storage.as_storage(array)
    also = storage.storage(array, copy=False, halo=(1, 1))
    assert type(copied) is type(shared) is type(also) is dl.Tensor
    array[1, 1] = 99.0
    assert copied[1, 1] == 4
    assert shared[1, 1] == also[1, 1] == 99
    assert also.domain_view.shape == (2, 1)
    assert storage.as_storage(also).halo == also.halo


def test_the_halo_can_be_set_and_the_rest_stays() -> None:
    field = storage.zeros((4, 3), defaults="gt:cpu_ifirst", dims="IK", alignment_size=64)
    before = field.to_numpy()
    field.halo = (1, (0, 2))
    assert field.halo == ((1, 1), (0, 2))
    assert dl.get_origin(field) == (1, 0)
    assert (field.layout, field.dims, field.alignment_size) == ((1, 0), ("I", "K"), 64)
    assert np.shares_memory(field.to_numpy(), before)
    assert field.aligned_index == (0, 0)
    for wrong in ((1,), (3, 0), (1, (0, 1, 2)), (-1, 0)):
        with pytest.raises((ValueError, TypeError), match=r"^halo: "):
            field.halo = wrong
    assert field.halo == ((1, 1), (0, 2))


def test_the_classes_are_there_to_check_types_with() -> None:
    field: Any = storage.zeros((4, 3))
    kinds: list[Any] = [storage.CPUStorage, storage.GPUStorage, storage.CUDAManagedGPUStorage]
    assert [isinstance(field, kind) for kind in kinds] == [True, False, False]
    assert isinstance(field, storage.Storage)
    assert not isinstance(field, storage.SoftwareManagedGPUStorage)
    for other in (np.zeros(3), None, dl.describe(field)):
        assert not any(isinstance(other, kind) for kind in (*kinds, storage.Storage))
    every: Any = storage.Storage
    for kind in (dl.Tensor, storage.SoftwareManagedGPUStorage, *kinds):
        assert issubclass(kind, every)
    assert not issubclass(np.ndarray, every)
    for kind in (*kinds, every):
        with pytest.raises(TypeError, match=r"storage\(\)"):
            kind((4, 3))


def test_a_storage_with_one_buffer_has_nothing_to_synchronize() -> None:
    field: Any = storage.storage(numbers(4, 3))
    for method in (field.host_to_device, field.device_to_host):
        method()
        method(force=True)
        with pytest.raises(TypeError):
            method(True)
        with pytest.raises(TypeError):
            method(force="yes")
    for method in (field.set_host_modified, field.set_device_modified, field.set_synchronized, field.synchronize):
        method()
    assert (field.to_ndarray() == numbers(4, 3)).all()


def test_data_is_the_memory() -> None:
    field: Any = storage.zeros((4, 3), layout=(1, 0))
    field.data[2, 1] = 7.0
    assert (field[2, 1], field.data.strides, field.data.flags.writeable) == (7.0, field.strides, True)
    assert (field.data.shape, field.device_data) == ((4, 3), None)
    assert not field.as_readonly().data.flags.writeable


def test_halos_of_views_and_of_later_copies() -> None:
    field: Any = dl.zeros((6, 6), dims="KI", origin=(2, 2), halo=(1, 1))
    view, seen, held = field[1:], dl.describe(field), field.halo
    field.halo = ((0, 2), 1)
    assert (view.halo, view.origin) == (((0, 1), (1, 1)), (1, 2))
    assert (seen.halo, seen.origin, held) == (((1, 1), (1, 1)), (2, 2), ((1, 1), (1, 1)))
    for made in (field.copy(), dl.from_dlpack(field), dl.zeros_like(field), copy.deepcopy(field), field[...]):
        assert (made.dims, made.halo, made.origin) == (("K", "I"), ((0, 2), (1, 1)), (0, 1))
    assert field.T.halo == ((1, 1), (0, 2))
    assert (dl.get_origin(field), field.__gt_origin__) == ((0, 1), (1, 0))
    with dl.Signature(x=dl.FieldSpec("f8", "IK")).bind(x=field) as fields:
        assert (fields.x.halo, fields.x.origin, fields.domain) == (((1, 1), (0, 2)), (1, 0), (4, 4))


def test_a_halo_dies_with_its_tensor() -> None:
    """Tensor objects are recycled."""
    for width in range(200):
        field = dl.zeros((9, 9))
        assert field.halo == ((0, 0), (0, 0))
        field.halo = (width % 4, 0)
        assert dl.describe(np.zeros((9, 9))).halo is None
        assert field.halo[0] == (width % 4, width % 4)


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
