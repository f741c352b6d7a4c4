"""Malformed producers cause a dlfield error or their own exception, never a crash or a leak.

Tables of wrong values for each key of the dictionaries and each field of DLPack's structs, alone, in every pair, and as
hypothesis combines them.
"""

import itertools
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlfield as dl
from fakes import FakeTensor, Producer, int_matrix
from fakes_interfaces import MISSING, Exposing, FakeBuffer, changed, device_interface, double_matrix, interface_of
from leak_checks import Growth, grown


class MineError(Exception):
    """A producer's own exception."""


class Hostile:
    """Raises in every operation on a value of a dictionary."""

    def __index__(self) -> int:
        raise MineError

    def __bool__(self) -> bool:
        raise MineError

    def __iter__(self) -> Iterator[Any]:
        raise MineError

    def __len__(self) -> int:
        raise MineError

    def __repr__(self) -> str:
        raise MineError

    def __eq__(self, _other: object) -> bool:
        raise MineError

    __hash__ = None  # type: ignore[assignment]


HUGE = 1 << 100
EDGES = [0, -1, 1, 1 << 31, (1 << 63) - 1, -(1 << 63), 1 << 63, HUGE, -HUGE]
JUNK = [MISSING, None, True, 1.5, "x", b"x", "", (), [], {}, {1}, object(), Hostile(), range(3), float("nan"), 1j]
LISTS = [
    *JUNK,
    *EDGES,
    *((edge, 3) for edge in EDGES),
    *((2, edge) for edge in EDGES),
    *((2,), (2, 3, 1), (2, None), (2, "3"), (2.0, 3.0), (2, Hostile()), [2, 3], (2, (3,)), (0, 3), (HUGE,) * 3),
    *((1,) * length for length in (64, 65, 100_000)),
    np.array([2, 3]),
    itertools.repeat(1),
]
TYPESTRS = [
    *("<f4", ">f8", "=f8", "|f8", "|b1", "<b8", "|V8", "|V0", "|V99999999999999999999999", "|O8", "|S8", "<U2"),
    *("<M8[s]", "<m8", "<f16", "<f3", "<f99999999999999999999999", "<f-8", "<t8", "f8", "float64", "<", "<f8\0"),
    *("<\udc80", "🙂🙂"),
]

# Every value of these is wrong, or at least unusual, for its key.
KEYS: dict[str, list[Any]] = {
    "shape": LISTS,
    "strides": LISTS,
    "typestr": [*JUNK, *EDGES, *TYPESTRS],
    "version": [*JUNK, *EDGES, 2, 4],
    "data": [
        *JUNK,
        *EDGES,
        *((), (1,), (4096, False, 0), [4096, False]),
        *((address, False) for address in (0, None, "0x10", 1.5, Hostile(), -1, (1 << 64) - 1, 1 << 64, HUGE)),
        *((4096, readonly) for readonly in (None, "x", Hostile())),
        *(b"", bytes(8), bytearray(48), memoryview(bytes(96))[::2], memoryview(bytes(48)).cast("d")),
    ],
    "offset": [*JUNK, *EDGES, 8, -8],
    "stream": [*JUNK, *EDGES, 2],
    "mask": JUNK,
    "descr": [
        *JUNK,
        *([("", "<f8")], [("", "<f4")], [("a", "<f8")], [("", "<f8", (2,))], [("", "|V4"), ("a", "<f8")]),
        *([["", "<f8"]], [1], [()], (("", "<f8"),), [("", Hostile())]),
    ],
}

MATRIX = double_matrix()


def array_interface(changes: dict[str, Any]) -> Any:
    return Exposing(__array_interface__=interface_of(MATRIX, **changes))


def own_buffer(changes: dict[str, Any]) -> Any:
    """An interface with a buffer in `data`, unless `changes` replace that."""
    return Exposing(__array_interface__=interface_of(MATRIX, **{"data": bytearray(48), "strides": None, **changes}))


def cuda_interface(changes: dict[str, Any]) -> Any:
    return Exposing(__cuda_array_interface__=device_interface(**changes))


def hip_interface(changes: dict[str, Any]) -> Any:
    return Exposing(__hip_array_interface__=device_interface(**changes))


def gt_interface(changes: dict[str, Any]) -> Any:
    return Exposing(__gt_data_interface__={None: lambda: interface_of(MATRIX, **changes)})


def gt_gpu_interface(changes: dict[str, Any]) -> Any:
    return Exposing(__gt_interface__=lambda: {("gpu", 1): device_interface(**changes)})


MAKERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    maker.__name__: maker
    for maker in (array_interface, own_buffer, cuda_interface, hip_interface, gt_interface, gt_gpu_interface)
}


def attempt(read: Callable[..., Any], producer: Any) -> bool:
    """Whether `producer` is accepted; any error but dlfield's or the producer's own fails the test."""
    try:
        found = read(producer)
    except (dl.Error, MineError):
        return False
    # The properties of an accepted object must be consistent.
    assert len(found.shape) == len(found.strides) == found.ndim <= 64
    assert all(extent >= 0 for extent in found.shape)
    assert found.nbytes == found.size * found.itemsize < 1 << 63
    assert found.size == 0 or found.ptr > 0
    # The repr of a tensor would read its elements, at an address that may not exist.
    assert repr(dl.describe(found))
    return True


def check(maker: Callable[[dict[str, Any]], Any], changes: dict[str, Any]) -> None:
    for read in (dl.describe, dl.from_dlpack):
        producer = maker(changes)
        gone = weakref.ref(producer)
        attempt(read, producer)
        del producer
        assert gone() is None, "kept by something"


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("maker", MAKERS)
def test_each_wrong_value(maker: str, key: str) -> None:
    for value in KEYS[key]:
        check(MAKERS[maker], {key: value})


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(KEYS, 2)))
def test_each_pair_of_wrong_values(first: str, second: str) -> None:
    for maker in (array_interface, own_buffer, cuda_interface):
        for one, other in itertools.product(KEYS[first], KEYS[second]):
            with suppress(dl.Error, MineError):
                dl.describe(maker({first: one, second: other}))


@st.composite
def wrong_dictionaries(draw: st.DrawFn) -> dict[str, Any]:
    keys = draw(st.lists(st.sampled_from(sorted(KEYS)), unique=True, max_size=len(KEYS)))
    numbers = st.one_of(st.integers(-9, 9), st.integers(), st.sampled_from(EDGES))
    anything = st.recursive(
        st.one_of(st.none(), st.booleans(), numbers, st.floats(), st.text(max_size=5), st.binary(max_size=64)),
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.lists(inner, max_size=4).map(tuple)),
        max_leaves=6,
    )
    return {key: draw(st.one_of(by_position(KEYS[key]), anything)) for key in keys}


def by_position(values: list[Any]) -> st.SearchStrategy[Any]:
    """Draw one of `values` by index, as they cannot be hashed; without those whose repr raises, for the report."""
    tame = [value for value in values if not holds_hostile(value)]
    return st.integers(0, len(tame) - 1).map(tame.__getitem__)


def holds_hostile(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(holds_hostile(item) for item in value)
    return isinstance(value, Hostile)


@given(maker=st.sampled_from(sorted(MAKERS)), changes=wrong_dictionaries())
def test_any_combination(maker: str, changes: dict[str, Any]) -> None:
    check(MAKERS[maker], changes)


ENDLESS = itertools.repeat(1)
LABELS: dict[str, list[Any]] = {
    "dims": [*JUNK, *EDGES, "K", "KK", ("K",), ("K", "K"), ("K", ""), ("K", 1), ENDLESS, (Hostile(), "K")],
    "halo": [*LISTS, ENDLESS, ((1, 1), (1, 1, 1)), (("x", 1), 1), ((1, HUGE), 1), (9, 9), ((0, 3), 0)],
    "__gt_dims__": [*JUNK, *EDGES, "K", "KK", ENDLESS, lambda: ENDLESS, lambda: 5],
    "__gt_origin__": [*LISTS, "KJ", ENDLESS, lambda: ENDLESS, lambda: 5, (9, 9), (-1, 0)],
    "default_origin": [*LISTS, ENDLESS, {"I": 0}],
}


@pytest.mark.parametrize("name", LABELS)
def test_each_wrong_label(name: str) -> None:
    """An object's wrong labels cause dlfield's errors, not a TypeError as wrong arguments do."""

    def labelled(changes: dict[str, Any]) -> Any:
        attributes = changes if name.startswith("_") or name == "default_origin" else {}
        keys = {} if attributes else changes
        return Exposing(__gt_data_interface__={None: interface_of(MATRIX, **keys)}, **changed({}, attributes))

    taken = []
    for value in LABELS[name]:
        check(labelled, {name: value})
        taken.append(attempt(dl.describe, labelled({name: value})))
        for get in (dl.get_dims, dl.get_origin):
            with suppress(dl.Error, MineError):
                get(labelled({name: value}))
    assert True in taken
    assert False in taken


# Values of the attributes themselves.
ATTRIBUTES = ["__array_interface__", "__cuda_array_interface__", "__hip_array_interface__"]


@pytest.mark.parametrize("name", [*ATTRIBUTES, "__gt_data_interface__", "__gt_interface__"])
def test_attributes_that_are_no_dictionary(name: str) -> None:
    for value in (5, "x", b"x", 1.5, (), [], (("shape", (1,)),), object(), Hostile(), {}, {1: 2}, {"shape": (1,)}):
        for read in (dl.describe, dl.from_dlpack):
            with pytest.raises((dl.Error, MineError)):
                read(Exposing(**{name: value}))


def refusals() -> dict[str, Callable[[], object]]:
    """Imports of each kind of producer with wrong values, for `leak_checks`."""
    cases = [{key: value} for key, values in KEYS.items() for value in values[:30]]

    def use(make: Callable[[dict[str, Any]], Any]) -> None:
        for changes in cases:
            with suppress(dl.Error, MineError):
                dl.describe(make(changes))

    return {name: partial(use, make) for name, make in MAKERS.items()}


ROUNDS = 20


@cache
def growth() -> dict[str, Growth]:
    return grown("test_malformed", "refusals", ROUNDS, least=300)


@pytest.mark.parametrize("maker", MAKERS)
def test_refusals_leak_nothing(maker: str) -> None:
    """Repeated refusals leak no bytes, objects or references."""
    found = growth()[maker]
    found.assert_none_in(ROUNDS)


BUFFER_FIELDS: dict[str, list[Any]] = {
    "shape": [(2, -3), (1 << 40, 1 << 40), (0, 3), ((1 << 63) - 1, 2)],
    "strides": [(24, 4), (-24, 8), ((1 << 63) - 8, 8), (-(1 << 63), 8), (0, 0)],
    "suboffsets": [(0, 0), (-1, -1), (-1, 5)],
    "null_shape": [True],
    "null_strides": [True],
    "ndim": [-1, 0, 1, -(1 << 31)],
    "len": [0, 8, 47, -1, (1 << 63) - 1, -(1 << 63)],
    "itemsize": [0, 1, 4, -8, (1 << 63) - 1],
    "format": [None, b"", b"f", b">d", b"T{d:a:}", b"\xff", b"2d", b"(2)d", b"O", b"Zd", b"d" * 1000],
    "buf": [None, 1, (1 << 64) - 8],
    "readonly": [1, -1, 7],
}


def pairs(table: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """Every entry alone, and every two of different keys."""
    for key, values in table.items():
        yield from ({key: value} for value in values)
    for first, second in itertools.combinations(table, 2):
        for one, other in itertools.product(table[first], table[second]):
            yield {first: one, second: other}


def test_each_pair_of_wrong_fields_of_a_buffer() -> None:
    for fields in pairs(BUFFER_FIELDS):
        for read in (dl.describe, dl.from_dlpack):
            fake = FakeBuffer(MATRIX, **fields)
            taken = attempt(read, fake)
            assert (fake.requested, fake.released) == (1, 1), (fields, taken)


TENSOR_FIELDS: dict[str, list[Any]] = {
    "version": [None, (1, 0), (1, 2), (1, 99), (2, 0), (0, 8)],
    "flags": [1, 2, 4, 7, (1 << 64) - 1],
    "device": [(99, 0), (0, 0), (2, 0), (3, 0), (13, 5), (10, -1), (1, 7), (-1, -1)],
    "dtype": [(99, 32, 1), (2, 33, 1), (3, 64, 1), (0, 32, 2), (0, 32, 0), (0, 4, 1), (2, 128, 1), (5, 255, 1)],
    "ndim": [-1, 0, 1, 65, 1 << 30, -(1 << 31)],
    "shape": [(2, -3), (1 << 40, 1 << 40), (0, 3), ((1 << 63) - 1, 2)],
    "strides": [(-3, -1), (1 << 62, 1), (0, 0), (-(1 << 63), 1)],
    "null_shape": [True],
    "null_strides": [True],
    "null_data": [True],
    "null_deleter": [True],
    "byte_offset": [8, 1 << 40, 1 << 63, (1 << 64) - 8],
}


@pytest.mark.parametrize("first", TENSOR_FIELDS)
def test_each_pair_of_wrong_fields_of_a_tensor(first: str) -> None:
    """The deleter is called once after each error."""
    for fields in pairs(TENSOR_FIELDS):
        if next(iter(fields)) != first:
            continue
        for read in (dl.describe, dl.from_dlpack):
            for raw in (False, True):
                fake = FakeTensor(int_matrix(), **fields)
                attempt(read, fake.capsule() if raw else Producer(fake))
                fake.capsules = [] if fields.get("null_deleter") else fake.capsules
                assert fake.settled(), fields


def test_capsules_are_consumed_once() -> None:
    fake = FakeTensor(int_matrix())
    capsule = fake.capsule()
    found = dl.from_dlpack(capsule)
    for read in (dl.describe, dl.from_dlpack):
        with pytest.raises(dl.ExchangeError, match="consumed"):
            read(capsule)
    assert fake.deleted == 0
    del found
    assert fake.deleted == 1


def test_the_unchanged_producers_are_accepted() -> None:
    """The unchanged producers are accepted; otherwise the tables would test nothing."""
    assert all(attempt(dl.describe, maker({})) for maker in MAKERS.values())
    assert changed({"a": 1}, {"a": MISSING}) == {}
    assert attempt(dl.describe, FakeBuffer(MATRIX))
    assert attempt(dl.describe, Producer(FakeTensor(int_matrix())))
