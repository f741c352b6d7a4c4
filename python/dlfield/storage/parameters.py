"""The parameters of storages, and the order in which they are searched: the caller, the preset, the data, a default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, SupportsIndex, TypeAlias, TypedDict

from dlfield import _native
from dlfield._native import Device, LayoutError, NotAnArrayError
from dlfield.storage.kinds import CUDAManagedGPUStorage, GPUStorage
from dlfield.storage.managed import SoftwareManagedGPUStorage

__all__ = ["Managed", "Parameters", "Placement", "Unset", "is_on_device", "labels_of", "placement"]


class Unset(Enum):
    """What stands for a parameter that the caller did not give, where None means something."""

    UNSET = "not given"


Managed: TypeAlias = Literal["gt4py", "cuda"] | Unset | None


class Parameters(TypedDict, total=False):
    """The keywords that all functions take which make a storage."""

    defaults: str | None
    device: str | Device | None
    managed: Managed
    dims: str | Sequence[str] | None
    halo: Sequence[SupportsIndex | tuple[SupportsIndex, SupportsIndex]] | None
    layout: Sequence[SupportsIndex] | None
    aligned_index: Sequence[SupportsIndex] | None
    alignment_size: SupportsIndex | None


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the buffers are: `device` is None for the host alone, `managed` says who keeps two sides equal."""

    device: str | None
    managed: Literal["gt4py", "cuda"] | None

    @property
    def is_pair(self) -> bool:
        """Whether there is a buffer on each side."""
        return self.device is not None and self.managed == "gt4py"

    @property
    def memory(self) -> str:
        """The device of the one buffer there is."""
        if self.device is None:
            return "cpu"
        return "cuda_managed" if self.managed == "cuda" else self.device


def placement(parameters: Parameters, data: Any = None, device_data: Any = None) -> Placement:
    """Return where the buffers belong.

    Raises
    ------
    LayoutError
        `managed`, `device` or `defaults` is none of those there are.
    """
    unknown = set(parameters) - Parameters.__annotations__.keys()
    if unknown:
        raise TypeError(f"found the keywords {sorted(unknown)}, allowed are {sorted(Parameters.__annotations__)}")
    device = _device(parameters, data, device_data)
    managed = parameters.get("managed", Unset.UNSET)
    if isinstance(managed, Unset):
        managed = _managed_of(data, device_data)
    if managed not in ("gt4py", "cuda", None):
        raise LayoutError(f"managed: found {managed!r}, allowed are 'gt4py', 'cuda' and None")
    return Placement(device, managed)


def labels_of(parameters: Parameters) -> dict[str, Any]:
    """Return what the functions of `dlfield` are told of the buffer."""
    names = ("dims", "halo", "layout", "aligned_index", "alignment_size")
    found = {name: parameters.get(name) for name in names}
    return {"backend": parameters.get("defaults"), **found}


def _device(parameters: Parameters, data: Any, device_data: Any) -> str | None:
    given, defaults = parameters.get("device"), parameters.get("defaults")
    presets = _native.presets()
    if defaults is not None and defaults not in list(presets):
        raise LayoutError(f"defaults: found {defaults!r}, allowed are {sorted(presets)}")
    if given is not None:
        device = Device(given)
        if device.type in ("cuda_host", "cuda_managed"):
            raise LayoutError(
                f"device: found {str(device)!r}, allowed are 'gpu', 'cuda:N' and 'cpu'; managed='cuda' makes managed "
                "memory, and as_storage takes memory of either kind"
            )
        return _gpu(device)
    # "C" and "F" are orders, as NumPy has them, and not for any device.
    if defaults is not None and defaults not in ("C", "F"):
        return _gpu(presets[defaults].device)
    for buffer in (device_data, data):
        found = _device_of(buffer)
        if found is not None:
            return found
    return None if device_data is None else "cuda:0"


def _device_of(buffer: Any) -> str | None:
    """Return the device that has memory of a buffer, None if only the host has."""
    if buffer is None:
        return None
    if isinstance(buffer, SoftwareManagedGPUStorage):
        return _gpu(buffer.device)
    try:
        return _gpu(_native._look(buffer).device)
    except NotAnArrayError:
        return None


def _gpu(device: Device) -> str | None:
    if device.type in ("cpu", "cuda_host"):
        return None
    return f"cuda:{device.id}" if device.type == "cuda_managed" else str(device)


def _managed_of(data: Any, device_data: Any) -> Literal["gt4py", "cuda"] | None:
    """Return how the storage that the data is from was synchronized."""
    if data is not None and device_data is not None:
        return "gt4py"
    source = data if device_data is None else device_data
    if isinstance(source, CUDAManagedGPUStorage):
        return "cuda"
    # A tensor on a device is one such storage.
    return None if isinstance(source, GPUStorage) else "gt4py"


def is_on_device(buffer: Any) -> bool:
    """Return whether all that a buffer has is on a device."""
    if isinstance(buffer, SoftwareManagedGPUStorage):
        return False
    try:
        return _native._look(buffer).device.type not in ("cpu", "cuda_host", "cuda_managed")
    except NotAnArrayError:
        return False
