"""Compiled GT4Py stencils that accept any array."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

from dlfield import _native
from dlfield._native import DeviceError
from dlfield.gt4py.call import Call

__all__ = ["WrappedStencil", "wrap"]


class WrappedStencil:
    """A stencil that accepts any arrays, as `wrap` returns it; every other attribute is the stencil's own."""

    def __init__(self, stencil: Any, on_mismatch: Literal["raise", "copy"]) -> None:
        self.__wrapped__ = stencil
        self._on_mismatch = on_mismatch
        self._call: Callable[..., None] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Run the stencil; `wrap` describes the arguments."""
        call = self._call
        if call is None:
            self._call = call = _entry(self.__wrapped__, self._on_mismatch)
        call(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["__wrapped__"], name)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return itself, as stencils do: it is immutable."""
        return self

    def __repr__(self) -> str:
        return f"<dlfield.gt4py.wrap of {self.__wrapped__!r}>"


def wrap(stencil: Any, *, on_mismatch: Literal["raise", "copy"] = "raise") -> WrappedStencil:
    """Make a compiled GT4Py stencil accept any array for any field.

    The result is called like the stencil, with `origin`, `domain`, `validate_args` and `exec_info`. For a field it
    accepts anything that `describe` accepts, with dimensions in any order if the array has dims, and passes the stencil
    the same memory. Origins are looked up as in `Signature.bind`; an origin in the call takes precedence. Each call
    checks dtypes, dimensions, device and writability, that no written field overlaps another, and that the domain fits;
    GT4Py checks only the first call with the same shapes.

    An `IntEnum` for an integer is passed as that integer, as GT4Py 1.2 does with those of `gtscript.enum`.

    Parameters
    ----------
    stencil
        A stencil of `gtscript.stencil` or `gtscript.lazy_stencil` for a CPU backend, or a frozen one. A lazy stencil is
        compiled at its first call.
    on_mismatch
        What to do with an array whose layout or dtype differs from the stencil's: "raise" raises an error for the dtype
        and warns for the layout; "copy" passes a temporary, and copies it back if it is written.

    Returns
    -------
    WrappedStencil
        It has the attributes of `stencil`, which is its `__wrapped__`.

    Raises
    ------
    TypeError
        `stencil` is not a stencil. A call with wrong arguments raises it too.
    DeviceError
        The stencil is for a GPU.
    LayoutError, DTypeError, DimsError, ExchangeError, NotAnArrayError
        By a call: `Signature.bind` rejects an argument, origin or domain leave a field, or a scalar has another type.

    Warns
    -----
    LayoutWarning
        By a call with new shapes and strides: a layout is not the fast one for the backend. With `on_mismatch="copy"`,
        once for each field: a temporary replaces the array.

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
    """Reject stencils of GPU backends; a lazy stencil has the backend itself, the others have its name."""
    backend = getattr(stencil, "stencil_object", stencil).backend
    name = getattr(backend, "name", backend)
    preset = _native.presets().get(name)
    if preset is not None and preset.device != "cpu":
        raise DeviceError(
            f"stencil: its backend {name!r} is for {preset.device}; this version wraps stencils of CPU backends"
        )


def _entry(stencil: Any, on_mismatch: Literal["raise", "copy"]) -> Callable[..., None]:
    """Return the function that a call runs: the stencil's own `__call__`, with a `Call` in place of the stencil.

    Its signature, its defaults, its errors and what it writes into `exec_info` are therefore GT4Py's.
    """
    from gt4py.cartesian.stencil_object import FrozenStencil

    stencil = getattr(stencil, "implementation", stencil)
    if isinstance(stencil, FrozenStencil):
        frozen: Callable[..., None] = replace(stencil, stencil_object=Call(stencil.stencil_object, on_mismatch))
        return frozen
    return partial(type(stencil).__call__, Call(stencil, on_mismatch))
