"""Views against NumPy's: indexing, transposition, the domain; their labels, origin, halo and alignment."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlfield as dl
import oracle

SHAPES = st.lists(st.integers(0, 5), min_size=0, max_size=4).map(tuple)


def filled(shape: tuple[int, ...], **keywords: Any) -> dl.Tensor:
    field = dl.zeros(shape, "i4", **keywords)
    field[...] = np.arange(field.size).reshape(shape)
    return field


@st.composite
def slices(draw: st.DrawFn, extent: int) -> slice:
    bound = st.none() | st.integers(-extent - 2, extent + 2)
    step = draw(st.sampled_from([None, 1, 1, 2, 3, -1, -2]))
    return slice(draw(bound), draw(bound), step)


@st.composite
def basic_indices(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """A legal basic index of `shape`, with at most one ellipsis, anywhere."""
    count = draw(st.integers(0, len(shape)))
    front = draw(st.integers(0, count)) if draw(st.booleans()) else None
    axes = list(range(count)) if front is None else [*range(front), *range(len(shape) - (count - front), len(shape))]
    index: list[Any] = []
    for axis in axes:
        choices: list[st.SearchStrategy[Any]] = [slices(shape[axis])]
        if shape[axis]:
            choices.append(st.integers(-shape[axis], shape[axis] - 1))
        index.append(draw(st.one_of(choices)))
    if front is not None:
        index.insert(front, ...)
    return tuple(index)


@given(st.data(), SHAPES)
def test_basic_indexing_is_numpys(data: st.DataObject, shape: tuple[int, ...]) -> None:
    field = filled(shape, layout=tuple(data.draw(st.permutations(range(len(shape))))))
    index = data.draw(basic_indices(shape))
    whole = field.to_numpy().copy("K")
    expected = whole[index]
    found = field[index]
    assert isinstance(found, dl.Tensor) == isinstance(expected, np.ndarray)
    if isinstance(found, dl.Tensor):
        assert (found.shape, found.dtype) == (expected.shape, field.dtype)
        assert found.to_numpy().tolist() == expected.tolist()
        is_contiguous = [found.is_contiguous(order) for order in ("C", "F", "A")]
        assert is_contiguous == [expected.flags.c_contiguous, expected.flags.f_contiguous, expected.flags.forc]
        if found.size:
            assert found.ptr == field.ptr + oracle.offset(field.strides, first_index(shape, index))
    else:
        assert type(found) is np.int32
        assert found == expected
    field[index] = -5
    whole[index] = -5
    assert field.to_numpy().tolist() == whole.tolist()


def first_index(shape: tuple[int, ...], index: tuple[Any, ...]) -> list[int]:
    """The index, in the whole array, of the first element that `index` selects."""
    grids = np.indices(shape)
    return [int(np.asarray(grid[index]).flat[0]) for grid in grids]


@given(st.data(), SHAPES, st.sampled_from(["numpy", "gtmc"]), st.permutations("IJK0x"))
def test_labels_halo_and_origin_follow_the_index(
    data: st.DataObject, shape: tuple[int, ...], preset: str, labels: list[str]
) -> None:
    lower = [data.draw(st.integers(0, extent)) for extent in shape]
    halo = [(low, data.draw(st.integers(0, extent - low))) for low, extent in zip(lower, shape, strict=True)]
    origin = [data.draw(st.integers(0, extent)) for extent in shape]
    field = dl.zeros(shape, "i4", backend=preset, dims=labels[: len(shape)], halo=halo, origin=origin)
    index = data.draw(basic_indices(shape))
    found = field[index]
    if not isinstance(found, dl.Tensor):
        return
    whole = complete(index, len(shape))
    kept = [axis for axis, part in enumerate(whole) if isinstance(part, slice)]
    assert found.dims == tuple(labels[axis] for axis in kept)
    for axis, at in zip(kept, range(found.ndim), strict=True):
        start, _, step = whole[axis].indices(shape[axis])
        length = found.shape[at]
        if abs(step) != 1:
            assert (found.origin[at], found.halo[at]) == (0, (0, 0))
            continue
        start = start if step == 1 else start - length + 1
        low = min(max(halo[axis][0] - start, 0), length)
        high = min(max(halo[axis][1] - (shape[axis] - start - length), 0), length - low)
        first = min(max(origin[axis] - start, 0), length)
        if step == -1:
            low, high, first = high, low, min(max(first - low + high, 0), length)
        assert (found.halo[at], found.origin[at]) == ((low, high), first)


def complete(index: tuple[Any, ...], ndim: int) -> list[Any]:
    """`index` with an explicit part for every dimension."""
    parts = list(index) if ... in index else [*index, ...]
    at = parts.index(...)
    parts[at : at + 1] = [slice(None)] * (ndim - len(parts) + 1)
    return parts


@given(st.data(), SHAPES, st.sampled_from([8, 64, 256]))
def test_views_have_a_true_alignment(data: st.DataObject, shape: tuple[int, ...], size: int) -> None:
    aligned = [data.draw(st.integers(0, max(extent - 1, 0))) for extent in shape]
    field = dl.zeros(shape, "i4", alignment_size=size, aligned_index=aligned)
    found = field[data.draw(basic_indices(shape))]
    if isinstance(found, dl.Tensor) and found.size:
        assert oracle.aligned_address(found) % found.alignment_size == 0
        assert len(found.aligned_index) == found.ndim
        assert found.ptr % found.alignment() == 0


def test_alignment_is_that_of_the_pointer() -> None:
    field = dl.zeros(64, "f8", alignment_size=4096)
    assert field.alignment() >= 4096
    assert [field[offset:].alignment() for offset in (1, 2, 4, 8, 16)] == [8, 16, 32, 64, 128]


def test_full_index_gives_a_numpy_scalar() -> None:
    field = filled((2, 3))
    assert type(field[1, 2]) is np.int32
    assert type(dl.ones(3, "bfloat16")[0]).__name__ == "bfloat16"
    assert type(dl.full((), 2.5)[()]) is np.float64
    assert isinstance(field[1, 2, ...], dl.Tensor)
    assert (field[1, 2, ...].shape, field[1, 2, ...].dims) == ((), ())


@st.composite
def cuts(draw: st.DrawFn, count: int) -> slice:
    """A slice of an extent of 20 with `count` elements, any step, in either direction."""
    step = draw(st.integers(1, 3))
    first = draw(st.integers(0, 19 - (count - 1) * step))
    last = first + (count - 1) * step
    if draw(st.booleans()):
        return slice(first, last + 1, step)
    return slice(last, first - 1 if first else None, -step)


@given(st.data(), st.integers(1, 6), st.booleans())
def test_setitem_from_a_view_of_the_same_field(data: st.DataObject, extent: int, turned: bool) -> None:
    """Source and target may overlap or interleave; the result is as with separate memory."""
    field = filled((20, 20), backend="gt:cpu_ifirst")
    expected = field.to_numpy().copy()
    to, source = (data.draw(st.tuples(cuts(extent), cuts(extent))) for _ in range(2))
    # A plain array, because labels would undo the transposition.
    field[to] = field[source].T.to_numpy() if turned else field[source]
    copied = expected[source].copy()
    expected[to] = copied.T if turned else copied
    assert field.to_numpy().tolist() == expected.tolist()


@given(st.permutations(range(4)))
def test_transpose_by_axes_is_numpys(axes: list[int]) -> None:
    field = filled((2, 3, 4, 5), backend="gt:cpu_ifirst", halo=(0, 1, 1, 2))
    for view in (field.transpose(*axes), field.transpose(axes)):
        expected = field.to_numpy().transpose(axes)
        assert view.to_numpy().tolist() == expected.tolist()
        assert view.strides == expected.strides
        for name in ("dims", "halo", "origin", "aligned_index", "layout"):
            assert getattr(view, name) == tuple(getattr(field, name)[axis] for axis in axes), name
        assert view.ptr == field.ptr


@pytest.mark.parametrize("turn", [lambda field: field[:, ::-1], lambda field: np.flip(field, 1)])
def test_a_step_of_minus_one_turns_halo_and_origin_round(turn: Any) -> None:
    field = dl.from_array(np.arange(12.0).reshape(2, 6), halo=(0, (1, 2)), alignment_size=64)
    turned = turn(field)
    assert (turned.halo, turned.origin, turned.aligned_index) == (((0, 0), (2, 1)), (0, 2), (0, 4))
    assert turned.domain_view.tolist() == [[3, 2, 1], [9, 8, 7]]
    again = turn(turned)
    for name in ("ptr", "strides", "halo", "origin", "aligned_index", "alignment_size"):
        assert getattr(again, name) == getattr(field, name), name
    assert (field + again).halo == field.halo
    with pytest.raises(dl.LayoutError, match="halo"):
        field + turned


def test_domain_view_is_without_halo() -> None:
    field = filled((5, 6), halo=((1, 2), (0, 3)), alignment_size=64)
    view = field.domain_view
    assert view.to_numpy().tolist() == field.to_numpy()[1:3, 0:3].tolist()
    assert (view.halo, view.origin, view.aligned_index) == (((0, 0), (0, 0)), (0, 0), (0, 0))
    assert view.ptr == field.ptr + field.strides[0]
    view[...] = -1
    assert field[1, 0] == -1
    assert field[0, 0] == 0
    assert dl.zeros((2, 2), halo=(1, 1)).domain_view.shape == (0, 0)


def test_operators_in_place_write_to_views_that_are_attributes() -> None:
    field = dl.ones((5,), halo=(1,))
    field.domain_view += 1
    field.domain_view *= 2
    assert field.tolist() == [1, 4, 4, 4, 1]
    table = dl.from_array([[1.0, 2.0], [3.0, 4.0]])
    table.T += dl.from_array([10.0, 20.0], dims="J")
    assert table.tolist() == [[11, 22], [13, 24]]
    padded = dl.zeros((2, 3), alignment_size=64)
    padded.block += 1
    assert padded.sum() == 6
    relabelled = dl.from_dlpack(field.domain_view, dims="J")
    for other in (field.copy().domain_view, field, field[2:], table, 3.0, field.domain_view.to_numpy(), relabelled):
        with pytest.raises(AttributeError, match="not writable"):
            field.domain_view = other  # type: ignore[assignment]
    assert field.tolist() == [1, 4, 4, 4, 1]


def test_views_of_readonly_memory() -> None:
    field = filled((3, 4))
    readonly = field.as_readonly()
    for view in (readonly[1:], readonly.T, readonly.domain_view, readonly.as_readonly()):
        assert view.readonly
        assert not view.to_numpy().flags.writeable
    for index in (0, slice(None), ..., [0]):
        with pytest.raises(dl.ExchangeError, match=r"(?i)read.?only"):
            readonly[index] = 1
    field[0, 0] = 9
    assert (readonly[0, 0], readonly.ptr, field.readonly) == (9, field.ptr, False)


def test_iteration_and_length() -> None:
    assert list(filled((3,))) == [0, 1, 2]
    assert len(filled((2, 3))) == 2


class Point(NamedTuple):
    """A subclass of tuple."""

    i: Any
    j: Any


def test_tuples_of_any_kind_are_basic_indices() -> None:
    field = dl.zeros((3, 4))
    field[Point(1, 2)] = 5.0
    assert field[1, 2] == field[Point(1, np.int64(-2))] == 5.0
    assert isinstance(field[Point(slice(0, 2), slice(None))], dl.Tensor)
    assert field[Point([0, 1], None)].shape == (2, 1, 4)


TRANSPOSED: list[tuple[tuple[Any, ...], tuple[str, ...]]] = [
    ((), ("J", "I", "K")),
    ((None,), ("J", "I", "K")),
    (("I", "J", "K"), ("I", "J", "K")),
    (("IJK",), ("I", "J", "K")),
    (("J K I",), ("J", "K", "I")),
    ((("I", "J", "K"),), ("I", "J", "K")),
    ((-1, 0, 1), ("J", "K", "I")),
    ((np.array([1, 0, 2]),), ("I", "K", "J")),
]


@pytest.mark.parametrize(("axes", "dims"), TRANSPOSED)
def test_transpose_takes_labels_and_what_numpy_takes(axes: tuple[Any, ...], dims: tuple[str, ...]) -> None:
    view = dl.zeros((2, 3, 4), dims="KIJ").transpose(*axes)
    assert (view.dims, view.shape) == (dims, tuple({"K": 2, "I": 3, "J": 4}[label] for label in dims))


def test_transpose_without_axes() -> None:
    assert dl.zeros((2, 3), dims="KI").T.dims == ("I", "K")
    assert dl.zeros(()).transpose(()).shape == ()
    for wrong in ((), (2**70, 0), (0, 0.5)):
        with pytest.raises(dl.DimsError, match="axes"):
            dl.zeros((2, 3)).transpose(wrong)


def test_views_align_an_index_of_theirs() -> None:
    field = dl.zeros((8, 9), alignment_size=64, aligned_index=(3, 5))
    inside, outside = field[2:, 1:], field[:2, 6:]
    assert (inside.aligned_index, inside.alignment_size) == ((1, 4), 64)
    assert outside.aligned_index == (0, 0)
    assert outside.ptr % outside.alignment_size == 0
    for view in (inside, outside):
        copy: Any = view.copy()
        assert copy.aligned_index == dl.zeros_like(view).aligned_index == view.aligned_index
