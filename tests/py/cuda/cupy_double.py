"""A test double of CuPy on the test double of the driver: the part that dlfield uses, as strict as CuPy.

NumPy computes the values when the operation's turn in the current stream has come; results are written when the stream
gets that far. Names, arguments and errors are those of CuPy 14.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cupy_work import ExternalStream, Memory, Stream, UnownedMemory, driver, reading, to_device, to_host, write
from driver import LEGACY
from fake_cupy import Device, MemoryPointer
from fakes import FakeTensor
from fakes_interfaces import Exposing

cuda = SimpleNamespace(
    Device=Device,
    ExternalStream=ExternalStream,
    MemoryPointer=MemoryPointer,
    Stream=Stream,
    UnownedMemory=UnownedMemory,
    get_current_stream=ExternalStream.current,
)

Host = npt.NDArray[Any]


class ndarray:  # noqa: N801, what CuPy calls it
    """`place` is a NumPy array at the same address: it gives shape and strides, and its elements are never read."""

    __module__ = "cupy"
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        shape: Any,
        dtype: Any = float,
        memptr: MemoryPointer | None = None,
        strides: Sequence[int] | None = None,
        order: str = "C",
    ) -> None:
        self.dtype = np.dtype(dtype)
        # As CuPy, which goes by the character: that of float8_e4m3b11fnuz is uint64's.
        if self.dtype.char not in np.typecodes["AllInteger"] + np.typecodes["AllFloat"] + "?":
            raise TypeError(f"dtype {self.dtype} is not supported")
        if strides is None:
            compact = np.empty(shape, self.dtype, order="F" if order == "F" else "C")
            shape, strides = compact.shape, compact.strides
            memptr = MemoryPointer(Memory(compact.nbytes), 0) if memptr is None else memptr
        assert memptr is not None
        self.data = memptr
        interface = {"version": 3, "shape": tuple(shape), "typestr": self.dtype.str, "strides": tuple(strides)}
        self.place = np.asarray(Exposing(__array_interface__={**interface, "data": (memptr.ptr, False)}))

    shape = property(lambda self: self.place.shape)
    strides = property(lambda self: self.place.strides)
    size = property(lambda self: self.place.size)
    T = property(lambda self: self.transpose())

    @property
    def device(self) -> Device:
        return Device(self.data.device_id)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            "strides": None if self.place.flags.c_contiguous else self.strides,
            "data": (self.data.ptr if self.size else 0, False),
            "stream": ExternalStream.current(self.data.device_id).ptr or LEGACY,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.data.device_id

    def __dlpack__(self, *, stream: int | None = None, **_keywords: Any) -> object:
        if stream != -1:
            current = ExternalStream.current(self.data.device_id)
            driver().wait(LEGACY if stream is None else stream, current.ptr, self.data.device_id)
        return _Exported(self).capsule()

    def __array__(self, *_arguments: Any, **_keywords: Any) -> Host:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")

    def __getitem__(self, key: Any) -> Self | ndarray:
        keys = key if isinstance(key, tuple) else (key,)
        if not any(_is_array(part) for part in keys):
            # Without the ellipsis NumPy would read an element that integers alone select.
            whole = keys if any(part is Ellipsis for part in keys) else (*keys, ...)
            return self._view(self.place[whole])
        _here(self)
        arrays, host_key = _on_device(keys)
        with reading([self.place, *[array.place for array in arrays]]) as (values, *positions):
            return _holding(values[host_key(positions)])

    def __setitem__(self, key: Any, value: Any) -> None:
        keys = key if isinstance(key, tuple) else (key,)
        if any(_is_array(part) for part in keys):
            _here(self)
            arrays, host_key = _on_device(keys)
            source = _here(asarray(value, self.dtype))
            with reading([array.place for array in (self, source, *arrays)]) as (values, new, *positions):
                values[host_key(positions)] = new
                write(self.place, values)
            return
        target = self[key]
        if not _is_on_device(value):
            filling = np.asarray(value, self.dtype)
            if filling.shape != ():
                raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
            write(target.place, filling)
            return
        with reading([asarray(value).place]) as (new,):
            write(target.place, np.broadcast_to(new, target.shape).astype(self.dtype))

    def transpose(self, *axes: Any) -> Self:
        return self._view(self.place.transpose(*axes))

    def get(self) -> Host:
        return to_host(self.place)

    def astype(
        self, dtype: Any, order: str = "K", casting: Any = None, subok: Any = None, copy: bool = True
    ) -> ndarray:
        for name, value in (("casting", casting), ("subok", subok)):
            if value is not None:
                raise TypeError(f"{name} is not supported yet")
        if self.dtype == dtype and not copy:
            return self
        # Allocates host memory for its strides, and reads nothing.
        like = np.empty_like(self.place, dtype, order="K" if order == "K" else "C")
        memory = MemoryPointer(Memory(like.nbytes), 0)
        array = ndarray(like.shape, like.dtype, memory, like.strides)
        with reading([self.place]) as (values,):
            write(array.place, values.astype(dtype))
        return array

    def copy(self, order: str = "C") -> ndarray:
        return self.astype(self.dtype, order)

    def flatten(self, order: Any = "C") -> ndarray:
        with reading([self.place]) as (values,):
            return _holding(values.flatten(order))

    def ravel(self, order: Any = "C") -> ndarray:
        try:
            # A copy would read the device's memory.
            return self._view(self.place.reshape(-1, order="A" if order == "K" else order, copy=False))
        except ValueError:
            return self.flatten(order)

    def _view(self, place: Host) -> Self:
        offset = place.__array_interface__["data"][0] - self.data.ptr
        memory = MemoryPointer(self.data.mem, self.data.offset + offset)
        return type(self)(place.shape, self.dtype, memory, place.strides)


class _Exported(FakeTensor):
    """A managed tensor that keeps its array until the consumer calls the deleter."""

    def __init__(self, array: ndarray) -> None:
        self.array: ndarray | None = array
        strided = np.lib.stride_tricks.as_strided(np.empty(1, array.dtype), array.shape, array.strides)
        # As CuPy 14.2, which divides the bytes of a negative stride as an unsigned number.
        strides = [step % 2**64 // array.dtype.itemsize for step in array.strides]
        super().__init__(strided, strides=strides, device=array.__dlpack_device__())
        self.managed.dl_tensor.data = array.data.ptr

    def _count(self, address: int) -> None:
        super()._count(address)
        self.array = None


def empty(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    """A new array in CuPy's own memory, on the current device."""
    return ndarray(shape, dtype, order=order)


def asarray(values: Any, dtype: Any = None) -> ndarray:
    """Device arrays as they are; anything else as a copy on the device."""
    if not isinstance(values, ndarray) and _is_on_device(values):
        described = values.__cuda_array_interface__
        if described.get("stream") is not None:
            ExternalStream(described["stream"]).synchronize()
        address, number = described["data"][0], -1 if 0 not in described["shape"] else Device.current()
        memory = MemoryPointer(UnownedMemory(address, 0, values, number), 0)
        values = ndarray(described["shape"], described["typestr"], memory, described.get("strides"))
    if isinstance(values, ndarray):
        return values if dtype is None else values.astype(dtype, copy=False)
    host = np.array(values, dtype, order="C")
    array = empty(host.shape, host.dtype)
    if host.size:
        to_device(array.data.ptr, host)
    return array


def asnumpy(values: Any) -> Host:
    return asarray(values).get()


class ufunc:  # noqa: N801, what CuPy calls it
    """Takes arrays on the current device and numbers; rejects NumPy's arrays."""

    def __init__(self, function: np.ufunc) -> None:
        self.function = function
        self.__name__ = f"cupy_{function.__name__}"
        self.nin, self.nout = function.nin, function.nout

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        out, where = kwargs.pop("out", None), kwargs.pop("_where", None)
        dtype, casting = kwargs.pop("dtype", None), kwargs.pop("casting", "same_kind")
        if kwargs:
            raise TypeError(f"Wrong arguments {kwargs}")
        inputs = [_argument(argument) for argument in args[: self.nin]]
        outs = args[self.nin :] or (out if isinstance(out, tuple) else (out,) * (out is not None))
        outs = outs or (None,) * self.nout
        if len(inputs) != self.nin or len(outs) != self.nout:
            raise TypeError(f"Wrong number of arguments for {self.__name__!r}")
        if where is not None:
            where = _argument(where)
            if isinstance(where, ndarray) and where.dtype != bool:
                raise TypeError(f"Cannot cast array data from {where.dtype!r} to dtype('bool')")
        operands = [*inputs, *([] if where is None else [where])]
        arrays = [operand for operand in operands if isinstance(operand, ndarray)]
        with reading([array.place for array in arrays]) as values, np.errstate(all="ignore"):
            host = dict(zip(map(id, arrays), values, strict=True))
            known = [host.get(id(operand), operand) for operand in operands]
            results = self.function(*known[: self.nin], dtype=dtype, casting=casting)
            results = results if self.nout > 1 else (results,)
            shape = np.broadcast_shapes(*(np.shape(operand) for operand in (*known, *_given(outs))))
            found = tuple(
                _stored(np.broadcast_to(result, shape), array, casting, known[self.nin :])
                for result, array in zip(results, outs, strict=True)
            )
        return found if self.nout > 1 else found[0]


def _reduce(function: np.ufunc, a: ndarray, axis: Any, dtype: Any, out: ndarray | None, keepdims: bool) -> ndarray:
    if not isinstance(a, ndarray):
        raise TypeError(f"Argument 'a' has incorrect type (expected cupy.ndarray, got {type(a)})")
    keywords = {} if dtype is None else {"dtype": dtype}
    with reading([_argument(a).place]) as (values,):
        found = np.asarray(function.reduce(values, axis, keepdims=keepdims, **keywords))
        return _stored(found, out, "unsafe", [])


def _reduction(function: np.ufunc) -> Callable[..., ndarray]:
    def reduction(a: ndarray, axis: Any = None, out: ndarray | None = None, keepdims: bool = False) -> ndarray:
        # As CuPy 14.2 does where CUB reduces: it compares the dtype with `out`.
        if function in (np.maximum, np.minimum) and out is not None and axis in (None, tuple(range(a.place.ndim))):
            raise TypeError("operand type(s) all returned NotImplemented from __array_ufunc__")
        return _reduce(function, a, axis, None, out, keepdims)

    return reduction


def _typed_reduction(function: np.ufunc) -> Callable[..., ndarray]:
    def reduction(
        a: ndarray, axis: Any = None, dtype: Any = None, out: ndarray | None = None, keepdims: bool = False
    ) -> ndarray:
        return _reduce(function, a, axis, dtype, out, keepdims)

    return reduction


def where(condition: ndarray, x: Any, y: Any) -> ndarray:
    with reading([_argument(condition).place, _argument(x).place]) as (mask, values):
        return _stored(np.where(mask, values, y), None, "no", [])


# CuPy's have no `initial` and no `where`.
REDUCTIONS = {
    "sum": _typed_reduction(np.add),
    "prod": _typed_reduction(np.multiply),
    "all": _reduction(np.logical_and),
    "any": _reduction(np.logical_or),
    "max": _reduction(np.maximum),
    "min": _reduction(np.minimum),
    "nanmax": _reduction(np.fmax),
    "nanmin": _reduction(np.fmin),
}
# Generalized ufuncs, which have a signature, are left out.
_FOUND = [found for found in vars(np).values() if isinstance(found, np.ufunc) and found.signature is None]
UFUNCS = {found.__name__: ufunc(found) for found in _FOUND if found.__name__ not in ("isnat", "spacing")}


_OPERATORS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "pow": "power",
    "lt": "less",
    "gt": "greater",
    "eq": "equal",
}


def _operator(found: ufunc, name: str) -> None:
    """Define an operator that calls CuPy's own ufunc for every other operand."""
    setattr(ndarray, f"__{name}__", lambda self, other: found(self, other))
    setattr(ndarray, f"__r{name}__", lambda self, other: found(other, self))
    setattr(ndarray, f"__i{name}__", lambda self, other: found(self, other, out=self))


for _name, _found in _OPERATORS.items():
    _operator(UFUNCS[_found], _name)


def __getattr__(name: str) -> Any:
    """Look up the functions named like Python's builtins or NumPy's ufuncs."""
    try:
        return (REDUCTIONS | UFUNCS)[name]
    except KeyError:
        raise AttributeError(f"module 'cupy' has no attribute {name!r}") from None


def _is_on_device(value: Any) -> bool:
    return hasattr(value, "__cuda_array_interface__")


def _is_array(part: Any) -> bool:
    """Whether a part of a key selects by positions or a mask."""
    return not (part is None or part is Ellipsis or isinstance(part, (slice, int, np.integer)))


def _on_device(keys: tuple[Any, ...]) -> tuple[list[ndarray], Callable[[list[Host]], Any]]:
    """The arrays of a key, on the device, and a function that rebuilds the key with their values."""
    arrays = [
        asarray(np.asarray(part, int) if isinstance(part, list) and not part else part)
        for part in keys
        if _is_array(part)
    ]

    def rebuild(values: list[Host]) -> Any:
        rest = iter(values)
        return tuple(next(rest) if _is_array(part) else part for part in keys)

    return arrays, rebuild


def _here(array: ndarray) -> ndarray:
    """The array, if it is on the current device."""
    if array.data.device_id != Device.current():
        raise ValueError(
            f"The device where the array resides ({array.data.device_id}) is different from the current device "
            f"({Device.current()}). Peer access is unavailable between these devices."
        )
    return array


def _argument(value: Any) -> Any:
    """An array on the current device, or a number."""
    if _is_on_device(value):
        return _here(asarray(value))
    if isinstance(value, (bool, int, float, complex, np.generic)):
        return value
    raise TypeError(f"Unsupported type {type(value)}")


def _given(outs: Sequence[ndarray | None]) -> list[Host]:
    for out in outs:
        if out is not None and not isinstance(out, ndarray):
            raise TypeError(f"return arrays must be of ArrayType, got {type(out)}")
    return [out.place for out in outs if out is not None]


def _stored(result: Host, out: ndarray | None, casting: Any, where: list[Any]) -> ndarray:
    """Write a result to `out`, or to a new array."""
    if out is None:
        out = empty(result.shape, result.dtype)
    elif out.shape != result.shape:
        raise ValueError(f"Out shape is mismatched: {out.shape} for {result.shape}")
    elif not np.can_cast(result.dtype, out.dtype, casting):
        raise TypeError(f"output (typecode {result.dtype.char!r}) could not be coerced to provided output parameter")
    values = result.astype(out.dtype)
    if where:
        with reading([out.place]) as (before,):
            write(out.place, np.where(where[0], values, before))
    else:
        write(out.place, values)
    return out


def _holding(values: Host) -> ndarray:
    """A new array in CuPy's own memory that a kernel fills."""
    return _stored(values, None, "no", [])
