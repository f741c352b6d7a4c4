"""Sizes by name: extents on which all fields of a call agree."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlfield as dl
from calls import copying, signature, spec


def sized(*shape: Any, **keywords: Any) -> dl.FieldSpec:
    return spec(None, shape=shape, **keywords)


def test_fields_agree_on_named_sizes() -> None:
    sig = dl.Signature(inp=sized("I", "J"), out=sized("I", "J"), level=sized("K"))
    assert sig.bind(inp=np.zeros((4, 5)), out=np.zeros((4, 5)), level=np.zeros(9)).out.shape == (4, 5)
    with pytest.raises(dl.LayoutError) as caught:
        sig.bind(out=np.zeros((5, 5)), inp=np.zeros((4, 5)), level=np.zeros(9))
    assert str(caught.value) == 'field "out": size of I: 5; field "inp" has I = 4'


def test_an_offset_is_part_of_the_error() -> None:
    sig = dl.Signature(inp=sized("I - 1"), out=sized("I+2"))
    sig.bind(inp=np.zeros(4), out=np.zeros(7))
    with pytest.raises(dl.LayoutError) as caught:
        sig.bind(inp=np.zeros(4), out=np.zeros(4))
    assert str(caught.value) == 'field "out": size of I: 2, as 4 points are I+2; field "inp" has I = 5'
    with pytest.raises(
        dl.LayoutError, match=r'^field "out": shape: 1 points in axis 0, for I\+2; wanted are 2 or more'
    ):
        sig.bind(inp=np.zeros(0), out=np.zeros(1))


def test_the_extents_are_those_in_the_order_of_dims() -> None:
    sig = dl.Signature(a=spec("IJ", shape=("n", "m")), b=spec("JI", shape=("m", "n")))
    field = dl.zeros((3, 4), dims="IJ")
    assert sig.bind(a=field, b=field).b.shape == (4, 3)
    with pytest.raises(dl.LayoutError, match=r'"b": size of m: 3; field "a" has m = 4'):
        sig.bind(a=field, b=np.zeros((3, 4)))


def test_a_size_may_occur_twice_in_a_field() -> None:
    sig = dl.Signature(a=sized("n", "n"))
    sig.bind(a=np.zeros((3, 3)))
    with pytest.raises(dl.LayoutError, match=r'^field "a": size of n: 4; field "a" has n = 3'):
        sig.bind(a=np.zeros((3, 4)))


def test_an_absent_field_states_no_size() -> None:
    sig = dl.Signature(a=sized("n", optional=True), b=sized("n"), c=sized("n"))
    sig.bind(b=np.zeros(3), c=np.zeros(3))
    with pytest.raises(dl.LayoutError, match=r'^field "c": size of n: 4; field "b" has n = 3'):
        sig.bind(b=np.zeros(3), c=np.zeros(4))


def test_copied_fields_are_compared_too() -> None:
    sig = copying(a=sized("n"), b=sized("n"))
    with pytest.raises(dl.LayoutError, match='"b": size of n: 4'):
        sig.bind(a=np.zeros(3), b=np.zeros(4, "float32"))


sizes = st.one_of(st.none(), st.integers(0, 3), st.tuples(st.sampled_from("IJ"), st.integers(-2, 2)))


@given(st.lists(st.lists(st.tuples(sizes, st.integers(0, 3)), max_size=3), min_size=1, max_size=4))
def test_fields_are_accepted_if_one_assignment_of_the_names_fits_all(fields: list[list[tuple[Any, int]]]) -> None:
    def text(size: Any) -> Any:
        return f"{size[0]}{size[1]:+}" if isinstance(size, tuple) else size

    def extent(size: Any, point: dict[str, int], found: int) -> int:
        return found if size is None else size if isinstance(size, int) else point[size[0]] + size[1]

    points = [{"I": i, "J": j} for i in range(6) for j in range(6)]
    fits = any(all(extent(size, point, got) == got for field in fields for size, got in field) for point in points)
    names = [f"f{number}" for number in range(len(fields))]
    sig = signature({name: sized(*(text(s) for s, _ in field)) for name, field in zip(names, fields, strict=True)})
    arrays = {name: np.zeros([got for _, got in field]) for name, field in zip(names, fields, strict=True)}
    if fits:
        assert all(sig.bind(**arrays)[name].shape == array.shape for name, array in arrays.items())
    else:
        with pytest.raises(dl.LayoutError, match=r'^field "f'):
            sig.bind(**arrays)


@given(st.text(alphabet="IJx_1 +-0é٣", max_size=6))
def test_the_text_of_a_size_is_a_name_with_an_offset(text: str) -> None:
    matched = re.fullmatch(r"\s*([^\W\d]\w*)\s*(?:([+-])\s*([0-9]+)\s*)?", text)
    if matched:
        name, sign, digits = matched.groups()
        offset = int(f"{sign}{digits}") if sign else 0
        assert sized(text).shape == (f"{name}{offset:+}" if offset else name,)
    else:
        with pytest.raises(dl.LayoutError) as caught:
            sized(text)
        assert re.match(r"shape: .*; allowed is None, an integer, or a size's name", str(caught.value), re.DOTALL)


def test_shapes_of_names_have_a_text() -> None:
    found = spec("IJK", shape=("I", "n - 1", None))
    assert found.shape == ("I", "n-1", None)
    assert repr(found) == "FieldSpec('float64', ('I', 'J', 'K'), shape=('I', 'n-1', None))"


@pytest.mark.parametrize("shape", ["IJ", ("I", b"J"), (1.5,)])
def test_other_entries_are_refused(shape: Any) -> None:
    with pytest.raises(TypeError, match=r"^shape: "):
        spec(None, shape=shape)


def test_offsets_out_of_range_are_refused() -> None:
    assert sized("I+4294967295").shape == ("I+4294967295",)
    with pytest.raises(dl.LayoutError, match='shape: "I\\+4294967296"'):
        sized("I+4294967296")
    huge = np.lib.stride_tricks.as_strided(np.zeros(1), (2**59,), (0,))
    assert dl.Signature(a=sized("I-4294967295")).bind(a=huge).a.shape == (2**59,)
