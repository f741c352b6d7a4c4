"""Written fields share no memory with others, by an exact test."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dlfield as dl
from calls import F8, W8, spec, torch_of
from fakes import FakeTensor, Producer
from fakes_interfaces import Hooked


def pair(first: str = "r", second: str = "w") -> dl.Signature:
    return dl.Signature(a=spec("I", access=first), b=spec("I", access=second))


def test_written_fields_share_memory_with_no_other() -> None:
    array = np.zeros(10)
    for sig, b, message in (
        (pair(), array, 'field "b": .*shares memory with field "a"'),
        (pair("rw", "r"), array[5:], 'field "a": .*shares memory with field "b"'),
        (pair("rw", "rw"), array, 'field "a": .*shares memory with field "b"'),
    ):
        with pytest.raises(dl.OverlapError, match=f"^{message}"):
            sig.bind(a=array, b=b)
    part = array[3:4]
    for same in (torch_of(part), dl.from_dlpack(part), Producer(FakeTensor(part)), Hooked(part, [])):
        with pytest.raises(dl.OverlapError, match="shares memory"):
            pair().bind(a=array, b=same)
    # Fields that are only read may share memory.
    assert pair("r", "r").bind(a=array, b=array).a.ptr == array.ctypes.data


def test_columns_parts_and_halos_do_not_share() -> None:
    block = np.zeros((6, 6, 6))
    both = dl.Signature(inner=F8, out=W8)
    assert both.bind(inner=block[1:-1, 1:-1, 1:-1], out=block[:1]).domain == (1, 4, 4)
    assert both.bind(inner=block[:, ::2], out=block[:, 1::2]).domain == (6, 3, 6)
    with pytest.raises(dl.OverlapError, match="shares memory"):
        both.bind(inner=block[1:-1], out=block[:, :, 5:])
    numbers = np.zeros((3, 3, 3), "complex128")
    assert both.bind(inner=numbers.real, out=numbers.imag).domain == (3, 3, 3)


CUTS = st.builds(slice, st.none() | st.integers(0, 6), st.none() | st.integers(0, 6), st.integers(-3, 3).filter(bool))


@given(st.tuples(CUTS, CUTS), st.tuples(CUTS, CUTS))
@example(np.s_[:2, :], np.s_[2:, :])
@example(np.s_[:3, :], np.s_[2:, :])
@example(np.s_[:, ::2], np.s_[:, 1::2])
@example(np.s_[:, ::2], np.s_[:, ::-2])
@example(np.s_[:, ::-3], np.s_[:, ::2])
@example(np.s_[:, 1:1], np.s_[:, :])
def test_sharing_is_numpys_exact_answer(a: tuple[slice, slice], b: tuple[slice, slice]) -> None:
    block = np.zeros((5, 6))
    one, other = block[a], block[b]
    sig = dl.Signature(a=spec(), b=spec(access="w"))
    if np.shares_memory(one, other):
        with pytest.raises(dl.OverlapError, match="shares memory"):
            sig.bind(a=one, b=other)
    else:
        assert sig.bind(a=one, b=other).b.ptr == other.ctypes.data


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
    with pytest.raises(dl.OverlapError, match="elements may share memory"):
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
    for sig, b in (
        (sharing("copy"), array[::-1]),
        (sharing("copy"), array[1:]),
        (sharing("copy"), dl.from_dlpack(array, origin=(1,))),
        (sharing("copy", dtype="float32"), array),
        (sharing("copy", alignment_size=4096), array),
    ):
        with pytest.raises(dl.OverlapError, match=r'^field "b": it shares memory with field "a", and a temporary copy'):
            sig.bind(a=array, b=b)
    # Without a temporary, or apart from each other, they are used.
    sharing("copy").bind(a=np.zeros(4), b=np.zeros(4)[::-1])
    with sharing("copy").bind(a=array[::2], b=array[1::2]) as fields:
        assert fields.a.ptr != fields.b.ptr
    both_read = dl.Signature(on_mismatch="copy", allow_overlap=True, a=spec("I"), b=spec("I"))
    with both_read.bind(a=array, b=array[1:]) as fields:
        assert dl.as_numpy(fields.b).tolist() == [1.0, 2.0, 3.0]
