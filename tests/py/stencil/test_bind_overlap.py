"""Written fields share no memory with others, by an exact test."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlfield as dl
from calls import F8, W8, spec, torch_of
from fakes import FakeTensor, Producer
from fakes_interfaces import Hooked


def pair(first: str = "r", second: str = "w") -> dl.Signature:
    return dl.Signature(a=spec("I", access=first), b=spec("I", access=second))


def test_written_fields_share_memory_with_no_other() -> None:
    array = np.zeros(10)
    message = (
        r'^field "b": it is written, and shares memory with field "a"; allowed are written fields that overlap no other'
    )
    with pytest.raises(dl.LayoutError, match=message):
        pair().bind(a=array, b=array)
    with pytest.raises(dl.LayoutError, match=r'^field "a": .* with field "b"'):
        pair("rw", "r").bind(a=array, b=array[5:])
    with pytest.raises(dl.LayoutError, match=r'^field "a": .* with field "b"'):
        pair("rw", "rw").bind(a=array, b=array)
    part = array[3:4]
    for same in (torch_of(part), dl.from_dlpack(part), Producer(FakeTensor(part)), Hooked(part, [])):
        with pytest.raises(dl.LayoutError, match="shares memory"):
            pair().bind(a=array, b=same)
    # Fields that are only read may share memory.
    assert pair("r", "r").bind(a=array, b=array).a.ptr == array.ctypes.data


@pytest.mark.parametrize(
    ("a", "b", "shares"),
    [
        (np.s_[:5], np.s_[5:], False),
        (np.s_[:6], np.s_[5:], True),
        (np.s_[::2], np.s_[1::2], False),
        (np.s_[::2], np.s_[::-2], False),
        (np.s_[::-3], np.s_[::2], True),
        (np.s_[1:1], np.s_[:], False),
    ],
)
def test_interleaved_views_do_not_share(a: Any, b: Any, shares: bool) -> None:
    array = np.zeros(10)
    if shares:
        with pytest.raises(dl.LayoutError, match="shares memory"):
            pair().bind(a=array[a], b=array[b])
    else:
        assert pair().bind(a=array[a], b=array[b]).b.ptr == array[b].ctypes.data


def test_columns_parts_and_halos_do_not_share() -> None:
    block = np.zeros((6, 6, 6))
    both = dl.Signature(inner=F8, out=W8)
    assert both.bind(inner=block[1:-1, 1:-1, 1:-1], out=block[:1]).domain == (1, 4, 4)
    assert both.bind(inner=block[:, ::2], out=block[:, 1::2]).domain == (6, 3, 6)
    with pytest.raises(dl.LayoutError, match="shares memory"):
        both.bind(inner=block[1:-1], out=block[:, :, 5:])
    numbers = np.zeros((3, 3, 3), "complex128")
    assert both.bind(inner=numbers.real, out=numbers.imag).domain == (3, 3, 3)


@given(st.data())
def test_sharing_is_numpys_exact_answer(data: st.DataObject) -> None:
    block = np.zeros((5, 6))
    step = st.integers(-3, 3).filter(bool)
    cut = st.builds(slice, st.none() | st.integers(0, 6), st.none() | st.integers(0, 6), step)
    one, other = (block[data.draw(cut), data.draw(cut)] for _ in range(2))
    sig = dl.Signature(a=spec(), b=spec(access="w"))
    if np.shares_memory(one, other):
        with pytest.raises(dl.LayoutError, match="shares memory"):
            sig.bind(a=one, b=other)
    else:
        sig.bind(a=one, b=other)


def sharing(on_mismatch: Any = "raise", **second: Any) -> dl.Signature:
    """A signature of two written fields that allows overlap; `second` is how the second differs."""
    one = dl.FieldSpec("float64", "I", access="rw")
    other = dl.FieldSpec(second.pop("dtype", "float64"), "I", access="rw", **second)
    return dl.Signature(on_mismatch=on_mismatch, allow_overlap=True, a=one, b=other)


def test_overlap_can_be_allowed() -> None:
    array = np.zeros(10)
    assert not pair().allow_overlap
    assert sharing().allow_overlap
    for b in (array, array[::-1], array[3:]):
        assert sharing().bind(a=array, b=b).b.ptr == b.ctypes.data
    # A field still may not overlap itself.
    with pytest.raises(dl.LayoutError, match="make elements share memory"):
        sharing().bind(a=array, b=np.lib.stride_tricks.as_strided(array, (3,), (0,)))


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
def test_the_same_elements_share_a_temporary() -> None:
    array = np.arange(4, dtype="f4")
    with sharing("copy").bind(a=array, b=dl.from_dlpack(array)) as fields:
        assert fields.a.ptr == fields.b.ptr != array.ctypes.data
        one, other = dl.as_numpy(fields.a), dl.as_numpy(fields.b)
        one += 1
        other *= 2
    assert array.tolist() == [2.0, 4.0, 6.0, 8.0]


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
def test_a_temporary_of_other_elements_that_overlap_is_refused() -> None:
    array = np.arange(4, dtype="f4")
    message = r'^field "b": it shares memory with field "a", and a temporary copy would replace only one of them'
    for b in (array[::-1], array[1:], dl.from_dlpack(array, origin=(1,))):
        with pytest.raises(dl.LayoutError, match=message):
            sharing("copy").bind(a=array, b=b)
    with pytest.raises(dl.LayoutError, match=message):
        sharing("copy", dtype="float32").bind(a=array, b=array)
    with pytest.raises(dl.LayoutError, match=message):
        sharing("copy", alignment_size=4096).bind(a=array, b=array)
    # Without a temporary, or apart from each other, they are used.
    sharing("copy").bind(a=np.zeros(4), b=np.zeros(4)[::-1])
    with sharing("copy").bind(a=array[::2], b=array[1::2]) as fields:
        assert fields.a.ptr != fields.b.ptr
    both_read = dl.Signature(on_mismatch="copy", allow_overlap=True, a=spec("I"), b=spec("I"))
    with both_read.bind(a=array, b=array[1:]) as fields:
        assert dl.as_numpy(fields.b).tolist() == [1.0, 2.0, 3.0]
