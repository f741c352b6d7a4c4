"""Compiled GT4Py stencils that take any array."""

import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dlfield import _native
from dlfield._native import DeviceError, DTypeError
from dlfield.gt4py.domain import Ints, check, field_origins, given_domain, largest_domain

__all__ = ["WrappedStencil", "wrap"]


class WrappedStencil:
    """What `wrap` returns: called as the stencil, with any arrays; every other attribute is the stencil's own."""

    def __init__(self, stencil: Any, on_mismatch: Literal["raise", "copy"]) -> None:
        self.__wrapped__ = stencil
        self._on_mismatch = on_mismatch
        self._call: Callable[..., None] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Run the stencil; `wrap` says on what."""
        call = self._call
        if call is None:
            self._call = call = _entry(self.__wrapped__, self._on_mismatch)
        call(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __repr__(self) -> str:
        return f"<dlfield.gt4py.wrap of {self.__wrapped__!r}>"


def wrap(stencil: Any, *, on_mismatch: Literal["raise", "copy"] = "raise") -> WrappedStencil:
    """Make a compiled GT4Py stencil take any array for any field.

    The result is called as the stencil is, with `origin`, `domain`, `validate_args` and `exec_info`. For a field it
    takes whatever `describe` takes, in any order of dimensions where the array states its own, and hands the stencil
    the same memory. Origins are looked up as in `Signature.bind`; one that the call gives wins. Each call checks
    element types, dimensions, device and writability, that no written field overlaps another, and that the domain
    fits: GT4Py checks only the first call with the same shapes.

    Parameters
    ----------
    stencil
        A stencil of `gtscript.stencil` or `gtscript.lazy_stencil` for a CPU backend, or a frozen one. A lazy one is
        compiled when it is first called.
    on_mismatch
        What to do with an array of another layout or element type than the stencil's: "raise", or "copy" it in and,
        if it is written, back.

    Returns
    -------
    WrappedStencil
        It has the attributes of `stencil`, which is its `__wrapped__`.

    Raises
    ------
    TypeError
        `stencil` is none. A call with wrong arguments raises it too.
    DeviceError
        The stencil is for a GPU.
    LayoutError, DTypeError, DimsError, ExchangeError, NotAnArrayError
        By a call: what `Signature.bind` refuses; an origin or a domain that leaves a field; a scalar of another type.

    Example
    -------
    >>> import numpy as np
    >>> import torch
    >>> from gt4py.cartesian import gtscript
    >>> from dlfield import gt4py
    >>> @gtscript.stencil(backend="numpy")
    ... def double(inp: gtscript.Field[float], out: gtscript.Field[float]):
    ...     with computation(PARALLEL), interval(...):
    ...         out = 2.0 * inp
    >>> inp, out = torch.ones(4, 3, 2, dtype=torch.float64), np.zeros((4, 3, 2))
    >>> gt4py.wrap(double)(inp, out)
    >>> float(out.sum())
    48.0
    """
    if on_mismatch not in ("raise", "copy"):
        raise ValueError(f"on_mismatch: found {on_mismatch!r}, must be 'raise' or 'copy'")
    if not callable(stencil) or not any(hasattr(type(stencil), name) or name in vars(stencil) for name in _KINDS):
        raise TypeError(f"stencil: found {stencil!r}, must be a stencil of gtscript.stencil or lazy_stencil, or a frozen one")
    return WrappedStencil(stencil, on_mismatch)
