"""CUDA devices, and the current stream of each thread.

The driver is loaded on first use; no other part of CUDA has to be installed. Without a driver all functions of this
module can be called, and those that need a device raise `DeviceError` with the reason.

A device runs the work of one stream in order, and the work of two streams in any order. For its own work on device
memory, and for exchange with other libraries, dlfield uses the current stream of the calling thread: the legacy default
stream, unless `stream` sets another.

Example
-------
>>> import dlfield as dl
>>> if dl.cuda.is_available():
...     field = dl.zeros((4, 3), device="cuda:0")
... else:
...     print("no CUDA:", dl.cuda.unavailable_reason())  # doctest: +ELLIPSIS
no CUDA: ...
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex

from dlfield import _native

if TYPE_CHECKING:
    from dlfield._native import _DeviceLike

__all__ = [
    "Stream",
    "current_stream",
    "device_count",
    "init",
    "is_available",
    "memory_info",
    "stream",
    "synchronize",
    "unavailable_reason",
]


@dataclass(frozen=True, slots=True)
class Stream:
    """A CUDA stream, as `current_stream` returns it and `stream` yields it.

    Libraries that support the CUDA stream protocol (such as cuda.core) accept the object, others its handle. The object
    does not keep the stream alive.

    Attributes
    ----------
    handle
        The driver's handle: 1 is the legacy default stream, 2 the per-thread default stream.
    device
        Number of the device.

    Example
    -------
    >>> import dlfield as dl
    >>> stream = dl.cuda.Stream(handle=1, device=0)
    >>> stream.__cuda_stream__(), int(stream)
    ((0, 1), 1)
    """

    handle: int
    device: int = 0

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return version and handle, as the CUDA stream protocol requires."""
        return 0, self.handle

    def __index__(self) -> int:
        """Return the handle, as `__dlpack__(stream=)` takes it."""
        return self.handle


def is_available() -> bool:
    """Return whether a CUDA device can be used.

    Example
    -------
    >>> import dlfield as dl
    >>> dl.cuda.is_available() == (dl.cuda.device_count() > 0)
    True
    """
    return _native._cuda_unavailable_reason() is None


def unavailable_reason() -> str | None:
    """Return why no CUDA device can be used: no driver, a driver that is too old, or no device.

    Returns
    -------
    str or None
        None if a device can be used.

    Example
    -------
    >>> import dlfield as dl
    >>> (dl.cuda.unavailable_reason() is None) == dl.cuda.is_available()
    True
    """
    return _native._cuda_unavailable_reason()


def device_count() -> int:
    """Return the number of CUDA devices; 0 without a driver.

    Example
    -------
    >>> import dlfield as dl
    >>> dl.cuda.device_count() >= 0
    True
    """
    return _native._cuda_device_count()


def init(device: SupportsIndex | _DeviceLike = 0) -> None:
    """Prepare a device: create the objects that a process needs once, such as its context.

    The first use of a device does that by itself, but cannot during a graph capture.

    Parameters
    ----------
    device : int, str or device, optional
        Number or name of the device, a `Device`, or the device object of a framework.

    Raises
    ------
    DeviceError
        The device does not exist, or a graph capture is going on.

    Example
    -------
    >>> import dlfield as dl
    >>> if dl.cuda.is_available():
    ...     dl.cuda.init()
    """
    _native._cuda_init(device)


def memory_info(device: SupportsIndex | _DeviceLike = 0) -> tuple[int, int]:
    """Return the free and the total memory of a device, in bytes.

    Parameters
    ----------
    device : int, str or device, optional
        Number or name of the device, a `Device`, or the device object of a framework. "cuda_host" and "cuda_managed"
        are on all devices, and mean the first.

    Raises
    ------
    DeviceError
        The device does not exist.

    Example
    -------
    >>> import dlfield as dl
    >>> if dl.cuda.is_available():
    ...     free, total = dl.cuda.memory_info()
    ...     assert free <= total
    """
    return _native._cuda_memory_info(device)


def current_stream(device: SupportsIndex | _DeviceLike = 0) -> Stream:
    """Return the current stream of the calling thread for a device.

    Parameters
    ----------
    device : int, str or device, optional
        Number or name of the device, a `Device`, or the device object of a framework.

    Returns
    -------
    Stream
        The legacy default stream, unless `stream` has set another.

    Example
    -------
    >>> import dlfield as dl
    >>> dl.cuda.current_stream()
    Stream(handle=1, device=0)
    """
    number, handle = _native._cuda_current_stream(device)
    return Stream(handle, number)


@contextmanager
def stream(stream: Any, device: SupportsIndex | _DeviceLike | None = None) -> Iterator[Stream]:
    """Make a stream the current one of its device in this thread, for the body of a `with` statement.

    Parameters
    ----------
    stream : int or stream
        1 (legacy default), 2 (per-thread default), the handle of a stream, or an object with `__cuda_stream__`, such as
        those of cuda.core, CuPy and PyTorch. The stream must exist while the body runs. After it dlfield does not use
        the stream again: memory that was used in the body is released after the work that the stream had by then.
        Streams that CuPy and PyTorch have made are kept with that memory, and their later work is waited for too.
    device : int, str or device, optional
        As for `synchronize`; None for the device of the stream, which is 0 for the default streams.

    Yields
    ------
    Stream
        The current stream.

    Raises
    ------
    ExchangeError
        `stream` is 0, which the array API standard assigns to neither default stream, or -1, or not a stream.
    DeviceError
        The device does not exist, or the stream belongs to another device.

    Example
    -------
    >>> import dlfield as dl
    >>> if dl.cuda.is_available():
    ...     with dl.cuda.stream(2):
    ...         field = dl.zeros((4, 3), device="cuda:0")
    """
    number, ordinal, handle = _native._cuda_push_stream(stream, device)
    try:
        yield Stream(handle, ordinal)
    finally:
        _native._cuda_pop_stream(number)


def synchronize(device: SupportsIndex | _DeviceLike = 0, stream: Any = None) -> None:
    """Wait until a stream has finished its work, with the GIL released.

    Parameters
    ----------
    device : int, str or device, optional
        Number or name of the device, a `Device`, or the device object of a framework.
    stream : int or stream, optional
        As for `stream`; None for the current stream.

    Raises
    ------
    ExchangeError
        `stream` is 0 or -1, or not a stream.
    DeviceError
        The device or the stream does not exist, its work has failed, or the stream is in graph capture, so that no work
        can be waited for.

    Example
    -------
    >>> import dlfield as dl
    >>> if dl.cuda.is_available():
    ...     dl.cuda.synchronize()
    """
    _native._cuda_synchronize(device, stream)
