"""Every check of `bind`, with its message or warning."""

import gc
import re
import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlfield as dl
from calls import F8, W8, Array, cube, misaligned, spec
from fakes import FakeTensor, OldProducer, RaisingProducer
from fakes_interfaces import Exposing, Raising, cuda, interface_of


class Case(NamedTuple):
    spec: dl.FieldSpec
    argument: Callable[[], Any]
    error: type[BaseException]
    message: str


def case(spec: dl.FieldSpec, argument: Any, error: type[BaseException], message: str) -> Case:
    return Case(spec, lambda: argument, error, message)


def readonly(array: Array) -> Array:
    array.flags.writeable = False
    return array


SHARED = np.lib.stride_tricks.as_strided(np.zeros(9), (3, 4), (16, 8), writeable=True)
CHECKS = {
    "no array": case(F8, 5, dl.NotAnArrayError, r'^field "x": .*int'),
    "dtype": case(F8, cube(dtype="float32"), dl.DTypeError, r'^field "x": dtype: float32; wanted is float64$'),
    "dtype never": case(F8, cube().astype("M8[s]"), dl.DTypeError, r'^field "x": dtype: .*date or time span'),
    "other byte order": case(F8, cube().astype(">f8"), dl.DTypeError, r'^field "x": .*>f8'),
    "too few": case(
        F8, np.zeros((3, 4)), dl.DimsError, r'^field "x": dims: 2 dimensions without labels; wanted are \(I, J, K\)'
    ),
    "too many": case(spec(), cube(), dl.DimsError, r"3 dimensions without labels; wanted are \(I, J\)"),
    "a scalar": case(spec(), np.float64(3), dl.DimsError, r"0 dimensions without labels; wanted are \(I, J\)"),
    "other labels": case(
        spec(), dl.zeros((3, 4), dims="JK"), dl.DimsError, r'^field "x": dims: \(J, K\); wanted are \(I, J\)'
    ),
    "more labels": case(spec(), dl.zeros((3, 4, 5)), dl.DimsError, r"dims: \(I, J, K\); wanted are \(I, J\)"),
    "fewer labels": case(F8, dl.zeros((3, 4)), dl.DimsError, r"dims: \(I, J\); wanted are \(I, J, K\)"),
    "one data dimension too many": case(
        spec("IJ0"), dl.zeros((2, 2, 2, 2), dims="IJ01"), dl.DimsError, r"dims: \(I, J, 0, 1\); wanted are \(I, J, 0\)"
    ),
    "sources that disagree": case(
        spec(),
        Exposing(__array_interface__=interface_of(np.zeros((3, 4))), __gt_dims__="IJ", dims=("J", "I")),
        dl.DimsError,
        r'^field "x": dims has \(J, I\), but __gt_dims__ has \(I, J\)',
    ),
    "extent": case(
        spec(shape=(None, 5)),
        np.zeros((3, 4)),
        dl.LayoutError,
        r'^field "x": shape: 4 points in dimension "J"; wanted are 5',
    ),
    "device": case(F8, cuda(shape=(2, 2, 2), typestr="<f8"), dl.DeviceError, r'^field "x": .*cuda:0.*wanted.*cpu'),
    "alignment": case(
        spec(alignment_size=64), misaligned(), dl.LayoutError, r'^field "x": .*0x[0-9a-f]+8.*multiple of 64'
    ),
    "read-only": case(
        spec(access="w"),
        readonly(np.zeros((3, 4))),
        dl.ExchangeError,
        r'^field "x": access: the memory is read-only; it is written, so pass an array that may be written',
    ),
    "read-only tensor": case(
        spec(access="rw"), dl.zeros((3, 4)).as_readonly(), dl.ExchangeError, r'"x": access: .*read-only'
    ),
    "legacy capsule": case(
        spec(access="w"),
        OldProducer(FakeTensor(np.zeros((3, 4)), version=None)),
        dl.ExchangeError,
        r'^field "x": access: .*read-only; its legacy DLPack capsule cannot .*pass dl\.describe\(obj, writable=True\)',
    ),
    "bytes": case(spec("I", "uint8", access="w"), b"abc", dl.ExchangeError, r"read-only"),
    "broadcast": case(
        spec(access="rw"),
        np.lib.stride_tricks.as_strided(np.zeros(4), (3, 4), (0, 8), writeable=True),
        dl.LayoutError,
        r'^field "x": strides: \[0, 1\] elements for shape \[3, 4\] may make elements share memory',
    ),
    "rows that overlap": case(
        spec(access="w"), SHARED, dl.LayoutError, r'^field "x": strides: \[2, 1\] elements for shape \[3, 4\]'
    ),
}


@pytest.mark.parametrize("name", CHECKS)
def test_bad_arguments_are_named(name: str) -> None:
    wrong = CHECKS[name]
    sig = dl.Signature(x=wrong.spec)
    for _ in range(2):
        with pytest.raises(wrong.error) as caught:
            sig.bind(x=wrong.argument())
        assert re.search(wrong.message, str(caught.value)), str(caught.value)


def test_fields_that_are_read_may_share_memory_and_be_read_only() -> None:
    sig = dl.Signature(x=spec(), y=spec(), out=spec(access="w"))
    array = readonly(np.zeros((3, 4)))
    wide = np.broadcast_to(np.zeros(4), (3, 4))
    assert sig.bind(x=array, y=array, out=np.zeros((3, 4))).x.readonly
    assert sig.bind(x=SHARED, y=wide, out=np.zeros((3, 4))).y.strides == (0, 8)


def test_jax_is_read_only(jnp: Any) -> None:
    with pytest.raises(dl.ExchangeError, match=r'"out": access: the memory is read-only'):
        dl.Signature(out=W8).bind(out=jnp.zeros((2, 3, 4), "float32"))


def test_the_first_compute_point_is_aligned() -> None:
    sig = dl.Signature(x=spec(alignment_size=64))
    field = dl.zeros((6, 8), dims="IJ", halo=((0, 0), (1, 1)), alignment_size=64)
    assert field.ptr % 64 != 0
    assert sig.bind(x=field).x.ptr == field.ptr
    based = dl.zeros((6, 8), dims="IJ", alignment_size=64)
    assert sig.bind(x=based).x.ptr % 64 == 0
    with pytest.raises(dl.LayoutError, match=r'field "x": .*multiple of 64'):
        sig.bind(x=dl.zeros((6, 8), dims="IJ", origin=(0, 1), alignment_size=64))
    # An empty field cannot be misaligned.
    assert sig.bind(x=misaligned()[:0]).x.size == 0
    # The alignment need not be a power of two.
    assert dl.Signature(x=spec(alignment_size=24)).bind(x=dl.zeros((3, 3), alignment_size=24)).x.ptr % 24 == 0


def test_another_layout_is_a_warning_at_the_callers_line() -> None:
    sig = dl.Signature(x=spec(layout=(1, 0)), y=spec(layout=(0, 1)))
    array = np.zeros((3, 4))
    for _ in range(2):
        with pytest.warns(dl.LayoutWarning) as caught:
            bound = sig.bind(x=array, y=array)
        (warning,) = caught
        assert str(warning.message) == 'field "x": layout: [0, 1] for dims (I, J); wanted is [1, 0]; this is slow'
        assert warning.filename == __file__
        assert bound.x.ptr == array.ctypes.data


def test_equivalent_layouts_are_not_slow() -> None:
    sig = dl.Signature(x=dl.FieldSpec("float64", "IJK", layout=(2, 1, 0)))
    quick = [
        np.zeros((3, 4, 5), order="F"),
        np.zeros((3, 1, 1)),
        np.zeros((1, 1, 5)),
        np.zeros((3, 0, 5)),
        np.zeros((3, 4, 5), order="F")[::-1, ::2, ::-1],
        dl.zeros((5, 4, 3), dims="KJI"),
        # A broadcast dimension costs no memory access.
        np.broadcast_to(np.zeros(5), (3, 4, 5)),
        np.broadcast_to(np.zeros((3, 1, 1)), (3, 4, 5)),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for array in quick:
            sig.bind(x=array)


@given(st.data())
def test_a_layout_is_slow_where_its_strides_are_out_of_order(data: st.DataObject) -> None:
    layout = tuple(data.draw(st.permutations(range(3))))
    shape = data.draw(st.tuples(*[st.integers(0, 3)] * 3))
    array = np.zeros(shape).transpose(data.draw(st.permutations(range(3))))
    by_rank = [axis for _, axis in sorted(zip(layout, range(3), strict=True))]
    steps = [array.strides[axis] for axis in by_rank if array.shape[axis] != 1]
    slow = array.size > 0 and steps != sorted(steps, reverse=True)
    sig = dl.Signature(x=dl.FieldSpec("float64", "IJK", layout=layout))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sig.bind(x=array)
    assert [warning.category for warning in caught] == [dl.LayoutWarning] * slow
    if slow:
        found, wanted = re.findall(r"\[[\d, ]+\]", str(caught[0].message))
        assert wanted == str(list(layout))
        assert found != wanted


def test_a_warning_that_is_an_error_is_raised() -> None:
    sig = dl.Signature(x=spec(layout=(1, 0)))
    array = np.zeros((3, 4))
    held = sys.getrefcount(array)
    for _ in range(3):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(dl.LayoutWarning, match='"x"'):
                sig.bind(x=array)
    assert sys.getrefcount(array) == held


class OwnError(Exception):
    pass


@pytest.mark.parametrize("error", [OwnError("mine"), KeyboardInterrupt(), SystemExit(3)])
def test_a_producers_exception_gets_the_fields_name(error: BaseException) -> None:
    sig = dl.Signature(a=spec(), b=spec())
    array = np.zeros((3, 4))
    held = sys.getrefcount(array)
    names = ["__array_interface__", "__gt_data_interface__", "__gt_dims__", "__gt_origin__", "__dlpack__", "dims"]
    producers: list[Any] = [RaisingProducer(error), *(partly(array, name, error) for name in names)]
    for producer in producers:
        with pytest.raises(type(error)) as caught:
            sig.bind(a=array, b=producer)
        assert caught.value is error
        assert error.__notes__[-1] == 'field "b"'
    del producers, producer, caught
    error.__traceback__ = None
    gc.collect()
    assert sys.getrefcount(array) == held


def partly(array: Array, name: str, error: BaseException) -> Any:
    """An object with an array interface and an attribute that raises."""

    class Partly(Raising):
        def __init__(self) -> None:
            super().__init__(name, error)
            if name != "__array_interface__":
                self.__array_interface__ = interface_of(array.copy())

    return Partly()


def test_the_callers_word_makes_a_legacy_capsule_writable() -> None:
    """A description with `writable=True` is an output, and owned or exported as writable."""
    array = np.zeros((3, 4))
    producer = OldProducer(FakeTensor(array, version=None))
    sig = dl.Signature(x=dl.FieldSpec("float64", "IJ", access="w"))
    with sig.bind(x=dl.describe(producer, writable=True)) as fields:
        dl.as_numpy(fields.x)[0, 0] = 1
    dl.from_dlpack(dl.describe(producer, writable=True))[0, 1] = 2
    dl.as_numpy(dl.describe(producer, writable=True))[0, 2] = 3
    assert array[0].tolist() == [1, 2, 3, 0]
    assert dl.from_dlpack(producer).readonly
