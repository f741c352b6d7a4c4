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
