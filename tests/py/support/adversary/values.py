"""Hostile values other than arrays: integers, texts, sequences, element types, devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from adversary.case import Case


class Trap:
    """An object that belongs to a case."""

    def __init__(self, case: Case) -> None:
        self.case = case


class Integer(Trap):
    """An integer by `__index__`, as in every other way, all of which act."""

    def __init__(self, case: Case, value: Any) -> None:
        super().__init__(case)
        self.value = value

    def _answer(self, name: str) -> Any:
        self.case.act(name)
        return self.case.true(self.value)

    def __index__(self) -> int:
        found: int = self._answer("__index__")
        return found

    def __int__(self) -> int:
        found: int = self._answer("__int__")
        return found

    def __eq__(self, other: object) -> Any:
        self.case.act("__eq__")
        return self.case.true(self.value == other)

    def __hash__(self) -> int:
        self.case.act("__hash__")
        return hash(self.value)

    def __bool__(self) -> bool:
        return bool(self._answer("__bool__"))


class TrueInteger(Integer):
    """An integer that acts, and does not lie: whether memory is at an address nobody else can know."""

    def _answer(self, name: str) -> Any:
        self.case.act(name)
        return self.value


class Number(Integer):
    """A number by `__float__` and `__complex__` too."""

    def __float__(self) -> float:
        return float(self._answer("__float__"))

    def __complex__(self) -> complex:
        return complex(self._answer("__complex__"))


class IntegerSubclass(int):
    """An int whose comparison and hash act."""

    case: Case

    def __index__(self) -> int:
        self.case.act("__index__ of an int")
        return int.__index__(self)

    def __eq__(self, other: object) -> Any:
        self.case.act("__eq__ of an int")
        return int.__eq__(self, other)

    def __hash__(self) -> int:
        self.case.act("__hash__ of an int")
        return int.__hash__(self)


class Text(str):
    """A str whose methods act."""

    case: Case

    def __eq__(self, other: object) -> Any:
        self.case.act("__eq__ of a str")
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        if hasattr(self, "case"):
            self.case.act("__hash__ of a str")
        return str.__hash__(self)

    def __str__(self) -> str:
        self.case.act("__str__")
        return self

    def __iter__(self) -> Iterator[str]:
        self.case.act("__iter__ of a str")
        return str.__iter__(self)

    def __len__(self) -> int:
        self.case.act("__len__ of a str")
        return str.__len__(self)


def act_unheard(case: Case, where: str) -> None:
    """What a `__len__` and a look-up of NumPy's methods call: NumPy drops every exception of theirs."""
    # NumPy reads on in a list that an entry's `__len__` has shortened.
    case.reading += 1
    try:
        case.act(where)
    except BaseException as error:
        case.see(error)
        # Nobody tells NumPy's caller of the limit either: it would be reached again and again.
        case.unending = False
        raise
    finally:
        case.reading -= 1


class Entries(Trap):
    """A sequence whose methods act."""

    def __init__(self, case: Case, values: Sequence[Any]) -> None:
        super().__init__(case)
        self.values = list(values)

    def __len__(self) -> int:
        act_unheard(self.case, "__len__")
        found: int = self.case.true(len(self.values))
        return found

    def __getitem__(self, at: Any) -> Any:
        self.case.act("__getitem__")
        return self.case.true(self.values[at])

    def __iter__(self) -> Iterator[Any]:
        self.case.act("__iter__")
        found: Iterator[Any] = self.case.true(self._walk())
        return found

    def _walk(self) -> Iterator[Any]:
        for value in self.values:
            self.case.act("__next__")
            yield self.case.true(value)


class OnlyIterable(Entries):
    __getitem__ = None  # type: ignore[assignment]
    __len__ = None  # type: ignore[assignment]


class EntriesOfTuple(tuple):  # type: ignore[type-arg]
    """A tuple that iterates otherwise than it lies."""

    case: Case

    def __iter__(self) -> Iterator[Any]:
        self.case.act("__iter__ of a tuple")
        return iter(self.case.true(list(tuple.__iter__(self))))

    def __len__(self) -> int:
        act_unheard(self.case, "__len__ of a tuple")
        return tuple.__len__(self)


def _of(kind: type[Any], case: Case, value: Any) -> Any:
    found = kind(value)
    found.case = case
    return found


def integer(case: Case, value: int) -> Any:
    """An integer, hostile by chance."""
    if case.rng.random() > case.hostility:
        return value
    return case.rng.choice(
        (lambda: Integer(case, value), lambda: _of(IntegerSubclass, case, value), lambda: np.int64(value))
    )()


def true_integer(case: Case, value: int) -> Any:
    """An integer, hostile by chance, which does not lie."""
    return TrueInteger(case, value) if case.rng.random() < case.hostility else value


def number(case: Case) -> Any:
    return Number(case, case.rng.choice((0, 1, 2.5))) if case.rng.random() < case.hostility else 1.0


def text(case: Case, value: str) -> Any:
    """A str, hostile by chance."""
    return _of(Text, case, value) if case.rng.random() < case.hostility else value


def entries_of(case: Case, values: Sequence[Any]) -> Any:
    """A sequence of values, each hostile by chance."""
    parts = [_part(case, value) for value in values]
    if case.rng.random() > case.hostility:
        return tuple(parts)
    kinds: list[Callable[[], Any]] = [
        lambda: case.keep(parts),
        lambda: Entries(case, parts),
        lambda: OnlyIterable(case, parts),
        lambda: _of(EntriesOfTuple, case, parts),
        lambda: iter(parts),
        lambda: np.array(values),
    ]
    return case.rng.choice(kinds)()


def _part(case: Case, value: Any) -> Any:
    if type(value) is int:
        return integer(case, value)
    return entries_of(case, value) if type(value) is tuple else value


class Truth(Trap):
    """A truth value by `__bool__`."""

    def __init__(self, case: Case, value: bool) -> None:
        super().__init__(case)
        self.value = value

    def __bool__(self) -> bool:
        self.case.act("__bool__")
        found: bool = self.case.true(self.value)
        return found


def truth(case: Case, *values: Any) -> Any:
    value = case.rng.choice(values or (True, False))
    return Truth(case, bool(value)) if case.rng.random() < 0.2 * case.hostility else value
