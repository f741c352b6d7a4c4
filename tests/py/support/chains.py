"""Ways from a field to another one on the same memory, which a program may repeat without end."""

import gc
import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
import xarray

import dlfield as dl
from childproc import run_python
from leak_checks import measure

ROUNDS = 200
LINKS = 16_000

Link = Callable[[Any], Any]


class OfDLPack:
    """An object with DLPack alone."""

    def __init__(self, field: dl.Tensor) -> None:
        self.field = field

    def __dlpack__(self, **keywords: Any) -> object:
        return self.field.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.field.__dlpack_device__()


class OfAddress:
    """An object whose array interface has an address: only the object knows what keeps the memory."""

    def __init__(self, field: dl.Tensor) -> None:
        self.field, self.__array_interface__ = field, field.__array_interface__


class OfStruct:
    """An object with `__array_struct__`."""

    def __init__(self, field: dl.Tensor) -> None:
        self.array = np.asarray(field)
        self.__array_struct__ = self.array.__array_struct__


class OfArray:
    """An object with `__array__` alone."""

    def __init__(self, field: dl.Tensor) -> None:
        self.array = np.asarray(field)

    def __array__(self, dtype: object = None, copy: object = None) -> Any:
        return self.array


class OfGridTools:
    """An object with `__gt_data_interface__`: of a buffer, of an address, or with a hook."""

    def __init__(self, field: dl.Tensor, **entries: Any) -> None:
        self.field = field
        self.__gt_data_interface__ = {None: {**field.__array_interface__, **entries}}


def _views(field: dl.Tensor) -> dl.Tensor:
    return field[:].T.transpose(1, 0).reshape(4, 4).domain_view.to_device("cpu")


# Each shares the owner of the field that it is given, so that repeating it makes no chain.
SHARING: dict[str, Link] = {
    "a description": lambda field: dl.from_dlpack(dl.describe(field)),
    "a description of a memoryview": lambda field: dl.from_dlpack(dl.describe(memoryview(field))),
    "a description of a description": lambda field: dl.from_dlpack(dl.describe(dl.describe(memoryview(field)))),
    "a description of a capsule": lambda field: dl.from_dlpack(dl.describe(field.__dlpack__(max_version=(1, 3)))),
    "a description of an array": lambda field: dl.from_dlpack(dl.describe(np.asarray(field)[:])),
    "a description of an array from a capsule": lambda field: dl.from_dlpack(dl.describe(np.from_dlpack(field))),
    "a description of an object with DLPack": lambda field: dl.from_dlpack(dl.describe(OfDLPack(field))),
    "a description of a DataArray": lambda field: dl.from_dlpack(dl.describe(xarray.DataArray(field, dims=("I", "J")))),
    "a description of a tensor of PyTorch": lambda field: dl.from_dlpack(dl.describe(torch.from_dlpack(field))),
    "a capsule": lambda field: dl.from_dlpack(field.__dlpack__(max_version=(1, 3))),
    "a memoryview": lambda field: dl.from_dlpack(memoryview(memoryview(field))),
    "a memoryview of bytes": lambda field: dl.from_dlpack(memoryview(field).cast("B").cast("d", (4, 4))),
    "an object with DLPack": lambda field: dl.from_dlpack(OfDLPack(field)),
    "a buffer in a data interface": lambda field: dl.from_dlpack(OfGridTools(field, data=field)),
    "numpy.asarray": lambda field: dl.from_dlpack(np.asarray(field)),
    "a view of numpy.asarray": lambda field: dl.from_dlpack(np.asarray(field)[:]),
    "a subclass of numpy.ndarray": lambda field: dl.from_dlpack(np.asarray(field).view(np.matrix)),
    "numpy.frombuffer": lambda field: dl.from_dlpack(np.frombuffer(field).reshape(4, 4)),
    "numpy.from_dlpack": lambda field: dl.from_dlpack(np.from_dlpack(field)),
    "to_ndarray": lambda field: dl.from_dlpack(field.to_ndarray()),
    "PyTorch": lambda field: dl.from_dlpack(torch.from_dlpack(field)[:]),
    "PyTorch, from NumPy": lambda field: dl.from_dlpack(torch.from_numpy(np.asarray(field))),
    "xarray": lambda field: dl.from_dlpack(xarray.DataArray(field, dims=("I", "J"))),
    "frombuffer": lambda field: dl.frombuffer(memoryview(field), (4, 4), "float64"),
    "frombuffer of a description": lambda field: dl.frombuffer(dl.describe(memoryview(field)), (4, 4), "float64"),
    "a buffer of a new field": lambda field: dl.empty((4, 4), buffer=field),
    "a description as the buffer of a new field": lambda field: dl.empty((4, 4), buffer=dl.describe(memoryview(field))),
    "block": lambda field: field.block.reshape(4, 4),
    "other labels": lambda field: dl.from_dlpack(field, dims=("x", "y"), origin=(1, 1)),
    "views": _views,
    "as_readonly": lambda field: field.as_readonly(),
}

# Each keeps an object of others, and so the field before.
KEEPING: dict[str, Link] = {
    "an array interface": lambda field: dl.from_dlpack(OfAddress(field)),
    "a description of an array interface": lambda field: dl.from_dlpack(dl.describe(OfAddress(field))),
    "an array of an array interface": lambda field: dl.from_dlpack(np.asarray(OfAddress(field))),
    "an array struct": lambda field: dl.from_dlpack(OfStruct(field)),
    "__array__": lambda field: dl.from_dlpack(OfArray(field)),
    "a data interface": lambda field: dl.from_dlpack(OfGridTools(field)),
    "a data interface with a hook": lambda field: dl.from_dlpack(OfGridTools(field, data=field, release=dict)),
    "a description of a hook": lambda field: dl.from_dlpack(dl.describe(OfGridTools(field, data=field, release=dict))),
    "an address": lambda field: dl.from_pointer(field.ptr, field.shape, field.dtype, owner=field),
    "a capsule of PyTorch": lambda field: dl.from_dlpack(torch.from_dlpack(field).__dlpack__()),
    "an array of PyTorch": lambda field: dl.from_dlpack(torch.from_numpy(np.asarray(field)).numpy()),
}


def repeated(link: Link) -> Callable[[], None]:
    """Return a function that goes one link further with each call."""
    field = dl.ones((4, 4))

    def use() -> None:
        nonlocal field
        field = link(field)

    return use


def make_and_release(link: Link) -> float:
    """Make a long chain and release it, which must not overflow the stack. Return the sum of the last field."""
    field = dl.ones((4, 4))
    for _ in range(LINKS):
        field = link(field)
    total = float(np.asarray(field).sum())
    del field
    return total


def report() -> None:
    """Print the memory that each link takes of the ways that share the owner, and the sums of the others' fields."""
    gc.freeze()
    growth = {name: measure(repeated(link), ROUNDS, 600) for name, link in SHARING.items()}
    sums = {name: make_and_release(link) for name, link in KEEPING.items()}
    print(json.dumps({"growth": growth, "sums": sums}))


@cache
def results() -> dict[str, dict[str, Any]]:
    """What `report` prints in a process of its own."""
    found: dict[str, dict[str, Any]] = json.loads(run_python("import chains; chains.report()"))
    return found
