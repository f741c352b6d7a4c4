"""`dl.pad`, `Tensor.fill_halo` and `dl.asarray`, compared with NumPy's functions of these names."""

from typing import Any

import numpy as np
import pytest
import xarray
from hypothesis import given
from hypothesis import strategies as st

import dlfield as dl

MODES = ["edge", "wrap", "constant"]


@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    mode=st.sampled_from(MODES),
    backend=st.sampled_from([None, "F", "gtmc"]),
    data=st.data(),
)
def test_modes_are_numpys(shape: list[int], mode: str, backend: str | None, data: st.DataObject) -> None:
    """Halos wider than the domain too."""
    widths = [data.draw(st.tuples(st.integers(0, 6), st.integers(0, 6))) for _ in shape]
    values = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    field = dl.pad(values, widths, mode, backend=backend)  # type: ignore[arg-type]
    expected = np.pad(values, widths, mode)  # type: ignore[call-overload]
    assert np.array_equal(np.asarray(field), expected)
    assert field.halo == tuple(widths)
    assert np.array_equal(field.domain_view, values)
    field.domain_view[...] = -values
    field.fill_halo(mode)  # type: ignore[arg-type]
    assert np.array_equal(np.asarray(field), -expected)


def test_pad_takes_labels_layout_and_keywords() -> None:
    data = dl.from_array(np.ones((3, 4), "f4"), dims="KI", layout=(1, 0))
    field = dl.pad(data, {"I": (1, 2)}, constant_values=7)
    assert (field.dims, field.layout, field.dtype) == (("K", "I"), (1, 0), np.dtype("f4"))
    assert (field.shape, field.halo, field.origin) == ((3, 7), ((0, 0), (1, 2)), (0, 1))
    assert field[0].tolist() == [7, 1, 1, 1, 1, 7, 7]
    again = dl.pad(field, 1, "empty", dtype="f8", backend="gt:cpu_kfirst", alignment_size=64)
    assert (again.shape, again.halo, again.strides[0]) == ((5, 9), ((1, 1), (1, 1)), 8)
    assert np.array_equal(again.domain_view, field)
    assert dl.pad([1, 2], (1,), "edge", dims=["lat"]).dims == ("lat",)
    assert dl.pad(data.domain_view, 1).device == "cpu"


UNKNOWN: Any = "reflect"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: dl.pad(np.ones(3), 1, UNKNOWN),
            ValueError,
            "mode: expected 'constant', 'edge' or 'wrap', got 'reflect'",
        ),
        (lambda: dl.pad(np.ones((0, 2)), 1, "wrap"), dl.LayoutError, "mode: 'wrap' needs a point to copy along I"),
        (lambda: dl.pad(np.ones(3), (1, 1)), dl.LayoutError, "halo: expected a number of points"),
        (lambda: dl.pad(np.ones(3), {"J": 1}), dl.DimsError, "halo: expected labels of I, got 'J'"),
        (lambda: dl.zeros(3).as_readonly().with_halo((1,)).fill_halo("edge"), ValueError, "read-only"),
        (lambda: dl.zeros(3).fill_halo(None), ValueError, "mode"),  # type: ignore[arg-type]
        (lambda: dl.zeros(3).rename("I"), TypeError, "labels: expected a mapping"),  # type: ignore[arg-type]
        (lambda: dl.zeros(3).rename(), TypeError, "labels: expected a mapping"),
        (lambda: dl.zeros(3).rename({"I": "K"}, I="K"), TypeError, "labels: expected a mapping or keywords, got both"),
        (lambda: dl.zeros(3).rename(J="K"), dl.DimsError, "labels: expected labels of I, got 'J'"),
        (lambda: dl.zeros(3).rename({"J": "K"}), dl.DimsError, "labels: expected labels of I, got 'J'"),
        (lambda: dl.zeros(3).with_dims("IJ"), dl.DimsError, "2 labels for 1"),
        (lambda: dl.zeros(3).with_halo((2,)), dl.LayoutError, "halo"),
        (lambda: dl.asarray([1.0], copy=False), dl.NotAnArrayError, "list"),
        (lambda: dl.asarray(np.ones(2), "f4", copy=False), dl.ExchangeError, "copy=False, got float64"),
        (lambda: dl.asarray(np.ones(2), like=dl.zeros((2, 2))), dl.DimsError, "like"),
        # Whether an array of another shape has the halo of a field, nobody knows.
        (lambda: dl.asarray(np.ones((2, 2)), like=dl.zeros((4, 4), halo=(1, 1))), dl.LayoutError, "like"),
        (lambda: dl.asarray([[1.0, 2.0], [3.0, 4.0]], like=dl.zeros((4, 4), halo=(1, 1))), dl.LayoutError, "like"),
        (lambda: dl.asarray("text"), (dl.DTypeError, dl.NotAnArrayError), "text|str"),
    ],
)
def test_errors(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_views_with_other_labels_leave_the_field_as_it_is() -> None:
    field = dl.zeros((4, 5), dims="x y", halo=(1, 0))
    view = field.rename({"x": "I"}).with_dims("JI").with_halo({"I": 1})
    assert (view.dims, view.halo, view.origin, view.ptr) == (("J", "I"), ((0, 0), (1, 1)), (0, 1), field.ptr)
    assert (field.dims, field.halo) == (("x", "y"), ((1, 1), (0, 0)))
    assert field.with_halo([0, 0]).domain_view.shape == (4, 5)
    assert field.rename({}).origin == field.origin
    assert field.rename(x="I").dims == field.rename({"x": "I"}).dims


ARRAYS: list[Any] = [3, [1, 2], [[1.0], [2.0]], (True, False), np.arange(3, dtype=">i4"), np.ones((2, 3), order="F")]


@pytest.mark.parametrize("obj", ARRAYS, ids=repr)
@pytest.mark.parametrize("dtype", [None, "float32", "int64"])
@pytest.mark.parametrize("copy", [None, True])
def test_asarray_has_numpys_values_and_types(obj: Any, dtype: Any, copy: bool | None) -> None:
    found, expected = dl.asarray(obj, dtype, copy=copy), np.array(obj, dtype, copy=copy)
    assert (found.shape, found.dtype.str[1:]) == (expected.shape, expected.dtype.str[1:])
    assert np.array_equal(np.asarray(found), expected)
    if isinstance(obj, np.ndarray) and obj.flags.f_contiguous and obj.dtype.isnative:
        assert found.strides == expected.strides
        assert (found.ptr == obj.ctypes.data) == (copy is None and dtype is None)


@pytest.mark.usefixtures("torch", "jax")
def test_asarray_shares_and_takes_labels_from_another_field() -> None:
    field = dl.ones((4, 5), dims="JI", halo=(1, (2, 0)))
    assert dl.asarray(field) is field
    assert dl.asarray(field, "float64").ptr == field.ptr
    for result in (dl.as_torch(field) * 2, dl.as_jax(field) * 2, np.asarray(field) * 2):
        found = dl.asarray(result, like=field)
        assert (found.dims, found.halo, found.origin) == (field.dims, field.halo, field.origin)
        assert found.ptr == dl.describe(result).ptr
    other = dl.asarray(field, like=dl.describe(field), dims="KI", halo=(0, 0), origin=(1, 1))
    assert (other.dims, other.halo, other.origin) == (("K", "I"), ((0, 0), (0, 0)), (1, 1))
    assert field.dims == ("J", "I")


def test_like_keeps_the_order_of_labels_that_the_object_states() -> None:
    field = dl.zeros((5, 5), dims="IJ", halo=((1, 0), (0, 2)))
    array = xarray.DataArray(np.arange(25.0).reshape(5, 5), dims=("J", "I"))
    for turned in (array, field.T):
        result = dl.asarray(turned, like=field)
        assert (result.dims, result.halo, result.origin) == (("J", "I"), ((0, 2), (1, 0)), (0, 1))
    for unlabelled in (array.values, dl.zeros((5, 5)), array.values.tolist()):
        assert dl.asarray(unlabelled, like=field.T).dims == ("J", "I")
    with pytest.raises(dl.DimsError, match=r"^like: expected one label for each dimension, got 2 labels for 3"):
        dl.asarray(np.zeros((1, 5, 5)), like=field)
