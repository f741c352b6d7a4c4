"""What hostile classes are built from: properties, methods, descriptors and metaclasses that act."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

import dlfield as dl
from adversary.memory import fill
from adversary.values import Trap, act_unheard, entries_of, text

if TYPE_CHECKING:
    from adversary.case import Case


def fresh(case: Case) -> Any:
    """A NumPy array of the case's shape and element type; now and then of others."""
    shape: Any = case.shape
    dtype = case.dtype
    if case.rng.random() < 0.05:
        shape = case.rng.choice(((), (0,), (4,), (2, 2), (1, 3000)))
    if case.rng.random() < 0.05:
        dtype = case.rng.choice(("f4", "i8", "c16", "?", "f2", "u1", ">f8"))
    order: Any = case.rng.choice("CCCF")
    made: Any = np.empty(shape, np.dtype(dtype), order=order)
    return fill(made)


def numpy_array(case: Case) -> Any:
    return case.keep(fresh(case))


def read_only_array(case: Case) -> Any:
    made = numpy_array(case)
    made.setflags(write=False)
    return made


# What an object may state in addition to its memory; each is a property, a method or a value.
METADATA: dict[str, Callable[[Any], Any]] = {
    "__gt_dims__": lambda case: labels_of(case),
    "dims": lambda case: labels_of(case),
    "__gt_origin__": lambda case: entries_of(case, [0] * len(case.shape)),
    "default_origin": lambda case: entries_of(case, [0] * len(case.shape)),
    "halo": lambda case: entries_of(case, [(0, 0)] * len(case.shape)),
    "origin": lambda case: entries_of(case, [0] * len(case.shape)),
}


def labels_of(case: Case) -> Any:
    return entries_of(case, [text(case, label) for label in "IJK"[: len(case.shape)]])


def acting(name: str, answer: Callable[[Any], Any]) -> property:
    """A property that acts, then answers for `self`."""

    def get(self: Any) -> Any:
        self.case.act(name)
        return self.case.true(answer(self))

    return property(get)


def acting_method(name: str, answer: Callable[..., Any]) -> Callable[..., Any]:
    """A method that acts, then answers for `self` and its arguments."""

    def method(self: Any, *arguments: Any, **keywords: Any) -> Any:
        self.case.act(name)
        return self.case.true(answer(self, *arguments, **keywords))

    method.__name__ = name
    return method


class Descriptor:
    """A descriptor whose `__get__` acts: classes look it up themselves, and may remember what they found."""

    def __init__(self, case: Case, value: Any) -> None:
        self.case, self.value = case, value

    def __get__(self, instance: Any, owner: Any) -> Any:
        self.case.act("__get__")
        return self.case.true(self.value)


class Meta(type):
    """A metaclass whose attribute access acts."""

    def __getattribute__(cls, name: str) -> Any:
        case = type.__getattribute__(cls, "class_case")
        if not name.startswith("__") or name.startswith(("__dl", "__array", "__gt", "__cuda")):
            act_looked_up(case, "metaclass", name)
        return type.__getattribute__(cls, name)

    def __instancecheck__(cls, instance: Any) -> bool:
        type.__getattribute__(cls, "class_case").act("__instancecheck__")
        return type.__instancecheck__(cls, instance)


def act_looked_up(case: Case, where: str, name: str) -> None:
    """What the look-up of an attribute calls."""
    if name.startswith("__array"):
        act_unheard(case, f"{where} {name}")
    else:
        case.act(f"{where} {name}")


def build(case: Case, base: tuple[type, ...], protocol: dict[str, Any]) -> type[Any]:
    """A class with a protocol, and by chance metadata, a metaclass, a destructor, or attribute access that acts."""
    rng = case.rng
    namespace = dict(protocol)
    for name, answer in METADATA.items():
        if rng.random() < 0.15:
            form = rng.choice((acting, acting_method))
            namespace[name] = form(name, lambda self, *_, answer=answer: answer(self.case))
    if rng.random() < 0.3:
        namespace["__del__"] = lambda self: hasattr(self, "case") and self.case.act("__del__", final=True)
    if rng.random() < 0.1:

        def getattribute(self: Any, name: str) -> Any:
            # The text of an array, NumPy's own Python code, reads its sizes again and again.
            is_size = bool(base) and not name.startswith("__")
            if not is_size and name not in ("case", "memory", "kept", "__dict__", "__class__"):
                act_looked_up(object.__getattribute__(self, "case"), "__getattribute__", name)
            return base_of(self, name)

        base_of: Any = base[0].__getattribute__ if base else object.__getattribute__
        namespace["__getattribute__"] = getattribute
    elif rng.random() < 0.1:

        def missing(self: Any, name: str) -> Any:
            if name != "case":
                vars(self)["case"].act(f"__getattr__ {name}") if "case" in vars(self) else None
            raise AttributeError(name)

        namespace["__getattr__"] = missing
    # NumPy goes on with an exception set when the class of an array cannot be read.
    if rng.random() < 0.1 and not base:
        namespace["__class__"] = acting("__class__", lambda _self: rng.choice((np.ndarray, torch.Tensor, dl.Tensor)))
    if rng.random() < 0.1 and not base:
        return Meta("Hostile", base, {**namespace, "class_case": case})
    return type("Hostile", base, namespace)


def made(case: Case, kind: type[Any], **attributes: Any) -> Any:
    """An instance, a participant by chance."""
    found = kind()
    # The producer keeps its memory, whoever deletes its attributes.
    case.promised.extend(attributes.values())
    found.__dict__.update(attributes, case=case)
    return case.keep(found) if case.rng.random() < 0.3 else found


class Hook(Trap):
    """A callable that acts."""

    def __init__(self, case: Case, name: str, answer: Any = None) -> None:
        super().__init__(case)
        self.name, self.answer = name, answer

    def __call__(self, *_arguments: Any, **_keywords: Any) -> Any:
        self.case.act(self.name)
        return self.case.true(self.answer)
