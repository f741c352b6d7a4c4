"""Every entry point that touches elements, for each dtype: the host does as NumPy, and each device as the host."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable, Collection
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import pytest

import dlfield as dl
from catalog import CODES, NUMPY_CODES, dtype_named
from driver import DRIVER
from untyped import np

pytestmark = [
    pytest.mark.parametrize("check_driver_use", ["another context"], indirect=True),
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.usefixtures("cupy"),
]
DEVICES = ("cuda_host", "cuda_managed", "cuda:0")
GPU = ("cuda_managed", "cuda:0")
PLACES = ("cpu", *DEVICES, f"cuda:{DRIVER.device_count - 1 if DRIVER else 0}")
METADATA = ("dims", "halo", "origin", "strides", "layout", "alignment_size", "aligned_index", "readonly")
# One of each kind of element types.
KINDS = ("bool", "int8", "uint64", "float16", "float32", "complex64", "bfloat16", "float8_e4m3fn", "int4")
NUMBERS = (1, True, 7, -1, 300, 2**70, 2.5, float("nan"), 1j, "x", None)
LISTS: tuple[list[Any], ...] = ([1, 0, 1, 1], [[1], [0], [1]], [1.5], [300], [1j], [], [1, 1, 1, 1, 1])
FILLS = (*NUMBERS, *(dtype_named(name).type(1) for name in KINDS))
ARRAYS = (*KINDS, ">i2")
ARITHMETIC = [*product(("add", "truediv", "mod", "lshift", "eq", "iadd", "itruediv"), (2, 2.5, 300))]
UFUNCS = ("isfinite", "sign", "square", "conjugate", "logical_not")
REDUCTIONS = [*product(("sum", "prod", "min", "max", "any", "all"), (None, 1))]
KEYS = {"row": 1, "element": (1, 2), "slices": (slice(1, None), slice(None, None, -2)), "outside": 5}
MASK = np.eye(3, 4, dtype=bool)
COPIES = (operator.methodcaller("copy"), copy.copy, copy.deepcopy)

Call: TypeAlias = Callable[[Any, Any], Any]


def values(dtype: str) -> Any:
    return np.arange(-2, 10).reshape(3, 4).astype(dtype_named(dtype) if dtype in CODES else dtype)


def field(dtype: str, device: Any) -> dl.Tensor:
    return dl.from_array(values(dtype), dims="KI", halo=((1, 1), 0), alignment_size=64, device=device)


def one(dtype: str) -> Any:
    return dtype_named(dtype).type(1)


def itself(t: Any, _: Any) -> Any:
    return t


def ones(t: Any, _: Any) -> Any:
    return np.ones_like(t)


def made(t: dl.Tensor, data: Any) -> dl.Tensor:
    return dl.from_array(data, t.dtype, backend="F", device=t.device)


def cast(t: dl.Tensor, dtype: str) -> dl.Tensor:
    return dl.from_array(t, dtype, device=t.device)


def number(dtype: Any, device: str) -> dl.Tensor:
    return dl.full((), 1, dtype, device=device)


def two_rows(dtype: Any, device: str) -> dl.Tensor:
    return dl.ones((2, 4), dtype, dims="KI", device=device)


def readonly(t: Any) -> Any:
    """A view that rejects writes."""
    if isinstance(t, dl.Tensor):
        return t.as_readonly()
    view = t.view()
    view.setflags(write=False)
    return view


def zeros(array: Any) -> Any:
    """Of zero bits: one type has no zero."""
    return np.frombuffer(bytes(array.nbytes), array.dtype).reshape(array.shape)


def out_like(t: Any, dtype: str) -> Any:
    return dl.zeros(4, dtype, dims="I", device=t.device) if isinstance(t, dl.Tensor) else np.zeros(4, dtype)


def put(target: Any, key: Any, value: Any) -> Any:
    """Assign to part of a field; to part of an array by the same rules: "same_kind", and integers in lists fit."""
    if isinstance(target, dl.Tensor):
        target[key] = value
        return target
    part, array = np.array(target[key]), np.asarray(value) if isinstance(value, list) else held(value)
    if isinstance(value, list) and array.dtype == int:
        array = np.asarray(value, target.dtype)
    np.copyto(part, array, casting="same_kind")
    target[key] = part
    return target


def mean(array: Any, axis: int | None) -> Any:
    """NumPy alone sums up the elements of other packages in their own type, which is too narrow."""
    if array.dtype.name in NUMPY_CODES:
        return array.mean(axis)
    is_integer = "int" in array.dtype.name
    found = array.astype("f8" if is_integer else "f4").mean(axis)
    return found if is_integer else found.astype(array.dtype)


def bound(t: Any, device: str, dtype: str | None = None) -> Any:
    """What a stencil reads from a temporary copy, and the field after the stencil wrote to the copy."""
    expected = dtype_named(dtype) if dtype else t.dtype
    if not isinstance(t, dl.Tensor):
        temporary = put(np.empty((4, 3), expected), ..., t.T)
        before, temporary[0] = temporary.copy(), temporary[1]
        return before, put(t, ..., temporary.T)
    spec = dl.FieldSpec(expected, "IK", access="rw")
    with dl.Signature(x=spec, device=device, on_mismatch="copy").bind(x=t) as fields:
        view = dl.from_dlpack(fields.x)
        before = held(view).copy()
        view[0] = view[1]
    return before, t


class Row(NamedTuple):
    """An entry point, called with a field and each option; NumPy's, with an array, is the same unless stated."""

    name: str
    call: Call
    options: Collection[Any] = (None,)
    by_numpy: Call | None = None
    # Where CuPy does it.
    cupy: tuple[str, ...] = ()


TABLE = [
    Row("t[...] = {!r}", lambda t, value: put(t, ..., value), (*NUMBERS, *LISTS)),
    Row("t[...] = {}(1)", lambda t, dtype: put(t, ..., one(dtype)), KINDS),
    Row("t[...] = {} array", lambda t, dtype: put(t, ..., values(dtype)), ARRAYS),
    Row("t[...] = array of {}", lambda t, shape: put(t, ..., np.ones(shape, t.dtype)), [(4,), (3, 1), (5, 4)]),
    Row("t[...] = t() on {}", lambda t, at: put(t, ..., number(t.dtype, at)), PLACES),
    Row("t[...] = [t[0]]", lambda t, _: put(t, ..., [t[0]])),
    Row("t[...] = ones on {}", lambda t, at: put(t, ..., dl.ones((3, 4), t.dtype, dims="KI", device=at)), PLACES),
    Row("t[...] = {}", lambda t, other: put(t, ..., field(*other)[:1]), [*product(KINDS, GPU)]),
    Row("t[{}] = {}", lambda t, pair: put(t, KEYS[pair[0]], pair[1]), [*product(KEYS, (1, 2.5, [1] * 5))]),
    Row("t[positions] = {}", lambda t, value: put(t, [0, 2], value), (1, 2.5, [300], [1] * 5), cupy=("cuda:0",)),
    Row("t[positions] = {} array", lambda t, dtype: put(t, [0, 2], values(dtype)[:1]), KINDS, cupy=("cuda:0",)),
    Row(
        "t[positions] = {} on cuda:0",
        lambda t, dtype: put(t, [0, 2], field(dtype, "cuda:0")[:1]),
        KINDS,
        cupy=("cuda:0",),
    ),
    Row("t[positions] = ones on {}", lambda t, at: put(t, [0, 2], two_rows(t.dtype, at)), PLACES, cupy=("cuda:0",)),
    Row("t[mask] = {}", lambda t, value: put(t, MASK, value), (1, [1, 0, 1], [1] * 5), cupy=("cuda:0",)),
    Row("t[{!r}]", lambda t, key: t[key], ([0, 2], MASK, None), cupy=("cuda:0",)),
    Row("flatten({})", lambda t, order: t.flatten(order), "CF", cupy=("cuda:0",)),
    Row("ravel({})", lambda t, order: t.ravel(order), "CF", cupy=("cuda:0",)),
    Row("to_ndarray", lambda t, _: t.to_ndarray(), by_numpy=itself, cupy=("cuda:0",)),
    Row("to_numpy", lambda t, _: t.to_numpy(), by_numpy=itself),
    Row("as_numpy", lambda t, _: dl.as_numpy(t, copy=True), by_numpy=itself),
    Row("t[{}]", lambda t, key: t[key], (1, (slice(None), 2), (1, 2), (slice(None, None, -1), slice(1, None, 2)), ...)),
    Row("iter", lambda t, _: list(t)),
    Row("item", lambda t, _: [t.item(3), t.item(1, 2), t[0, 1:2].item()]),
    Row("{}(t())", lambda t, convert: convert(t[0, 3]), (bool, complex, operator.index, round, "{:.1f}".format)),
    Row("{}()", lambda t, name: getattr(t, name)(), ("tolist", "tobytes")),
    Row("{}, and the original", lambda t, duplicate: (put(duplicate(readonly(t)), 1, 1), t), COPIES),
    Row("pickle {}", lambda t, protocol: pickle.loads(pickle.dumps(t, protocol)), (2, 4, 5)),
    Row("pickle of view {}", lambda t, key: pickle.loads(pickle.dumps(t[key])), (slice(0, 0), (slice(1, None), 1))),
    Row("pickle of read-only", lambda t, _: pickle.loads(pickle.dumps(readonly(t))), by_numpy=itself),
    Row("read-only = 1", lambda t, _: put(readonly(t), ..., 1), by_numpy=lambda t, _: readonly(t).fill(1)),
    Row("T.copy", lambda t, _: t.T.copy()),
    Row("squeeze", lambda t, _: t[:1].squeeze()),
    Row("astype({})", lambda t, dtype: t.astype(dtype_named(dtype)), CODES),
    Row("astype(int32, {})", lambda t, casting: t.astype("i4", casting=casting), ("safe", "same_kind")),
    Row("ones", lambda t, _: dl.ones((2, 3), t.dtype, device=t.device), by_numpy=lambda t, _: np.ones((2, 3), t.dtype)),
    Row("ones_like", lambda t, _: dl.ones_like(t), by_numpy=ones),
    Row("zeros", lambda t, _: dl.zeros((3, 4), t.dtype, device=t.device), by_numpy=lambda t, _: zeros(t)),
    Row("zeros_like", lambda t, _: dl.zeros_like(t), by_numpy=lambda t, _: zeros(t)),
    Row("empty_like", lambda t, _: dl.empty_like(t)[:0], by_numpy=lambda t, _: t[:0]),
    Row("full({})", lambda t, v: dl.full(3, v, t.dtype, device=t.device), FILLS, lambda t, v: np.full(3, v, t.dtype)),
    Row("full_like(t() on {})", lambda t, at: dl.full_like(t, number(t.dtype, at)), PLACES, ones),
    Row("fill({})", lambda t, value: (t.fill(value), t), (1, 2.5, 300), lambda t, value: (None, put(t, ..., value))),
    Row(
        "from_array(t, {})",
        lambda t, d: dl.from_array(t, d, device=t.device),
        KINDS,
        lambda t, d: put(values(d), ..., t),
    ),
    Row(
        "from_array({} array)", lambda t, d: made(t, values(d)[::-1]), ARRAYS, lambda t, d: put(t, ..., values(d)[::-1])
    ),
    Row(
        "from_array({})",
        made,
        ([[1, 0], [1, 1]], [300], [1.5]),
        lambda t, v: put(np.empty(np.shape(v), t.dtype), ..., v),
    ),
    Row("to_device({})", lambda t, at: t.to_device(at).copy().to_device(t.device), PLACES, itself),
    Row("from_array at {}", lambda t, at: dl.from_array(dl.from_array(t, device=at), device=t.device), PLACES, itself),
    Row("from_dlpack at {}", lambda t, at: dl.from_dlpack(t, device=at, copy=True).to_device(t.device), PLACES, itself),
    Row("bind on {}", lambda t, at: bound(t, at), ("cpu", "cuda:0")),
    Row("bind on cpu, {}", lambda t, dtype: bound(t, "cpu", dtype), KINDS),
    Row("bind on cuda:0, {}", lambda t, dtype: bound(t, "cuda:0", dtype), KINDS),
    Row("{}(t)", lambda t, name: getattr(operator, name)(t), ("neg", "pos", "abs", "invert"), cupy=GPU),
    Row("{}(t, {})", lambda t, pair: getattr(operator, pair[0])(t, pair[1]), ARITHMETIC, cupy=GPU),
    Row("{}(2, t)", lambda t, name: getattr(operator, name)(2, t), ("sub", "lt", "and_"), cupy=GPU),
    Row("{}(t, t)", lambda t, name: getattr(operator, name)(t, t), ("add", "sub", "or_", "ge"), cupy=GPU),
    Row("{}(t, row)", lambda t, name: getattr(operator, name)(t, t[:1]), ("add", "le"), cupy=GPU),
    Row("np.{}", lambda t, name: getattr(np, name)(t), UFUNCS, cupy=GPU),
    Row("{}({})", lambda t, pair: getattr(t, pair[0])(pair[1]), REDUCTIONS, cupy=GPU),
    Row("mean({})", lambda t, axis: t.mean(axis), (None, 0), mean, cupy=GPU),
    Row("sum(out=)", lambda t, _: np.sum(t, 0, out=out_like(t, "f8")), cupy=GPU),
    Row("max(out=)", lambda t, _: np.max(t, 0, out=out_like(t, "i1")), cupy=GPU),
    Row("in", lambda t, _: 1 in t, cupy=GPU),
]


def held(found: Any) -> Any:
    """The elements of a field, an array of NumPy or of CuPy, or a number, on the host."""
    if isinstance(found, dl.Tensor):
        return found.to_device("cpu").to_numpy()
    return found.get() if type(found).__module__.startswith("cupy") else found


def seen(found: Any, device: str) -> Any:
    """What is compared. A number may be a scalar, or a field or an array without dimensions."""
    if isinstance(found, (tuple, list)):
        return [seen(each, device) for each in found]
    array, metadata = held(found), None
    if not isinstance(array, (np.ndarray, np.generic)):
        return repr(array)
    if isinstance(found, dl.Tensor) and found.ndim:
        metadata = {name: getattr(found, name) for name in METADATA} | {"is there": found.device == device}
    return str(array.dtype), array.shape, array.tobytes(), metadata


def outcome(call: Call, argument: Any, option: Any, device: str = "cpu") -> Any:
    """What a call returns; or its error's class, not one that NumPy or CuPy derives, if nothing was written."""
    try:
        with np.errstate(all="ignore"):
            return seen(call(argument, option), device)
    except Exception as error:
        if held(argument).tobytes() != values(argument.dtype.name).tobytes():
            return "written", type(error)
        return next(cls for cls in type(error).__mro__ if cls.__module__ in ("builtins", "dlfield"))


class Cell(NamedTuple):
    """A call for one dtype on one device."""

    row: Row
    option: Any
    dtype: str
    device: str

    @property
    def types(self) -> set[str]:
        """The element types of a cast."""
        return {self.dtype, self.option[0] if isinstance(self.option, tuple) else self.option}

    @property
    def is_numpys(self) -> bool:
        return self.dtype in NUMPY_CODES


# Rows with another element type on the device.
CASTS = ("from_array(t, {})", "t[...] = {}", "t[positions] = {} on cuda:0", "bind on cuda:0, {}")

# Where the host does not do as NumPy, or a device not as the host: there may be an error of this class.
DIFFERENCES: list[tuple[str, type[Exception], Callable[[Cell], bool]]] = [
    (
        "ml_dtypes wraps integers around that do not fit; dlfield rejects them",
        OverflowError,
        lambda cell: cell.device == "cpu" and "int" in cell.dtype and not cell.is_numpys,
    ),
    (
        "temporary copies of written fields are cast back, which no type of less than 16 bits of ml_dtypes is",
        dl.DTypeError,
        lambda cell: (
            cell.device == "cpu" and "bind" in cell.row.name and not {cell.dtype, cell.option} <= {*NUMPY_CODES}
        ),
    ),
    (
        "a device casts NumPy's types, and bfloat16 by its own rule; temporary copies are cast back",
        dl.DTypeError,
        lambda cell: (
            cell.device == "cuda:0"
            and cell.row.name in CASTS
            and ("bind" in cell.row.name or not cell.types <= {*NUMPY_CODES})
        ),
    ),
    (
        "CuPy casts what a device does not, and has none of the element types of ml_dtypes",
        dl.ExchangeError,
        lambda cell: (
            cell.device == "cuda:0"
            and cell.row.name.startswith("astype")
            and not cell.types - {"safe", "same_kind"} <= {*NUMPY_CODES}
        ),
    ),
    (
        "CuPy has none of the element types of ml_dtypes",
        dl.ExchangeError,
        lambda cell: not cell.is_numpys and cell.device in cell.row.cupy,
    ),
    (
        "CuPy has no logical functions of complex numbers",
        TypeError,
        lambda cell: cell.device in cell.row.cupy and "complex" in cell.dtype and cell.option == "logical_not",
    ),
    (
        "NumPy cannot read memory of a GPU",
        dl.NoSuchBufferError,
        lambda cell: cell.device == "cuda:0" and cell.row.name in ("to_numpy", "t[...] = [t[0]]"),
    ),
]


# Where CuPy computes other values: the sign of zeros in complex products, and large remainders: its `a % b` is
# `a - floor(a / b) * b`.
OTHER_VALUES = [("prod", "complex64"), ("prod", "complex128"), ("mod", "uint64")]


def is_allowed(cell: Cell, found: Any) -> bool:
    if cell.device in cell.row.cupy and isinstance(cell.option, tuple) and (cell.option[0], cell.dtype) in OTHER_VALUES:
        return True
    return any(found is error and applies(cell) for _, error, applies in DIFFERENCES)


def without_metadata(result: Any) -> Any:
    """What NumPy has too, of an outcome."""
    if isinstance(result, list):
        return [without_metadata(each) for each in result]
    return result[:3] if isinstance(result, tuple) else result


@pytest.mark.parametrize("dtype", CODES)
def test_every_entry_point_does_the_same_everywhere(dtype: str) -> None:
    wrong = {}
    for row in TABLE:
        for option in row.options:
            on_host = outcome(row.call, field(dtype, "cpu"), option)
            by_numpy = outcome(row.by_numpy or row.call, values(dtype), option)
            is_same = without_metadata(on_host) == without_metadata(by_numpy)
            if isinstance(on_host, type) and isinstance(by_numpy, type):
                is_same = issubclass(on_host, by_numpy)
            if not is_same and not is_allowed(Cell(row, option, dtype, "cpu"), on_host):
                wrong[row.name, str(option), "NumPy"] = by_numpy, on_host
            for device in DEVICES:
                found = outcome(row.call, field(dtype, device), option, device)
                if found != on_host and not is_allowed(Cell(row, option, dtype, device), found):
                    wrong[row.name, str(option), device] = on_host, found
    assert not wrong, "\n".join(f"{where}: {one}, {other}" for where, (one, other) in wrong.items())
