"""`FieldSpec(backend=...)`: layout and alignment of a preset, unless they are stated."""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlfield as dl
from calls import copying, misaligned, numbers, spec, view

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
    wanted = sorted(dims) if not left_out else None
    if name in ("C", "F") and wanted is not None:
        wanted = list(dims)  # these go by index order
    sig = dl.Signature(x=dl.FieldSpec("float32", wanted, backend=name))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sig.bind(x=field).x.ptr == field.ptr


def test_the_layout_goes_by_the_arguments_labels_if_dims_are_left_out() -> None:
    sig = dl.Signature(x=spec(None, backend="gt:cpu_ifirst"))
    assert dl.FieldSpec("float64", backend="gt:cpu_ifirst").layout is None
    array = np.zeros((3, 4, 5))
    with pytest.warns(dl.LayoutWarning, match=r'"x": layout: \[0, 1, 2\]; wanted is \[2, 1, 0\]; this is slow'):
        sig.bind(x=array)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sig.bind(x=np.zeros((3, 4, 5), order="F"))
        sig.bind(x=dl.zeros((3, 4, 5), dims="KJI"))
        sig.bind(x=dl.zeros((3, 4), dims=("x", "I")))


def test_the_alignment_of_a_preset_is_in_elements() -> None:
    assert [spec(dtype=dtype, backend="gtmc").alignment_size for dtype in ("float64", "float32", "bool")] == [64, 32, 8]
    sig = dl.Signature(x=spec(backend="gtmc", layout=(0, 1)))
    with pytest.raises(
        dl.LayoutError, match=r'^field "x": alignment_size: the first compute point .* multiple of 64 bytes'
    ):
        sig.bind(x=misaligned())


def test_presets_of_frameworks_align_the_element_at_index_0() -> None:
    sig = dl.Signature(x=spec(backend="jax"))
    field = dl.zeros((3, 4), halo=(1, 1), backend="jax")
    assert sig.bind(x=field).x.origin == (1, 1)
    with pytest.raises(
        dl.LayoutError, match=r'^field "x": alignment_size: the element at index 0 .* multiple of 64 bytes'
    ):
        sig.bind(x=misaligned())


def test_explicit_values_override_the_preset() -> None:
    found = spec(backend="gtmc", layout=(1, 0), alignment_size=1)
    assert (found.layout, found.alignment_size) == ((1, 0), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dl.Signature(x=found).bind(x=np.asfortranarray(numbers()))
    assert repr(eval(repr(found), {"FieldSpec": dl.FieldSpec})) == repr(found)
    assert repr(spec(backend="gtmc")) == "FieldSpec('float64', ('I', 'J'), backend='gtmc')"


@pytest.mark.parametrize("name", CPU)
@pytest.mark.parametrize("dims", ["IJ", "JI", None])
def test_a_copy_is_made_as_the_preset_says(name: str, dims: Any) -> None:
    wanted = dl.FieldSpec("float32", dims, access="rw", backend=name)
    array = numbers()
    with warnings.catch_warnings(record=True), copying(x=wanted).bind(x=array) as fields:
        dl.Signature(x=wanted).bind(x=fields.x)
        assert not caught_slow(wanted, fields.x)
        view(fields.x)[...] += 1
    assert (array == numbers() + 1).all()


def caught_slow(wanted: dl.FieldSpec, field: dl.Descriptor) -> bool:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dl.Signature(x=wanted).bind(x=field)
    return bool(caught)


def test_unknown_presets_are_named() -> None:
    with pytest.raises(
        dl.LayoutError, match=r"backend: no preset 'gtmcc'|backend: no preset \"gtmcc\"; allowed are numpy"
    ):
        spec(backend="gtmcc")
    with pytest.raises(TypeError, match="backend: 5"):
        spec(backend=5)


def test_a_preset_without_labels_of_the_grid_is_a_warning() -> None:
    with pytest.warns(dl.LayoutWarning, match=r"backend: 'gtmc' orders strides by .* dims \(x, y\)"):
        spec(("x", "y"), backend="gtmc")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spec(("x", "y"), backend="gtmc", layout=(0, 1))
        spec(("x", "y"), backend="F")
