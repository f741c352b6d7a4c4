"""`FieldSpec` and arguments: several element types, dims left out, and layout and alignment of a preset."""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlfield as dl
from calls import copying, dataarray, misaligned, numbers, spec, view
from catalog import dtype_named

NAMES = ["bool", "int8", "int64", "uint8", "float16", "float32", "float64", "complex64", "bfloat16"]
names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4)


def same_text(found: dl.FieldSpec) -> bool:
    """Whether `repr` evaluates to a specification with this `repr`."""
    return repr(eval(repr(found), {"FieldSpec": dl.FieldSpec})) == repr(found)


@given(names, st.booleans())
def test_a_string_and_a_sequence_say_the_same(accepted: list[str], text: bool) -> None:
    found = spec(dtype=" | ".join(accepted) if text else tuple(dtype_named(name) for name in accepted))
    expected = tuple(dict.fromkeys(dtype_named(name) for name in accepted))
    assert found.dtypes == expected
    assert found.dtype == (expected[0] if len(expected) == 1 else None)
    assert same_text(found)


@given(names | st.none(), st.sampled_from(NAMES))
def test_an_argument_has_one_of_the_types(accepted: list[str] | None, given_name: str) -> None:
    """None is any type."""
    assert accepted is not None or spec(dtype=None).dtypes == ()
    sig = dl.Signature(x=spec(dtype=accepted))
    array = np.zeros((3, 4), dtype_named(given_name))
    if accepted is None or given_name in accepted:
        assert sig.bind(x=array).x.dtype == array.dtype
    else:
        right = " or ".join(dict.fromkeys(accepted))
        with pytest.raises(dl.DTypeError, match=rf'^field "x": dtype: expected {right}, got {given_name}$'):
            sig.bind(x=array)


@pytest.mark.parametrize(
    ("dtype", "message"),
    [
        (("f8", 3), "expected a type of one element"),
        (("f8", (3,)), "expected a type of one element"),
        ([("a", "f8")], "dtype: .*struct"),
        ((), "dtype: .* got an empty sequence"),
        ("float32 | flaot64", "got 'flaot64'; did you mean"),
        ("float32 |", r"expected an element type, .* got 'float32 \|'"),
        (("float32", None), "dtype: expected an element type, .* got None"),
        (("float32", ">f8"), ">f8"),
    ],
)
def test_bad_types_are_named(dtype: Any, message: str) -> None:
    with pytest.raises(dl.DTypeError, match=message):
        spec(dtype=dtype)


def test_numpys_other_sequences_keep_their_meaning() -> None:
    assert spec(dtype="|u1").dtype == np.dtype("uint8")
    assert spec(dtype=["f4"]).dtype == np.dtype("float32")


def test_another_type_is_copied_to_the_first() -> None:
    sig = copying(x=spec(dtype="float32 | float64", access="rw"))
    for name in ("float32", "float64"):
        assert sig.bind(x=numbers(name)).x.dtype == np.dtype(name), "not copied"
    array = numbers("float16")
    with warnings.catch_warnings(record=True), sig.bind(x=array) as fields:
        assert fields.x.dtype == np.dtype("float32")
        view(fields.x)[...] += 1
    assert (array == numbers() + 1).all()
    with pytest.raises(dl.DTypeError, match="got a cast of complex64 to float32"):
        sig.bind(x=numbers("complex64"))


def test_a_copy_for_another_reason_keeps_the_arguments_type() -> None:
    sig = copying(x=spec(dtype="float32 | float64", layout=(1, 0)))
    with warnings.catch_warnings(record=True), sig.bind(x=numbers("float64")) as fields:
        assert (fields.x.dtype, fields.x.layout) == (np.dtype("float64"), (1, 0))


# Dims left out: any number of dimensions, in the argument's own order.


ANY = dl.FieldSpec("float64")


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
    for keywords in ({"layout": (1, 0)}, {"shape": (None, 4)}):
        sig = dl.Signature(x=spec(None, **keywords))
        sig.bind(x=np.zeros((3, 4), order="F"))
        with pytest.raises(
            dl.LayoutError, match=r'^field "x": ndim: expected 2 dimensions, got 3 of shape \(2, 3, 4\)$'
        ):
            sig.bind(x=np.zeros((2, 3, 4)))
    with pytest.raises(dl.LayoutError, match=r"layout: .* got 2 entries for 3 dimensions"):
        spec(None, layout=(1, 0), shape=(None, None, 3))


def test_an_extent_without_a_label_is_named_by_its_axis() -> None:
    sig = dl.Signature(x=spec(None, shape=(None, 5)))
    for argument, place in ((np.zeros((3, 4)), "axis 1"), (dl.zeros((3, 4), dims="KI"), 'dimension "I"')):
        with pytest.raises(dl.LayoutError, match=f'^field "x": shape: expected 5 points in {place}, got 4$'):
            sig.bind(x=argument)


@pytest.mark.parametrize("dims", [None, "KI"])
def test_a_copy_keeps_the_arguments_labels(dims: Any) -> None:
    sig = copying(x=spec(None, access="rw"))
    array = np.arange(6.0, dtype="float32").reshape(2, 3)
    field: Any = array if dims is None else dl.from_array(array, dims=dims)
    with warnings.catch_warnings(record=True), sig.bind(x=field) as fields:
        assert (fields.x.dims, fields.x.dtype) == (None if dims is None else tuple(dims), np.dtype("float64"))
        view(fields.x)[...] += 1
    assert (np.asarray(field) == np.arange(6.0).reshape(2, 3) + 1).all()


# Layout and alignment of a preset, unless they are stated.


CPU = [name for name, preset in dl.presets().items() if str(preset.device) == "cpu"]


@pytest.mark.parametrize("name", dl.presets())
@pytest.mark.parametrize("dims", ["IJK", "KJI", "IK", "J", "0IJ1", ("x", "K")])
def test_the_layout_of_a_preset_is_that_of_its_allocations(name: str, dims: Any) -> None:
    on_host = dl.zeros((2, 3, 4, 5)[: len(dims)], dims=dims, backend=name, device="cpu")
    found = dl.FieldSpec("float64", dims, backend=name)
    assert (found.backend, found.layout) == (name, on_host.layout)
    assert found.alignment_size == on_host.alignment_size


@given(st.sampled_from(CPU), st.permutations("IJK0"), st.integers(0, 4), st.booleans(), st.booleans())
def test_what_a_preset_allocates_fits_it(name: str, labels: list[str], ndim: int, halo: bool, left_out: bool) -> None:
    dims = "".join(labels[:ndim])
    widths = ((1, 1),) * ndim if halo else None
    field = dl.zeros((3, 4, 5, 6)[:ndim], "float32", dims=dims, halo=widths, backend=name)
    right = sorted(dims) if not left_out else None
    if name in ("C", "F") and right is not None:
        right = list(dims)  # these go by index order
    sig = dl.Signature(x=dl.FieldSpec("float32", right, backend=name))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sig.bind(x=field).x.ptr == field.ptr


def test_the_layout_goes_by_the_arguments_labels_if_dims_are_left_out() -> None:
    found = spec(None, backend="gt:cpu_ifirst")
    assert found.layout is None
    for sig in (dl.Signature(x=found), dl.Signature(x=spec(None, layout=(2, 1, 0)))):
        with pytest.warns(dl.LayoutWarning, match=r'^field "x": layout: expected \(2, 1, 0\), got \(0, 1, 2\).* slow'):
            sig.bind(x=np.zeros((3, 4, 5)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for field in (
            np.zeros((3, 4, 5), order="F"),
            dl.zeros((3, 4, 5), dims="KJI"),
            dl.zeros((3, 4), dims=("x", "I")),
        ):
            dl.Signature(x=found).bind(x=field)


def test_the_alignment_of_a_preset_is_in_elements_of_the_arguments_type() -> None:
    aligned = {"float64": 64, "float32": 32, "bool": 8, "float32 | int32": 32, "float32 | float64": None}
    assert {dtype: spec(dtype=dtype, backend="gtmc").alignment_size for dtype in aligned} == aligned
    assert spec(dtype=None, backend="jax").alignment_size == 64
    sig = dl.Signature(x=spec(dtype="float32 | float64", backend="gtmc", layout=(0, 1)))
    block = dl.zeros((4, 16), "float32", dims="IJ", alignment_size=64)
    half = dl.zeros((4, 16), "float64", dims="IJ", alignment_size=64)
    for field in (block[:, :], block[:, 8:]):
        assert sig.bind(x=field).x.ptr == field.ptr
    for wrong in (half[:, 4:], misaligned()):
        with pytest.raises(
            dl.LayoutError, match=r'^field "x": alignment_size: expected the first compute point .* 64 bytes'
        ):
            sig.bind(x=wrong)


def test_presets_of_frameworks_align_the_element_at_index_0() -> None:
    sig = dl.Signature(x=spec(backend="jax"))
    field = dl.zeros((3, 4), halo=(1, 1), backend="jax")
    assert sig.bind(x=field).x.origin == (1, 1)
    with pytest.raises(
        dl.LayoutError, match=r'^field "x": alignment_size: expected the element at index 0 .* 64 bytes'
    ):
        sig.bind(x=misaligned())


def test_explicit_values_override_the_preset() -> None:
    found = spec(backend="gtmc", layout=(1, 0), alignment_size=1)
    assert (found.layout, found.alignment_size) == ((1, 0), 1)
    assert is_fast(found, np.asfortranarray(numbers()))
    assert same_text(found)


def is_fast(right: dl.FieldSpec, field: Any) -> bool:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dl.Signature(x=right).bind(x=field)
    return not caught


@pytest.mark.parametrize("name", CPU)
@pytest.mark.parametrize("dims", ["IJ", "JI", None])
def test_a_copy_is_made_as_the_preset_says(name: str, dims: Any) -> None:
    right = dl.FieldSpec("float32", dims, access="rw", backend=name)
    array = numbers()
    with warnings.catch_warnings(record=True), copying(x=right).bind(x=array) as fields:
        assert is_fast(right, fields.x)
        view(fields.x)[...] += 1
    assert (array == numbers() + 1).all()


def test_bad_presets_are_named() -> None:
    with pytest.raises(TypeError, match="backend: expected a string, got 5"):
        spec(backend=5)
    with pytest.warns(dl.LayoutWarning, match=r"backend: 'gtmc' orders strides by .* dims \(x, y\)"):
        spec(("x", "y"), backend="gtmc")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spec(("x", "y"), backend="gtmc", layout=(0, 1))
        spec(("x", "y"), backend="F")
