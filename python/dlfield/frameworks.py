"""The array of a framework on the memory of any other array.

PyTorch, JAX and CuPy are imported when they are asked for, never by `import dlfield`. What each of them can use as it
is, `preflight` knows; here is how it is done.
"""

import functools
import importlib
import sys
from types import ModuleType
from typing import Any

import numpy as np

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

# What to install where that has another name than what is imported.
_DISTRIBUTIONS = {"cupy": "cupy-cuda13x (or cupy-cuda12x, by the driver)"}

# What frameworks raise for an element type they lack.
_REFUSALS = (BufferError, RuntimeError, TypeError, ValueError)


def imported(name: str, caller: str) -> ModuleType:
    """Import a framework; `caller` is who needs it."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        fix = f"pip install {_DISTRIBUTIONS.get(name, name)}"
        raise ImportError(f"{caller} needs {name}, which is not installed: {fix}", name=name) from error


def copied_to_torch(obj: Any, copy: bool | None) -> Any:
    """Return what `as_torch` can't share: a copy, or `obj` itself if it is PyTorch's; else say what it lacks."""
    torch = imported("torch", "as_torch")
    if isinstance(obj, torch.Tensor):
        return obj.clone() if copy else obj
    obj = _nearer("torch", obj)
    found = preflight(obj, "torch")
    if found and not copy:
        return torch.from_dlpack(obj)
    _allow_copy("as_torch", found, copy)
    return torch.from_dlpack(obj.copy())


def as_jax(obj: Any, *, copy: bool | None = None) -> Any:
    """Return the `jax.Array` on the memory of `obj`.

    The dtype is kept, 64-bit ones also where `jax_enable_x64` is off; what JAX then computes from such an array follows
    its own setting. A JAX array is immutable, so read-only memory is shared too. Writes through other views of the same
    memory are seen by JAX, but not ordered with the computations it has under way.

    Parameters
    ----------
    obj
        A `Tensor` or anything `from_dlpack` takes. A `jax.Array` comes back as it is (`copy=True`: copied).
    copy
        None copies only where JAX can't use the memory; True always; False never.

    Returns
    -------
    jax.Array
        Same shape and dtype as `obj`, on the same device.

    Raises
    ------
    ExchangeError
        `copy=False` and the strides are not compact (padding, steps, negative, broadcast), the address of host memory
        is not a multiple of 64 bytes, or read-only memory is not in C order or a GPU's; or JAX lacks the dtype, or the
        device.
    ImportError
        JAX is not installed.

    Example
    -------
    >>> import dlfield as dl
    >>> field = dl.ones((4, 3), backend="jax")
    >>> dl.as_jax(field, copy=False).unsafe_buffer_pointer() == field.ptr
    True
    """
    copy = _checked(copy)
    jax = imported("jax", "as_jax")
    if isinstance(obj, jax.Array):
        return jax.numpy.array(obj, copy=True) if copy else obj
    obj = _side(obj, copy)
    tensor = _nearer("jax", _tensor(obj, copy))
    found = preflight(tensor, "jax")
    # Without x64, JAX would turn float64 into float32 and cut int64 to its low half without an error.
    with jax.enable_x64(True):
        if found and not copy:
            array = _jax_view(jax, tensor)
            if copy is False and not _is_jax_view(array, tensor):
                raise ExchangeError(f"as_jax: copy=False, but JAX {jax.__version__} has made a copy; pass copy=None")
            return array
        _allow_copy("as_jax", found, copy)
        return _jax_copy(jax, tensor)


def as_cupy(obj: Any, *, copy: bool | None = None) -> Any:
    """Return the `cupy.ndarray` on the memory of `obj`, or a copy of host memory on the GPU.

    CuPy has no read-only arrays, so it never gets read-only memory: that is copied, or refused. This has been tested
    against a stand-in for CuPy and not yet on a GPU.

    Parameters
    ----------
    obj
        Anything `describe` takes. A `cupy.ndarray` comes back as it is (`copy=True`: copied).
    copy
        None copies only what CuPy can't use, host memory above all; True always; False never.

    Returns
    -------
    cupy.ndarray
        Same shape and dtype as `obj`; without a copy also the same strides, and it keeps `obj` alive.

    Raises
    ------
    ExchangeError
        `copy=False` and the memory is the host's or read-only; or it is on a device CuPy can't read, or CuPy lacks the
        dtype.
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
        return obj.copy(order="K") if copy else obj
    obj = _side(obj, copy, on_device=True)
    seen = describe(obj, stream=_cupy_stream(cupy, obj))
    found = preflight(seen, "cupy")
    if not found or copy:
        _allow_copy("as_cupy", found, copy)
    if seen.device.type not in ("cuda", "cuda_managed"):
        return cupy.asarray(as_numpy(seen))
    # CuPy copies to its current device, in the current stream of that.
    with cupy.cuda.Device(seen.device.id):
        view = _cupy_view(cupy, seen)
        return view if found and not copy else view.copy(order="K")


def _side(obj: Any, copy: bool | None, *, on_device: bool = False) -> Any:
    """Return the side of a host/device pair that is going to be used; any other object as it is."""
    module = sys.modules.get("dlfield.storage.managed")
    if module is None or not isinstance(obj, module.SoftwareManagedGPUStorage):
        return obj
    return obj._side(str(obj.device) if on_device else None, "r" if copy else "rw")


def _checked(copy: Any) -> bool | None:
    """Return the argument `copy` as one of the three values that `is` is asked for."""
    if copy is None or isinstance(copy, (bool, np.bool_)):
        return None if copy is None else bool(copy)
    raise TypeError(f"copy: {copy!r}; allowed is None, True or False")


def _tensor(obj: Any, copy: bool | None) -> Tensor:
    """Return `obj` as a tensor; with `copy=False` its producer must not copy either."""
    if isinstance(obj, Tensor):
        return obj
    return from_dlpack(obj, copy=False) if copy is False else from_dlpack(obj)


def _nearer(framework: str, tensor: Tensor) -> Tensor:
    """Return pinned and managed memory as that of a device the framework has a word for."""
    if tensor.device.type == "cuda_managed" and reaches(framework, 0):
        return tensor.to_device("cuda:0")
    return tensor.to_device("cpu") if tensor.device.type in ("cuda_host", "cuda_managed") else tensor


def _allow_copy(caller: str, found: Preflight, copy: bool | None) -> None:
    """Raise if there can be no such array, or if it needs a copy where `copy` is False."""
    if found.verdict == "impossible":
        raise ExchangeError(f"{caller}: {found.reason}; {found.fix}")
    if copy is False:
        raise ExchangeError(f"{caller}: copy=False, but {found.reason}; {found.fix}")


def _jax_view(jax: ModuleType, tensor: Tensor) -> Any:
    """Return the JAX array on the memory of `tensor`, or a copy where JAX makes one without a word."""
    if tensor.readonly and tensor.device.type != "cuda":
        # JAX knows legacy capsules only, and those can't say read-only; NumPy's flag it respects.
        return jax.device_put(tensor.to_numpy(), _jax_cpu(jax), may_alias=True)
    return jax.numpy.from_dlpack(tensor)


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
    """Return CuPy's current stream as DLPack writes it where `obj` is on a CUDA device, else None."""
    ask = getattr(obj, "__dlpack_device__", None)
    if ask is None:
        # This interface does not say which device, but may say on which stream the memory is still being written.
        names = ("__gt_data_interface__", "__gt_interface__")
        on_current = hasattr(obj, "__cuda_array_interface__") and not any(hasattr(obj, name) for name in names)
        return (cupy.cuda.get_current_stream().ptr or 1) if on_current else None
    kind, number = ask()
    if kind not in (2, 13):
        return None
    with cupy.cuda.Device(number):
        # The legacy default stream has the handle 0 in CUDA, and DLPack calls it 1.
        return cupy.cuda.get_current_stream().ptr or 1


def _cupy_view(cupy: ModuleType, seen: Descriptor) -> Any:
    """Return the CuPy array on the memory that `seen` describes."""
    if seen.size == 0:
        return cupy.empty(seen.shape, seen.dtype)
    reaches = [stride * (extent - 1) for stride, extent in zip(seen.strides, seen.shape, strict=True)]
    below = -sum(reach for reach in reaches if reach < 0)
    span = below + sum(reach for reach in reaches if reach > 0) + seen.itemsize
    memory = cupy.cuda.UnownedMemory(seen.ptr - below, span, seen)
    return cupy.ndarray(seen.shape, seen.dtype, cupy.cuda.MemoryPointer(memory, below), strides=seen.strides)


@functools.cache
def reaches(framework: str, device: int) -> bool:
    """Return whether the installed PyTorch or JAX has this CUDA device. `preflight` asks this."""
    module = imported(framework, "preflight")
    if framework == "torch":
        return bool(module.cuda.is_available() and device < module.cuda.device_count())
    try:
        return any(found.local_hardware_id == device for found in module.local_devices(backend="gpu"))
    except RuntimeError:  # built without, or finds none
        return False


@functools.cache
def shares(framework: str, dtype: str) -> bool | None:
    """Return whether a framework works on memory of this dtype (True) or copies it (False); None if it lacks it.

    Versions differ, so the installed one is tried, with an element that nothing else stands in the way of. `preflight`
    asks this. PyTorch or JAX not being installed is an ImportError; CuPy is only tried where it can be.
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
    try:
        return bool(importlib.import_module("cupy").empty(0, tensor.dtype).dtype == tensor.dtype)
    except (ImportError, RuntimeError):  # not installed, or no GPU to try it on
        return True
    except (TypeError, ValueError):
        return None
