"""Export to PyTorch, JAX and CuPy.

PyTorch, JAX and CuPy are imported on first use, never by `import dlfield`. `preflight` decides what each of them can
share; this module makes the arrays.
"""

import functools
import importlib
import sys
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

import numpy as np

from dlfield import _native
from dlfield._native import (
    Descriptor,
    ExchangeError,
    Preflight,
    Tensor,
    as_numpy,
    describe,
    from_array,
    from_dlpack,
    preflight,
    zeros,
)
from dlfield.interop.copies import because, record_copy

# The distribution to install, if its name differs from that of the imported module.
_DISTRIBUTIONS = {
    "cupy": "cupy-cuda13x (or cupy-cuda12x, by the driver)",
    "dask.array": "'dask[array,distributed]'",
    "matplotlib.pyplot": "matplotlib",
}

# The exceptions that frameworks raise for a dtype that they do not support.
_REFUSALS = (BufferError, RuntimeError, TypeError, ValueError)


def imported(name: str, caller: str) -> ModuleType:
    """Import a framework; raise an ImportError that names `caller` and the package to install if it is missing."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in (name, name.partition(".")[0]):
            raise
        fix = f"pip install {_DISTRIBUTIONS.get(name, name)}"
        raise ImportError(f"{caller} needs {name}, which is not installed: {fix}", name=name) from error


def copied_to_torch(obj: Any, copy: bool | None) -> Any:
    """Return a PyTorch tensor for what `as_torch` can't share: a copy, or `obj` itself if it is one; or raise."""
    torch = imported("torch", "as_torch")
    if isinstance(obj, torch.Tensor):
        if copy:
            record_copy(obj.nbytes, "as_torch: copy=True")
        return obj.clone() if copy else obj
    obj = _nearer("torch", obj)
    found = preflight(obj, "torch")
    if found and not copy:
        return torch.from_dlpack(obj)
    with _allowed_copy("as_torch", found, copy):
        return torch.from_dlpack(obj.copy())


def as_jax(obj: Any, *, copy: bool | None = None) -> Any:
    """Return a `jax.Array` on the memory of `obj`, or on a copy.

    The dtype is kept, also a 64-bit one if `jax_enable_x64` is off; JAX's computations on such an array follow that
    setting. JAX arrays are immutable, so read-only memory is shared too. JAX sees writes through other views of the
    same memory, but they are not ordered with its pending computations.

    Parameters
    ----------
    obj : array
        A `Tensor` or anything `from_dlpack` accepts. A `jax.Array` is returned unchanged (`copy=True`: copied).
    copy : bool or None, optional
        None copies only if JAX can't use the memory; True copies always; False never.

    Returns
    -------
    jax.Array
        Same shape and dtype as `obj`, on the same device.

    Raises
    ------
    ExchangeError
        `copy=False`, and the strides are not compact (padding, steps, negative, broadcast), the address of host memory
        is not a multiple of 64 bytes, or the memory is read-only and either on a GPU or not in C order. Also if JAX
        does not support the dtype or the device.
    NotAnArrayError, DTypeError, DeviceError
        As for `from_dlpack`.
    ImportError
        JAX is not installed.

    Example
    -------
    >>> import dlfield as dl
    >>> field = dl.ones((4, 3), backend="jax")
    >>> dl.as_jax(field, copy=False).unsafe_buffer_pointer() == field.ptr
    True
    """
    if copy is None and _native._jax_takes(obj):
        # The usual field: below there would be nothing to decide.
        return _jax().dlpack.from_dlpack(obj)
    copy = _checked(copy)
    jax = _jax()
    if isinstance(obj, jax.Array):
        if copy:
            record_copy(obj.nbytes, "as_jax: copy=True")
        return jax.numpy.array(obj, copy=True) if copy else obj
    obj = _buffer_of(obj, copy)
    tensor = _nearer("jax", _tensor(obj, copy))
    found = preflight(tensor, "jax")
    # Without x64, JAX would turn float64 into float32 and cut int64 to its low half without an error.
    with jax.enable_x64(True):
        if found and not copy:
            array = _jax_view(jax, tensor)
            if not _is_jax_view(array, tensor):
                reason = f"JAX {jax.__version__} has made a copy"
                if copy is False:
                    raise ExchangeError(f"as_jax: copy=False, but {reason}; pass copy=None")
                record_copy(tensor.nbytes, f"as_jax: {reason}")
            return array
        with _allowed_copy("as_jax", found, copy):
            if tensor.device.type != "cuda":
                record_copy(tensor.nbytes, "")
            return _jax_copy(jax, tensor)


def as_cupy(obj: Any, *, copy: bool | None = None) -> Any:
    """Return a `cupy.ndarray` on the memory of `obj`, or on a copy in device memory.

    CuPy has no read-only arrays, so read-only memory is never shared: it is copied or rejected.

    Parameters
    ----------
    obj : array
        Anything `describe` accepts. A `cupy.ndarray` is returned unchanged (`copy=True`: copied).
    copy : bool or None, optional
        None copies only memory that CuPy can't use, mainly host memory; True copies always; False never.

    Returns
    -------
    cupy.ndarray
        Same shape and dtype as `obj`; without a copy it has the same strides too, and keeps `obj` alive.

    Raises
    ------
    ExchangeError
        `copy=False` and the memory is host memory or read-only. Also if the memory is on a device that CuPy can't read,
        or CuPy does not support the dtype.
    NotAnArrayError, DTypeError, DeviceError
        As for `from_dlpack`.
    ImportError
        CuPy is not installed.

    Example
    -------
    >>> import dlfield as dl
    >>> dl.preflight(dl.zeros((4, 3)), "cupy").reason
    'the memory is on cpu and CuPy works on cuda and cuda_managed only'
    """
    copy = _checked(copy)
    cupy = imported("cupy", "as_cupy")
    if isinstance(obj, cupy.ndarray):
        if copy:
            record_copy(obj.nbytes, "as_cupy: copy=True")
        return obj.copy(order="K") if copy else obj
    obj = _buffer_of(obj, copy, on_device=True)
    seen = describe(obj, stream=_cupy_stream(cupy, obj))
    found = preflight(seen, "cupy")
    if not found or copy:
        with _allowed_copy("as_cupy", found, copy):
            record_copy(seen.nbytes, "")
    if seen.device.type not in ("cuda", "cuda_managed"):
        return cupy.asarray(as_numpy(seen))
    # CuPy copies to its current device, on the current stream of that device.
    with cupy.cuda.Device(seen.device.id):
        view = _cupy_view(cupy, seen)
        return view if found and not copy else view.copy(order="K")


def _buffer_of(obj: Any, copy: bool | None, *, on_device: bool = False) -> Any:
    """Return the buffer of a host/device pair that will be used, any other object unchanged."""
    module = sys.modules.get("dlfield.storage.managed")
    if module is None or not isinstance(obj, module.SoftwareManagedGPUStorage):
        return obj
    return obj._buffer(str(obj.device) if on_device else None, "r" if copy else "rw")


def _checked(copy: Any) -> bool | None:
    """Return the argument `copy` as None, True or False; NumPy's booleans, 1 and 0 would fail a check by `is`."""
    if copy is None or (isinstance(copy, (bool, np.bool_, int)) and copy in (0, 1)):
        return None if copy is None else bool(copy)
    raise TypeError(f"copy: expected None, True or False, got {copy!r}")


def _tensor(obj: Any, copy: bool | None) -> Tensor:
    """Return `obj` as a tensor; with `copy=False` the producer must not copy either."""
    if isinstance(obj, Tensor):
        return obj
    return from_dlpack(obj, copy=False) if copy is False else from_dlpack(obj)


def _nearer(framework: str, tensor: Tensor) -> Tensor:
    """Return a tensor in pinned or managed memory on a device type that the framework knows, others unchanged."""
    if tensor.device.type == "cuda_managed" and reaches(framework, 0):
        return tensor.to_device("cuda:0")
    return tensor.to_device("cpu") if tensor.device.type in ("cuda_host", "cuda_managed") else tensor


def _allowed_copy(caller: str, found: Preflight, copy: bool | None) -> AbstractContextManager[None]:
    """Return the context of a copy, for `trace_copies`; raise if the export is impossible, or if `copy` is False."""
    if found.verdict == "impossible":
        raise ExchangeError(f"{caller}: {found.reason}; {found.fix}")
    if copy is False:
        raise ExchangeError(f"{caller}: copy=False, but {found.reason}; {found.fix}")
    return because(f"{caller}: {found.reason or 'copy=True'}")


@functools.cache
def _jax() -> ModuleType:
    return imported("jax", "as_jax")


def _jax_view(jax: ModuleType, tensor: Tensor) -> Any:
    """Return a JAX array on the memory of `tensor`, or on a copy if JAX silently makes one."""
    if tensor.readonly and tensor.device.type != "cuda":
        # JAX before 0.12 accepts legacy capsules only, without a read-only flag; all respect the flag of NumPy arrays.
        return jax.device_put(tensor.to_numpy(), _jax_cpu(jax), may_alias=True)
    return jax.dlpack.from_dlpack(tensor)


def _is_jax_view(array: Any, tensor: Tensor) -> bool:
    return bool(array.dtype == tensor.dtype and (tensor.size == 0 or array.unsafe_buffer_pointer() == tensor.ptr))


def _jax_copy(jax: ModuleType, tensor: Tensor) -> Any:
    if tensor.device.type == "cuda":
        compact = from_array(tensor, layout=range(tensor.ndim), alignment_size=1, padding="none", device=tensor.device)
        return jax.numpy.from_dlpack(compact)
    return jax.numpy.array(tensor.to_numpy(), copy=True, device=_jax_cpu(jax))


def _jax_cpu(jax: ModuleType) -> Any:
    return jax.local_devices(backend="cpu")[0]


def _cupy_stream(cupy: ModuleType, obj: Any) -> int | None:
    """Return CuPy's current stream in DLPack's numbering if `obj` is on a CUDA device, else None."""
    ask = getattr(obj, "__dlpack_device__", None)
    if ask is None:
        # `__cuda_array_interface__` has no device, but it may have the stream that still writes the memory.
        names = ("__gt_data_interface__", "__gt_interface__")
        on_current = hasattr(obj, "__cuda_array_interface__") and not any(hasattr(obj, name) for name in names)
        return (cupy.cuda.get_current_stream().ptr or 1) if on_current else None
    kind, number = ask()
    if kind not in (2, 13):
        return None
    with cupy.cuda.Device(number):
        # The legacy default stream is 0 in CUDA and 1 in DLPack.
        return cupy.cuda.get_current_stream().ptr or 1


def _cupy_view(cupy: ModuleType, seen: Descriptor) -> Any:
    """Return a CuPy array on the memory that `seen` describes."""
    if seen.size == 0:
        return cupy.empty(seen.shape, seen.dtype)
    reaches = [stride * (extent - 1) for stride, extent in zip(seen.strides, seen.shape, strict=True)]
    below = -sum(reach for reach in reaches if reach < 0)
    span = below + sum(reach for reach in reaches if reach > 0) + seen.itemsize
    memory = cupy.cuda.UnownedMemory(seen.ptr - below, span, seen)
    return cupy.ndarray(seen.shape, seen.dtype, cupy.cuda.MemoryPointer(memory, below), strides=seen.strides)


@functools.cache
def reaches(framework: str, device: int) -> bool:
    """Return whether the installed PyTorch or JAX has this CUDA device; `preflight` calls it."""
    module = imported(framework, "preflight")
    if framework == "torch":
        return bool(module.cuda.is_available() and device < module.cuda.device_count())
    try:
        return any(found.local_hardware_id == device for found in module.local_devices(backend="gpu"))
    except RuntimeError:  # built without CUDA, or no device found
        return False


@functools.cache
def shares(framework: str, dtype: str) -> bool | None:
    """Return True if a framework shares memory of this dtype, False if it copies it, None if it has no such dtype.

    Versions differ, so this tries the installed one, with one element that meets all other conditions. `preflight`
    calls it. Raises ImportError if PyTorch or JAX is not installed; CuPy is tried only if it and a GPU are available.
    """
    tensor = zeros((1,), dtype, alignment_size=64)
    if framework == "cupy":
        return _cupy_shares(tensor)
    module = imported(framework, "preflight")
    try:
        if framework == "torch":
            return bool(module.from_dlpack(tensor).data_ptr() == tensor.ptr)
        return _jax_shares(module, tensor)
    except _REFUSALS:
        return None


def _jax_shares(jax: ModuleType, tensor: Tensor) -> bool | None:
    with jax.enable_x64(True):
        try:
            array = _jax_view(jax, tensor)
        except _REFUSALS:
            array = _jax_copy(jax, tensor)
        return None if array.dtype != tensor.dtype else _is_jax_view(array, tensor)


def _cupy_shares(tensor: Tensor) -> bool | None:
    # CuPy goes by the character, and some of ml_dtypes are also NumPy's: "L" of float8_e4m3b11fnuz is that of uint64.
    if tensor.dtype.isbuiltin != 1 and tensor.dtype.char in np.typecodes["All"]:
        return None
    try:
        return bool(importlib.import_module("cupy").empty(0, tensor.dtype).dtype == tensor.dtype)
    except (ImportError, RuntimeError):  # not installed, or no GPU to try it on
        return True
    except (TypeError, ValueError):
        return None
