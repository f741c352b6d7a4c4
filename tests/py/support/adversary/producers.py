"""Hostile arrays of each library, and the choice of one."""

from __future__ import annotations

import array
import mmap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
import torch
import xarray

import dlfield as dl
from adversary.classes import Descriptor, acting_method, build, fresh, made, numpy_array, read_only_array
from adversary.protocols import (
    array_interface,
    array_method,
    array_struct,
    capsule,
    data_interface,
    dlpack,
    dlpack_of_numpy,
    exchange_api,
)
from adversary.values import number
from fakes_interfaces import FakeBuffer

if TYPE_CHECKING:
    from adversary.case import Case


def subclass_of_numpy(case: Case) -> Any:
    protocol: dict[str, Any] = {}
    if case.rng.random() < 0.3:
        protocol["__array_finalize__"] = lambda self, _other: getattr(self, "case", case).act("__array_finalize__")
    if case.rng.random() < 0.2:
        protocol["__dlpack__"] = acting_method("__dlpack__", lambda self, **k: np.ndarray.__dlpack__(self, **k))
    if case.rng.random() < 0.2:
        protocol["__array_ufunc__"] = acting_method("__array_ufunc__", lambda _self, *_a, **_k: NotImplemented)
    data = fresh(case)
    kind = build(case, (np.ndarray,), protocol)
    found = np.ndarray.__new__(kind, data.shape, data.dtype)
    found.__dict__["case"] = case
    np.copyto(found, data)
    return case.keep(found)


def torch_tensor(case: Case) -> Any:
    data = fresh(case)
    if data.dtype.byteorder == ">":
        data = data.astype("f8")
    found = torch.empty(data.shape, dtype=torch.from_numpy(data).dtype)
    found.copy_(torch.from_numpy(data))
    if case.rng.random() < 0.1 and found.is_floating_point():
        found.requires_grad_()
    return case.keep(found)


def subclass_of_torch(case: Case) -> Any:
    protocol: dict[str, Any] = {}
    if case.rng.random() < 0.5:
        protocol["__dlpack_c_exchange_api__"] = Descriptor(case, torch.Tensor.__dlpack_c_exchange_api__)
    if case.rng.random() < 0.5:

        def torch_function(cls: Any, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
            case.act("__torch_function__")
            return torch.Tensor.__torch_function__.__func__(cls, function, types, arguments, keywords or {})

        protocol["__torch_function__"] = classmethod(torch_function)
    protocol["__del__"] = lambda _self: case.act("__del__", final=True)
    found = torch_tensor(case).detach()
    return case.keep(found.as_subclass(type("Late", (torch.Tensor,), protocol)))


def jax_array(case: Case) -> Any:
    return case.keep(jnp.asarray(np.ones(case.shape, "f4")))


def buffer(case: Case) -> Any:
    """An object with the buffer protocol alone."""
    size = max(1, int(np.prod(case.shape)))
    data = np.ones(size, "f8")

    def mapped() -> Any:
        found = mmap.mmap(-1, data.nbytes)
        found.write(data.tobytes())
        return found

    def counting() -> Any:
        found = ActingBuffer(case, fresh(case).astype("f8").copy())
        case.exporters.append(found)
        return found

    kinds: list[Callable[[], Any]] = [
        lambda: case.keep(bytearray(data.tobytes())),
        lambda: case.keep(memoryview(bytearray(data.tobytes())).cast("d")),
        lambda: case.keep(array.array("d", data.tobytes())),
        lambda: data.tobytes(),
        lambda: case.keep(mapped()),
        counting,
    ]
    return case.rng.choice(kinds)()


class ActingBuffer(FakeBuffer):
    """A buffer that acts when it is requested and released."""

    def __init__(self, case: Case, data: Any) -> None:
        super().__init__(data)
        self.case = case

    @property
    def silent(self) -> bool:
        if "case" in vars(self):
            self.case.act("bf_getbuffer", final=True)
        return False

    @silent.setter
    def silent(self, _value: bool) -> None:
        pass

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if name == "released" and value and "case" in vars(self):
            self.case.act("bf_releasebuffer", final=True)


def data_array(case: Case) -> Any:
    return xarray.DataArray(numpy_array(case), dims=list("IJK"[: len(case.shape)]) if case.rng.random() < 0.9 else None)


def own_tensor(case: Case) -> Any:
    options: dict[str, Any] = {"halo": ((0, 0),) * len(case.shape)} if case.rng.random() < 0.2 else {}
    made = dl.from_array(fresh(case), backend=case.rng.choice((None, "gtmc", "gt:cpu_ifirst")), **options)
    return case.keep(made.as_readonly() if case.rng.random() < 0.1 else made)


def of_rare_type(case: Case) -> Any:
    """A tensor of a type that some libraries do not have."""
    # Ones: ml_dtypes crashes when it divides integers of 2 or 4 bits by zero.
    return case.keep(dl.ones(case.shape, case.rng.choice(RARE)))


RARE = ("bfloat16", "float16", "int4", "int2", "float8_e4m3fn", "float8_e3m4", "float4_e2m1fn", "complex64", "uint16")


def tensor_of(case: Case) -> Any:
    """A tensor on memory of another library."""
    return dl.from_dlpack(case.rng.choice((numpy_array, dlpack, torch_tensor, buffer, array_interface))(case))


def description(case: Case) -> Any:
    return dl.describe(
        case.rng.choice((numpy_array, torch_tensor, dlpack, own_tensor, array_interface, data_interface))(case)
    )


def nested(case: Case) -> Any:
    values: list[Any] = [number(case) for _ in range(3)]
    return case.keep(case.keep([values, values]) if case.rng.random() < 0.5 else values)


def scalar(case: Case) -> Any:
    return case.rng.choice((lambda: 2, lambda: 1.5, lambda: np.float64(2), lambda: True, lambda: number(case)))()


def junk(case: Case) -> Any:
    """Not an array, or one that is nothing but callbacks."""
    kind = build(case, (), {})
    return case.rng.choice(
        (lambda: None, lambda: "text", object, lambda: made(case, kind), lambda: type(made(case, kind)))
    )()


PRODUCERS: dict[Callable[[Any], Any], int] = {
    numpy_array: 14,
    read_only_array: 2,
    dlpack: 12,
    dlpack_of_numpy: 5,
    capsule: 3,
    exchange_api: 5,
    array_interface: 9,
    array_struct: 3,
    data_interface: 8,
    array_method: 5,
    subclass_of_numpy: 7,
    torch_tensor: 9,
    subclass_of_torch: 4,
    jax_array: 2,
    buffer: 5,
    data_array: 3,
    own_tensor: 7,
    of_rare_type: 3,
    tensor_of: 4,
    description: 6,
    nested: 3,
    scalar: 3,
    junk: 3,
}


# Those that run code while they are imported.
ACTING = (dlpack, exchange_api, array_interface, data_interface, subclass_of_torch)


def producer(case: Case) -> Any:
    """A hostile array, or an ordinary one that others change."""
    if case.is_moved_later:
        has_array = any(type(each) is np.ndarray for each in case.participants)
        return (case.rng.choice(ACTING) if has_array else numpy_array)(case)
    return case.rng.choices(list(PRODUCERS), list(PRODUCERS.values()))[0](case)


def writable(case: Case) -> Any:
    """An array to write to."""
    return case.rng.choice(
        (numpy_array, numpy_array, own_tensor, torch_tensor, dlpack, array_interface, data_interface)
    )(case)
