"""Producers of the array interfaces and of the buffer protocol, with every defect; each counts its calls."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dlpack_structs import kept_for_good
from py_buffer import PyBuffer

# Counts of threads that run at once, without the GIL too.
COUNTING = threading.Lock()

# Stands for a key to remove from a dictionary.
MISSING: Any = object()


class Exposing:
    """An object with the attributes that a test gives it."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


class Duck(Exposing):
    """A duck array that xarray wraps unchanged, with the attributes that a test gives it."""

    shape, dtype, ndim = (2, 3), np.dtype(float), 2

    def __array_function__(self, *_: Any) -> Any:
        return NotImplemented

    def __array_ufunc__(self, *_: Any) -> Any:
        return NotImplemented


def changed(dictionary: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`dictionary` with other values for some keys, or without those that are MISSING."""
    merged = {**dictionary, **changes}
    return {key: value for key, value in merged.items() if value is not MISSING}


def interface_of(array: npt.NDArray[Any], **changes: Any) -> dict[str, Any]:
    """The `__array_interface__` of `array`; `changes` replace keys."""
    interface = {
        "version": 3,
        "shape": array.shape,
        "typestr": array.dtype.str,
        "data": (array.ctypes.data, not array.flags.writeable),
        "strides": array.strides,
    }
    return changed(interface, changes)


def host(array: npt.NDArray[Any], **changes: Any) -> Exposing:
    """An object that has only an `__array_interface__` on the memory of `array`, and keeps `array` alive."""
    return Exposing(__array_interface__=interface_of(array, **changes), kept=array)


# An address that must not be dereferenced.
NOWHERE = 0xDEAD_BEE0


def device_interface(**changes: Any) -> dict[str, Any]:
    """A `__cuda_array_interface__` of 2 x 3 float32 at `NOWHERE`; `changes` replace keys."""
    interface = {"version": 3, "shape": (2, 3), "typestr": "<f4", "data": (NOWHERE, False), "strides": None}
    return changed(interface, changes)


def cuda(**changes: Any) -> Exposing:
    """An object that claims to have CUDA memory."""
    return Exposing(__cuda_array_interface__=device_interface(**changes))


def hip(**changes: Any) -> Exposing:
    """An object that claims to have ROCm memory."""
    return Exposing(__hip_array_interface__=device_interface(**changes))


class Raising:
    """An object that raises `error` on access to the attribute `name`."""

    def __init__(self, name: str, error: BaseException) -> None:
        self._name = name
        self._error = error

    def __getattr__(self, name: str) -> Any:
        if name == self._name:
            raise self._error
        raise AttributeError(name)


class Hooked:
    """An object with a data interface on the memory of `array` whose hooks write "acquire name" and so on into `log`.

    `changes` replace or add keys. `device` is the key under which the buffer is found, or a callable that returns it if
    `called`.
    """

    def __init__(
        self,
        array: npt.NDArray[Any],
        log: list[str],
        name: str = "x",
        *,
        attribute: str = "__gt_data_interface__",
        device: Any = None,
        called: bool = False,
        **changes: Any,
    ) -> None:
        self.array, self.log, self.name = array, log, name
        hooks = {key: self._hook(key) for key in ("acquire", "touch", "release")}
        self.buffer = {**interface_of(array, version=MISSING), **changed(hooks, changes)}
        setattr(self, attribute, {device: (lambda: self.buffer) if called else self.buffer})

    def _hook(self, key: str) -> Callable[[], object]:
        return lambda: self.log.append(f"{key} {self.name}")


class Arrays:
    """An object whose `__array__` returns `make()`, and takes `copy` if `modern`; `calls` holds the keywords."""

    def __init__(self, make: Callable[[], Any], *, modern: bool = True) -> None:
        self.make = make
        self.modern = modern
        self.calls: list[dict[str, Any]] = []

    def __array__(self, **keywords: Any) -> Any:
        self.calls.append(keywords)
        if keywords and not self.modern:
            raise TypeError("__array__() takes no keyword arguments")
        return self.make()


class _Slot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("function", ctypes.c_void_p)]


class _Spec(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    ]


def _get_buffer(fake: Any, view: Any, _flags: int) -> int:
    with COUNTING:
        fake.requested += 1
    if fake.silent:
        return -1
    ctypes.memmove(view, ctypes.addressof(fake.view), ctypes.sizeof(PyBuffer))
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(fake))
    view[0].obj = id(fake)
    return 0


def _release_buffer(fake: Any, _view: Any) -> None:
    with COUNTING:
        fake.released += 1


# They have to live as long as the type.
_functions: Any = kept_for_good(
    (
        ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(PyBuffer), ctypes.c_int)(_get_buffer),
        # NumPy releases buffers also while an exception is set, and then no pointer object can be made.
        ctypes.PYFUNCTYPE(None, ctypes.py_object, ctypes.c_void_p)(_release_buffer),
    )
)


def _exporter_type() -> Any:
    """A type with the slots of the buffer protocol, which a class statement can't make before Python 3.12."""
    get_buffer, release_buffer, default, base_type = 1, 2, 1 << 18, 1 << 10
    slots = (_Slot * 3)(
        _Slot(get_buffer, ctypes.cast(_functions[0], ctypes.c_void_p)),
        _Slot(release_buffer, ctypes.cast(_functions[1], ctypes.c_void_p)),
        _Slot(0, None),
    )
    spec = _Spec(b"fakes_interfaces.Exporter", object.__basicsize__, 0, default | base_type, slots)
    make = ctypes.pythonapi.PyType_FromSpec
    make.argtypes, make.restype = [ctypes.POINTER(_Spec)], ctypes.py_object
    return make(ctypes.byref(spec))


Exporter: Any = _exporter_type()


class FakeBuffer(Exporter):  # type: ignore[misc]
    """An exporter of the memory of `data`; any field of its `Py_buffer` may be overridden.

    With `silent` it fails and sets no exception.

    `requested` and `released` count buffers; they are equal when no consumer holds one.
    """

    def __init__(
        self,
        data: npt.NDArray[Any],
        *,
        shape: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        suboffsets: Sequence[int] | None = None,
        null_shape: bool = False,
        null_strides: bool = False,
        silent: bool = False,
        **fields: Any,
    ) -> None:
        self.data = data
        self.silent = silent
        self.requested = self.released = 0
        numbers: Callable[[Sequence[int]], Any] = lambda values: (ctypes.c_ssize_t * max(len(values), 1))(*values)  # noqa: E731
        self._shape = numbers(data.shape if shape is None else shape)
        self._strides = numbers(data.strides if strides is None else strides)
        self._suboffsets = None if suboffsets is None else numbers(suboffsets)
        pointer = ctypes.POINTER(ctypes.c_ssize_t)
        exporter: Any = data
        standard: dict[str, Any] = {
            "buf": data.ctypes.data,
            "len": data.nbytes,
            "itemsize": data.itemsize,
            "readonly": int(not data.flags.writeable),
            "ndim": data.ndim,
            "format": memoryview(exporter).format.encode(),
        }
        self.view = PyBuffer(**{**standard, **fields})
        if not null_shape:
            self.view.shape = ctypes.cast(self._shape, pointer)
        if not null_strides:
            self.view.strides = ctypes.cast(self._strides, pointer)
        if self._suboffsets is not None:
            self.view.suboffsets = ctypes.addressof(self._suboffsets)


def double_matrix() -> npt.NDArray[np.float64]:
    """A 2 x 3 array with the values 0 to 5, which most fakes hold."""
    return np.arange(6, dtype=np.float64).reshape(2, 3)


def lazily_loaded(array: npt.NDArray[Any], dims: Sequence[str]) -> Any:
    """A DataArray as `open_dataset(cache=False)` gives it: each access of its data makes another array."""
    import xarray

    class Backend(xarray.backends.BackendArray):  # type: ignore[misc]
        shape, dtype = array.shape, array.dtype

        def __getitem__(self, key: Any) -> Any:
            return array.copy()

    data = xarray.core.indexing.LazilyIndexedArray(Backend())
    return xarray.Dataset({"v": xarray.Variable(dims, data, fastpath=True)})["v"]
