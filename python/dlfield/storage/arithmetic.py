"""Arithmetic on host/device pairs: chooses the side that computes, and marks the other as out of date."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from dlfield import _native
from dlfield._native import Error, NotAnArrayError, Tensor, empty_like
from dlfield.storage.sides import Sides
from dlfield.storage.state import SyncState

__all__ = ["PairArithmetic"]


class PairArithmetic(Sides, np.lib.mixins.NDArrayOperatorsMixin):
    """NumPy's ufuncs and operators for host/device pairs; dimensions are matched by their labels.

    The device computes if any operand is up to date there: a pair whose device buffer is, or an array on a device. If a
    result goes to an array with one buffer, the side of that array computes. Operands that are only on the other side
    are copied; of a pair, both buffers are then up to date.
    """

    __slots__ = ()

    # The mixin sets it to None, as equality is by element.
    __hash__ = object.__hash__

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        given = keywords.pop("out", None)
        outputs: tuple[Any, ...] = given if isinstance(given, tuple) else (given,)
        mask = keywords.get("where", True)
        operands = [*inputs, mask]
        pairs = _pairs([*operands, *outputs])
        device = _side(operands, outputs, pairs)
        with _locked(pairs):
            arrays = [_on_side(operand, device) for operand in operands]
            if mask is not True:
                keywords["where"] = arrays[-1]
            targets = tuple(_target(output, device, partly=mask is not True) for output in outputs)
            if any(target is not None for target in targets):
                keywords["out"] = targets
            tensor = next(array for array in (*arrays, *targets) if isinstance(array, Tensor))
            begun = [pair for pair in _pairs(outputs) if _has_values(pair, device)]
            try:
                # Not through the ufunc: NumPy 2.4 leaks a reference to the array if a reduction raises.
                found = tensor.__array_ufunc__(ufunc, method, *arrays[:-1], **keywords)
            except Error:
                # Raised before anything was computed.
                raise
            except BaseException:
                _mark(begun, device)
                raise
            if found is NotImplemented:
                return NotImplemented
            _mark(_pairs(outputs), device)
        results = found if isinstance(found, tuple) else (found,)
        places = outputs if len(outputs) == len(results) else (None,) * len(results)
        outcomes = [
            _outcome(type(self), result, pairs[0].device) if place is None else place
            for result, place in zip(results, places, strict=True)
        ]
        return tuple(outcomes) if isinstance(found, tuple) else outcomes[0]

    def __eq__(self, other: object, /) -> Any:
        return super().__eq__(other) if _is_operand(other) else NotImplemented

    def __ne__(self, other: object, /) -> Any:
        return super().__ne__(other) if _is_operand(other) else NotImplemented

    def __bool__(self) -> bool:
        return bool(self._on_host())

    def __int__(self) -> int:
        return int(self._on_host())

    def __index__(self) -> int:
        return self._on_host().__index__()

    def __float__(self) -> float:
        return float(self._on_host())

    def __complex__(self) -> complex:
        return complex(self._on_host())

    def __format__(self, spec: str, /) -> str:
        return format(self._on_host(), spec) if spec else str(self)

    def _on_host(self) -> Tensor:
        return self._buffer(None, "r")


def _side(operands: Sequence[Any], outputs: Sequence[Any], pairs: Sequence[Sides]) -> str | None:
    """Return the name of the device that computes, None for the host."""
    fixed = [output for output in outputs if output is not None and not isinstance(output, Sides)]
    there = [value for value in fixed or operands if _is_on_device(value)]
    if not there:
        return None
    # Any device can use managed memory, so the first pair decides.
    named = (str(value.device) for value in there if isinstance(value, (Tensor, Sides)))
    return next((name for name in named if name != "cuda_managed"), str(pairs[0].device))


def _is_on_device(value: Any) -> bool:
    """Return whether the values of an operand are up to date on a device."""
    if isinstance(value, Sides):
        return value.sync_state.state != SyncState.SYNC_HOST_DIRTY
    if isinstance(value, (bool, int, float, complex, np.generic, np.ndarray)):
        return False
    try:
        found = value.device if isinstance(value, Tensor) else _native._inspect(value).device
    except NotAnArrayError:
        return False
    return found.type in ("cuda", "cuda_managed")


def _on_side(operand: Any, device: str | None) -> Any:
    """Return an operand on the side that computes: the buffer of a pair, a copy of host memory, or the operand."""
    if isinstance(operand, Sides):
        return _buffer(operand, device, "r")
    if device is not None and isinstance(operand, Tensor) and operand.device.type in ("cpu", "cuda_host"):
        return operand.to_device(device)
    return operand


def _target(output: Any, device: str | None, *, partly: bool) -> Any:
    """Return the array to write for an output; a pair is synchronized first unless all of it will be written."""
    if not isinstance(output, Sides):
        return output
    return _buffer(output, device, "" if output._covers(...) and not partly else "r")


def _buffer(pair: Any, device: str | None, access: str) -> Tensor:
    """Return the host buffer, or the device buffer even if it is on another device."""
    buffer: Tensor = pair._buffer(None if device is None else str(pair.device), access)
    return buffer


@contextmanager
def _locked(pairs: Sequence[Sides]) -> Iterator[None]:
    """Hold the locks of all pairs, taken in the same order by every thread."""
    with ExitStack() as held:
        for state in sorted({pair.sync_state for pair in pairs}, key=id):
            held.enter_context(state.lock)
        yield


def _pairs(values: Sequence[Any]) -> list[Sides]:
    return [value for value in values if isinstance(value, Sides)]


def _has_values(pair: Sides, device: str | None) -> bool:
    """Return whether the side that computes is up to date; if it is not, the other side has the values."""
    outdated = SyncState.SYNC_DEVICE_DIRTY if device is None else SyncState.SYNC_HOST_DIRTY
    return pair.sync_state.state != outdated


def _mark(written: Sequence[Sides], device: str | None) -> None:
    """Mark pairs as modified on the side that computes."""
    for pair in written:
        (pair.set_host_modified if device is None else pair.set_device_modified)()


def _outcome(kind: Any, result: Any, device: _native.Device) -> Any:
    """Return a pair with the result on one side, the other buffer out of date; an array without labels as it is."""
    if not isinstance(result, Tensor):
        return result
    if result.device.type in ("cuda", "cuda_managed"):
        sides, state = (empty_like(result, device="cpu"), result), SyncState.SYNC_DEVICE_DIRTY
    else:
        sides, state = (result, empty_like(result, device=device)), SyncState.SYNC_HOST_DIRTY
    return kind.whole(*sides, SyncState(state))


def _is_operand(value: object) -> bool:
    """Return whether a value is a number or an array, so that it can be compared by element."""
    if isinstance(value, (bool, int, float, complex, np.generic, list, tuple, Sides)):
        return True
    try:
        _native._inspect(value)
    except NotAnArrayError:
        return False
    return True
