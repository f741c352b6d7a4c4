"""Arithmetic on random fields against a naive oracle: dictionaries from labelled points to numbers."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlfield as dl
import oracle
from labelled_fields import BINARY, SIZES, fields
from untyped import np


def points(sizes: dict[str, int]) -> Iterator[dict[str, int]]:
    """Every point of the labelled sizes."""
    for index in itertools.product(*(range(extent) for extent in sizes.values())):
        yield dict(zip(sizes, index, strict=True))


def at(field: dl.Tensor, point: dict[str, int]) -> Any:
    """The element of a field at a point, which may have more labels; a size of 1 has one element for all points."""
    found = field.to_numpy()
    return found[
        tuple(0 if extent == 1 else point[label] for label, extent in zip(field.dims, field.shape, strict=True))
    ]


def plain(field: dl.Tensor) -> dl.Tensor:
    """The field without dimensions of size 1, which xarray does not broadcast."""
    return field[(..., *(0 if extent == 1 else slice(None) for extent in field.shape))]  # type: ignore[no-any-return]


def operand(field: dl.Tensor, point: dict[str, int]) -> Any:
    """The element at a point as an array, 0-d only for a 0-d field."""
    return np.full((1,) if field.ndim else (), at(field, point), field.dtype)


def joined(*inputs: dl.Tensor) -> dict[str, int]:
    """The labels of all fields with their largest sizes."""
    sizes: dict[str, int] = {}
    for field in inputs:
        for label, extent in zip(field.dims, field.shape, strict=True):
            sizes[label] = max(sizes.get(label, 1), extent)
    return sizes


@given(fields(), fields(), st.sampled_from(BINARY))
def test_two_fields(a: dl.Tensor, b: dl.Tensor, ufunc: Any) -> None:
    found, sizes = ufunc(a, b), joined(a, b)
    assert dict(zip(found.dims, found.shape, strict=True)) == sizes
    for point in points(sizes):
        with np.errstate(all="ignore"):
            expected = ufunc(operand(a, point), operand(b, point))
        assert found.dtype == expected.dtype
        assert at(found, point) == expected
    assert all(bytes_ % field.alignment_size == 0 for field in (a, b) for bytes_ in [found.alignment_size])
    assert oracle.is_ordered_by(found.layout, found.strides) or 1 in found.shape


@given(fields(("f8",)), fields(("f8",)), fields(("?",)), st.permutations(sorted(SIZES)))
def test_out_and_where(a: dl.Tensor, b: dl.Tensor, mask: dl.Tensor, order: list[str]) -> None:
    out = dl.full([SIZES[label] for label in order], -1.0, dims=order)
    assert np.subtract(a, b, out=out, where=mask) is out
    for point in points(dict(zip(order, out.shape, strict=True))):
        assert at(out, point) == (at(a, point) - at(b, point) if at(mask, point) else -1.0)


@given(fields(("f8", "i4")), st.data(), st.booleans(), st.sampled_from([np.add, np.minimum]))
def test_reductions(field: dl.Tensor, data: st.DataObject, keepdims: bool, ufunc: Any) -> None:
    gone = data.draw(st.lists(st.sampled_from(field.dims), unique=True) if field.dims else st.just([]))
    found = ufunc.reduce(field, axis=tuple(gone), keepdims=keepdims)
    left = {label: extent for label, extent in zip(field.dims, field.shape, strict=True) if label not in gone}
    rest = {label: extent for label, extent in zip(field.dims, field.shape, strict=True) if label in gone}
    assert found.dims == (field.dims if keepdims else tuple(left))
    for point in points(left):
        values = [at(field, point | other) for other in points(rest)]
        assert at(found, point | dict.fromkeys(gone, 0)) == ufunc.reduce(values)


@given(fields(("f8",)), st.permutations(sorted(SIZES)), st.booleans())
def test_assignment(field: dl.Tensor, order: list[str], operator: bool) -> None:
    target = dl.full([SIZES[label] for label in order], 5.0, dims=order)
    if operator:
        target += field
    else:
        target[...] = field
    for point in points(dict(zip(order, target.shape, strict=True))):
        assert at(target, point) == at(field, point) + (5.0 if operator else 0.0)


@given(fields(("f8", "i4")), fields(("f8", "f4")))
def test_as_xarray_has_it(a: dl.Tensor, b: dl.Tensor) -> None:
    xarray = pytest.importorskip("xarray")
    a, b = plain(a), plain(b)
    outer = [xarray.DataArray(field.to_numpy(), dims=field.dims) for field in (a, b)]
    expected, found = outer[0] * outer[1], a * b
    if a.ndim and b.ndim:
        assert found.dtype == expected.dtype
    assert found.to_numpy().tolist() == expected.transpose(*found.dims).values.tolist()
