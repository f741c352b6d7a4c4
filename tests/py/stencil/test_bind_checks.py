"""Every check of `bind`: of the fields' names, and of each argument, with its error or warning."""

import gc
import re
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlfield as dl
from calls import F8, W8, Array, cube, misaligned, signature, spec
from fakes import FakeTensor, OldProducer, RaisingProducer
from fakes_interfaces import Exposing, Raising, cuda, interface_of


def readonly(array: Array) -> Array:
    array.flags.writeable = False
    return array


def gaps(*strides: int) -> Array:
    """An array of 3 x 4 elements with these strides, which make some of them share memory."""
    return np.lib.stride_tricks.as_strided(np.zeros(9), (3, 4), strides, writeable=True)


ROWS = np.zeros((3, 4))
DISAGREEING = Exposing(__array_interface__=interface_of(ROWS), __gt_dims__="IJ", dims=("J", "I"))
# A field, an argument that does not fit, and the error; the gallery has more.
REFUSED: list[tuple[dl.FieldSpec, Any, type[Exception], str]] = [
    (F8, cube().astype("M8[s]"), dl.DTypeError, "dtype: .*date or time span"),
    (F8, cube().astype(">f8"), dl.DTypeError, "dtype: .*>f8"),
    (spec(), cube(), dl.DimsError, "dims: .* got 3 dimensions"),
    (spec(), np.float64(3), dl.DimsError, "dims: .* got 0 dimensions"),
    (spec(), dl.zeros((3, 4, 5)), dl.DimsError, r"dims: .* got \(I, J, K\)"),
    (F8, dl.zeros((3, 4)), dl.DimsError, r"dims: .* got \(I, J\)"),
    (spec("IJ0"), dl.zeros((2, 2, 2, 2), dims="IJ01"), dl.DimsError, r"dims: .* got \(I, J, 0, 1\)"),
    (spec(), DISAGREEING, dl.DimsError, r"dims: expected \(I, J\), as __gt_dims__ has, got \(J, I\)"),
    (F8, cuda(shape=(2, 2, 2), typestr="<f8"), dl.DeviceError, ".*cuda:0.*cpu"),
    (spec(alignment_size=64), misaligned(), dl.LayoutError, "alignment_size: .*multiple of 64.*0x[0-9a-f]+8"),
    (spec(access="w"), readonly(np.zeros((3, 4))), dl.ExchangeError, "access: .*read-only"),
    (
        spec(access="w"),
        OldProducer(FakeTensor(ROWS, version=None)),
        dl.ExchangeError,
        r"access: .*legacy DLPack capsule cannot .*pass dl\.describe\(obj, writable=True\)",
    ),
    (spec("I", "uint8", access="w"), b"abc", dl.ExchangeError, "access: .*read-only"),
    (spec(access="rw"), gaps(0, 8), dl.OverlapError, r"strides: .* \(0, 1\) elements for shape \(3, 4\)"),
    (spec(access="w"), gaps(16, 8), dl.OverlapError, r"strides: .* \(2, 1\) elements for shape \(3, 4\)"),
]


@pytest.mark.parametrize(("field", "argument", "error", "message"), REFUSED)
def test_bad_arguments_are_named(field: dl.FieldSpec, argument: Any, error: type[Exception], message: str) -> None:
    sig = dl.Signature(x=field)
    for _ in range(2):
        with pytest.raises(error, match=f'^field "x": {message}'):
            sig.bind(x=argument)


def test_fields_that_are_read_may_share_memory_and_be_read_only() -> None:
    sig = dl.Signature(x=spec(), y=spec(), out=spec(access="w"))
    array = readonly(np.zeros((3, 4)))
    wide = np.broadcast_to(np.zeros(4), (3, 4))
    assert sig.bind(x=array, y=array, out=np.zeros((3, 4))).x.readonly
    assert sig.bind(x=gaps(16, 8), y=wide, out=np.zeros((3, 4))).y.strides == (0, 8)
    assert dl.Signature(x=spec()).bind(x=gaps(16, 8)).x.strides == (16, 8)


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


def test_equivalent_layouts_are_not_slow() -> None:
    sig = dl.Signature(x=dl.FieldSpec("float64", "IJK", layout=(2, 1, 0)))
    quick = [
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
        expected, found = re.findall(r"\([\d, ]+\)", str(caught[0].message))
        assert expected == str(layout)
        assert found != expected


class OwnError(Exception):
    pass


@pytest.mark.parametrize("error", [OwnError("mine"), KeyboardInterrupt(), SystemExit(3)])
def test_a_producers_exception_gets_the_fields_name(error: BaseException) -> None:
    sig = dl.Signature(a=spec(), b=spec())
    array = np.zeros((3, 4))
    held = sys.getrefcount(array)

    def partly(name: str) -> Any:
        """An object with an array interface and an attribute that raises."""
        producer = Raising(name, error)
        if name != "__array_interface__":
            vars(producer)["__array_interface__"] = interface_of(array.copy())
        return producer

    names = ["__array_interface__", "__gt_data_interface__", "__gt_dims__", "__gt_origin__", "__dlpack__", "dims"]
    for producer in [RaisingProducer(error), *map(partly, names)]:
        with pytest.raises(type(error)) as caught:
            sig.bind(a=array, b=producer)
        assert caught.value is error
        assert error.__notes__[-1] == 'field "b"'
    del producer, caught
    error.__traceback__ = None
    gc.collect()
    assert sys.getrefcount(array) == held


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


def test_names_are_checked() -> None:
    with pytest.raises(TypeError, match='"x": unexpected; the fields are none'):
        dl.Signature().bind(x=5)
    with pytest.raises(TypeError, match=r"'bind' for 'dlfield.Signature' objects doesn't apply to a 'int' object"):
        dl.Signature.bind(5)  # type: ignore[arg-type]


class Odd(str):
    """A str subclass whose equal texts are different keys, so that a name can be passed twice."""

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


def test_a_name_given_twice_is_refused() -> None:
    sig = dl.Signature(a=spec(), b=spec())
    array = np.zeros((2, 2))
    mappings: Any = [{Odd("a"): array, Odd("a"): array}, {"b": array, Odd("a"): array, Odd("a"): array}]
    for twice in mappings:
        with pytest.raises(TypeError, match=r'field "a": named twice'):
            sig.bind(**twice)
    assert sig.bind(**{Odd("a"): array, "b": array}).a.ptr == array.ctypes.data


def test_names_of_every_kind() -> None:
    names = ["a b", "", "ä", "self", "fields", "domain", "__enter__", "name", "py", "0", "a" * 1000]
    sig = signature({name: spec("I") for name in names})
    arrays = {name: np.zeros(n + 1) for n, name in enumerate(names)}
    bound = sig.bind(**arrays)
    assert {name: bound[name].ptr for name in names} == {name: array.ctypes.data for name, array in arrays.items()}
    assert bound.domain == (1,)
    assert getattr(bound, "a b").shape == (1,)
    assert bound.self.shape == (4,)
    with bound as fields:
        assert fields is bound
    with pytest.raises(dl.DTypeError, match=r'field "a b": dtype'):
        sig.bind(**{**arrays, "a b": np.zeros(3, "f4")})
    with pytest.raises((TypeError, UnicodeEncodeError)):
        sig.bind(**{"\ud800": np.zeros(3)})
    with pytest.raises((TypeError, UnicodeEncodeError)):
        signature({"\ud800": spec()})


def test_unknown_names() -> None:
    bound = dl.Signature(x=F8, out=W8).bind(x=cube(), out=cube())
    assert not hasattr(bound, "y")
    wrong: list[Any] = ["y", 0, None, ("x",), b"x", "\ud800"]
    for key in wrong:
        with pytest.raises(KeyError, match=r"the fields are x, out"):
            bound[key]


def test_names_need_not_be_interned() -> None:
    sig = signature({"".join(["na", "me"]): F8, "other": F8})
    array = cube()
    for order in (["name", "other"], ["other", "name"]):
        assert sig.bind(**{"".join(list(name)): array for name in order}).name.ptr == array.ctypes.data


def test_a_thousand_fields() -> None:
    names = [f"field{n}" for n in range(1000)]
    sig = signature({name: spec("I", access="rw" if n % 10 == 0 else "r") for n, name in enumerate(names)})
    block = np.zeros((1000, 4))
    arrays = {name: block[n] for n, name in enumerate(names)}
    bound = sig.bind(**dict(reversed(arrays.items())))
    assert [bound[name].ptr for name in names] == [array.ctypes.data for array in arrays.values()]
    with pytest.raises(dl.OverlapError, match=r'field "field10": .* with field "field999"'):
        sig.bind(**{**arrays, "field999": block[10]})
