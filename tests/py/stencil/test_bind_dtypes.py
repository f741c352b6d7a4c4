"""`FieldSpec` with several element types, or any."""

import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlfield as dl
from calls import copying, numbers, spec, view

NAMES = ["bool", "int8", "int64", "uint8", "float16", "float32", "float64", "complex64", "bfloat16"]
names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4)


def dtype_of(name: str) -> Any:
    return np.dtype(getattr(ml_dtypes, name, name))


@given(names, st.booleans())
def test_a_string_and_a_sequence_say_the_same(allowed: list[str], text: bool) -> None:
    found = spec(dtype=" | ".join(allowed) if text else tuple(dtype_of(name) for name in allowed))
    expected = tuple(dict.fromkeys(dtype_of(name) for name in allowed))
    assert found.dtypes == expected
    assert found.dtype == (expected[0] if len(expected) == 1 else None)
    assert repr(eval(repr(found), {"FieldSpec": dl.FieldSpec})) == repr(found)


@given(names, st.sampled_from(NAMES))
def test_an_argument_has_one_of_the_types(allowed: list[str], given_name: str) -> None:
    sig = dl.Signature(x=spec(dtype=allowed))
    array = np.zeros((3, 4), dtype_of(given_name))
    if given_name in allowed:
        assert sig.bind(x=array).x.dtype == array.dtype
    else:
        wanted = " or ".join(dict.fromkeys(allowed))
        with pytest.raises(dl.DTypeError) as caught:
            sig.bind(x=array)
        assert str(caught.value) == f'field "x": dtype: {given_name}; wanted is {wanted}'


def test_none_is_any_type() -> None:
    found = spec(dtype=None)
    assert (found.dtype, found.dtypes) == (None, ())
    assert repr(found) == "FieldSpec(None, ('I', 'J'))"
    for name in NAMES:
        assert dl.Signature(x=found).bind(x=np.zeros((3, 4), dtype_of(name))).x.dtype == dtype_of(name)


def test_numpys_other_tuples_keep_their_meaning() -> None:
    assert spec(dtype="|u1").dtype == np.dtype("uint8")
    assert spec(dtype=["f4"]).dtype == np.dtype("float32")
    with pytest.raises(dl.DTypeError, match="is a sub-array type"):
        spec(dtype=("f8", 3))
    with pytest.raises(dl.DTypeError, match="is a sub-array type"):
        spec(dtype=("f8", (3,)))
    with pytest.raises(dl.DTypeError, match=r"dtype: .*struct"):
        spec(dtype=[("a", "f8")])


@pytest.mark.parametrize(
    ("given_dtype", "message"),
    [
        ((), "dtype: an empty sequence; allowed is at least one element type, or None for any"),
        ("float32 | flaot64", "dtype: 'flaot64' is not an element type; did you mean"),
        ("float32 |", "dtype: 'float32 |' is not an element type"),
        (("float32", None), "dtype: None is not an element type"),
        (("float32", ">f8"), ">f8"),
    ],
)
def test_bad_types_are_named(given_dtype: Any, message: str) -> None:
    with pytest.raises(dl.DTypeError) as caught:
        spec(dtype=given_dtype)
    assert message in "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])


def test_another_type_is_copied_to_the_first() -> None:
    sig = copying(x=spec(dtype="float32 | float64", access="rw"))
    for name in ("float32", "float64"):
        assert sig.bind(x=numbers(name)).x.dtype == np.dtype(name), "not copied"
    array = numbers("float16")
    with warnings.catch_warnings(record=True), sig.bind(x=array) as fields:
        assert fields.x.dtype == np.dtype("float32")
        view(fields.x)[...] += 1
    assert (array == numbers() + 1).all()
    with pytest.raises(dl.DTypeError, match="complex64 cannot be cast to float32"):
        sig.bind(x=numbers("complex64"))


def test_a_copy_for_another_reason_keeps_the_arguments_type() -> None:
    sig = copying(x=spec(dtype="float32 | float64", layout=(1, 0)))
    with warnings.catch_warnings(record=True), sig.bind(x=numbers("float64")) as fields:
        assert (fields.x.dtype, fields.x.layout) == (np.dtype("float64"), (1, 0))


def test_alignment_in_elements_goes_by_the_arguments_type() -> None:
    found = spec(dtype="float32 | float64", backend="gtmc", layout=(0, 1))
    assert found.alignment_size is None
    assert spec(dtype="float32 | int32", backend="gtmc").alignment_size == 32
    assert spec(dtype=None, backend="jax").alignment_size == 64
    sig = dl.Signature(x=found)
    field = dl.zeros((4, 8), "float32", dims="IJ", alignment_size=64)[:, :]
    assert sig.bind(x=field).x.ptr == field.ptr
    block = dl.zeros((4, 16), "float32", dims="IJ", alignment_size=64)
    half = dl.zeros((4, 16), "float64", dims="IJ", alignment_size=64)
    assert sig.bind(x=block[:, 8:]).x.ptr == block.ptr + 32
    with pytest.raises(dl.LayoutError, match="multiple of 64 bytes"):
        sig.bind(x=half[:, 4:])
