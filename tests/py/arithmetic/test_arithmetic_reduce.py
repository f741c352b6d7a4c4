"""`ufunc.reduce` on tensors: axes by number and label, what is left, outputs that are repeated."""

from typing import Any

import pytest

import dlfield as dl
import oracle
from catalog import numbered
from untyped import np


@pytest.mark.parametrize(
    ("axis", "positions"),
    [
        (0, (0,)),
        (-1, (2,)),
        ((0, 2), (0, 2)),
        (None, (0, 1, 2)),
        ("I", (1,)),
        (("K", "J"), (0, 2)),
        (("I", -1), (1, 2)),
        ((), ()),
    ],
)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("ufunc", [np.add, np.maximum, np.logical_and])
def test_reduced_and_remaining_dimensions(axis: Any, positions: tuple[int, ...], keepdims: bool, ufunc: Any) -> None:
    field = numbered((2, 3, 4), "i4", dims="KIJ", layout=(1, 2, 0))
    found = ufunc.reduce(field, axis=axis, keepdims=keepdims)
    expected = np.asarray(ufunc.reduce(field.to_numpy(), axis=positions, keepdims=keepdims))
    assert isinstance(found, dl.Tensor)
    assert (found.dtype, found.shape, oracle.values(found)) == (expected.dtype, expected.shape, expected.tolist())
    left = [label for at, label in enumerate("KIJ") if keepdims or at not in positions]
    assert found.dims == tuple(left)
    order = sorted(left, key=lambda label: field.layout["KIJ".index(label)])
    assert found.layout == tuple(order.index(label) for label in left)


def test_margins_stay_in_the_dimensions_that_are_left() -> None:
    field = dl.zeros((6, 6), halo=((1, 2), (0, 1)), alignment_size=64)
    column = np.add.reduce(field, axis="J")
    assert (column.halo, column.origin, column.aligned_index, column.alignment_size) == (((1, 2),), (1,), (1,), 64)
    kept = np.add.reduce(field, axis="I", keepdims=True)
    assert (kept.halo, kept.origin) == (((0, 0), (0, 1)), (0, 0))
    assert (field - kept).halo == field.halo, "kept dimensions are repeated"


def test_initial_where_and_dtype() -> None:
    field = numbered((2, 3), "i2")
    mask = dl.zeros((3,), "?", dims="J")
    mask[0] = True
    assert oracle.values(np.add.reduce(field, axis="J", where=mask)) == [1, 4]
    assert oracle.values(np.add.reduce(field, axis="I", where=field.to_numpy() > 1, initial=10)) == [14, 17, 19]
    assert np.add.reduce(field, dtype="f4").dtype == np.float32
    assert np.maximum.reduce(field, axis=None, initial=100)[()] == 100
    with pytest.raises(ValueError, match="identity"):
        np.maximum.reduce(dl.zeros((0, 2)))
    with pytest.raises(dl.DimsError, match=r'the labels \(I, J\) only, got one with "K"'):
        np.add.reduce(field, where=dl.zeros((3,), "?", dims="K"))
    with pytest.raises(TypeError, match="unexpected keyword argument 'casting'"):
        np.add.reduce(field, casting="safe")


@pytest.mark.parametrize("axis", [2, "K", (0, "I"), 1.5, [0]], ids=repr)
def test_invalid_axes(axis: Any) -> None:
    with pytest.raises(dl.DimsError, match=r"^axis: "):
        np.add.reduce(dl.zeros((2, 3)), axis=axis)


def test_order_matters_to_some_ufuncs() -> None:
    field = numbered((2, 3))
    assert oracle.values(np.subtract.reduce(field, axis=1)) == [-4, -7]
    with pytest.raises(ValueError, match="reorderable"):
        np.subtract.reduce(field, axis=(0, 1))


def test_out() -> None:
    field = numbered((2, 3), dims="IJ")
    out = dl.zeros((2,), dims="I")
    assert np.add.reduce(field, axis="J", out=out) is out
    assert oracle.values(out) == [6, 15]
    array = np.zeros(3)
    assert np.add.reduce(field, axis=0, out=array) is array
    assert array.tolist() == [5, 7, 9]
    kept = dl.zeros((3, 1), dims="JI")
    np.add.reduce(field, axis="I", keepdims=True, out=kept)
    assert oracle.values(kept) == [[5], [7], [9]]
    with pytest.raises(dl.DimsError, match="out: expected dims with all of"):
        np.add.reduce(field, axis="J", out=dl.zeros((3,), dims="J"))
    with pytest.raises(dl.ExchangeError, match="read-only"):
        np.add.reduce(field, axis="J", out=out.as_readonly())


@pytest.mark.parametrize("shape", [(4, 3, 2), (1, 3, 2), (0, 3, 2)])
def test_out_of_more_dimensions_is_filled(shape: tuple[int, ...]) -> None:
    field = numbered((2, 3, 5), dims="IJ0")
    out = dl.full(shape, -1.0, dims="KJI")
    assert np.add.reduce(field, axis="0", out=out) is out
    assert out.to_numpy().tolist() == np.broadcast_to(field.to_numpy().sum(2).T, shape).tolist()


def test_out_may_be_a_part_of_the_input() -> None:
    field = numbered((3, 3), dims="IJ")
    expected = field.to_numpy().sum(1)
    np.add.reduce(field, axis="J", out=field)
    assert (field.to_numpy() == expected[:, None]).all()


def test_of_no_dimensions() -> None:
    number = numbered(())
    assert float(np.add.reduce(number)) == float(np.add.reduce(number, axis=None)) == 1.0
    out = dl.zeros((2,))
    np.add.reduce(5.0, axis=None, out=out)
    assert oracle.values(out) == [5, 5]


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "max", "nanmax", "nanmean", "median", "var", "std", "ptp"])
@pytest.mark.parametrize("kept", [False, True])
def test_functions_of_numpy_reduce_arrays_into_tensors(name: str, kept: bool) -> None:
    """`np.mean` goes on with what `np.add.reduce` returns."""
    array = np.arange(1.0, 13.0).reshape(3, 4)
    expected = getattr(np, name)(array, axis=0, keepdims=kept)
    out = dl.zeros(expected.shape, dims="KI"[-expected.ndim :])
    found = getattr(np, name)(array, axis=0, keepdims=kept, out=out)
    assert out.tolist() == np.asarray(found).tolist() == expected.tolist()
    np.median(numbered((3, 4)), axis=0, out=out, keepdims=kept)
    assert out.tolist() == np.median(numbered((3, 4)).to_numpy(), axis=0, keepdims=kept).tolist()


def test_other_arrays_into_tensors() -> None:
    out = dl.zeros((3,), dims="K")
    np.add.reduce(np.ones((2, 3)), out=out)
    assert oracle.values(out) == [2, 2, 2]
    with pytest.raises(ValueError, match="dimensions"):
        np.add.reduce(np.ones((2, 3)), axis=None, out=out)
    np.add.reduce(np.ones((2, 5, 3)), axis=(0, 1), out=out)
    assert oracle.values(out) == [10, 10, 10]
