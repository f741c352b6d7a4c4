"""The installed array frameworks, and the exchange protocols that their arrays offer."""

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from dlfield._native import zeros


@dataclass(frozen=True)
class Framework:
    """An array framework that `dlfield` exchanges memory with.

    `name` is that of the imported module. `version` is that of the distribution, followed by its name if it differs,
    as "13.6.0 (cupy-cuda13x)"; None if it is not installed. `protocols` are those of its array type; `note` says why
    that list is empty.
    """

    name: str
    version: str | None
    protocols: tuple[str, ...] = ()
    note: str = ""


# Name of the module, and a function that makes a small array; None if the arrays are another framework's.
_KNOWN: tuple[tuple[str, Callable[[ModuleType], Any] | None], ...] = (
    ("numpy", lambda numpy: numpy.zeros(1)),
    ("torch", lambda torch: torch.zeros(1)),
    ("jax", lambda jax: jax.numpy.zeros(1)),
    ("cupy", lambda cupy: cupy.zeros(1)),
    ("xarray", lambda xarray: xarray.DataArray([0.0])),
    ("tvm_ffi", lambda tvm_ffi: tvm_ffi.from_dlpack(zeros(1))),
    ("gt4py", None),
    ("dace", None),
)

_PROTOCOLS = (
    "__dlpack__",
    "__dlpack_c_exchange_api__",
    "__gt_data_interface__",
    "__cuda_array_interface__",
    "__hip_array_interface__",
    "__array_interface__",
    "__array__",
    "__gt_dims__",
)


def frameworks() -> list[Framework]:
    """Return the frameworks that `dlfield` knows, with version and protocols if they are installed.

    Imports each installed one that has an array type of its own; one that is not installed costs nothing.
    """
    distributions = importlib.metadata.packages_distributions()
    return [_inspect(module, distributions.get(module, ()), make) for module, make in _KNOWN]


def _inspect(module: str, distributions: Sequence[str], make: Callable[[ModuleType], Any] | None) -> Framework:
    if importlib.util.find_spec(module) is None:
        return Framework(module, None, note="not installed")
    # CuPy has one distribution for each version of CUDA. Several at once conflict, so all are shown.
    version = ", ".join(_version(name, module) for name in sorted(set(distributions))) or "unknown"
    if make is None:
        return Framework(module, version, note="its arrays are NumPy's or CuPy's")
    try:
        protocols = offered_protocols(make(importlib.import_module(module)))
    except Exception as error:  # a broken installation of one framework must not hide the others
        return Framework(module, version, note=f"{type(error).__name__}: {error}".splitlines()[0])
    return Framework(module, version, protocols)


def _version(distribution: str, module: str) -> str:
    version = importlib.metadata.version(distribution)
    return version if distribution == module else f"{version} ({distribution})"


def offered_protocols(array: Any) -> tuple[str, ...]:
    """Return the names of the exchange protocols that `array` offers on its current device."""
    found = [name for name in _PROTOCOLS if hasattr(array, name)]
    try:
        memoryview(array)
    except (TypeError, BufferError, ValueError):
        return tuple(found)
    return (*found, "buffer")
