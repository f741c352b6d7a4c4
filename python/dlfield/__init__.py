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

from dlfield import cuda
from dlfield._native import (
    Bound,
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
    Preflight,
    Preset,
    Signature,
    Tensor,
    __version__,
    as_numpy,
    as_torch,
    describe,
    empty,
    empty_like,
    from_array,
    from_dlpack,
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
from dlfield.annotations import Field
from dlfield.frameworks import as_cupy, as_jax
from dlfield.kernels import kernel

__all__ = [
    "Bound",
    "DTypeError",
    "Descriptor",
    "Device",
    "DeviceError",
    "DimsError",
    "Error",
    "ExchangeError",
    "Field",
    "FieldSpec",
    "LayoutError",
    "LayoutWarning",
    "NoSuchBufferError",
    "NotAnArrayError",
    "Preflight",
    "Preset",
    "Signature",
    "Tensor",
    "__version__",
    "as_cupy",
    "as_jax",
    "as_numpy",
    "as_torch",
    "cuda",
    "describe",
    "empty",
    "empty_like",
    "from_array",
    "from_dlpack",
    "full",
    "full_like",
    "get_dims",
    "get_origin",
    "kernel",
    "num_threads",
    "ones",
    "ones_like",
    "preflight",
    "presets",
    "register_preset",
    "set_num_threads",
    "zeros",
    "zeros_like",
]
