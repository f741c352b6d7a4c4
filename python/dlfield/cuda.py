"""CUDA: whether there is any, and the stream that a thread's work goes to.

The driver is looked for when it is first needed; nothing else of CUDA has to be installed. Without one everything here
can be called all the same, and what needs a device raises `DeviceError` with the reason.

A device does the work of one stream in order, and that of two streams in any. What dlfield does with memory of a
device, and what it tells other libraries, goes by the current stream of the calling thread: the legacy default stream,
unless `stream` states another.

Example
-------
>>> import dlfield as dl
>>> if dl.cuda.is_available():
...     field = dl.zeros((4, 3), device="cuda:0")
... else:
...     print("no CUDA:", dl.cuda.why_not())  # doctest: +ELLIPSIS
no CUDA: ...
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, SupportsIndex

from dlfield import _native
from dlfield._native import Device

__all__ = [
    "Stream",
    "current_stream",
    "device_count",
    "is_available",
    "memory_info",
    "stream",
    "synchronize",
    "why_not",
]


@dataclass(frozen=True, slots=True)
class Stream:
    """A queue of work for a device: what `current_stream` returns and `stream` yields.

    Libraries that know the CUDA stream protocol (cuda.core, for one) take it as it is, others by its number. It does
    not keep the stream that it names.

    Attributes
    ----------
    handle
        The number that the driver knows it by: 1 is the legacy default stream, 2 the per-thread default.
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
        """Return version and handle, as the CUDA stream protocol wants it."""
        return 0, self.handle

    def __index__(self) -> int:
        """Return the handle, as `__dlpack__(stream=)` takes it."""
        return self.handle


def is_available() -> bool:
    """Return whether there is a CUDA device that can be used.

    Example
    -------
    >>> import dlfield as dl
    >>> dl.cuda.is_available() == (dl.cuda.device_count() > 0)
    True
    """
    return _native._cuda_why_not() is None


def why_not() -> str | None:
    """Return why there is no CUDA device that can be used: no driver, one that is too old, or no device.

    Returns
    -------
    str or None
        None if there is one.

    Example
    -------
    >>> import dlfield as dl
    >>> (dl.cuda.why_not() is None) == dl.cuda.is_available()
    True
    """
    return _native._cuda_why_not()


def device_count() -> int:
    """Return how many CUDA devices there are; 0 without a driver.

    Example
    -------
    >>> import dlfield as dl
    >>> dl.cuda.device_count() >= 0
    True
    """
    return _native._cuda_device_count()


def memory_info(device: SupportsIndex | str | Device = 0) -> tuple[int, int]:
    """Return how many bytes of memory of a device are free, and how many there are.

    Parameters
    ----------
    device
        Number of the device, or its name.

    Raises
    ------
    DeviceError
        There is no such device.

    Example
    -------
    >>> import dlfield as dl
    >>> if dl.cuda.is_available():
    ...     free, total = dl.cuda.memory_info()
    ...     assert free <= total
    """
    return _native._cuda_memory_info(device)


def current_stream(device: SupportsIndex | str | Device = 0) -> Stream:
    """Return the stream that work of the calling thread for a device goes to.

    Parameters
    ----------
    device
        Number of the device, or its name.

    Returns
    -------
    Stream
        The legacy default stream, unless `stream` has stated another.

    Example
    -------
    >>> import dlfield as dl
    >>> dl.cuda.current_stream()
    Stream(handle=1, device=0)
    """
    number, handle = _native._cuda_current_stream(device)
    return Stream(handle, number)


@contextmanager
def stream(stream: Any, device: SupportsIndex | str | Device | None = None) -> Iterator[Stream]:
    """Make a stream the current one of its device in this thread, for the body of a `with` statement.

    Parameters
    ----------
    stream
        1 (legacy default), 2 (per-thread default), the handle of a stream, or an object with `__cuda_stream__`, such as
        those of cuda.core and CuPy. The object is kept for as long as the body runs, and by all memory that the stream
        is told of until that is let go. A number keeps nothing: the stream that it stands for has to live until all
        memory that was told of it is gone.
    device
        Number of the device, or its name; None for the one that the stream belongs to, which for the default streams is
        number 0.

    Yields
    ------
    Stream
        The current stream.

    Raises
    ------
    ExchangeError
        0, which the array API standard leaves to neither default stream; -1; anything else that is no stream.
    DeviceError
        There is no device, or no stream with such a handle, or it is another device's.

    Example
    -------
    >>> import dlfield as dl
    >>> if dl.cuda.is_available():
    ...     with dl.cuda.stream(2):
    ...         field = dl.zeros((4, 3), device="cuda:0")
    """
    number, ordinal, handle = _native._cuda_state(stream, device)
    try:
        yield Stream(handle, ordinal)
    finally:
        _native._cuda_take_back(number)


def synchronize(device: SupportsIndex | str | Device = 0, stream: Any = None) -> None:
    """Wait until a stream has done its work; other threads of Python run meanwhile.

    Parameters
    ----------
    device
        Number of the device, or its name.
    stream
        As for `stream`; None for the current one.

    Raises
    ------
    DeviceError
        There is no device or no such stream, its work has failed, or it is being recorded as a graph, so that there is
        nothing to wait for.

    Example
    -------
    >>> import dlfield as dl
    >>> if dl.cuda.is_available():
    ...     dl.cuda.synchronize()
    """
    _native._cuda_synchronize(device, stream)
