"""`kernel`: functions that bind their arguments by annotation."""

import inspect
import itertools
import os
import sys
from collections.abc import Callable
from functools import update_wrapper
from types import FrameType, FunctionType
from typing import Any, Literal, NoReturn, TypeVar, overload

from dlfield._native import BoundCall, Error, FieldSpec, Signature, Tensor, _as_optional, _KernelCall
from dlfield.kernels.annotations import evaluated, field_spec
from dlfield.kernels.scalars import Scalar, scalar

__all__ = ["kernel"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_OnMismatch = Literal["raise", "copy"]

# The default of every parameter without one. So a missing argument gets here, and the error shows the signature.
_MISSING = object()

_ASYNCHRONOUS = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)


@overload
def kernel(function: _Function, /) -> _Function: ...
@overload
def kernel(
    *, device: Any = "cpu", on_mismatch: _OnMismatch = "raise", allow_overlap: bool = False
) -> Callable[[_Function], _Function]: ...
def kernel(
    function: Any = None,
    /,
    *,
    device: Any = "cpu",
    on_mismatch: _OnMismatch = "raise",
    allow_overlap: bool = False,
) -> Any:
    """Make a function bind its fields by their annotations, as `Signature.bind` does, at every call.

    The body gets a `Descriptor` for each field, with dimensions in the annotated order, while the hooks of data
    interfaces and temporary copies are in place, as in a `with` statement. Scalars are checked and passed on, and so is
    the result. The wrapper is a function like the decorated one: as a method, with defaults, pickled by name.

    A parameter that is a field has the annotation `dl.Field[...]`; in code that type checkers read
    `Annotated[dl.Descriptor | Any, dl.FieldSpec(...)]`, as callers pass any array; or `gtscript.Field[...]`, which is
    read and written. With the default None or the annotation `... | None` it may be
    None. All others are scalars, annotated with a type: `float` takes integers too, and `float`, `int`, `bool` and
    `complex` take NumPy's scalars; the body gets Python's. A bool is not a number. A scalar type of NumPy takes NumPy's
    scalars without loss, and Python's numbers in its range. Any other class takes its instances, `Any` everything. Only
    a first parameter named `self` or `cls` needs no annotation.

    Parameters
    ----------
    function : function
        The function. Not one that yields or awaits: it would run after its fields were released.
    device, on_mismatch, allow_overlap : optional
        As for `Signature`.

    Returns
    -------
    function
        With the decorated one as its `__wrapped__`. Without `function`, a decorator.

    Raises
    ------
    TypeError
        At decoration: a parameter without such an annotation, `*args`, no field, a scalar's default of another type.
        At a call: an argument is missing or unknown, or a scalar of another type or out of range.
    Error
        As by `Signature` and, at a call, by `Signature.bind`. The message names the function and shows the signature.

    Warns
    -----
    LayoutWarning
        As by `Signature.bind`.

    Example
    -------
    >>> import dlfield as dl
    >>> import numpy as np
    >>> @dl.kernel
    ... def show(inp: dl.Field["float64", "IJ"], factor: float):
    ...     print(inp.shape, inp.strides, factor)
    >>> show(dl.zeros((3, 4), dims="JI"), 2)
    (4, 3) (8, 32) 2.0
    >>> show(np.zeros((3, 4)), "two")
    Traceback (most recent call last):
        ...
    TypeError: show(): argument 'factor': expected float, got 'two' (str)
        show(inp: Field[float64, I J, cpu], factor: float)
    """
    options: dict[str, Any] = {"device": device, "on_mismatch": on_mismatch, "allow_overlap": allow_overlap}
    if function is None:
        return lambda decorated: _decorated(decorated, options, sys._getframe(1))
    return _decorated(function, options, sys._getframe(1))


def _decorated(function: Any, options: dict[str, Any], frame: FrameType) -> Any:
    if isinstance(function, staticmethod | classmethod):
        return type(function)(_decorated(function.__func__, options, frame))
    if not isinstance(function, FunctionType):
        raise TypeError(f"kernel: expected a function, got {function!r}")
    if any(is_one(part) for part in (function, inspect.unwrap(function)) for is_one in _ASYNCHRONOUS):
        raise TypeError(
            f"kernel: {function.__qualname__}() yields or awaits; its fields are released when a call returns"
        )
    return _Kernel(function, options, frame).wrapper()


class _Kernel:
    """What a kernel's wrapper needs, and its errors."""

    def __init__(self, function: FunctionType, options: dict[str, Any], frame: FrameType) -> None:
        self.function = function
        # A function inside another one as its author calls it.
        self.name = function.__qualname__.rpartition("<locals>.")[2]
        self.parameters = inspect.signature(function).parameters
        # A list: iterators of the items of dictionaries crash where Python has no memory for them.
        self.order = [(name, _is_by_name(parameter)) for name, parameter in self.parameters.items()]
        self.fields: dict[str, FieldSpec] = {}
        self.scalars: dict[str, Scalar] = {}
        for place, parameter in enumerate(self.parameters.values()):
            self._add(parameter, is_first=place == 0, frame=frame)
        reserved = next(filter(options.__contains__, self.fields), None)
        if reserved is not None:
            raise TypeError(f"kernel: {self.name}(): {reserved!r} is an argument of Signature; rename the field")
        if not self.fields:
            raise TypeError(f"kernel: {self.name}() has no field; annotate fields with dl.Field[dtype, dims]")
        self.signature = Signature(**options | self.fields)
        for name in self.scalars:
            if self.parameters[name].default is not inspect.Parameter.empty:
                self.convert(name, self.parameters[name].default)

    def _add(self, parameter: inspect.Parameter, *, is_first: bool, frame: FrameType) -> None:
        name = parameter.name
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"kernel: {self.name}(): expected parameters for one argument each, got {parameter}")
        if parameter.annotation is parameter.empty:
            if not (is_first and name in ("self", "cls")):
                raise self._no_annotation(name, "none")
            self.scalars[name] = Scalar("", lambda value: value, object)
            return
        try:
            annotation = evaluated(parameter.annotation, self.function, frame)
        except Exception as error:
            raise self._no_annotation(name, f"{parameter.annotation!r}: {error}") from error
        try:
            spec, rule = field_spec(annotation), scalar(annotation)
        except Exception as error:
            raise TypeError(f"kernel: {self.name}(): annotation of {name!r}: {error}") from error
        if spec is not None:
            self.fields[name] = _as_optional(spec) if parameter.default is None else spec
        elif rule is None:
            raise self._no_annotation(name, repr(annotation))
        else:
            self.scalars[name] = rule

    def _no_annotation(self, name: str, found: str) -> TypeError:
        return TypeError(
            f"kernel: {self.name}(): annotation of {name!r}: expected dl.Field[...], gtscript.Field[...], "
            f"Annotated[Any, dl.FieldSpec(...)], or a type for a scalar, got {found}"
        )

    def wrapper(self) -> Callable[..., Any]:
        """Return the function that a call runs."""
        prefix = next(filter(self._is_unused, (f"_dl{number or ''}_" for number in itertools.count())))
        names: dict[str, Any] = {"type": type, "missing": _MISSING, "surplus": self.surplus, "convert": self.convert}
        by_name = sum(is_by_name for _, is_by_name in self.order)
        called = (self.signature, self.function, list(self.parameters), by_name, self.failed, self.within)
        names["body"] = _KernelCall(*called)
        names |= {f"type_{name}": rule.exact for name, rule in self.scalars.items()}
        for name, parameter in self.parameters.items():
            names[f"default_{name}"] = _MISSING if parameter.default is parameter.empty else parameter.default
        namespace = {prefix + name: value for name, value in names.items()}
        namespace["__name__"] = self.function.__module__
        # A name in this folder, as warnings skip the frames of its files.
        file = os.path.join(os.path.dirname(__file__), f"<kernel {self.name}>")  # noqa: PTH118, PTH120
        exec(compile(self._source(prefix), file, "exec"), namespace)
        made: FunctionType = namespace["wrapper"]
        made.__code__ = made.__code__.replace(co_name=self.function.__name__, co_qualname=self.function.__qualname__)
        return update_wrapper(made, self.function)

    def _is_unused(self, prefix: str) -> bool:
        return not any(name.startswith(prefix) for name in self.parameters)

    def _source(self, prefix: str) -> str:
        """Return the source of the wrapper: a Python function, whose arguments the interpreter itself sorts."""
        p = prefix
        lines = [f"def wrapper({self._heads(p)}):", f" if {p}rest: {p}surplus({p}rest)"]
        for name, rule in self.scalars.items():
            convert = f"{name} = {p}convert({name!r}, {name})"
            if rule.exact is object:
                lines.append(f" if {name} is {p}missing: {convert}")
            else:
                lines.append(f" if {p}type({name}) is not {p}type_{name}: {convert}" if rule.exact else f" {convert}")
        lines.append(f" return {p}body.call({', '.join(self.parameters)})")
        return "\n".join(lines)

    def _heads(self, p: str) -> str:
        """Return the parameters of the wrapper.

        It takes too many and too few arguments, for errors that show the signature. Keywords that no parameter has are
        left to the interpreter, because a dictionary for them would cost 50 ns in each call.
        """
        by_kind: dict[Any, list[str]] = {}
        for name, parameter in self.parameters.items():
            by_kind.setdefault(parameter.kind, []).append(f"{name}={p}default_{name}")
        only, ordinary = (by_kind.get(kind, []) for kind in list(inspect._ParameterKind)[:2])
        slash = ["/"] if only else []
        keyword_only = by_kind.get(inspect.Parameter.KEYWORD_ONLY, [])
        return ", ".join([*only, *slash, *ordinary, f"*{p}rest", *keyword_only])

    def within(self, bound: BoundCall, values: tuple[Any, ...]) -> Any:
        """Run the body while hooks and temporary copies are in place."""
        by_position, by_name = [], {}
        with bound as fields:
            for (name, is_by_name), value in zip(self.order, values, strict=True):
                given = fields[name] if name in self.fields else value
                if is_by_name:
                    by_name[name] = given
                else:
                    by_position.append(given)
            return self.function(*by_position, **by_name)

    def convert(self, name: str, value: Any) -> Any:
        """Return a scalar as the body gets it."""
        if value is _MISSING:
            raise self._missing(name)
        rule, fix = self.scalars[name], ""
        try:
            return rule.convert(value)
        except OverflowError as error:
            found = f"{_shown(value)}: {error}"
        except (TypeError, ValueError):
            found = f"{_shown(value)} ({type(value).__name__})"
            if isinstance(value, Tensor) and value.ndim == 0 and self._fits(rule, value):
                fix = f"; pass {name}={name}.item()"
        raise TypeError(self._message(f"argument {name!r}: expected {rule.text}, got {found}{fix}"))

    def _fits(self, rule: Scalar, value: Tensor) -> bool:
        """Return whether the element of a field without dimensions would be taken."""
        try:
            rule.convert(value.item())
        except (TypeError, ValueError, OverflowError):
            return False
        return True

    def failed(self, error: Exception, values: tuple[Any, ...]) -> None:
        """Add the function and its signature to an error of `bind`, or raise one for a field that is missing."""
        for (name, _), value in zip(self.order, values, strict=True):
            if name not in self.fields:
                continue
            if value is _MISSING:
                raise self._missing(name) from None
            if value is None and not self.fields[name].optional:
                raise TypeError(self._message(f"argument {name!r}: expected {self._field(name)}, got None")) from None
        if isinstance(error, Error) and type(error).__module__ == Error.__module__:
            # The signature, which the message has.
            error.__notes__ = [note for note in getattr(error, "__notes__", []) if not note.startswith("expected: ")]
            error.args = (self._message(str(error)),)
        else:
            error.add_note(self._message("the call failed while its fields were bound"))

    def surplus(self, rest: tuple[Any, ...]) -> NoReturn:
        """Raise the error for more arguments than parameters take."""
        most = sum(not _is_by_name(parameter) for parameter in self.parameters.values())
        raise TypeError(self._message(f"takes {most} positional arguments, found {most + len(rest)}"))

    def _missing(self, name: str) -> TypeError:
        return TypeError(self._message(f"argument {name!r} is missing"))

    def _message(self, what: str) -> str:
        return f"{self.name}(): {what}\n    {self.name}({self._text()})"

    def _text(self) -> str:
        """Return the parameters as nanobind's errors show them."""
        texts, last = [], None
        for name, parameter in self.parameters.items():
            if last is parameter.POSITIONAL_ONLY and parameter.kind is not last:
                texts.append("/")
            if parameter.kind is parameter.KEYWORD_ONLY and parameter.kind is not last:
                texts.append("*")
            last = parameter.kind
            if name in self.fields:
                text = f"{name}: {self._field(name)}"
            else:
                text = f"{name}: {self.scalars[name].text}".removesuffix(": ")
            texts.append(text if parameter.default is parameter.empty else f"{text} = {_shown(parameter.default)}")
        return ", ".join(texts + ["/"] * (last is inspect.Parameter.POSITIONAL_ONLY))

    def _field(self, name: str) -> str:
        """Return a field as the text of its signature shows it."""
        alone = Signature(device=self.signature.device, field=self.fields[name])
        return str(alone)[len("(field: ") : -1]


def _is_by_name(parameter: inspect.Parameter) -> bool:
    return parameter.kind is parameter.KEYWORD_ONLY


def _shown(value: Any) -> str:
    """Return a value as messages show it, also if its `__repr__` fails, as that of integers with 5000 digits does."""
    try:
        # The first line: arrays have many.
        text = repr(value).partition("\n")[0]
        return text if len(text) <= 80 else f"{text[:80]}…"
    except Exception:
        return object.__repr__(value)
