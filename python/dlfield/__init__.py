"""Fields with the layout a stencil needs, shared without a copy with every array library.

A `Tensor` owns memory with the layout and the alignment of a stencil backend, and has metadata: dims, halo and origin.
NumPy, PyTorch, JAX, GT4Py and every other library that supports DLPack can share this memory.

Example
-------
>>> import dlfield as dl
>>> import numpy as np
>>> field = dl.zeros((8, 8, 5), backend="gt:cpu_ifirst", dims="IJK", halo=((1, 1), (1, 1), (0, 0)))
>>> field.origin, field.layout, field.strides
((1, 1, 0), (2, 1, 0), (8, 64, 512))
>>> array = np.asarray(field)
>>> array[1, 1, 0] = 3.0
>>> float(field[1, 1, 0])
3.0
"""

import functools
import importlib
import sys
from typing import TYPE_CHECKING, Any

from dlfield import cuda
from dlfield._native import (
    BoundCall,
    Descriptor,
    Device,
    DeviceError,
    DimsError,
    DTypeError,
    Error,
    ExchangeError,
    FieldSpec,
    LayoutError,
    LayoutWarning,
    NoSuchBufferError,
    NotAnArrayError,
    OverlapError,
    Preflight,
    Preset,
    Signature,
    Tensor,
    __version__,
    _register_package,
    as_numpy,
    as_torch,
    describe,
    empty,
    empty_like,
    from_array,
    from_dlpack,
    from_pointer,
    frombuffer,
    full,
    full_like,
    get_dims,
    get_origin,
    num_threads,
    ones,
    ones_like,
    preflight,
    presets,
    register_preset,
    set_num_threads,
    zeros,
    zeros_like,
)
from dlfield.interop import called
from dlfield.interop.copies import Copy, CopyLog, trace_copies
from dlfield.interop.frameworks import as_cupy, as_jax
from dlfield.kernels import kernel
from dlfield.kernels.annotations import Field
from dlfield.memory import MemoryBlock, MemoryReport, memory_report

if TYPE_CHECKING:
    from dlfield import gt4py as gt4py
    from dlfield import storage as storage
    from dlfield import xarray as xarray
    from dlfield.files import open_field, save_field
    from dlfield.interop.asarray import asarray
    from dlfield.interop.halo import pad
    from dlfield.shared_memory import attach, shared_name
    from dlfield.show.drawing import Drawing, draw
    from dlfield.show.explain import explain

__all__ = [
    "BoundCall",
    "Copy",
    "CopyLog",
    "DTypeError",
    "Descriptor",
    "Device",
    "DeviceError",
    "DimsError",
    "Drawing",
    "Error",
    "ExchangeError",
    "Field",
    "FieldSpec",
    "LayoutError",
    "LayoutWarning",
    "MemoryBlock",
    "MemoryReport",
    "NoSuchBufferError",
    "NotAnArrayError",
    "OverlapError",
    "Preflight",
    "Preset",
    "Signature",
    "Tensor",
    "__version__",
    "as_cupy",
    "as_jax",
    "as_numpy",
    "as_torch",
    "asarray",
    "attach",
    "cuda",
    "describe",
    "draw",
    "empty",
    "empty_like",
    "explain",
    "from_array",
    "from_dlpack",
    "from_pointer",
    "frombuffer",
    "full",
    "full_like",
    "get_dims",
    "get_origin",
    "kernel",
    "memory_report",
    "num_threads",
    "ones",
    "ones_like",
    "open_field",
    "pad",
    "preflight",
    "presets",
    "register_preset",
    "save_field",
    "set_num_threads",
    "shared_name",
    "trace_copies",
    "zeros",
    "zeros_like",
]

# Imported with the first use of these names: programs that map no file need neither `mmap` nor the reader of headers,
# most draw nothing and share nothing, and the last three are for users of GT4Py and xarray.
_LAZY = {
    "Drawing": "show.drawing",
    "asarray": "interop.asarray",
    "attach": "shared_memory",
    "draw": "show.drawing",
    "explain": "show.explain",
    "open_field": "files",
    "pad": "interop.halo",
    "save_field": "files",
    "shared_name": "shared_memory",
}
_MODULES = frozenset({"gt4py", "memory", "storage", "xarray"})


# Type checkers would take every name for one of the module.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import a module on its first use."""
        if name in _MODULES:
            try:
                return importlib.import_module(f"dlfield.{name}")
            except ImportError as error:
                # `hasattr`, `inspect.getmembers` and `help` expect this error of an attribute that cannot be had.
                raise AttributeError(f"module {__name__!r} has no attribute {name!r} here: {error}") from error
        if name not in _LAZY:
            from dlfield.interop.names import instead_of

            raise AttributeError(f"module {__name__!r} has no attribute {name!r}{instead_of(name, __dir__())}")
        return globals().setdefault(name, getattr(importlib.import_module(f"dlfield.{_LAZY[name]}"), name))


def __dir__() -> list[str]:
    """List what is public, imported or not."""
    return sorted({*__all__, *_MODULES})


def _register_with_dask() -> None:
    """Have Dask import `dlfield.dask` with the first tensor that it measures, if this process has Dask.

    A worker has it before the first tensor brings dlfield there. It measures a value before it gives it to another
    task, which then joins tensors to a tensor. Only a name is registered: nothing is imported here.
    """
    sizeof = getattr(sys.modules.get("dask.sizeof"), "sizeof", None)
    if sizeof is not None:
        sizeof.register_lazy("dlfield", functools.partial(importlib.import_module, "dlfield.dask"))


_register_package(called)
_register_with_dask()
