"""Scalar arguments of kernels: the values that an annotation allows, and their conversion."""

import cmath
import inspect
from collections.abc import Callable
from numbers import Complex, Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import numpy as np

__all__ = ["Scalar", "is_type_alias", "scalar"]

_TYPES_OF_NUMPY = frozenset(np.sctypeDict.values())


class Scalar(NamedTuple):
    """The rule of an annotation that is not a field's."""

    # The annotation as messages show it.
    text: str
    # Returns the value that the function gets, or raises TypeError, ValueError or OverflowError.
    convert: Callable[[Any], Any]
    # Values of exactly this type need no conversion; `object` if none does, None if every value has one.
    exact: type | None = None


def is_type_alias(annotation: Any) -> bool:
    """Return whether this is what the statement `type X = ...` makes, in Python 3.12, or its backport."""
    return type(annotation).__name__ == "TypeAliasType"


def scalar(annotation: Any) -> Scalar | None:
    """Return the rule of an annotation, or None if it is neither a type nor made of types.

    `float` takes integers too, and `float`, `int`, `bool` and `complex` take NumPy's scalars; the function gets
    Python's own. A bool is not a number. A scalar type of NumPy takes NumPy's scalars of types that it represents
    without loss, and Python's numbers of its kind in its range. Any other class takes its instances, a union the values
    of its members.
    """
    if is_type_alias(annotation):
        return scalar(annotation.__value__)
    text = inspect.formatannotation(annotation)
    origin = get_origin(annotation)
    if annotation is Any or annotation is object:
        return Scalar(text, lambda value: value, object)
    if annotation is None:
        return scalar(NoneType)
    if origin is Annotated:
        return scalar(annotation.__origin__)
    if origin is Literal:
        # With their types, as 1 == True == 1.0.
        allowed = [(type(one), one) for one in get_args(annotation)]
        return Scalar(text, lambda value: _checked(value, (type(value), value) in allowed))
    if origin is Union or origin is UnionType:
        rules = [scalar(member) for member in get_args(annotation)]
        known = [rule for rule in rules if rule is not None]
        return Scalar(text, lambda value: _first_of(known, value)) if len(known) == len(rules) else None
    kind = annotation if origin is None else origin
    if not isinstance(kind, type) or not _has_instances(kind):
        return None
    if kind in _NUMBERS:
        return Scalar(text, _NUMBERS[kind], kind)
    if kind in _TYPES_OF_NUMPY and issubclass(kind, np.number | np.bool):
        return Scalar(text, lambda value: _to_numpy(kind, value), kind)
    return Scalar(text, lambda value: _checked(value, isinstance(value, kind)), kind)


def _has_instances(kind: type[Any]) -> bool:
    """Return whether `isinstance` takes the class: not a `TypedDict`, nor a protocol without run-time checks."""
    try:
        isinstance(None, kind)
    except TypeError:
        return False
    return True


def _checked(value: Any, fits: bool) -> Any:
    if not fits:
        raise TypeError
    return value


def _first_of(rules: list[Scalar], value: Any) -> Any:
    """Return what the first rule that takes the value makes of it; a value of a member's own type stays as it is."""
    if any(rule.exact is type(value) for rule in rules):
        return value
    for rule in rules:
        try:
            return rule.convert(value)
        except (TypeError, ValueError, OverflowError):
            continue
    raise TypeError


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool | np.bool)


def _to_bool(value: Any) -> bool:
    return bool(_checked(value, _is_bool(value)))


def _to_int(value: Any) -> int:
    _checked(value, isinstance(value, Integral) and not _is_bool(value))
    # An enumerator stays one.
    return value if isinstance(value, int) else int(value)


def _to_float(value: Any) -> float:
    return float(_checked(value, isinstance(value, Real) and not _is_bool(value)))


def _to_complex(value: Any) -> complex:
    return complex(_checked(value, isinstance(value, Complex) and not _is_bool(value)))


_NUMBERS: dict[type, Callable[[Any], Any]] = {bool: _to_bool, int: _to_int, float: _to_float, complex: _to_complex}

# The types of NumPy for which Python's numbers are used.
_KINDS: dict[type, tuple[type[np.generic], ...]] = {
    bool: (np.bool,),
    int: (np.number,),
    float: (np.inexact,),
    complex: (np.complexfloating,),
}


def _to_numpy(kind: type[Any], value: Any) -> Any:
    if isinstance(value, np.generic):
        return kind(_checked(value, np.can_cast(value.dtype, kind, "safe") and _is_bool(value) == (kind is np.bool)))
    _checked(value, issubclass(kind, _KINDS.get(type(value), ())))
    with np.errstate(over="ignore"):
        converted = kind(value)
    if np.isinf(converted) and not cmath.isinf(value):
        raise OverflowError(f"out of range for {kind.__name__}")
    return converted
