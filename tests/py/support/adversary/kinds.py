"""Values for each kind of parameter: what a function expects, in hostile form by chance."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

import dlfield as dl
from adversary import actions
from adversary.classes import Hook, fresh, labels_of, numpy_array
from adversary.producers import own_tensor, producer, tensor_of, writable
from adversary.protocols import data_interface
from adversary.stated import Stated, dtype
from adversary.values import entries_of, integer, number, text, true_integer
from dlfield import _native

if TYPE_CHECKING:
    from adversary.case import Case

Kind = Callable[[Any], Any]


def one_of(*values: Any) -> Kind:
    """One of some values, hostile if it is a text or an integer."""

    def kind(case: Case) -> Any:
        value = case.rng.choice(values)
        if type(value) is str:
            return text(case, value)
        return integer(case, value) if type(value) is int else value

    return kind


def any_of(*kinds: Kind) -> Kind:
    return lambda case: case.rng.choice(kinds)(case)


def shape(case: Case) -> Any:
    return entries_of(case, case.shape) if case.rng.random() < 0.9 else integer(case, 5)


def zeros(case: Case) -> Any:
    return entries_of(case, [0] * len(case.shape))


def halo(case: Case) -> Any:
    return entries_of(case, [(0, 0)] * len(case.shape))


def axis(case: Case) -> Any:
    return case.rng.choice(
        (lambda: integer(case, 0), lambda: text(case, "I"), lambda: (integer(case, 0),), lambda: None)
    )()


def layout(case: Case) -> Any:
    return entries_of(case, list(range(len(case.shape))))


def field_spec(case: Case) -> Any:
    labels = labels_of(case) if case.rng.random() < 0.3 else "IJK"[: len(case.shape)]
    access: Any = case.rng.choice(("r", "r", "w", "rw"))
    element = (
        dtype(case)
        if case.rng.random() < 0.2
        else case.rng.choice(("float64", "float32", None, "float64 | float32 | int32 | bool"))
    )
    return dl.FieldSpec(element, case.rng.choice((labels, labels, None)), access=access)


def signature(case: Case) -> Any:
    mismatch: Any = case.rng.choice(("raise", "copy"))
    return dl.Signature(
        **{name: field_spec(case) for name in ("x", "y")}, on_mismatch=mismatch, allow_overlap=case.rng.random() < 0.3
    )


def bound(case: Case) -> Any:
    labelled = [dl.from_array(fresh(case), dims="IJK"[: len(case.shape)]) for _ in range(2)]
    second = numpy_array(case) if case.rng.random() < 0.5 else data_interface(case)
    first = numpy_array(case) if case.rng.random() < 0.5 else labelled[0]
    # Another element type than the field's is copied into a temporary, and back at the end.
    element = case.rng.choice((None, None, "float32", "float64"))
    spec = dl.FieldSpec(element, "IJK"[: len(case.shape)], access=case.rng.choice(("r", "w")))
    spec = spec if case.shape else dl.FieldSpec(None)
    return dl.Signature(x=spec, y=dl.FieldSpec(None), on_mismatch=case.rng.choice(("raise", "copy"))).bind(
        x=first, y=second
    )


def kernel_function(case: Case) -> Any:
    """A function of two fields and a number, undecorated."""
    spec = field_spec(case)

    def body(x: Any, y: Any, factor: float) -> Any:
        case.act("body")
        return (dl.as_numpy(x), dl.as_numpy(y), factor)

    body.__annotations__ = {"x": Annotated[Any, spec], "y": dl.Field["float64", "I"], "factor": float}
    return body


def key(case: Case) -> Any:
    part = any_of(
        lambda case: integer(case, 0),
        lambda case: slice(integer(case, 0), integer(case, 1)),
        lambda _case: Ellipsis,
        lambda _case: None,
        lambda case: case.keep(np.zeros(2, "i8")),
        lambda case: case.keep(np.ones(case.shape, "?")),
        lambda case: entries_of(case, (0, 0)),
        producer,
    )
    parts = [part(case) for _ in range(case.rng.choice((1, 1, 2, 3)))]
    return parts[0] if len(parts) == 1 else tuple(parts)


def operand(case: Case) -> Any:
    return producer(case) if case.rng.random() < 0.85 else number(case)


def inputs(case: Case) -> list[Any]:
    found = [own_tensor(case), operand(case)]
    case.rng.shuffle(found)
    return found


def ufunc_keywords(case: Case) -> dict[str, Any]:
    options: dict[str, Kind] = {
        "out": lambda case: (writable(case),),
        "where": lambda case: case.rng.choice((lambda: case.keep(np.ones(case.shape, "?")), lambda: producer(case)))(),
        "dtype": dtype,
        "casting": one_of("same_kind", "unsafe"),
        "axis": axis,
    }
    return {name: kind(case) for name, kind in options.items() if case.rng.random() < 0.25}


def fields(case: Case) -> dict[str, Any]:
    return {name: producer(case) for name in ("x", "y")}


def state(case: Case) -> Any:
    """The state of a pickle, with hostile parts."""
    made = own_tensor(case)
    found = case.rng.choice((lambda: made.__reduce_ex__(5)[1][1], lambda: _native._copy_state(made)[1]))()
    parts = list(found)
    if case.rng.random() < 0.7:
        at = case.rng.randrange(len(parts))
        value = parts[at]
        parts[at] = entries_of(case, value) if isinstance(value, (tuple, list)) else case.true(value)
    return tuple(parts)


def address(case: Case) -> Any:
    # The memory stays, and reaches far on both sides, for other types and strides: an address is the caller's promise.
    data = np.ones(1 << 20)
    case.promised.append(data)
    return true_integer(case, data[data.size // 2 :].ctypes.data)


def true_shape(case: Case) -> Any:
    return tuple(true_integer(case, extent) for extent in case.shape)


def true_strides(case: Case) -> Any:
    return tuple(true_integer(case, step) for step in np.empty(case.shape).strides)


def path(case: Case) -> Any:
    folder = Path(tempfile.gettempdir())
    name = str(folder / f"dlfield-adversary-{case.seed % 7}.{case.rng.choice(('npy', 'dlf'))}")
    return case.rng.choice((lambda: Path(name), lambda: text(case, name), lambda: name.encode()))()


def kept_path(case: Case) -> Any:
    """The path of a file that is there."""
    name = Path(tempfile.gettempdir()) / f"dlfield-adversary-kept.{case.rng.choice(('npy', 'dlf'))}"
    dl.save_field(name, dl.ones(3))
    return case.rng.choice((lambda: name, lambda: text(case, str(name))))()


def callback(case: Case) -> Any:
    return Hook(case, "callback")


def callback_beside_views(case: Case) -> Any:
    """A callback of a function in Rust while it has views: whoever frees their memory then breaks its contract."""

    def call() -> Any:
        if case.budget > 0:
            case.budget -= 1
            action = case.rng.choice((actions.nothing, actions.throw, actions.drop_all, actions.collect))
            case.note(f"callback: {action.__name__}")
            action(case)

    return call


def annotation(case: Case) -> Any:
    return case.rng.choice(
        (lambda: labels_of(case), lambda: field_spec(case), lambda: None, lambda: Stated(case, dims="I"))
    )()


def many(kind: Kind, most: int) -> Kind:
    return lambda case: [kind(case) for _ in range(case.rng.randint(0, most))]


def listed(kind: Kind) -> Kind:
    return lambda case: case.keep([kind(case) for _ in range(case.rng.choice((1, 2, 3)))])


def self_tensor(case: Case) -> Any:
    """A tensor to call a method of."""
    return case.rng.choice((own_tensor, own_tensor, tensor_of))(case)
