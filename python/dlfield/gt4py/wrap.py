"""Compiled GT4Py stencils that accept any array."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

from dlfield.gt4py.build import prepare_build
from dlfield.gt4py.call import Call
from dlfield.gt4py.signatures import Options

__all__ = ["WrappedStencil", "wrap"]


class WrappedStencil:
    """A stencil that accepts any arrays, as `wrap` returns it; every other attribute is the stencil's own.

    Its class has the name of the stencil's class, which is what GT4Py and models call the stencil in `exec_info`.
    """

    __module__ = "dlfield.gt4py"

    def __init__(self, stencil: Any, options: Options) -> None:
        self.__wrapped__ = stencil
        self._options = options
        # Made by the first call, as this compiles a lazy stencil.
        self._call: Callable[..., None] | None = None
        self._run: Callable[..., None] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Run the stencil; `wrap` describes the arguments."""
        call = self._call
        if call is None:
            call, _ = self._prepare()
        call(*args, **kwargs)

    def run(self, *args: Any, **kwargs: Any) -> None:
        """Run the stencil as its own `run` does, with `_domain_`, `_origin_` and `exec_info`, on any arrays.

        Unlike that, it checks domain and origins.
        """
        run = self._run
        if run is None:
            _, run = self._prepare()
        run(*args, **kwargs)

    def freeze(self, *, origin: Mapping[str, tuple[int, ...]], domain: tuple[int, ...]) -> "WrappedStencil":
        """Return the stencil with fixed origins and domain, wrapped with the same options."""
        return _wrapped(self.__wrapped__.freeze(origin=origin, domain=domain), self._options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["__wrapped__"], name)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return itself, as stencils do: it is immutable."""
        return self

    def _prepare(self) -> tuple[Callable[..., None], Callable[..., None]]:
        """Make what `__call__` and `run` call."""
        # A lazy stencil is compiled here.
        prepare_build()
        call, target = _entry(self.__wrapped__, self._options)
        self._call, self._run = call, target.run
        return call, target.run

    def __str__(self) -> str:
        return str(self.__wrapped__)

    def __repr__(self) -> str:
        return f"<dlfield.gt4py.wrap of {self.__wrapped__!r}>"


def wrap(
    stencil: Any,
    *,
    on_mismatch: Literal["raise", "copy"] = "raise",
    allow_overlap: bool = False,
    labels: Mapping[str, str] | None = None,
) -> WrappedStencil:
    """Make a compiled GT4Py stencil accept any array for any field.

    The result is called like the stencil, with `origin`, `domain`, `validate_args` and `exec_info`. For a field it
    accepts anything that `describe` accepts, with dimensions in any order if the array has dims, and passes the stencil
    the same memory. Origins are looked up as in `Signature.bind`; an origin in the call takes precedence. Without
    `domain` the stencil computes the largest domain that fits all fields, without the halo of fields that state one.
    Each call checks dtypes, dimensions, device and writability, that no written field overlaps another, and that the
    domain fits; GT4Py checks only the first call with the same shapes.

    A stencil for a GPU takes fields on device 0 and gets CuPy arrays; their producers' work and temporaries are in
    order with CuPy's current stream. GT4Py runs such stencils in the legacy default stream, so a current stream that is
    non-blocking has to be synchronized first, as for the plain stencil.

    An `IntEnum` for an integer is passed as that integer, as GT4Py 1.2 does with those of `gtscript.enum`.

    Parameters
    ----------
    stencil : stencil of GT4Py
        A stencil of `gtscript.stencil` or `gtscript.lazy_stencil`, or a frozen one. A lazy stencil is compiled at its
        first call. A wrapped stencil is wrapped anew, with the options of this call.
    on_mismatch : {"raise", "copy"}, optional
        What to do with an array whose layout or dtype differs from the stencil's: "raise" raises an error for the dtype
        and warns for the layout; "copy" passes a temporary, and copies it back if it is written.
    allow_overlap : bool, optional
        Whether written fields may share memory with other fields, as when one array is passed twice. The stencil is
        then responsible for the order of its reads and writes. Fields with the same elements share one temporary; a
        temporary for one of two fields that overlap in part is an error.
    labels : mapping of str to str, optional
        The stencil's label for each label of the arrays that differs, as in `{"x": "I", "y": "J", "z": "K"}`. What an
        array states in GT4Py's order I, J, K (`__gt_origin__`) is then in the order of these labels.

    Returns
    -------
    WrappedStencil
        It has the attributes of `stencil`, which is its `__wrapped__`; its `freeze` returns a wrapped stencil.

    Raises
    ------
    TypeError
        `stencil` is not a stencil, or `labels` does not map labels to labels. Also by a call with wrong arguments.
    ImportError
        By a call: the stencil is for a GPU, and CuPy is not installed.
    LayoutError, DTypeError, DimsError, DeviceError, ExchangeError, NotAnArrayError
        By a call: `Signature.bind` rejects an argument, origin or domain leave a field, or a scalar has another type.

    Warns
    -----
    LayoutWarning
        By a call with new shapes and strides: a layout is not the fast one for the backend; without `origin`, two
        fields of the same extents have different origins, so that the stencil pairs other points than those of the same
        index. With `on_mismatch="copy"`, once for each field: a temporary replaces the array.

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
    given: Any = {} if labels is None else labels
    if not isinstance(given, Mapping) or not all(isinstance(label, str) for pair in given.items() for label in pair):
        raise TypeError(f"labels: found {labels!r}, must map labels to labels, as in {{'x': 'I'}}")
    from gt4py.cartesian.lazy_stencil import LazyStencil
    from gt4py.cartesian.stencil_object import FrozenStencil, StencilObject

    stencil = stencil.__wrapped__ if isinstance(stencil, WrappedStencil) else stencil
    if not isinstance(stencil, StencilObject | FrozenStencil | LazyStencil):
        raise TypeError(
            f"stencil: expected a stencil of gtscript.stencil or gtscript.lazy_stencil, or a frozen one, got "
            f"{type(stencil).__name__}"
        )
    return _wrapped(stencil, Options(on_mismatch, bool(allow_overlap), dict(given)))


def _wrapped(stencil: Any, options: Options) -> WrappedStencil:
    """Return the wrapped stencil, of a class with the name and the documentation of the stencil's class."""
    found = type(stencil)
    made: type[WrappedStencil] = type(found.__name__, (WrappedStencil,), {"__doc__": found.__doc__})
    return made(stencil, options)


def _entry(stencil: Any, options: Options) -> tuple[Callable[..., None], Call]:
    """Return the function that a call runs: the stencil's own `__call__`, with a `Call` in place of the stencil.

    The second result is that `Call`. Signature, defaults and errors of the function, and its entries in `exec_info`,
    are therefore GT4Py's.
    """
    from gt4py.cartesian.backend import from_name
    from gt4py.cartesian.stencil_object import FrozenStencil

    stencil = getattr(stencil, "implementation", stencil)
    compiled = stencil.stencil_object if isinstance(stencil, FrozenStencil) else stencil
    if from_name(compiled.backend).storage_info["device"] == "cpu":
        call = Call(compiled, options)
    else:
        from dlfield.gt4py.gpu import GpuCall

        call = GpuCall(compiled, options)
    if isinstance(stencil, FrozenStencil):
        frozen: Callable[..., None] = replace(stencil, stencil_object=call)
        return frozen, call
    return partial(type(stencil).__call__, call), call
