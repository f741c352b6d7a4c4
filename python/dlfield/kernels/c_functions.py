"""`Signature.wrap`: functions of C, Fortran and Python that get the checked fields of a call."""

import ctypes
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from dlfield._native import BoundCall, Descriptor, DimsError, Signature, as_numpy
from dlfield.interop.frameworks import imported

__all__ = ["Ctypes", "Domain", "wrapped"]

# What an order may name of a field.
_ADDRESSES = frozenset({"ptr", "domain_ptr"})
_LISTS = frozenset({"shape", "strides", "element_strides", "origin"})
_OF_FIELDS = _ADDRESSES | _LISTS | {"size", "ndim", "nbytes", "itemsize", "array"}


class Ctypes:
    """The memory of a description for `ctypes`, with the names of `numpy.ndarray.ctypes`; strides are in bytes."""

    __slots__ = ("_described",)

    def __init__(self, described: Descriptor) -> None:
        self._described = described

    @property
    def data(self) -> int:
        """Address of the element at index 0."""
        return self._described.ptr

    @property
    def shape(self) -> Any:
        """The extents as an array of `ctypes.c_ssize_t`."""
        return self.shape_as(ctypes.c_ssize_t)

    @property
    def strides(self) -> Any:
        """The strides as an array of `ctypes.c_ssize_t`."""
        return self.strides_as(ctypes.c_ssize_t)

    def data_as(self, obj: Any) -> Any:
        """Return the address as a pointer type of ctypes, which keeps the memory alive."""
        pointer = ctypes.cast(self._described.ptr, obj)
        pointer._arr = self._described
        return pointer

    def shape_as(self, obj: Any) -> Any:
        """Return the extents as an array of a ctypes integer type."""
        return _integers(self._described.shape, obj)

    def strides_as(self, obj: Any) -> Any:
        """Return the strides as an array of a ctypes integer type."""
        return _integers(self._described.strides, obj)


class Domain(tuple[int, ...]):
    """The extents of a domain, also by label: `domain["I"]`."""

    def __new__(cls, extents: Iterable[int], dims: tuple[str, ...]) -> Self:
        """Make the tuple with its labels."""
        made = super().__new__(cls, extents)
        made.dims = dims
        return made

    #: The label of each extent.
    dims: tuple[str, ...]

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self.dims:
                raise DimsError(f"domain: expected one of {self.dims}, got {key!r}")
            return self[self.dims.index(key)]
        return super().__getitem__(key)


def _integers(values: Iterable[int], kind: Any) -> Any:
    """Return an array of a ctypes integer type; `OverflowError` for a number outside its range."""
    numbers = tuple(values)
    array = (kind * len(numbers))(*numbers)
    for number, made in zip(numbers, array, strict=True):
        if number != made:
            raise OverflowError(f"{number} does not fit {kind.__name__}")
    return array


@dataclass(frozen=True)
class _Argument:
    """One word of an order: `field.name`, "domain" or a scalar; `spread` passes a list as numbers."""

    field: str | None
    name: str
    spread: bool

    def __str__(self) -> str:
        return "*" * self.spread + (f"{self.field}.{self.name}" if self.field else self.name)

    def value(self, fields: BoundCall, scalars: Mapping[str, Any]) -> Any:
        """Return the value in this call, None of an optional field that was not given."""
        if self.field is None:
            return fields.domain if self.name == "domain" else scalars[self.name]
        described = fields[self.field]
        if described is None:
            return None
        return as_numpy(described) if self.name == "array" else getattr(described, self.name)


def wrapped(signature: Signature, function: Any, order: str | None) -> Callable[..., Any]:
    """Do the work of `Signature.wrap`."""
    if not callable(function):
        raise TypeError(f"function: expected a function of ctypes, cffi, numba, f2py or Python, got {function!r}")
    in_c = _in_c(function)
    if order is None and in_c is not None:
        raise TypeError("order: expected the arguments of the C function in their order, as 'ptr shape strides'")
    fields = tuple(signature.fields)
    arguments = list(_parsed("array" if order is None else order, fields))
    scalars = dict.fromkeys(one.name for one in arguments if one.field is None and one.name != "domain")
    if in_c is not None and in_c.argtypes is None and (scalars or any(one.spread for one in arguments)):
        raise TypeError("order: numbers need the types of the C function; set its argtypes")
    if in_c is not None and any(one.name == "array" for one in arguments):
        raise TypeError("order: 'array' is for functions of Python; a C function takes 'ptr' and 'strides'")
    names = (*fields, *scalars)

    def call(*values: Any, **named: Any) -> Any:
        if len(values) > len(names):
            raise TypeError(f"{call.__name__}() takes {len(names)} arguments: {', '.join(names)}; got {len(values)}")
        for name, value in zip(names, values, strict=False):
            if name in named:
                raise TypeError(f"{call.__name__}() got two values for {name!r}")
            named[name] = value
        try:
            numbers = {name: named.pop(name) for name in scalars}
        except KeyError as missing:
            raise TypeError(f"{call.__name__}(): the argument {missing} is missing") from None
        with signature.bind(**named) as bound:
            if in_c is None:
                return function(*_passed(arguments, bound, numbers))
            return in_c(*_converted(arguments, bound, numbers, in_c.argtypes))

    call.__name__ = call.__qualname__ = getattr(function, "__name__", type(function).__name__)
    call.__doc__ = getattr(function, "__doc__", None)
    # Keeps the function's library loaded.
    call.__wrapped__ = function  # type: ignore[attr-defined]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    call.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])  # type: ignore[attr-defined]
    return call


def _parsed(order: str, fields: Sequence[str]) -> Iterator[_Argument]:
    """Yield the arguments of an order, in which consecutive attributes of fields are those of each field in turn."""
    repeated: list[str] = []
    for word in (*order.replace(",", " ").split(), ""):
        if word.lstrip("*") in _OF_FIELDS:
            repeated.append(word)
            continue
        yield from (_Argument(field, one.lstrip("*"), one[0] == "*") for field in fields for one in repeated)
        repeated = []
        field, dot, name = word.lstrip("*").rpartition(".")
        if not word:
            return
        if dot and (field not in fields or name not in _OF_FIELDS):
            raise ValueError(f"order: expected FIELD.NAME with a field of {fields}, got {word!r}; {_NAMES}")
        if not dot and (name in fields or not name.isidentifier() or (word[0] == "*" and name != "domain")):
            raise ValueError(
                f"order: expected an attribute of the fields, 'domain' or a scalar, got {word!r}; {_NAMES}"
            )
        if not dot and name != "domain" and _letters(name) in _TYPOS:
            raise ValueError(
                f"order: expected an attribute of the fields, 'domain' or a scalar, got {word!r}; did you mean "
                f"{_TYPOS[_letters(name)]!r}?"
            )
        yield _Argument(field or None, name, word[0] == "*")


def _letters(name: str) -> str:
    """Return a name as a typo may have it: without underscores and a final s."""
    return name.replace("_", "").removesuffix("s")


# The right name of each; a scalar would never be called so.
_TYPOS = {_letters(name): name for name in (*_OF_FIELDS, "domain")}
_NAMES = f"the attributes are {', '.join(sorted(_OF_FIELDS))}"


def _passed(arguments: Iterable[_Argument], bound: BoundCall, scalars: Mapping[str, Any]) -> Iterator[Any]:
    for argument in arguments:
        value = argument.value(bound, scalars)
        if argument.spread:
            yield from value
        else:
            yield value


def _converted(
    arguments: Iterable[_Argument], bound: BoundCall, scalars: Mapping[str, Any], types: Sequence[Any] | None
) -> list[Any]:
    """Return the arguments of a call as the C function takes them."""
    found: list[Any] = []
    for argument in arguments:
        value = argument.value(bound, scalars)
        for one in value if argument.spread else (value,):
            if types is not None and len(found) == len(types):
                break
            kind = types[len(found)] if types is not None else ctypes.c_void_p
            try:
                found.append(_as_c(argument, one, kind, bound))
            except (TypeError, OverflowError) as error:
                is_scalar = argument.field is None and argument.name != "domain"
                place = argument if is_scalar else f"order: argument {len(found) + 1}, {argument}"
                raise type(error)(f"{place}: {error}") from None
        else:
            continue
        raise TypeError(f"order: the C function takes {len(types or ())} arguments, and {argument} is one more")
    if types is not None and len(found) < len(types):
        raise TypeError(f"order: the C function takes {len(types)} arguments, got {len(found)}")
    return found


def _as_c(argument: _Argument, value: Any, kind: Any, bound: BoundCall) -> Any:
    """Return one argument as an instance of its ctypes type."""
    is_address = argument.name in _ADDRESSES and argument.field is not None
    if not is_address and (argument.spread or not isinstance(value, tuple)):
        # ctypes cuts integers to their low bits.
        if issubclass(kind, ctypes._SimpleCData) and isinstance(value, int) and kind(value).value != value:
            raise OverflowError(f"{value} does not fit {kind.__name__}")
        try:
            kind.from_param(value)
        except TypeError:
            is_number = issubclass(kind, ctypes._SimpleCData) and kind._type_ in _NUMBERS
            expected = f"a number ({kind.__name__})" if is_number else f"a {kind.__name__}"
            raise TypeError(f"expected {expected}, got {value!r}") from None
        return value
    pointed = getattr(kind, "_type_", None) if issubclass(kind, ctypes._Pointer) else None
    if pointed is None and kind is not ctypes.c_void_p:
        raise TypeError(f"the C function takes a {kind.__name__}, expected a pointer")
    if value is None:
        return None
    if not is_address:
        return _integers(value, pointed or ctypes.c_ssize_t)
    if pointed is None:
        return ctypes.c_void_p(value)
    dtype, taken = bound[str(argument.field)].dtype, _dtype(pointed)
    # NumPy takes None for float64.
    if taken is not None and taken != dtype:
        raise TypeError(f"the C function takes {taken}, the field is {dtype}")
    return ctypes.cast(value, kind)


# The letters of ctypes for integers, floats and bools.
_NUMBERS = frozenset("bBhHiIlLqQfdg?")


@functools.cache
def _dtype(kind: Any) -> np.dtype[Any] | None:
    """Return the dtype of a ctypes type; None for `char`, which stands for any memory."""
    return None if kind is ctypes.c_char else np.dtype(kind)


def _in_c(function: Any) -> Any:
    """Return the ctypes function of a C function of ctypes, cffi or numba; None for a function of Python."""
    if isinstance(function, ctypes._CFuncPtr):  # type: ignore[attr-defined]
        return function
    if type(function).__module__ == "numba.core.ccallback":
        return function.ctypes
    if type(function).__module__ == "_cffi_backend":
        return _of_cffi(function)
    return None


def _of_cffi(function: Any) -> Any:
    ffi = imported("cffi", "Signature.wrap").FFI()
    found = ffi.typeof(function)

    def in_ctypes(kind: Any) -> Any:
        if kind.kind == "void":
            return None
        if kind.kind == "pointer":
            return ctypes.c_void_p if kind.item.kind not in ("primitive",) else ctypes.POINTER(in_ctypes(kind.item))
        if kind.kind == "primitive" and kind.cname in _CFFI:
            return _CFFI[kind.cname]
        if kind.kind == "primitive" and "complex" not in kind.cname:
            return (_UNSIGNED if int(ffi.cast(kind, -1)) > 0 else _SIGNED)[ffi.sizeof(kind)]
        raise TypeError(f"function: expected numbers and pointers, got an argument of type {kind.cname}")

    prototype = ctypes.CFUNCTYPE(in_ctypes(found.result), *map(in_ctypes, found.args))
    return prototype(int(ffi.cast("intptr_t", function)))


_CFFI = {"double": ctypes.c_double, "float": ctypes.c_float, "char": ctypes.c_char, "_Bool": ctypes.c_bool}
_SIGNED = {1: ctypes.c_int8, 2: ctypes.c_int16, 4: ctypes.c_int32, 8: ctypes.c_int64}
_UNSIGNED = {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32, 8: ctypes.c_uint64}
