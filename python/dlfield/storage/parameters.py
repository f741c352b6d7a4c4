"""The parameters of storages; each comes from the caller, else the preset, else the data, else a default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeAlias, TypedDict

from dlfield import _native
from dlfield._native import Device, LayoutError, NotAnArrayError
from dlfield.storage.kinds import CUDAManagedGPUStorage, GPUStorage
from dlfield.storage.managed import SoftwareManagedGPUStorage

if TYPE_CHECKING:
    from dlfield._native import _DeviceLike

__all__ = ["BufferDevices", "Managed", "Parameters", "Unset", "buffer_devices", "is_on_device", "labels_of"]


class Unset(Enum):
    """Marks a parameter that the caller did not give, if None has a meaning of its own."""

    UNSET = "not given"


Managed: TypeAlias = Literal["gt4py", "cuda"] | Unset | None


class Parameters(TypedDict, total=False):
    """Keywords of all functions that make a storage."""

    defaults: str | None
    device: _DeviceLike | None
    managed: Managed
    dims: str | Sequence[str | SupportsIndex] | None
    halo: Sequence[SupportsIndex | Sequence[SupportsIndex]] | None
    layout: Sequence[SupportsIndex] | None
    aligned_index: Sequence[SupportsIndex] | None
    alignment_size: SupportsIndex | None


@dataclass(frozen=True, slots=True)
class BufferDevices:
    """Where the buffers are: `device` is None for host memory only, `managed` says what synchronizes the sides."""

    device: str | None
    managed: Literal["gt4py", "cuda"] | None

    @property
    def is_pair(self) -> bool:
        """Whether there are a host buffer and a device buffer."""
        return self.device is not None and self.managed == "gt4py"

    @property
    def memory(self) -> str:
        """The device of the only buffer."""
        if self.device is None:
            return "cpu"
        return "cuda_managed" if self.managed == "cuda" else self.device


def buffer_devices(parameters: Parameters, data: Any = None, device_data: Any = None) -> BufferDevices:
    """Return where to place the buffers.

    Raises
    ------
    LayoutError
        `managed`, `device` or `defaults` is not an allowed value.
    """
    unknown = set(parameters) - Parameters.__annotations__.keys()
    if unknown:
        fix = "; write defaults for the name of a preset" if "backend" in unknown else ""
        raise TypeError(f"expected the keywords {sorted(Parameters.__annotations__)}, got {sorted(unknown)}{fix}")
    device = _device(parameters, data, device_data)
    managed = parameters.get("managed", Unset.UNSET)
    if isinstance(managed, Unset):
        managed = _managed_of(data, device_data)
    if managed not in ("gt4py", "cuda", None):
        raise LayoutError(f"managed: expected 'gt4py', 'cuda' or None, got {managed!r}")
    return BufferDevices(device, managed)


def labels_of(parameters: Parameters) -> dict[str, Any]:
    """Return the keywords for the allocation functions of `dlfield`."""
    names = ("dims", "halo", "layout", "aligned_index", "alignment_size")
    found = {name: parameters.get(name) for name in names}
    return {"backend": parameters.get("defaults"), **found}


def _device(parameters: Parameters, data: Any, device_data: Any) -> str | None:
    given, defaults = parameters.get("device"), parameters.get("defaults")
    presets = _native.presets()
    if defaults is not None and defaults not in list(presets):
        raise LayoutError(f"defaults: expected one of {sorted(presets)}, got {defaults!r}")
    if given is not None:
        device = Device(given)
        if device.type in ("cuda_host", "cuda_managed"):
            raise LayoutError(
                f"device: expected 'gpu', 'cuda:N' or 'cpu', got {str(device)!r}; managed='cuda' makes managed memory, "
                "and as_storage takes memory of either kind"
            )
        return _gpu(device)
    # "C" and "F" are NumPy's orders, and imply no device.
    if defaults is not None and defaults not in ("C", "F"):
        return _gpu(presets[defaults].device)
    for buffer in (device_data, data):
        found = _device_of(buffer)
        if found is not None:
            return found
    return None if device_data is None else "cuda:0"


def _device_of(buffer: Any) -> str | None:
    """Return the device of a buffer, None if only the host has its memory."""
    if buffer is None:
        return None
    if isinstance(buffer, SoftwareManagedGPUStorage):
        return _gpu(buffer.device)
    try:
        return _gpu(_native._inspect(buffer).device)
    except NotAnArrayError:
        return None


def _gpu(device: Device) -> str | None:
    if device.type in ("cpu", "cuda_host"):
        return None
    return f"cuda:{device.id}" if device.type == "cuda_managed" else str(device)


def _managed_of(data: Any, device_data: Any) -> Literal["gt4py", "cuda"] | None:
    """Return the `managed` of the storage that the data comes from."""
    if data is not None and device_data is not None:
        return "gt4py"
    source = data if device_data is None else device_data
    if isinstance(source, CUDAManagedGPUStorage):
        return "cuda"
    # Any tensor in device memory is a `GPUStorage`.
    return None if isinstance(source, GPUStorage) else "gt4py"


def is_on_device(buffer: Any) -> bool:
    """Return whether a buffer is in device memory only."""
    if isinstance(buffer, SoftwareManagedGPUStorage):
        return False
    try:
        return not _native._can_access("cpu", _native._inspect(buffer).device)
    except NotAnArrayError:
        return False
