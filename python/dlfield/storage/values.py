"""Values and keys that a storage is indexed with or assigned: which side they are read on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from dlfield import _native
from dlfield._native import ExchangeError, NotAnArrayError, Tensor

__all__ = ["is_on_gpu", "plain_key", "readable"]


def is_on_gpu(value: Any) -> bool:
    """Return whether a value is to be read on a device, as the proposal has it."""
    if hasattr(value, "read_side"):
        return bool(value.is_on_gpu())
    interface = _interface(value)
    if interface is not None:
        return _entry(interface, gpu=True) is not None
    try:
        return _native.describe(value).device.type in ("cuda", "cuda_managed")
    except NotAnArrayError:
        return False


@contextmanager
def readable(value: Any, device: str | None) -> Iterator[Any]:
    """Make a value ready to be read on a device, None for the host, or on the only side that it has."""
    if hasattr(value, "read_side"):
        yield value.read_side(device)
        return
    interface = None if isinstance(value, Tensor) else _interface(value)
    if interface is None:
        yield value
        return
    gpu = device is not None
    entry = _entry(interface, gpu=gpu)
    if entry is None:
        entry, gpu = _entry(interface, gpu=not gpu), not gpu
    if entry is None:
        raise ExchangeError(f"value: its __gt_data_interface__ has the devices {list(interface)}, none is known")
    _call(entry, "acquire")
    try:
        yield _native.from_dlpack(value, device=(device or "gpu") if gpu else "cpu", copy=False)
    finally:
        _call(entry, "release")


def plain_key(key: Any) -> Any:
    """Return an index with the storages and tensors in it as NumPy arrays."""
    if isinstance(key, tuple):
        return tuple(plain_key(part) for part in key)
    if hasattr(key, "read_side"):
        key = key.read_side(None)
    return np.asarray(key.to_device("cpu")) if isinstance(key, Tensor) else key


def _interface(value: Any) -> Mapping[Any, Any] | None:
    for name in ("__gt_data_interface__", "__gt_interface__"):
        interface = getattr(value, name, None)
        if callable(interface):
            interface = interface()
        if isinstance(interface, Mapping):
            return interface
    return None


def _entry(interface: Mapping[Any, Any], *, gpu: bool) -> Mapping[str, Any] | None:
    for device, entry in interface.items():
        name = device[0] if isinstance(device, tuple) else device
        if (name == "gpu") is gpu and name in (None, "cpu", "gpu"):
            found: Mapping[str, Any] = entry() if callable(entry) else entry
            return found
    return None


def _call(entry: Mapping[str, Any], name: str) -> None:
    function = entry.get(name)
    if function is not None:
        function()
