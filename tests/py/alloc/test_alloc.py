"""Allocation against SPEC's tables: presets, layouts, alignment, padding, dims, halo, origin."""

import copy
import math
from typing import Any

import numpy as np
import pytest

import dlfield as dl
import oracle
from catalog import CPU_PRESETS, LAYOUTS, PRESETS, RULES, digits, permutations_of_subsets, spec_layout


@pytest.mark.parametrize("name", PRESETS)
def test_preset_has_the_device_and_alignment_of_the_table(name: str) -> None:
    row = PRESETS[name]
    preset = dl.presets()[name]
    assert preset.name == name
    assert preset.device == row.device
    assert row.alignment is None or preset.alignment == row.alignment
    assert preset.layout == (row.rule if row.rule in "CF" else digits(row.rule))


@pytest.mark.parametrize("dims", LAYOUTS)
@pytest.mark.parametrize("name", PRESETS)
def test_layout_of_each_preset_for_each_order_of_dims(name: str, dims: str) -> None:
    shape = tuple(range(2, 2 + len(dims)))
    field = dl.empty(shape, backend=name, dims=dims, device="cpu")
    assert field.layout == spec_layout(PRESETS[name].rule, dims)
    assert oracle.is_ordered_by(field.layout, field.strides)
    assert min(field.strides) == field.itemsize
    assert field.shape == shape
    assert field.dims == tuple(dims)


def test_layout_table_is_whole() -> None:
    assert set(permutations_of_subsets("IJK")) <= set(LAYOUTS)
    assert {row.rule for row in PRESETS.values()} == set(RULES)


@pytest.mark.parametrize("name", CPU_PRESETS)
def test_data_dimensions_sort_by_number_and_user_labels_follow(name: str) -> None:
    field = dl.empty((2, 3, 4, 5, 6), backend=name, dims=("x", "10", "J", "2", "a"))
    by_meaning = {"C": (0, 1, 2, 3, 4), "F": (4, 3, 2, 1, 0)}.get(name, (2, 1, 4, 0, 3))
    assert field.layout == by_meaning


@pytest.mark.parametrize("dims", ["IJK", "KJI", "1K0", "0JI"])
def test_without_a_preset_the_layout_is_c_by_index(dims: str) -> None:
    field = dl.empty((3, 4, 5), "f4", dims=dims)
    assert field.layout == (0, 1, 2)
    assert field.strides == (80, 20, 4)


@pytest.mark.parametrize("name", ["gtmc", "gtcuda", "gt:gpu"])
@pytest.mark.parametrize("dtype", ["i1", "f4", "f8", "c16"])
def test_preset_alignment_counts_elements_and_pads_rows(name: str, dtype: str) -> None:
    elements = PRESETS[name].alignment
    assert elements is not None
    field = dl.zeros((5, 6, 7), dtype, backend=name, device="cpu", halo=(1, 2, 3))
    assert field.alignment_size == elements * field.itemsize
    assert field.aligned_index == (1, 2, 3)
    assert all(address % field.alignment_size == 0 for address in oracle.row_starts(field))


@pytest.mark.parametrize("name", ["jax", "torch", "cupy"])
@pytest.mark.parametrize("alignment_size", [None, 256])
def test_array_library_presets_stay_compact_whatever_the_alignment(name: str, alignment_size: int | None) -> None:
    """A larger alignment_size must not break the preset's purpose: JAX rejects padded rows and a shifted base."""
    keywords: dict[str, Any] = {"backend": name, "device": "cpu", "halo": (1, 2, 3)}
    field = dl.zeros((5, 6, 7), "f4", alignment_size=alignment_size, **keywords)
    size = alignment_size or 64
    assert (field.alignment_size, field.aligned_index, field.ptr % size) == (size, (0, 0, 0), 0)
    assert (field.strides, field.origin) == ((168, 28, 4), (1, 2, 3))
    padded = dl.zeros((5, 6, 7), "f4", padding="row", aligned_index=(0, 0, 1), **keywords)
    assert all(address % 64 == 0 for address in oracle.row_starts(padded))


def test_large_blocks_start_in_different_cache_sets() -> None:
    fields = [dl.zeros((128, 128, 40)) for _ in range(8)]
    assert len({field.ptr % 4096 for field in fields}) == len({field.ptr % (128 << 10) for field in fields}) == 8
    assert all(field.ptr % 64 == 0 for field in fields)


@pytest.mark.parametrize("alignment_size", [192, 256, 4096, 64 << 10, 2 << 20])
def test_large_blocks_keep_a_larger_alignment(alignment_size: int) -> None:
    for padding in ("none", "row"):
        shape, index = ((700, 1000), (1, 2)) if padding == "none" else ((3, 300_000), (1, 2))
        for _ in range(17):
            field = dl.zeros(shape, aligned_index=index, alignment_size=alignment_size, padding=padding)
            address = field.ptr + sum(at * stride for at, stride in zip(index, field.strides, strict=True))
            assert address % alignment_size == 0
            assert padding == "none" or field.strides[0] % alignment_size == 0


def test_large_zeros_are_zero_where_other_values_were() -> None:
    for number in range(20):
        field = dl.zeros((128, 128, 40 + number % 2))
        assert not np.asarray(field).any()
        field[...] = 7.0
        del field


def test_alignment_that_is_no_power_of_two() -> None:
    field = dl.empty((4, 5), "f8", alignment_size=48, aligned_index=(0, 1))
    assert [address % 48 for address in oracle.row_starts(field)] == [0, 0, 0, 0]


def test_explicit_keywords_override_the_preset() -> None:
    assert dl.empty((2, 3, 4), backend="gt:cpu_ifirst", layout=(1, 0, 2)).layout == (1, 0, 2)
    assert dl.empty((2, 3, 5), backend="gtmc", padding="none").strides == (120, 8, 24)
    assert dl.empty((2, 3, 5), backend="gtmc", alignment_size=16).alignment_size == 16
    assert dl.empty((2, 3, 5), backend="torch", aligned_index=(0, 0, 1), alignment_size=256).aligned_index == (0, 0, 1)
    assert dl.empty((2, 3, 4), backend="gt:gpu", device="cpu").device == "cpu"


@pytest.mark.parametrize(
    ("ndim", "dims"), list(enumerate([(), ("I",), ("I", "J"), tuple("IJK"), tuple("IJK0"), tuple("IJK01")]))
)
def test_default_dims(ndim: int, dims: tuple[str, ...]) -> None:
    assert dl.empty((2,) * ndim).dims == dims


def test_dims_are_any_labels_given_as_a_string_or_a_sequence() -> None:
    assert dl.empty((2, 3), dims="KI").dims == ("K", "I")
    assert dl.empty((2, 3), dims=["Cell", "K"]).dims == ("Cell", "K")
    assert dl.empty((2, 3), dims=("Cell", "11")).dims == ("Cell", "11")


def test_a_halo_is_a_width_or_a_pair_for_each_dimension() -> None:
    field = dl.zeros((8, 9, 10), halo=(1, (2, 3), 0))
    assert field.halo == ((1, 1), (2, 3), (0, 0))
    assert field.origin == field.aligned_index == (1, 2, 0)


def test_the_index_of_a_lower_halo_is_an_aligned_index() -> None:
    """The default may also be passed if the halo leaves no point inside."""
    default = dl.zeros((4, 0), alignment_size=64, halo=((4, 0), (0, 0)))
    stated = dl.zeros((4, 0), alignment_size=64, aligned_index=(4, 0))
    assert default.aligned_index == stated.aligned_index == (4, 0)


SHAPES: list[Any] = [3, np.int16(3), [2, 3], (np.int8(100), np.uint64(3)), np.array([2, 3])]


@pytest.mark.parametrize("shape", SHAPES, ids=repr)
def test_shape_takes_what_numpy_takes(shape: Any) -> None:
    assert dl.zeros(shape).shape == np.zeros(shape).shape


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2), (0, 0), ()])
@pytest.mark.parametrize("name", [None, *CPU_PRESETS])
def test_empty_and_scalar_tensors_are_ordinary(shape: tuple[int, ...], name: str | None) -> None:
    field = dl.full(shape, 7, backend=name)
    assert field.shape == shape
    assert field.size == math.prod(shape)
    assert field.nbytes == field.size * 8
    assert field.to_numpy().tolist() == np.full(shape, 7.0).tolist()
    assert len(field.strides) == len(field.layout) == len(field.dims) == len(shape)


def test_attributes_of_an_ordinary_field() -> None:
    field = dl.zeros((2, 3, 4), "f4", backend="gt:cpu_ifirst")
    assert (field.ndim, field.size, field.itemsize, field.nbytes, len(field)) == (3, 24, 4, 96, 2)
    assert (field.dtype.name, field.strides, field.readonly) == ("float32", (4, 8, 24), False)
    assert (field.is_contiguous("F"), field.is_contiguous(), field.is_contiguous("A")) == (True, False, True)
    assert (field.alignment_size, field.alignment() >= 64, field.ptr % field.alignment()) == (4, True, 0)
    assert dl.empty((3, 4)).alignment_size == 1


def test_sizes_are_64_bit() -> None:
    """GT4Py computes this size in 32 bits and returns 63 bytes."""
    field = dl.empty((1024, 1024, 512))
    assert field.nbytes == 1 << 32
    assert field.strides == (4 << 20, 4096, 8)
    field[1023, 1023, 511] = 2.5
    field[0, 0, 0] = 1.5
    assert (field[1023, 1023, 511], field[0, 0, 0]) == (2.5, 1.5)


def test_registered_preset_is_a_preset(scratch_preset: str) -> None:
    made = dl.register_preset(scratch_preset, alignment=4, layout=(1, 0, 2))
    assert dl.presets()[scratch_preset].name == made.name == scratch_preset
    field = dl.zeros((3, 5, 7), "f8", backend=scratch_preset, dims="KIJ")
    assert field.layout == (2, 1, 0)
    assert field.alignment_size == 32
    assert all(address % 32 == 0 for address in oracle.row_starts(field))


@pytest.mark.parametrize(("layout", "expected"), [("C", (40, 8)), ("F", (8, 24))])
def test_registered_preset_by_index(scratch_preset: str, layout: Any, expected: tuple[int, int]) -> None:
    dl.register_preset(scratch_preset, layout=layout)
    assert dl.zeros((3, 5), backend=scratch_preset, dims="JI").strides == expected


def test_presets_hands_out_a_copy() -> None:
    copied = copy.copy(dl.presets())
    assert type(copied) is dict
    assert copied == dl.presets()
    dl.presets().clear()
    assert set(PRESETS) <= set(dl.presets())


def test_large_blocks_are_used_again_also_for_zeros() -> None:
    shape = (128, 96, 80)
    first = dl.full(shape, 7.0)
    # The start moves within the block.
    block = first.ptr // (2 << 20)
    del first
    again = dl.empty(shape)
    assert again.ptr // (2 << 20) == block
    del again
    zeros = dl.zeros(shape)
    assert zeros.ptr // (2 << 20) == block
    assert not np.asarray(zeros).any()


@pytest.mark.parametrize(
    ("dims", "found"),
    [("IJ", "I J"), ("K0", "K 0"), ("I J", "I J"), ("lat lon", "lat lon"), (" x  y ", "x y"), (("lat", "J"), "lat J")],
)
def test_labels_as_text(dims: Any, found: str) -> None:
    """No letter of a word becomes a label."""
    labels = tuple(found.split())
    shape = (2, 3)
    assert dl.zeros(shape, dims=dims).dims == dl.from_dlpack(np.ones(shape), dims=dims).dims == labels
    assert dl.FieldSpec("f8", dims).dims == dl.describe(np.ones(shape), dims=dims).dims == labels
    assert dl.zeros(3, dims="lat").dims == dl.get_dims(None, "lat") == ("lat",)


@pytest.mark.parametrize("dims", ["xy", "lat,lon", "I, J", "ij"])
def test_texts_that_are_no_labels_show_both_spellings(dims: str) -> None:
    with pytest.raises(dl.DimsError, match=r"dims=\((\"\w+\", )+\"\w+\"\) or dims=\"\w+ \w+\"$"):
        dl.zeros((2, 3), dims=dims)


BY_LABEL = {"lat": 1, "lev": (0, 2)}


@pytest.mark.parametrize("like", [lambda shape, **keywords: dl.zeros_like(np.ones(shape), **keywords), dl.zeros])
def test_arguments_by_label(like: Any) -> None:
    """By position a halo of (1, 1, 0) lies on lev and lat."""
    found = like((5, 6, 7), dims="lev lat lon", halo=BY_LABEL, origin={"lon": 3}, aligned_index={"lat": 2})
    assert (found.halo, found.origin, found.aligned_index) == (((0, 2), (1, 1), (0, 0)), (0, 1, 3), (0, 2, 0))
    again = dl.zeros_like(found, halo={"lon": 1})
    assert again.halo == ((0, 2), (1, 1), (1, 1)), "labels that are left out keep what they have"
    again.halo = {"lev": 2}
    assert again.halo == ((2, 2), (0, 0), (0, 0))
    assert dl.from_dlpack(found, origin={"lev": 4}).origin == (4, 1, 3)
    assert dl.from_array(found, origin={"lev": 4}).origin == (4, 1, 3)


@pytest.mark.parametrize("argument", ["halo", "origin", "aligned_index"])
@pytest.mark.parametrize(
    ("value", "error"), [({"x": 1}, dl.DimsError), ({"I": "x"}, TypeError), ({1.5: 1}, dl.DimsError), ("IJ", TypeError)]
)
def test_wrong_arguments_by_label_are_named(argument: str, value: Any, error: Any) -> None:
    with pytest.raises(error, match=f"^{argument}: "):
        dl.zeros((4, 4), **{argument: value})


@pytest.mark.parametrize(
    ("backend", "dims", "layout"),
    [
        ("gt:cpu_ifirst", "Cell K", (1, 0)),
        ("gt:cpu_ifirst", "K Cell", (0, 1)),
        ("dace:cpu", "Cell K", (1, 0)),
        ("dace:cpu_KJI", "lat lon K", (1, 2, 0)),
        ("gt:gpu", "Edge K 0", (2, 1, 0)),
        ("gtmc", "lat lon K", (0, 2, 1)),
        ("gt:cpu_kfirst", "Cell K", (0, 1)),
        ("gt:cpu_ifirst", "member I K", (0, 2, 1)),
        ("gt4py.next", "Cell K", (1, 0)),
        ("gt4py.next", "Cell C2E2CO K", (2, 0, 1)),
        ("gt4py.next:gpu", "Vertex V2E K", (2, 0, 1)),
        ("gt4py.next", "IJK0", (3, 2, 1, 0)),
    ],
)
def test_labels_of_unstructured_grids(backend: str, dims: str, layout: tuple[int, ...], recwarn: Any) -> None:
    shape = (18, 10, 5, 3)[: len(layout)]
    assert dl.zeros(shape, backend=backend, dims=dims, device="cpu").layout == layout
    assert dl.FieldSpec("f8", dims, backend=backend).layout == layout
    assert not recwarn.list


@pytest.mark.parametrize(
    ("shape", "dims", "strides"),
    [((18, 10), "Cell K", (8, 192)), ((18, 5, 10), "Cell C2E2CO K", (8, 1920, 192)), ((5, 6, 3), "IJK", (8, 64, 384))],
)
def test_the_preset_gt4py_next_is_its_own_allocators(shape: Any, dims: str, strides: tuple[int, ...]) -> None:
    field = dl.zeros(shape, backend="gt4py.next", dims=dims, halo=(0,) * len(shape))
    assert (field.strides, field.ptr % 64) == (strides, 0)
    gtx = pytest.importorskip("gt4py.next")
    kinds = {"K": gtx.DimensionKind.VERTICAL, "C2E2CO": gtx.DimensionKind.LOCAL}
    domain = {
        gtx.Dimension(label, kind=kinds.get(label, gtx.DimensionKind.HORIZONTAL)): extent
        for label, extent in zip(field.dims, shape, strict=True)
    }
    assert gtx.zeros(domain, dtype=np.float64).ndarray.strides == strides
