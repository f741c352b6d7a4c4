"""The array of a framework on the memory of any tensor, and what the installed frameworks offer.

PyTorch and JAX are imported when they are asked for, never by `import dlfield`.
"""

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from dlfield._native import ExchangeError, Tensor, from_dlpack, zeros

# XLA on the CPU takes memory as it is only from this boundary on; below it, it copies without a word.
_JAX_ALIGNMENT = 64


def as_torch(obj: Any, *, copy: bool | None = None) -> Any:
    """Return the `torch.Tensor` on the memory of `obj`.

    PyTorch has no read-only tensors, so it never gets read-only memory: that is copied, or refused.

    Parameters
    ----------
    obj
        A `Tensor` or anything `from_dlpack` takes. A `torch.Tensor` comes back as it is (`copy=True`: cloned).
    copy
        None copies only where PyTorch can't use the memory; True always; False never.

    Returns
    -------
    torch.Tensor
        Same shape and dtype as `obj`; without a copy also the same strides.

    Raises
    ------
    ExchangeError
        `copy=False` and the memory is read-only or has negative strides; or PyTorch lacks the dtype.
    ImportError
        PyTorch is not installed.

    Example
    -------
    >>> import dlfield as dl
    >>> field = dl.zeros((4, 3))
    >>> dl.as_torch(field).data_ptr() == field.ptr
    True
    """
    torch = _import("torch", "as_torch")
    if isinstance(obj, torch.Tensor):
        return obj.clone() if copy else obj
    tensor = obj if isinstance(obj, Tensor) else from_dlpack(obj)
    obstacle = _torch_obstacle(tensor)
    if obstacle is not None and copy is False:
        raise ExchangeError(f"as_torch: copy=False, but {obstacle}; use copy=None to get a copy")
    source = tensor.copy() if copy or obstacle is not None else tensor
    try:
        return torch.from_dlpack(source)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        refused = f"as_torch: PyTorch {torch.__version__} can't take dtype {tensor.dtype}: {error}"
        raise ExchangeError(refused) from error


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
        Same shape and dtype as `obj`, on the CPU.

    Raises
    ------
    ExchangeError
        `copy=False` and the strides are not compact (padding, steps, negative, broadcast), the address is not a
        multiple of 64 bytes, or read-only memory is not in C order; or JAX lacks the dtype.
    ImportError
        JAX is not installed.

    Example
    -------
    >>> import dlfield as dl
    >>> field = dl.ones((4, 3), backend="jax")
    >>> dl.as_jax(field, copy=False).unsafe_buffer_pointer() == field.ptr
    True
    """
    jax = _import("jax", "as_jax")
    if isinstance(obj, jax.Array):
        return jax.numpy.array(obj, copy=True) if copy else obj
    tensor = obj if isinstance(obj, Tensor) else from_dlpack(obj)
    # Without x64, JAX would turn float64 into float32 and cut int64 to its low half without an error.
    with jax.enable_x64(True):
        if not copy:
            obstacle = _jax_obstacle(tensor)
            if obstacle is None:
                alias = _jax_alias(jax, tensor)
                if alias is not None:
                    return alias
                obstacle = f"JAX {jax.__version__} does not share memory of dtype {tensor.dtype}"
            if copy is False:
                raise ExchangeError(f"as_jax: copy=False, but {obstacle}; use copy=None to get a copy")
        try:
            return jax.numpy.array(tensor.to_numpy(), copy=True, device=_jax_cpu(jax))
        except (RuntimeError, TypeError, ValueError) as error:
            refused = f"as_jax: JAX {jax.__version__} can't take dtype {tensor.dtype}: {error}"
            raise ExchangeError(refused) from error


def _torch_obstacle(tensor: Tensor) -> str | None:
    """Return why PyTorch can't use the memory of `tensor`, None if it can."""
    if tensor.readonly and tensor.size:
        return "the memory is read-only and PyTorch would write into it"
    steps = zip(tensor.strides, tensor.shape, strict=True)
    if tensor.size and any(stride < 0 and size > 1 for stride, size in steps):
        return f"PyTorch has no negative strides, found {tensor.strides} bytes"
    return None


def _jax_obstacle(tensor: Tensor) -> str | None:
    """Return why JAX can't use the memory of `tensor`, None if nothing known stands in the way."""
    if tensor.size == 0:
        return None
    if not _is_compact(tensor):
        return f"JAX takes compact strides only, found {tensor.strides} bytes for shape {tensor.shape}"
    if tensor.ptr % _JAX_ALIGNMENT:
        return f"JAX takes addresses that are a multiple of {_JAX_ALIGNMENT} bytes only, found {tensor.ptr:#x}"
    if tensor.readonly and not tensor.is_contiguous("C"):
        return f"JAX takes read-only memory in C order only, found strides {tensor.strides} bytes"
    return None


def _is_compact(tensor: Tensor) -> bool:
    """Return whether the strides are those of a permuted C-order array, without gaps."""
    expected = tensor.itemsize
    long_axes = ((stride, size) for stride, size in zip(tensor.strides, tensor.shape, strict=True) if size > 1)
    for stride, size in sorted(long_axes):
        if stride != expected:
            return False
        expected *= size
    return True


def _jax_alias(jax: ModuleType, tensor: Tensor) -> Any | None:
    """Return the JAX array on the memory of `tensor`, None where JAX made a copy or refused."""
    try:
        if tensor.readonly:
            # JAX knows legacy capsules only, and those can't say read-only; NumPy's flag it respects.
            array = jax.device_put(tensor.to_numpy(), _jax_cpu(jax), may_alias=True)
        else:
            array = jax.numpy.from_dlpack(tensor)
    except (BufferError, RuntimeError, TypeError, ValueError):
        return None
    if array.dtype != tensor.dtype or (tensor.size and array.unsafe_buffer_pointer() != tensor.ptr):
        return None
    return array


def _jax_cpu(jax: ModuleType) -> Any:
    return jax.local_devices(backend="cpu")[0]


def _import(name: str, caller: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ImportError(f"{caller} needs {name}, which is not installed: pip install {name}", name=name) from error


@dataclass(frozen=True)
class Framework:
    """An array framework `dlfield` exchanges memory with.

    `version` is None where it is not installed. `protocols` are those its array type offers; `note` says why there are
    none.
    """

    name: str
    version: str | None
    protocols: tuple[str, ...] = ()
    note: str = ""


# Import name, distribution and what makes a small array; None where the arrays are another framework's.
_KNOWN: tuple[tuple[str, str, Callable[[ModuleType], Any] | None], ...] = (
    ("numpy", "numpy", lambda numpy: numpy.zeros(1)),
    ("torch", "torch", lambda torch: torch.zeros(1)),
    ("jax", "jax", lambda jax: jax.numpy.zeros(1)),
    ("cupy", "cupy", lambda cupy: cupy.zeros(1)),
    ("xarray", "xarray", lambda xarray: xarray.DataArray([0.0])),
    ("tvm_ffi", "apache-tvm-ffi", lambda tvm_ffi: tvm_ffi.from_dlpack(zeros(1))),
    ("gt4py", "gt4py", None),
    ("dace", "dace", None),
)

_PROTOCOLS = (
    "__dlpack__",
    "__dlpack_c_exchange_api__",
    "__cuda_array_interface__",
    "__array_interface__",
    "__array__",
    "__gt_dims__",
)


def frameworks() -> list[Framework]:
    """Return the frameworks `dlfield` knows, with version and protocols where they are installed.

    Imports each installed one that has an array type of its own; what isn't installed costs nothing.
    """
    return [_inspect(module, distribution, make) for module, distribution, make in _KNOWN]


def _inspect(module: str, distribution: str, make: Callable[[ModuleType], Any] | None) -> Framework:
    if importlib.util.find_spec(module) is None:
        return Framework(distribution, None, note="not installed")
    try:
        version = importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        version = "unknown"
    if make is None:
        return Framework(distribution, version, note="its arrays are NumPy's or CuPy's")
    try:
        protocols = offered_protocols(make(importlib.import_module(module)))
    except Exception as error:  # a broken installation of one framework must not hide the others
        return Framework(distribution, version, note=f"{type(error).__name__}: {error}".splitlines()[0])
    return Framework(distribution, version, protocols)


def offered_protocols(array: Any) -> tuple[str, ...]:
    """Return the names of the exchange protocols that `array` offers, where it is."""
    found = [name for name in _PROTOCOLS if hasattr(array, name)]
    try:
        memoryview(array)
    except (TypeError, BufferError, ValueError):
        return tuple(found)
    return (*found, "buffer")
