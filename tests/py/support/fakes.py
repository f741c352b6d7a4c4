"""DLPack producers with every defect that a consumer has to survive; each counts its calls or releases."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dlpack_structs import (
    DELETER,
    LEGACY,
    USED,
    VERSIONED,
    DLDataType,
    DLDevice,
    DLManagedTensor,
    DLManagedTensorVersioned,
    DLPackVersion,
    DLTensor,
    ExchangeAPI,
    capsule_name,
    kept_for_good,
    new_capsule,
)

KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}

# Structs and callbacks are kept until the process ends: a deleter's own thunk can't be freed while it runs.
_kept: list[Any] = kept_for_good([])


class FakeTensor:
    """A managed tensor over the memory of `data`; any field may be overridden. `deleted` counts calls of the deleter.

    `shape` and `strides` are in elements; `dtype` is (code, bits, lanes); `version` None makes a legacy tensor.
    """

    def __init__(
        self,
        data: npt.NDArray[Any],
        *,
        version: tuple[int, int] | None = (1, 0),
        flags: int = 0,
        device: tuple[int, int] = (1, 0),
        dtype: tuple[int, int, int] | None = None,
        ndim: int | None = None,
        shape: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
        null_shape: bool = False,
        null_strides: bool = False,
        null_data: bool = False,
        null_deleter: bool = False,
        byte_offset: int = 0,
    ) -> None:
        self.data = data
        self.deleted = 0
        shape = data.shape if shape is None else shape
        strides = [step // data.itemsize for step in data.strides] if strides is None else strides
        self._shape = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        self._strides = (ctypes.c_int64 * max(len(strides), 1))(*strides)
        tensor = DLTensor(
            data=None if null_data else data.ctypes.data - byte_offset,
            device=DLDevice(*device),
            ndim=len(shape) if ndim is None else ndim,
            dtype=DLDataType(*(dtype or (KINDS[data.dtype.kind], data.itemsize * 8, 1))),
            byte_offset=byte_offset,
        )
        if not null_shape:
            tensor.shape = ctypes.cast(self._shape, ctypes.POINTER(ctypes.c_int64))
        if not null_strides:
            tensor.strides = ctypes.cast(self._strides, ctypes.POINTER(ctypes.c_int64))
        self._deleter = DELETER(self._count)
        deleter = None if null_deleter else ctypes.cast(self._deleter, ctypes.c_void_p)
        self.managed: DLManagedTensor | DLManagedTensorVersioned
        if version is None:
            self.name = LEGACY
            self.managed = DLManagedTensor(dl_tensor=tensor, deleter=deleter)
        else:
            self.name = VERSIONED
            self.managed = DLManagedTensorVersioned(
                version=DLPackVersion(*version), deleter=deleter, flags=flags, dl_tensor=tensor
            )
        self.capsules: list[object] = []
        _kept.append(self)

    def _count(self, address: int) -> None:
        assert address == self.address
        self.deleted += 1

    @property
    def address(self) -> int:
        return ctypes.addressof(self.managed)

    def capsule(self, name: bytes | None = None) -> object:
        """A new capsule; `name` overrides its right name."""
        capsule: object = new_capsule(self.address, name or self.name, None)
        self.capsules.append(capsule)
        return capsule

    def settled(self) -> bool:
        """True if the tensor was released exactly once, or its capsule still owns it."""
        taken = [capsule for capsule in self.capsules if capsule_name(capsule) == USED[self.name]]
        return self.deleted == len(taken) and len(taken) <= 1


def tensor_of(obj: Any) -> FakeTensor | None:
    """The managed tensor that a fake producer exports, or that a capsule of one holds."""
    fakes = (fake for fake in _kept if isinstance(fake, FakeTensor) and any(made is obj for made in fake.capsules))
    found = getattr(obj, "exported", getattr(obj, "tensor", None)) or next(fakes, None)
    return found if isinstance(found, FakeTensor) else None


class Producer:
    """An object with `__dlpack__` as in today's standard; `calls` holds the keywords of each call."""

    def __init__(self, tensor: FakeTensor, device: tuple[int, int] = (1, 0)) -> None:
        self.tensor = tensor
        self.device = device
        self.calls: list[dict[str, Any]] = []

    def __dlpack__(self, **keywords: Any) -> object:
        self.calls.append(keywords)
        return self.tensor.capsule()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


class OldProducer:
    """A producer from before DLPack 1.0: it takes no keyword but `stream`; `calls` holds the streams it got."""

    def __init__(self, tensor: FakeTensor) -> None:
        self.tensor = tensor
        self.calls: list[int | None] = []

    def __dlpack__(self, stream: int | None = None) -> object:
        self.calls.append(stream)
        return self.tensor.capsule()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class ProducerWithoutKeywords:
    """A producer whose `__dlpack__` takes no argument, over an array of NumPy."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.array = array

    def __dlpack__(self) -> object:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class DevicelessProducer:
    """A producer without `__dlpack_device__`."""

    def __init__(self, tensor: FakeTensor) -> None:
        self.tensor = tensor

    def __dlpack__(self, **_keywords: Any) -> object:
        return self.tensor.capsule()


class ReturningProducer:
    """A producer whose `__dlpack__` returns `value`."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __dlpack__(self, **_keywords: Any) -> object:
        return self.value

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class RaisingProducer:
    """A producer that raises `error` in the method `where`; `calls` counts the calls of `__dlpack__`."""

    def __init__(self, error: BaseException, where: str = "__dlpack__") -> None:
        self.error = error
        self.where = where
        self.calls = 0

    def __dlpack__(self, **_keywords: Any) -> object:
        self.calls += 1
        raise self.error

    def __dlpack_device__(self) -> Any:
        if self.where == "__dlpack_device__":
            raise self.error
        return (1, 0)


class Meddling:
    """An integer that runs code first."""

    def __init__(self, action: Callable[[], object], number: int = 0) -> None:
        self.action, self.number = action, number

    def __index__(self) -> int:
        self.action()
        return self.number


def address_of(function: Any) -> int:
    """The address of a ctypes function."""
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


def exchange_type(
    tensor: FakeTensor | None,
    *,
    version: tuple[int, int] = (1, 3),
    prev_api: int | None = None,
    error: BaseException | None = None,
    silent: bool = False,
    refuses: list[int] | None = None,
) -> type[Any]:
    """A type with `__dlpack_c_exchange_api__`, whose instances export `tensor`, or raise `error`.

    `handed_out` counts exports. With `silent` each function fails and sets no exception, but exports succeed where
    there is a `tensor`. The function that imports appends the address to `refuses` and fails. There is no
    `__dlpack__`: a consumer that gets data has used the C functions.
    """

    class Exporting:
        __dlpack_c_exchange_api__: Any
        handed_out = 0
        exported = tensor

        def __bool__(self) -> bool:
            assert error is not None
            raise error

    def from_py_object(_py_object: int, out: Any) -> int:
        if silent and tensor is None:
            return -1
        assert tensor is not None
        Exporting.handed_out += 1
        out[0] = tensor.address
        return 0

    def borrow(_py_object: int, out: Any) -> int:
        if silent and tensor is None:
            return -1
        assert tensor is not None
        Exporting.handed_out += 1
        ctypes.memmove(out, ctypes.addressof(tensor.managed.dl_tensor), ctypes.sizeof(DLTensor))
        return 0

    def to_py_object(address: int, _out: Any) -> int:
        assert refuses is not None
        refuses.append(address)
        return -1

    def work_stream(_device_type: int, _device_id: int, out: Any) -> int:
        if silent:
            return -1
        out[0] = None
        return 0

    pointer = ctypes.POINTER(ctypes.c_void_p)
    managed_out = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, pointer)
    borrowed_out = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(DLTensor))
    stream_out = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, pointer)
    functions: list[Any] = [managed_out(from_py_object), borrowed_out(borrow), stream_out(work_stream)]
    functions.append(managed_out(to_py_object))
    api = ExchangeAPI(version=DLPackVersion(*version), prev_api=prev_api)
    # A ctypes callback can't return with an exception set, but a C function that calls `__bool__` can.
    export = functions[:2] if error is None else [ctypes.pythonapi.PyObject_IsTrue] * 2
    api.managed_tensor_from_py_object_no_sync = address_of(export[0])
    api.dltensor_from_py_object_no_sync = address_of(export[1])
    api.current_work_stream = address_of(functions[2])
    if refuses is not None:
        api.managed_tensor_to_py_object_no_sync = address_of(functions[3])
    Exporting.__dlpack_c_exchange_api__ = new_capsule(ctypes.addressof(api), b"dlpack_exchange_api", None)
    _kept.extend((api, functions))
    return Exporting


def int_matrix() -> npt.NDArray[np.int32]:
    """A 2 x 3 array with the values 0 to 5, which most fakes hold."""
    return np.arange(6, dtype=np.int32).reshape(2, 3)
