"""Labelled arithmetic on a device: CuPy computes what NumPy does on the host, with no copy to or from the host."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dlfield as dl
from driver import Driver
from labelled_fields import BINARY, fields
from storages import copies
from untyped import np

pytestmark = pytest.mark.usefixtures("cupy")

SIZES = {"I": 3, "J": 4, "K": 5, "0": 2}


def values_of(dims: str, dtype: str = "float64") -> Any:
    shape = tuple(SIZES[label] for label in dims)
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 7 + 1).astype(dtype)


def field(dims: str = "IJK", dtype: str = "float64", device: Any = "cuda:0", **keywords: Any) -> dl.Tensor:
    return dl.from_array(values_of(dims, dtype), dims=tuple(dims), device=device, **keywords)


def on_host(found: dl.Tensor) -> Any:
    return np.asarray(found.to_device("cpu"))


def parameters(found: dl.Tensor) -> dict[str, Any]:
    names = ("shape", "strides", "dtype", "dims", "layout", "alignment_size", "aligned_index", "halo", "origin")
    return {name: getattr(found, name) for name in names}


def same(found: Any, expected: Any, *, max_ulp: int = 0) -> None:
    """Check that `found` on the device equals `expected` on the host, floats up to some units in the last place."""
    if isinstance(expected, tuple):
        assert isinstance(found, tuple)
        for one, other in zip(found, expected, strict=True):
            same(one, other, max_ulp=max_ulp)
        return
    assert isinstance(found, dl.Tensor)
    assert found.device.type == "cuda"
    assert parameters(found) == parameters(expected)
    if max_ulp and found.dtype.kind == "f":
        np.testing.assert_array_max_ulp(on_host(found), np.asarray(expected), max_ulp)
    else:
        assert np.array_equal(on_host(found), np.asarray(expected), equal_nan=True)


# `test_any_operands` has other operations, the conformance table those of one field, without labels and `keepdims`.
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "divide": lambda a, b: a / b,
    "power": lambda a, b: a**b,
    "divmod": divmod,
    "arctan2": np.arctan2,
    "logical_and": np.logical_and,
    "frexp": lambda a, _: np.frexp(a),
    "numpy's number": lambda a, _: a * np.float32(0.5),
    "whole number": lambda a, _: a // 2,
    "dtype": lambda a, _: np.add(a, 1, dtype="float32", casting="same_kind"),
    "chain": lambda a, b: abs(a - b) * 2 + b,
    "sum along the last": lambda a, _: np.add.reduce(a, axis=-1),
    "sum along a label": lambda a, _: np.add.reduce(a, axis="K"),
    "sum along two": lambda a, _: np.add.reduce(a, axis=("I", "K")),
    "sum of truths": lambda a, _: np.sum(a.copy() > 3, axis=0),
    "sum kept": lambda a, _: np.sum(a, axis=2, keepdims=True),
    "product along two": lambda a, _: np.prod(a, axis=(0, 2)),
    "largest kept": lambda a, _: np.maximum.reduce(a, axis="J", keepdims=True),
    "sum as float32": lambda a, _: np.add.reduce(a, axis=0, dtype="float32"),
    "kept and subtracted": lambda a, _: a - np.sum(a, axis=1, keepdims=True),
    "turned round": lambda a, _: a[:, ::-1] + 1,
}


# CUDA's functions differ from the host's in the last bits, and sums of fractions depend on their order.
ROUNDED = {"power": 2, "arctan2": 2, "np.var": 4, "np.std": 4, "np.mean, mask": 4}
ROUNDED |= dict.fromkeys((f"{name} without NaN" for name in ("sum", "product", "mean", "variance", "deviation")), 4)

# Keywords that NumPy's functions have a placeholder for.
PLACEHOLDERS = ("initial", "where", "keepdims")

# What NumPy's functions call: methods of the field, or a ufunc's `reduce`.
OPERATIONS |= {
    "np.min": lambda a, _: np.min(a),
    "np.max": lambda a, _: np.max(a, axis="K"),
    "np.max kept": lambda a, _: np.max(a, axis=0, keepdims=True),
    "smallest without NaN": lambda a, _: ((a - 3) / (a - 3)).min(dim="K", skipna=True),
    "sum without NaN": lambda a, _: (a * ((a - 3) / (a - 3))).sum(dim="K", skipna=True),
    "product without NaN": lambda a, _: (a * ((a - 3) / (a - 3))).prod(skipna=True),
    "mean without NaN": lambda a, _: (a * ((a - 3) / (a - 3))).mean(dim=["I", "K"], skipna=True),
    "variance without NaN": lambda a, _: (a * ((a - 3) / (a - 3))).var("J", skipna=True),
    "deviation without NaN": lambda a, _: (a * ((a - 3) / (a - 3))).std(skipna=True, ddof=1),
    "np.sum, mask": lambda a, b: np.sum(a, axis=0, where=b > 3),
    "np.any, mask": lambda a, b: np.any(a > 6, axis=0, where=b > 3),
    "np.mean, mask": lambda a, b: np.mean(a, axis="J", where=b > 3),
    "np.ptp": lambda a, _: np.ptp(a, axis=1),
    "np.sum": lambda a, _: np.sum(a),
    "np.sum, where": lambda a, _: np.sum(a, axis=0, where=True),
    "np.prod": lambda a, _: np.prod(a, axis=("I", "J")),
    "np.mean": lambda a, _: np.mean(a, axis=0),
    "np.var": lambda a, _: np.var(a, axis="J"),
    "np.std": lambda a, _: np.std(a, ddof=1),
    "np.any": lambda a, _: np.any(a > 6, axis=0),
    "np.all": lambda a, _: np.all(a > 0),
    "np.min as float32": lambda a, _: np.minimum.reduce(a, axis=0, dtype="float32"),
    "placeholders": lambda a, _: a.__array_ufunc__(np.add, "reduce", a, **dict.fromkeys(PLACEHOLDERS, np._NoValue)),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("keywords", [{"alignment_size": 64, "halo": (1, 1, 0)}, {"dtype": "int32", "backend": "F"}])
def test_results_equal_the_hosts(keywords: dict[str, Any], name: str) -> None:
    operation = OPERATIONS[name]
    operands = field(**keywords), field("IK")
    with copies():
        found = operation(*operands)
    expected = operation(field(device="cpu", **keywords), field("IK", device="cpu"))
    same(found, expected, max_ulp=ROUNDED.get(name, 0))
    del found


# Functions without a method of fields; NumPy would read their elements.
@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_a_number_of_a_device_has_to_fit(device: str) -> None:
    small, number = dl.zeros(3, "int8", device="cuda:0"), dl.full((), 300, "int64", device=device)
    writes: list[Callable[[], Any]] = [
        lambda: small.__setitem__(..., number),
        lambda: small.__setitem__(0, number),
        lambda: dl.full(3, number, "int8", device="cuda:0"),
        lambda: dl.from_array(number, "int8"),
    ]
    for write in writes:
        with pytest.raises(OverflowError, match="expected -128 to 127 for int8, got 300"):
            write()
    assert on_host(small).tolist() == [0, 0, 0]


def test_arrays_of_the_host_beside_what_is_left_of_a_field() -> None:
    a, array = field(), np.arange(6.0).reshape(2, 3, 1)
    assert (array * a.sum()).get().tolist() == (array * values_of("IJK").sum()).tolist()
    kept = values_of("IJK").max(1, keepdims=True)
    assert on_host(np.ones(a.shape) - a.max("J", keepdims=True)).tolist() == (np.ones(a.shape) - kept).tolist()


def test_masks_in_a_tuple_have_the_label_of_their_place() -> None:
    a, mask = field("IJ"), dl.from_array([True, False, True], dims="I", device="cuda:0")
    with pytest.raises(dl.DimsError, match=r"got dims \(I\)"):
        a[:, mask]
    assert np.array_equal(a[mask, :].get(), values_of("IJ")[[0, 2]])


HOST_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "argmin": np.argmin,
    "argmax": np.argmax,
    "clip": lambda a: np.clip(a, 2, 3),
    "where": lambda a: np.where(np.eye(3, 4, dtype=bool), a, 0),
    "sort": np.sort,
    "cumsum": np.cumsum,
    "median": np.median,
}


@pytest.mark.parametrize("function", HOST_FUNCTIONS.values(), ids=HOST_FUNCTIONS)
def test_functions_of_the_host_say_what_to_write(function: Callable[[Any], Any]) -> None:
    a = field("IJ")
    with pytest.raises(TypeError, match=r"cuda:0 has no host buffer; copy it with to_device\('cpu'\)"):
        function(a)
    assert np.array_equal(function(a.to_device("cpu")), function(values_of("IJ")))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(fields(), fields(), st.sampled_from(BINARY))
def test_any_operands(a: dl.Tensor, b: dl.Tensor, ufunc: Any) -> None:
    on_device = a.to_device("cuda:0"), b.to_device("cuda:0")
    with copies():
        found = ufunc(*on_device)
    same(found, ufunc(a, b))


# Other operands.


def test_arrays_of_the_host_are_copied_once() -> None:
    a, operand = field(), values_of("IJK")
    with copies(to_device=3):
        found = (a + operand, operand - a, np.add(a, operand[:1, :, :1]))
    assert np.array_equal(on_host(found[0]), 2 * operand)
    assert np.array_equal(on_host(found[1]), 0 * operand)
    assert np.array_equal(on_host(found[2]), operand + operand[:1, :, :1])
    for tensor in found:
        assert (str(tensor.device), tensor.dims) == ("cuda:0", ("I", "J", "K"))


OPERATORS: list[Callable[[Any, Any], Any]] = [lambda a, b: a + b, lambda a, b: b + a, np.multiply]


@pytest.mark.parametrize("operation", OPERATORS)
@pytest.mark.parametrize("dims", ["J", "KJ"])
def test_the_fix_for_an_array_without_labels_works(dims: str, operation: Callable[[Any, Any], Any]) -> None:
    a, array = field(), values_of(dims)
    with pytest.raises(dl.DimsError, match=r"has no labels, and the result has dims \(I, J, K\)") as error:
        operation(array, a)
    fix = str(error.value).split("label it: ")[1]
    labelled = eval(fix, {"dl": dl, "array": array})
    assert (str(labelled.device), labelled.dims) == ("cuda:0", tuple(dims))
    same(operation(labelled, a), operation(field(dims, device="cpu"), field(device="cpu")))


def test_the_fix_for_an_output_on_the_host_works() -> None:
    array, a = values_of("IJ"), field("IJ")
    with pytest.raises(dl.DeviceError, match=r"^out: .* on cuda:0.* on cpu; copy the field: field.to_device") as error:
        array += a
    copied = eval(str(error.value).split("copy the field: ")[1], {"field": a})
    array += copied
    assert np.array_equal(array, 2 * values_of("IJ"))


def test_arrays_of_cupy_are_used_where_they_are(cupy: Any) -> None:
    a, operand = field(alignment_size=64), cupy.asarray(values_of("IJK"))
    with copies():
        found = a + operand
        assert isinstance(found, dl.Tensor)
        a += operand
    for tensor in (found, a):
        assert np.array_equal(on_host(tensor), 2 * values_of("IJK"))
    del found, operand


def test_labelled_arrays_of_the_host(xarray: Any) -> None:
    a, operand = field("IJ"), xarray.DataArray(values_of("K"), dims=("K",))
    with copies(to_device=1):
        found = a + dl.from_dlpack(operand.data, dims="K").to_device("cuda:0")
    assert np.array_equal(on_host(np.add(a, operand)), on_host(found))


@pytest.mark.parametrize("operation", [np.add, np.less, lambda a, b: b - a, lambda a, b: np.add(a, 1, out=b)])
def test_host_tensors_are_refused_and_not_copied(operation: Callable[..., Any]) -> None:
    a, operand = field(), field(device="cpu")
    with copies(), pytest.raises(dl.DeviceError, match=r"cpu.*to_device|to_device.*cpu"):
        operation(a, operand)
    assert np.array_equal(np.asarray(operand), values_of("IJK"))


@pytest.mark.two_devices
def test_two_devices() -> None:
    a, b = field(device="cuda:0"), field("J", device="cuda:1")
    with pytest.raises(dl.DeviceError, match=r"cuda:0.*cuda:1|cuda:1.*cuda:0"):
        a + b
    with pytest.raises(dl.DeviceError):
        np.add(a, 1, out=field(device="cuda:1"))


@pytest.mark.parametrize("other", ["cuda_managed", "cuda:0", "number", "cpu", "array"])
def test_managed_memory(other: str) -> None:
    """Managed memory is computed with on the device unless the other operand is on the host."""
    managed = field(device="cuda_managed")
    operand: Any = 2.0 if other == "number" else values_of("IJK") if other == "array" else field(device=other)
    expected = values_of("IJK") + (2.0 if other == "number" else values_of("IJK"))
    for found in (managed + operand, operand + managed):
        assert np.array_equal(on_host(found), expected)
        assert found.dims == ("I", "J", "K")
        on_device = other not in ("cpu", "array")
        assert (found.device.type in ("cuda", "cuda_managed")) is (on_device or found.device.type == "cuda_managed")
    managed += operand
    assert np.array_equal(on_host(managed), expected)
    del found


# Outputs.


def in_place(a: Any, b: Any) -> Any:
    before, address = a, a.ptr
    a += b
    a[1:, 2] *= 2
    a -= 1
    assert (a is before, a.ptr) == (True, address)
    return a


def to_out(a: Any, b: Any, out: Any) -> Any:
    assert np.add(a, b, out=out) is out
    assert np.multiply(out, 2, out=out) is out
    turned = out.transpose("I", "J", "K")[::-1]
    np.copysign(turned, -1, out=turned)
    return out


def two_results(a: Any, whole: Any) -> Any:
    fraction, found = np.modf(a / 2, out=(None, whole))
    assert found is whole
    return fraction, whole


def reduced(a: Any, out: Any) -> Any:
    assert np.sum(a, axis=1, out=out) is out
    assert np.maximum.reduce(a, axis="J", out=out) is out
    return out


def assigned_by_label(target: Any, rows: Any, turned: Any) -> Any:
    target[...] = rows
    target[1:] = turned[:, :, 1:]
    return target


# What is done, and the fields that it is done with.
OUTPUTS: dict[str, tuple[Callable[..., Any], *tuple[dict[str, Any], ...]]] = {
    "in place": (in_place, {"alignment_size": 64}, {"dims": "J"}),
    "out": (to_out, {"dims": "I"}, {"dims": "J"}, {"dims": "KJI", "alignment_size": 64}),
    "out that overlaps": (lambda a: np.add(a[1:], a[:-1], out=a[1:]), {"dims": "IK"}),
    "cast": (lambda a, out: np.add(a, 1, out=out, casting="same_kind"), {}, {"dtype": "float32"}),
    "masked": (lambda a, rows, out: np.add(a, 1, out=out, where=rows > 1), {}, {"dims": "I"}, {}),
    "two results": (two_results, {}, {}),
    "reduced": (reduced, {}, {"dims": "IK"}),
    "reduced and repeated": (lambda a, out: np.sum(a, axis=1, out=out), {}, {"dims": "0IK"}),
    "assigned by label": (assigned_by_label, {"alignment_size": 64}, {"dims": "J"}, {"dims": "KJI"}),
}


@pytest.mark.parametrize("number", [0, -1], ids=["first device", "last device"])
@pytest.mark.parametrize("work", OUTPUTS.values(), ids=OUTPUTS)
def test_outputs_equal_the_hosts(driver: Driver, work: Any, number: int) -> None:
    function, *fields = work
    device = f"cuda:{number % driver.device_count}"
    operands = [field(device=device, **keywords) for keywords in fields]
    with copies():
        found = function(*operands)
    same(found, function(*[field(device="cpu", **keywords) for keywords in fields]))
    assert (found[0] if isinstance(found, tuple) else found).device == device
    del operands, found


@pytest.mark.filterwarnings("error")
def test_no_warnings() -> None:
    a = field()
    np.maximum(a, 2, out=a)
    assert np.array_equal(on_host(np.minimum(a, 3)), np.clip(values_of("IJK"), 2, 3))
    assert np.array_equal(np.asarray(np.maximum(field(device="cpu"), 2)), np.maximum(values_of("IJK"), 2))


@pytest.mark.parametrize(
    ("out", "error"),
    [
        (lambda: field().as_readonly(), dl.ExchangeError),
        (lambda: field("IJ"), dl.DimsError),
        (lambda: field("IJK")[:, :, :2], dl.LayoutError),
        (lambda: field("IJK", "int8"), TypeError),
    ],
    ids=["read-only", "dims", "sizes", "casting"],
)
def test_out_that_is_refused(out: Callable[[], dl.Tensor], error: type[Exception]) -> None:
    target = out()
    before = on_host(target).copy()
    with pytest.raises(error):
        np.add(field("IJ"), field("K"), out=target)
    assert np.array_equal(on_host(target), before)
    gc.collect()


@pytest.mark.parametrize(
    ("ufunc", "method", "keywords"),
    [
        (np.spacing, "__call__", {}),
        (np.subtract, "reduce", {"axis": 0}),
        (np.add, "reduce", {"axis": 0, "initial": 3}),
        (np.add, "reduce", {"axis": 0, "where": True, "initial": 0}),
    ],
)
def test_what_cupy_cannot_do(ufunc: Any, method: str, keywords: dict[str, Any]) -> None:
    a = field()
    with pytest.raises(TypeError, match=r"CuPy.*; copy the fields? with to_device\('cpu'\)"):
        # Not `ufunc.reduce`: NumPy 2.4 leaks a reference to the array if `__array_ufunc__` raises.
        a.__array_ufunc__(ufunc, method, a, **keywords)


@pytest.mark.parametrize("ufunc", [np.add, np.maximum, np.multiply])
def test_a_reduction_of_a_host_array_into_a_device_field_says_what_to_write(ufunc: Any) -> None:
    array, out = np.arange(1.0, 13).reshape(3, 4), dl.zeros(4, device="cuda:0")
    with pytest.raises(dl.DeviceError, match=r"^out: .*field\[\.\.\.\] = numpy\.\w+\.reduce\(array, axis=\.\.\.\)$"):
        # Not `ufunc.reduce`.
        out.__array_ufunc__(ufunc, "reduce", array, axis=0, out=(out,))
    assert not on_host(out).any()
    out[...] = ufunc.reduce(array, axis=0)
    assert np.array_equal(on_host(out), ufunc.reduce(array, axis=0))
