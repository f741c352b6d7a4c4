"""Views by run-time type, slices, specs of new fields, and arrays that a Rust extension keeps."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from catalog import NUMPY_CODES, dtype_named
from fakes import FakeTensor
from fakes_interfaces import cuda

rx = pytest.importorskip("rust_extension")
views = rx.kinds_views

FLOATS = ("float32", "float64")
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@pytest.mark.parametrize("name", [*NUMPY_CODES, "bfloat16"])
def test_a_dispatch_takes_the_types_of_its_set(name: str) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype_named(name))[:, ::-1]
    for call, allowed in (
        (views.sum_floats, FLOATS),
        (views.sum_ints, INTS),
        (views.sum_listed, ("float32", "int16", "uint8")),
    ):
        if name in allowed:
            assert call(array) == 15
        else:
            with pytest.raises(
                dl.DTypeError, match=f'^argument "numbers": dtype: expected {" or ".join(allowed)}, got {name}$'
            ):
                call(array)
    views.clear(array)
    assert (array == np.zeros(())).all()


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (0, 3)])
def test_a_view_has_the_rank_found_at_run_time(shape: tuple[int, ...]) -> None:
    assert views.sum_by_rank(np.ones(shape)) == np.ones(shape).sum()


def test_the_error_of_a_view_names_the_argument() -> None:
    with pytest.raises(
        dl.LayoutError, match=r'^argument "numbers": ndim: expected 2 dimensions, got 3 of shape .2, 3, 4.'
    ):
        views.sum_by_rank(np.ones((2, 3, 4)))
    out = np.zeros((2, 3), "i4")
    views.fill_int32_matrix(out[::-1, ::2], 7)
    assert out.tolist() == [[7, 0, 7]] * 2
    wrong: list[tuple[type[Exception], str, Any]] = [
        (dl.DTypeError, "dtype: .* got int64", np.zeros((2, 3), "i8")),
        (dl.LayoutError, "ndim: .* got 1 ", np.zeros(2, "i4")),
        (dl.DeviceError, "device: .* got memory on cuda:0", cuda(shape=(2, 2), typestr="<i4")),
    ]
    for error, said, array in wrong:
        with pytest.raises(error, match=f'^argument "out": {said}'):
            views.fill_int32_matrix(array, 1)


def test_bools_are_checked_before_a_view() -> None:
    flags = np.array([0, 1, 2], "u1").view("?")
    with pytest.raises(dl.DTypeError, match="bool with the byte 2"):
        views.fill_bools(flags)
    views.fill_bools(flags[:2])
    assert flags.view("u1").tolist() == [1, 1, 2]


def test_an_array_of_any_elements_is_written_by_the_rules_of_others() -> None:
    readonly = np.zeros((2, 2), "i4")
    readonly.flags.writeable = False
    for out, message in (
        (readonly, "read-only"),
        (np.lib.stride_tricks.as_strided(np.zeros(4, "i4"), (2, 3), (0, 4)), "elements may share memory"),
    ):
        with pytest.raises(TypeError, match=message) as caught:
            views.fill_int32_matrix(out, 1)
        assert caught.value.__notes__ == ["while processing 'out'"]


def test_contiguous_arrays_are_slices() -> None:
    array = np.arange(6.0).reshape(2, 3)
    assert views.listed(array) == list(range(6))
    assert views.listed(array[:, :1].copy()) == [0.0, 3.0]
    for empty in (np.zeros((0, 3)), np.zeros((2, 0)), dl.zeros((0, 3))):
        assert views.listed(empty) == []
    with pytest.raises(TypeError, match="elements in C order"):
        views.listed(array.T)
    assert views.listed_or_copied(array.T) == [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]
    numbers = np.array([[3.0, 1.0], [2.0, 0.0]])
    assert views.sort(numbers) == 4
    assert numbers.tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert views.sort(np.array(1.0)) == 1
    assert views.sort(np.zeros((3, 0))) == 0


@pytest.mark.parametrize("like", [views.like, views.like_out])
def test_a_new_field_is_like_the_argument(like: Callable[[Any], dl.Tensor]) -> None:
    field = dl.zeros((4, 5, 6), "f4", dims="KIJ", halo=(0, 1, 2), backend="gt:cpu_ifirst", origin=(0, 1, 2))
    new = like(field)
    assert (new.shape, new.dtype, new.layout) == (field.shape, field.dtype, field.layout)
    assert (new.dims, new.halo, new.origin) == (field.dims, field.halo, field.origin)
    assert new.ptr != field.ptr
    assert like(np.zeros((3, 4), "i2", order="F")).strides == (2, 6)
    # Gaps are not part of the order.
    assert like(np.zeros((6, 4), "i2")[::-2]).strides == (8, 2)


def test_bound_fields_have_views_in_the_signatures_order() -> None:
    inp = dl.from_array(np.arange(6.0).reshape(3, 2), dims="JI")
    out = np.zeros((2, 3))
    views.bound_copy(inp, out)
    assert out.tolist() == inp.to_numpy().T.tolist()
    with pytest.raises(dl.DimsError, match=r'field "out": dims: .* got 1 dimension without labels'):
        views.bound_copy(inp, out[0])


SOURCES: list[Callable[[], Any]] = [
    lambda: np.arange(3.0),
    lambda: np.arange(6.0)[::-2],
    lambda: pytest.importorskip("torch").arange(3.0),
    lambda: dl.from_array(np.arange(3.0)),
    lambda: dl.from_array(np.arange(3.0)).__dlpack__(max_version=(1, 3)),
    lambda: np.arange(3.0).data,
]


@pytest.mark.parametrize("source", SOURCES)
def test_a_kept_array_shares_the_memory(source: Callable[[], Any]) -> None:
    array = source()
    address = None if type(array).__name__ == "PyCapsule" else dl.describe(array).ptr
    expected = None if address is None else dl.as_numpy(array).tolist()
    kept = views.kept(array)
    assert type(kept) is dl.Tensor
    if address is not None:
        assert (kept.ptr, kept.to_numpy().tolist()) == (address, expected)
    del array
    gc.collect()
    assert kept.to_numpy().shape == (3,)


def test_a_kept_array_has_labels_and_stays_read_only() -> None:
    field = dl.zeros((4, 5), dims="KI", halo=((1, 0), (0, 2)), origin=(2, 1))
    assert views.labels_of_kept(field) == ("K, I", [2, 1], [(1, 0), (0, 2)])
    assert views.kept(field.as_readonly()).readonly
    readonly = np.zeros(3)
    readonly.flags.writeable = False
    assert views.kept(readonly).readonly


def test_a_kept_tensor_has_the_layout_and_alignment_of_its_allocation() -> None:
    aligned = dl.zeros((4, 5), alignment_size=256, aligned_index=(1, 2))
    for field, is_padded in [
        (aligned, True),
        (dl.zeros((4, 5), alignment_size=128, halo=(1, 2)), True),
        (dl.zeros((4, 1), layout=(1, 0)), False),
        (dl.zeros((3, 5), backend="gt:cpu_ifirst"), False),
    ]:
        promise = (bytes(field.layout), is_padded, field.alignment_size, list(field.aligned_index))
        assert views.promise_of_kept(field) == views.promise_of_kept(field.as_readonly()) == promise
    assert views.promise_of_kept(np.zeros((2, 3))) == (bytes([0, 1]), False, 1, [0, 0])
    # A view of rows that the allocation did not align.
    assert views.promise_of_kept(aligned[1:])[2] == aligned[1:].alignment_size


def test_a_kept_array_is_alive_as_long_as_the_tensor() -> None:
    fake = FakeTensor(np.arange(3.0))
    kept = views.kept(fake.capsule())
    gc.collect()
    assert fake.deleted == 0
    del kept
    gc.collect()
    assert fake.deleted == 1
    with pytest.raises(TypeError, match="expected an array, got") as caught:
        views.kept([1.0])
    assert caught.value.__notes__ == ["while processing 'x'"]


def test_safe_functions_do_not_read_a_kept_array() -> None:
    # Python may write to it at any time.
    *reads, writes = views.read_kept(np.zeros(3))
    assert len(reads) == 4
    assert all("got memory that was exported, or comes from Python" in error for error in reads)
    assert "got memory that is not this crate's" in writes


def test_memory_with_a_guard_is_not_exported() -> None:
    error, field = views.export_guarded()
    assert "ExchangeError: owner: expected memory without guards" in error
    assert field.to_numpy().tolist() == [1.0, 2.0]


def test_a_class_borrows_what_it_keeps() -> None:
    array = np.array([1.0, 2.0, 3.0])
    weights = views.Weights(array)
    assert weights.weighted_sums(a=np.ones(3), b="text", c=array) == [6.0, 14.0]
    weights.scale_itself(2.0)
    assert array.tolist() == [2.0, 4.0, 6.0]
    with pytest.raises(TypeError, match="dtype: expected float64, got float32"):
        views.Weights(np.ones(3, "f4"))


def test_a_kept_array_is_not_borrowed_beside_a_writer() -> None:
    array, out = np.array([1.0, 2.0, 3.0]), np.full(3, 10.0)
    weights = rx.Weights(array)
    weights.apply(out)
    assert out.tolist() == [10.0, 20.0, 30.0]
    for same in (array, array[::-1], array[1:]):
        with pytest.raises(TypeError, match=r"^overlap: this array would be read"):
            weights.apply(same)
    assert array.tolist() == [1.0, 2.0, 3.0]


def test_a_class_keeps_its_array_alive() -> None:
    class Array(np.ndarray[Any, Any]):
        pass

    array = np.ones(3).view(Array)
    gone = weakref.ref(array)
    weights = views.Weights(array)
    del array
    assert weights.weighted_sums(a=np.ones(3)) == [3.0]
    del weights
    gc.collect()
    assert gone() is None
