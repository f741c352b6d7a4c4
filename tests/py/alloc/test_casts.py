"""`t[...] = x` and `from_array(x, dtype)` against `np.copyto(..., casting="same_kind")`, bit for bit."""

from __future__ import annotations

import enum
import threading
import time
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
import xarray as xr

import dlfield as dl
from catalog import dtype_named
from fakes_interfaces import Exposing, host

NUMPY = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
NAMES = [*(np.dtype(code).name for code in NUMPY), "bfloat16", "float8_e4m3fn", "float8_e5m2", "int4"]


def whole(kind: np.dtype[Any]) -> npt.NDArray[Any]:
    """Limits, and numbers half-way between two floats of any width, with their neighbours."""
    powers = [1 << bits for bits in range(64)]
    ties = [
        (1 << bits) + (1 << bits - below) for bits in range(64) for below in (7, 8, 11, 23, 24, 52, 53) if below < bits
    ]
    near = [number + off for number in (0, *powers, *ties) for off in (-1, 0, 1)]
    mask = (1 << 64) - 1
    bits = np.array([number & mask for number in (*near, *(-number for number in near))], "u8")
    return bits.astype(kind)


def real(kind: np.dtype[Any]) -> npt.NDArray[Any]:
    """Zeros, infinities, quiet NaNs, denormals, limits, ties of every narrower type and their neighbours."""
    if kind.itemsize == 2:
        found = np.arange(1 << 16, dtype="u2").view(kind)
    else:
        units = 2.0 ** -np.arange(1, 54)
        small = 2.0 ** -np.arange(10, 160)
        plain = [0.0, 65504, 65519.999, 65520, 65536, 3.4028235677973366e38, 3.3895314e38, 3.3961776e38]
        limits = [1e300, 1e-320, np.inf, np.finfo(kind).max, np.finfo(kind).tiny, np.finfo(kind).smallest_subnormal]
        pieces = [1 + units, 1 + 3 * units, 1 - units, small, small * 1.5]
        ties = [near * (1 + sign * 2.0**-bits) for near, bits in ((1 + units, 45), (small, 40)) for sign in (-1, 1)]
        magnitudes = np.concatenate([np.array(plain + limits, "f8"), *pieces, *ties])
        payloads = np.array([0x7FF8000000000000, 0x7FF8123456789ABC, 0xFFFFFFFFFFFFFFFF], "u8").view("f8")
        found = np.concatenate([magnitudes, -magnitudes, payloads]).astype(kind)
    nan = np.isnan(found.astype("f4").astype("f8") if kind.itemsize == 2 else found)
    bits = found.view(f"u{kind.itemsize}")
    fraction = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}[kind.name]
    # Signaling NaNs are left out: half of NumPy's casts keep them, the other half make them quiet.
    signals = nan & ((bits >> (fraction - 1)) % 2 == 0)
    kept: npt.NDArray[Any] = found[~signals]
    return kept


def specials(name: str) -> npt.NDArray[Any]:
    kind = dtype_named(name)
    if name == "bool":
        return np.array([False, True])
    if kind.kind == "c":
        parts = real(np.dtype(f"f{kind.itemsize // 2}"))
        return np.stack([parts, parts[::-1]], axis=-1).view(kind)[..., 0]
    if kind.kind in "iu":
        return whole(kind)
    if name in ("float16", "bfloat16", "float32", "float64"):
        return real(kind)
    return np.arange(16 if name == "int4" else 256, dtype="u1").view(kind)


def cast(values: npt.NDArray[Any], target: npt.NDArray[Any]) -> bool:
    """Cast by NumPy; False if NumPy has no such cast."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            np.copyto(target, values, casting="same_kind")
    except TypeError:
        return False
    return True


@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize("source", NAMES)
@pytest.mark.filterwarnings("ignore")
def test_every_pair_is_cast_as_numpy_casts_it(source: str, target: str) -> None:
    values = specials(source)
    expected = np.zeros(values.shape, dtype_named(target))
    field = dl.zeros(values.shape, target)
    if not cast(values, expected):
        with pytest.raises(dl.DTypeError, match="same_kind"):
            field[...] = values
        with pytest.raises(dl.DTypeError, match="same_kind"):
            dl.from_array(values, target)
        assert not field.to_numpy().view("u1").any(), "nothing is written"
        return
    field[...] = values
    for found in (field, dl.from_array(values, target)):
        bits, expected = found.to_numpy().view("u1"), expected.view("u1")
        wrong = np.flatnonzero((bits != expected).reshape(len(values), -1).any(axis=1))[:3]
        assert not wrong.size, [(values[nth], found.to_numpy()[nth], expected[nth]) for nth in wrong]


@pytest.mark.parametrize(
    ("source", "target"), [("f8", "f4"), ("f4", "f8"), ("i2", "f2"), ("f2", "c16"), ("f4", "bfloat16")]
)
@pytest.mark.parametrize("backend", ["numpy", "gt:cpu_ifirst", "gtmc"])
@pytest.mark.parametrize(
    "view",
    [
        lambda a: a,
        lambda a: a.T.copy().T,
        lambda a: a[::-1, :, ::-1],
        lambda a: a[:1],
        lambda a: a[0, 0],
        lambda a: a[:, :1],
    ],
)
def test_casts_between_layouts(source: str, target: str, backend: str, view: Any) -> None:
    rng = np.random.default_rng(3)
    values = view(rng.integers(-300, 300, (19, 34, 23)).astype(source))
    expected = np.zeros((19, 34, 23), target)
    expected[...] = values
    field = dl.zeros((19, 34, 23), target, backend=backend)
    field[...] = values
    assert field.to_numpy().tolist() == expected.tolist()
    row = np.arange(34).astype(source)
    field[1::2, ::-1, 3] = row
    expected[1::2, ::-1, 3] = row
    assert field.to_numpy().tolist() == expected.tolist()


def test_a_cast_within_the_same_memory() -> None:
    memory = np.arange(64, dtype="f8")
    field = dl.from_dlpack(memory.view("f4")[:64])
    expected = memory.astype("f4")
    field[...] = memory
    assert field.to_numpy().tolist() == expected.tolist()


class OnlyArray:
    """An object whose only protocol is `__array__`, as datasets of h5py and netCDF4 are."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self.array


@pytest.mark.parametrize("wrap", [np.asarray, memoryview, OnlyArray, host, lambda data: xr.DataArray(data, dims="I")])
def test_numpy_converts_assigned_elements_of_the_other_byte_order(wrap: Any) -> None:
    """Files in classic NetCDF format give such arrays."""
    swapped = np.arange(4, dtype=np.dtype(np.float64).newbyteorder())
    field = dl.zeros((4,))
    field[...] = wrap(swapped)
    assert field.to_numpy().tolist() == [0, 1, 2, 3]
    field[1:3] = wrap(swapped[2:])
    assert field.to_numpy().tolist() == [0, 2, 3, 3]
    made = dl.from_array(wrap(swapped), backend="F")
    assert made.dtype == "float64"
    assert made.to_numpy().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", [">f4", ">f8", ">i2", ">c8", "longdouble", "clongdouble"])
def test_labels_stay_with_elements_that_numpy_converts(dtype: str) -> None:
    data = xr.DataArray(np.arange(6).astype(dtype).reshape(2, 3), dims=("K", "J"))
    for given in ("complex128", None) if dtype.startswith(">") else ("complex128",):
        made = dl.from_array(data, given)
        assert (made.dims, made.tolist()) == (("K", "J"), [[0, 1, 2], [3, 4, 5]])
    for key in (..., slice(None)):
        field = dl.zeros((3, 2), "complex128", dims="JK")
        field[key] = data
        assert field.tolist() == [[0, 3], [1, 4], [2, 5]]
    with pytest.raises(dl.DimsError, match=r"dims \(K, J\) are matched with dims \(I, J\) by label"):
        dl.zeros((2, 3), dims="IJ")[...] = data


def test_labels_are_judged_before_elements() -> None:
    text = xr.DataArray([["a", "b"]], dims=("K", "J"))
    with pytest.raises(dl.DimsError, match="by label"):
        dl.zeros((1, 2), dims="IJ")[...] = text
    with pytest.raises(dl.DTypeError, match="value: its dtype cannot be cast"):
        dl.zeros((2, 1), dims="JK")[...] = text
    unread = Exposing(__gt_data_interface__={None: {**np.zeros((2, 1), ">f8").__array_interface__, "dims": ("J", "K")}})
    with pytest.raises(dl.DTypeError, match="byte order"):
        dl.zeros((2, 1), dims="JK")[...] = unread
    with pytest.raises(dl.DTypeError, match=r"float128|longdouble"):
        dl.from_array(np.zeros(2, "longdouble"))


def test_dates_of_the_other_byte_order_are_named() -> None:
    with pytest.raises(dl.DTypeError, match="date or time span"):
        dl.from_array(np.zeros(2, np.dtype("M8[s]").newbyteorder()))


def test_other_threads_run_during_a_cast() -> None:
    source, field = np.ones(1 << 25), dl.zeros(1 << 25, "f4")
    stop, turns = threading.Event(), 0

    def count() -> None:
        nonlocal turns
        while not stop.is_set():
            turns += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        before = turns
        field[...] = source
        after = turns
    finally:
        stop.set()
        thread.join()
    assert after > before
    assert field.to_numpy()[-1] == 1


@pytest.mark.parametrize("backend", [None, "gt:cpu_ifirst", "gtmc"])
def test_a_cast_to_a_subarray_repeats_each_element(backend: str | None) -> None:
    values = np.arange(6000.0).reshape(5, 12, 100)
    found = dl.from_array(values, backend=backend).__array__(np.dtype(("f8", (3,))))
    assert found.tolist() == np.repeat(values[..., None], 3, axis=-1).tolist()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "uint64", "float32", "complex64"])
@pytest.mark.parametrize("numbers", [[1, 0], [200, 1], [-1, 1], [1, 2**40], [True, False], (1, 300), range(255, 257)])
def test_integers_in_lists_are_converted_as_numpy_converts_them(numbers: Any, dtype: str) -> None:
    try:
        expected = np.array(numbers, dtype)
    except OverflowError:
        with pytest.raises(OverflowError, match=rf"^data: expected -?\d+ to \d+ for {dtype}, got -?\d+$"):
            dl.from_array(numbers, dtype)
        field = dl.zeros(2, dtype)
        for key in (..., [0, 1], slice(None)):
            with pytest.raises(OverflowError, match=rf"^value: expected -?\d+ to \d+ for {dtype}, got -?\d+$"):
                field[key] = numbers
        assert field.tolist() == [0, 0]
        return
    assert dl.from_array(numbers, dtype).tolist() == expected.tolist()
    for key in (..., [0, 1], slice(None)):
        field = dl.zeros(2, dtype)
        field[key] = numbers
        assert field.tolist() == expected.tolist()


def test_numbers_that_do_not_fit_are_no_fields_either() -> None:
    with pytest.raises(OverflowError, match=r"^data: expected 0 to 255 for uint8, got 300$"):
        dl.from_array(300, "uint8")
    with pytest.raises(OverflowError, match=r"^data: expected -8 to 7 for int4, got -9$"):
        dl.from_array([7, -9], ml_dtypes.int4)


@pytest.mark.parametrize(
    ("dtype", "lowest", "highest"),
    [("int4", -8, 7), ("uint4", 0, 15), ("int8", -128, 127), ("uint64", 0, 2**64 - 1), ("int64", -(2**63), 2**63 - 1)],
)
def test_one_integer_has_to_fit_as_those_in_lists(torch: Any, dtype: str, lowest: int, highest: int) -> None:
    field = dl.zeros(2, dtype)

    class Enumerated(enum.IntEnum):
        LARGE = 10**30

    numbers: list[Any] = [lowest - 1, highest + 1, 10**30, -(2**128), Enumerated.LARGE]
    if highest < 2**62:
        kinds = (np.int64, np.int32, np.array, np.ma.array, dl.from_array, torch.tensor)
        numbers += [kind(number) for kind in kinds for number in (lowest - 1, highest + 1)]
    for number in numbers:
        told = f"expected {lowest} to {highest} for {dtype}, got {int(number)}$"
        for key in (0, ..., [0, 1]):
            with pytest.raises(OverflowError, match=f"^value: {told}"):
                field[key] = number
        with pytest.raises(OverflowError, match=f"^value: {told}"):
            field.fill(number)
        with pytest.raises(OverflowError, match=f"^fill_value: {told}"):
            dl.full(2, number, dtype)
        if number is not Enumerated.LARGE:
            with pytest.raises(OverflowError, match=f"^data: {told}"):
                dl.from_array(number, dtype)
    assert [int(number) for number in np.asarray(field)] == [0, 0]
    for number in (lowest, highest):
        field[...] = number
        assert [int(found) for found in np.asarray(field)] == [number, number]
        assert [int(found) for found in np.asarray(dl.full(2, number, dtype))] == [number, number]


def test_integers_of_more_than_64_bits_fit_floating_point_numbers_only() -> None:
    large = 2**70
    for dtype in (None, "int64", "uint8"):
        with pytest.raises(OverflowError, match=rf"^data: expected -?\d+ to \d+ for {dtype or 'int64'}, got {large}$"):
            dl.from_array([[1], [large]], dtype)
    field = dl.zeros(2, "int32")
    with pytest.raises(OverflowError, match=rf"^value: expected -?\d+ to \d+ for int32, got {-large}$"):
        field[...] = [1, -large]
    assert field.tolist() == [0, 0]
    for dtype in ("float32", "complex128", "bool"):
        assert dl.from_array([1, large], dtype).tolist() == np.array([1, large], dtype).tolist()
    with pytest.raises(OverflowError, match=r"^data: .*too large to convert to float"):
        dl.from_array([2**2000], "float64")
    with pytest.raises(dl.DTypeError, match=r"^data: integers of more than 64 bits cannot be cast to bfloat16"):
        dl.from_array([1, large], "bfloat16")
    with pytest.raises(dl.DTypeError, match="of Python objects"):
        dl.from_array([1, large, None], "float64")


def test_arrays_in_lists_have_to_fit_too() -> None:
    with pytest.raises(OverflowError, match=r"^data: expected 0 to 255 for uint8, got -1$"):
        dl.from_array([np.array([-1, 3])], "uint8")
    assert dl.from_array([np.array([1, 2**40])], "int64").tolist() == [[1, 2**40]]
    field = dl.zeros((1, 2), "int32")
    with pytest.raises(OverflowError, match=r"^value: expected -?\d+ to \d+ for int32, got 1099511627776$"):
        field[...] = [np.array([1, 2**40])]
    assert field.tolist() == [[0, 0]]


def test_lists_may_hold_views_of_what_they_are_assigned_to() -> None:
    field = dl.from_array([[1, 2], [3, 4]])
    field[...] = [field[1], field[0]]
    assert field.tolist() == [[3, 4], [1, 2]]
    column = dl.from_array([[0], [1], [2], [3]])
    column[1:] = [column[0], column[1], column[2]]
    assert column.tolist() == [[0], [0], [1], [2]]


def test_lists_of_integers_broadcast() -> None:
    field = dl.zeros((3,), "float32")
    field[...] = [[1, 2, 3]]
    assert field.tolist() == [1, 2, 3]
    number = dl.zeros((), "int16")
    number[...] = [7]
    assert number.item() == 7
