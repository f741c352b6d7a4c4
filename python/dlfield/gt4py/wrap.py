"""Compiled GT4Py stencils that take any array."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

from dlfield import _native
from dlfield._native import DeviceError
from dlfield.gt4py.call import Call

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
        return getattr(self.__dict__["__wrapped__"], name)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return itself, as stencils do: it can't be changed."""
        return self

    def __repr__(self) -> str:
        return f"<dlfield.gt4py.wrap of {self.__wrapped__!r}>"


def wrap(stencil: Any, *, on_mismatch: Literal["raise", "copy"] = "raise") -> WrappedStencil:
    """Make a compiled GT4Py stencil take any array for any field.

    The result is called as the stencil is, with `origin`, `domain`, `validate_args` and `exec_info`. For a field it
    takes whatever `describe` takes, in any order of dimensions where the array states its own, and hands the stencil
    the same memory. Origins are looked up as in `Signature.bind`; one that the call gives wins. Each call checks
    element types, dimensions, device and writability, that no written field overlaps another, and that the domain
    fits: GT4Py checks only the first call with the same shapes.

    An `IntEnum` for an integer is passed on as that integer, as GT4Py 1.2 does with those of `gtscript.enum`.

    Parameters
    ----------
    stencil
        A stencil of `gtscript.stencil` or `gtscript.lazy_stencil` for a CPU backend, or a frozen one. A lazy one is
        compiled when it is first called.
    on_mismatch
        What to do with an array of another layout or element type than the stencil's: "raise", though for layout only
        warn, or "copy" it in and, if it is written, back.

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

    Warns
    -----
    LayoutWarning
        By a call with new shapes and strides of the arrays: a layout is not the one that is fast for the backend. With
        `on_mismatch="copy"`, for each field once: a copy stands in for it.

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
    from gt4py.cartesian.lazy_stencil import LazyStencil
    from gt4py.cartesian.stencil_object import FrozenStencil, StencilObject

    if not isinstance(stencil, StencilObject | FrozenStencil | LazyStencil):
        raise TypeError(
            f"stencil: found {type(stencil).__name__}, must be a stencil of gtscript.stencil or gtscript.lazy_stencil, "
            f"or a frozen one"
        )
    _check_device(stencil)
    return WrappedStencil(stencil, on_mismatch)


def _check_device(stencil: Any) -> None:
    """Refuse stencils of GPU backends; a lazy stencil has the backend itself where the others have its name."""
    backend = getattr(stencil, "stencil_object", stencil).backend
    name = getattr(backend, "name", backend)
    preset = _native.presets().get(name)
    if preset is not None and preset.device != "cpu":
        raise DeviceError(
            f"stencil: its backend {name!r} is for {preset.device}; this version wraps stencils of CPU backends"
        )


def _entry(stencil: Any, on_mismatch: Literal["raise", "copy"]) -> Callable[..., None]:
    """Return what a call goes to: the stencil's own `__call__`, with a `Call` in place of what it would run.

    So its signature, defaults and errors are GT4Py's, and so is what it writes into `exec_info`.
    """
    from gt4py.cartesian.stencil_object import FrozenStencil

    stencil = getattr(stencil, "implementation", stencil)
    if isinstance(stencil, FrozenStencil):
        frozen: Callable[..., None] = replace(stencil, stencil_object=Call(stencil.stencil_object, on_mismatch))
        return frozen
    return partial(type(stencil).__call__, Call(stencil, on_mismatch))
