"""Fields whose `FieldSpec` leaves dims out: any number of dimensions, in the argument's own order."""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlfield as dl
from calls import copying, dataarray, spec, view

ANY = dl.FieldSpec("float64")


def test_dims_may_be_left_out() -> None:
    assert ANY.dims is None
    assert repr(ANY) == "FieldSpec('float64')"
    text = "FieldSpec('float64', access='w', layout=(1, 0), shape=(None, 5))"
    assert repr(eval(text, {"FieldSpec": dl.FieldSpec})) == text


@given(st.lists(st.integers(0, 3), max_size=5), st.data())
def test_a_field_of_any_rank_is_taken_in_its_own_order(shape: list[int], data: st.DataObject) -> None:
    array = np.zeros(shape).transpose(data.draw(st.permutations(range(len(shape)))))
    found = dl.Signature(x=ANY).bind(x=array).x
    assert (found.shape, found.strides, found.ptr) == (array.shape, array.strides, array.ctypes.data)
    assert (found.dims, found.origin) == (None, (0,) * len(shape))


@given(st.permutations("IJK0"), st.integers(0, 4))
def test_labels_do_not_reorder_such_a_field(labels: list[str], ndim: int) -> None:
    dims = tuple(labels[:ndim])
    field = dl.zeros((2, 3, 4, 5)[:ndim], dims=dims, halo=((1, 0),) * ndim)
    found = dl.Signature(x=ANY).bind(x=field).x
    assert (found.dims, found.shape, found.strides) == (dims, field.shape, field.strides)
    assert found.origin == (1,) * ndim


def test_such_a_field_bounds_the_domain_only_by_labels_of_its_own() -> None:
    sig = dl.Signature(x=dl.FieldSpec("float64", "IJK"), y=ANY)
    field = np.zeros((5, 6, 7))
    assert sig.bind(x=field, y=np.zeros((1, 2))).domain == (5, 6, 7)
    assert sig.bind(x=field, y=dataarray(np.zeros((2, 4)), "KJ")).domain == (5, 4, 2)


def test_a_layout_or_a_shape_fixes_the_number_of_dimensions() -> None:
    wrong = np.zeros((2, 3, 4))
    for keywords in ({"layout": (1, 0)}, {"shape": (None, 4)}):
        sig = dl.Signature(x=spec(None, **keywords))
        sig.bind(x=np.zeros((3, 4), order="F"))
        with pytest.raises(dl.LayoutError, match=r'^field "x": ndim: 3 dimensions of shape \[2, 3, 4\]; wanted are 2$'):
            sig.bind(x=wrong)
    with pytest.raises(dl.LayoutError, match="layout: 2 entries for 3 dimensions"):
        spec(None, layout=(1, 0), shape=(None, None, 3))


def test_an_extent_without_a_label_is_named_by_its_axis() -> None:
    sig = dl.Signature(x=spec(None, shape=(None, 5)))
    with pytest.raises(dl.LayoutError, match=r'^field "x": shape: 4 points in axis 1; wanted are 5$'):
        sig.bind(x=np.zeros((3, 4)))
    with pytest.raises(dl.LayoutError, match=r'"x": shape: 4 points in dimension "I"; wanted are 5$'):
        sig.bind(x=dl.zeros((3, 4), dims="KI"))


def test_a_slow_layout_without_labels_is_a_warning() -> None:
    sig = dl.Signature(x=spec(None, layout=(1, 0)))
    with pytest.warns(dl.LayoutWarning, match=r'^field "x": layout: \[0, 1\]; wanted is \[1, 0\]; this is slow$'):
        sig.bind(x=np.zeros((3, 4)))


@pytest.mark.parametrize("dims", [None, "KI"])
def test_a_copy_keeps_the_arguments_labels(dims: Any) -> None:
    sig = copying(x=spec(None, access="rw"))
    array = np.arange(6.0, dtype="float32").reshape(2, 3)
    field: Any = array if dims is None else dl.from_array(array, dims=dims)
    with warnings.catch_warnings(record=True), sig.bind(x=field) as fields:
        assert (fields.x.dims, fields.x.dtype) == (None if dims is None else tuple(dims), np.dtype("float64"))
        view(fields.x)[...] += 1
    assert (np.asarray(field) == np.arange(6.0).reshape(2, 3) + 1).all()
