"""`trace_copies`: the copies that a program makes between arrays, and where."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import NamedTuple

from dlfield._native import _trace_copies
from dlfield.interop.warn import callers_line

__all__ = ["Copy", "CopyLog", "because", "record_copy", "trace_copies"]


class Copy(NamedTuple):
    """A copy that dlfield has made, or that another library has made for it."""

    #: Bytes of its elements.
    nbytes: int
    #: What asked for it, and why the memory was not shared.
    reason: str
    #: The line that called dlfield, as "file.py:12".
    place: str


class CopyLog(list[Copy]):
    """The copies since `trace_copies`, in their order; its text is a table."""

    __module__ = "dlfield"

    @property
    def nbytes(self) -> int:
        """Bytes of all copies."""
        return sum(copy.nbytes for copy in self)

    def __str__(self) -> str:
        total = f"{len(self)} cop{'y' if len(self) == 1 else 'ies'} of together {self.nbytes:,} bytes"
        return "\n".join([total, *(f"{copy.place}: {copy.nbytes:,} bytes: {copy.reason}" for copy in self)])


# A named tuple's body cannot say it.
Copy.__module__ = "dlfield"

# The logs of all `with` blocks that are open, in any thread.
_open: list[CopyLog] = []
# Why the package copies, for the copies that the compiled module makes for it.
_reason: ContextVar[str | None] = ContextVar("_reason", default=None)


@contextlib.contextmanager
def trace_copies() -> Iterator[CopyLog]:
    """Record the copies between arrays that this process makes inside a `with` block.

    These are the copies of `as_numpy`, `as_torch`, `as_jax` and `as_cupy`, of `from_dlpack`, `asarray`, `from_array`
    and `pad`, of `copy`, `astype`, `to_device` and `share`, of indexing with arrays and masks, of exports that ask for
    one, and of arguments of `Signature.bind` with `on_mismatch="copy"`. Results of arithmetic and what `field[...] = x`
    writes do not count. Copies that NumPy, JAX and other libraries make on their own cannot be seen, as those of
    `np.where(mask, field, 0)`, `np.concatenate` and `jnp.array`.

    Returns
    -------
    CopyLog
        A list of `Copy`: `nbytes`, `reason` and `place`, the line of the program. Its text is a table.

    Example
    -------
    >>> import dlfield as dl
    >>> field = dl.zeros((4, 3), alignment_size=64)
    >>> with dl.trace_copies() as log:
    ...     array = dl.as_numpy(field)
    ...     copied = dl.as_jax(field)
    >>> [(copy.nbytes, copy.reason) for copy in log]
    [(96, 'as_jax: JAX takes compact strides only, found (64, 8) bytes for shape (4, 3)')]
    """
    log = CopyLog()
    _open.append(log)
    _trace_copies(True)
    try:
        yield log
    finally:
        # By identity: two empty logs are equal.
        _open[:] = [other for other in _open if other is not log]
        _trace_copies(bool(_open))


@contextlib.contextmanager
def because(reason: str) -> Iterator[None]:
    """Give the copies inside a `with` block this reason."""
    token = _reason.set(reason)
    try:
        yield
    finally:
        _reason.reset(token)


def record_copy(nbytes: int, reason: str) -> None:
    """Enter a copy into all open logs; the compiled module calls it while there are any."""
    if _open:
        copy = Copy(nbytes, _reason.get() or reason, callers_line())
        for log in list(_open):
            log.append(copy)
