"""Allocation against the naive oracle: for any arguments each element has its own place, aligned as promised."""

import itertools
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import dlfield as dl
import oracle
from catalog import CPU_PRESETS, dtype_named

DTYPES = [dtype_named(name) for name in ("bool", "int8", "float16", "float32", "float64", "complex128", "bfloat16")]


@st.composite
def halos(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Ghost widths that fit into `shape`."""
    lower = [draw(st.integers(0, extent)) for extent in shape]
    return tuple((low, draw(st.integers(0, extent - low))) for low, extent in zip(lower, shape, strict=True))


@st.composite
def specs(draw: st.DrawFn, min_side: int = 0) -> dict[str, Any]:
    """The keywords of an allocation: any combination that is legal."""
    shape = tuple(draw(st.lists(st.integers(min_side, 7), max_size=4)))
    axes = range(len(shape))
    optional: dict[str, st.SearchStrategy[Any]] = {
        "backend": st.sampled_from(CPU_PRESETS),
        "layout": st.permutations(axes).map(tuple),
        "dims": st.permutations(["I", "J", "K", "0", "1", "x"]).map(lambda labels: tuple(labels[: len(shape)])),
        "alignment_size": st.sampled_from([1, 2, 8, 16, 32, 64, 128, 512]),
        "aligned_index": st.tuples(*(st.integers(0, max(extent - 1, 0)) for extent in shape)),
        "padding": st.sampled_from(["none", "row"]),
        "halo": halos(shape),
        "origin": st.tuples(*(st.integers(0, extent) for extent in shape)),
    }
    chosen = draw(st.sets(st.sampled_from(sorted(optional))))
    keywords = {name: draw(optional[name]) for name in sorted(chosen)}
    return {"shape": shape, "dtype": draw(st.sampled_from(DTYPES)), **keywords}


@given(specs())
def test_no_two_indices_share_a_byte(spec: dict[str, Any]) -> None:
    field = dl.empty(**spec)
    places = sorted(oracle.addresses(field))
    assert len(places) == field.size
    assert all(lower + field.itemsize <= upper for lower, upper in itertools.pairwise(places))


@given(st.lists(specs(min_side=1), min_size=2, max_size=5))
def test_every_element_is_inside_its_own_block(specifications: list[dict[str, Any]]) -> None:
    """Fields that live at the same time are written in full through NumPy, and none changes another."""
    fields = [dl.zeros(**spec) for spec in specifications]
    raw = [field.to_numpy().view(f"V{field.itemsize}") for field in fields]
    for number, view in enumerate(raw, start=1):
        view[...] = np.frombuffer(bytes([number]) * view.itemsize, view.dtype)[0]
    for number, view in enumerate(raw, start=1):
        assert set(view.tobytes()) == {number}
    places = [oracle.addresses(field) for field in fields]
    spans = sorted((min(at), max(at) + field.itemsize) for at, field in zip(places, fields, strict=True))
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))


def padding_of(spec: dict[str, Any], field: dl.Tensor) -> str:
    """The required padding of `field`; SPEC's default rule if `spec` gives none."""
    by_rule = "row" if field.alignment_size > field.itemsize else "none"
    default = "none" if spec.get("backend") in ("jax", "torch") else by_rule
    return str(spec.get("padding", default))


@given(specs(min_side=1))
def test_aligned_where_promised(spec: dict[str, Any]) -> None:
    field = dl.empty(**spec)
    size = field.alignment_size
    assert oracle.aligned_address(field) % size == 0
    assert field.ptr % field.alignment() == 0
    assert field.ptr % field.dtype.alignment == 0
    if oracle.offset(field.strides, field.aligned_index) % size == 0:
        assert field.ptr % 64 == 0
    if padding_of(spec, field) == "row":
        assert all(address % size == 0 for address in oracle.row_starts(field))
    else:
        assert field.strides == oracle.compact_strides(field.shape, field.layout, field.itemsize)


@given(specs(min_side=1))
def test_padding_is_less_than_one_alignment_a_row(spec: dict[str, Any]) -> None:
    field = dl.empty(**{**spec, "padding": "row"})
    padded = list(field.shape)
    if field.ndim > 1:
        inner, next_inner = (field.layout.index(field.ndim - back) for back in (1, 2))
        row, step = field.shape[inner] * field.itemsize, field.strides[next_inner]
        assert row <= step < row + max(field.alignment_size, field.itemsize)
        padded[inner] = step // field.itemsize
    assert field.strides == oracle.compact_strides(padded, field.layout, field.itemsize)


@given(specs())
def test_layout_ranks_the_strides(spec: dict[str, Any]) -> None:
    field = dl.empty(**spec)
    assert sorted(field.layout) == list(range(field.ndim))
    if field.size:
        assert oracle.is_ordered_by(field.layout, field.strides)
    if "layout" in spec:
        assert field.layout == spec["layout"]


@given(specs())
def test_halo_origin_and_aligned_index_default_to_each_other(spec: dict[str, Any]) -> None:
    field = dl.empty(**spec)
    halo = spec.get("halo", ((0, 0),) * field.ndim)
    lower = tuple(low for low, _ in halo)
    assert field.halo == halo
    assert field.origin == spec.get("origin", lower)
    library = spec.get("backend") in ("jax", "torch")
    assert field.aligned_index == spec.get("aligned_index", (0,) * field.ndim if library else lower)


@given(specs())
def test_like_takes_everything_from_a_tensor(spec: dict[str, Any]) -> None:
    field = dl.zeros(**spec)
    makes = (dl.empty_like, dl.zeros_like, dl.ones_like, lambda data: dl.full_like(data, 1), dl.Tensor.copy)
    for twin in (make(field) for make in makes):
        for name in ("shape", "dtype", "dims", "layout", "alignment_size", "aligned_index", "halo", "origin", "device"):
            assert getattr(twin, name) == getattr(field, name), name
        assert not twin.readonly
        if field.size:
            assert twin.strides == field.strides
            assert oracle.aligned_address(twin) % field.alignment_size == 0
            assert twin.ptr != field.ptr
