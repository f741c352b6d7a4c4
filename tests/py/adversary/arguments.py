"""What each parameter gets, by its name, and what methods are called on."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

import dlfield as dl
import dlfield.storage
from adversary.producers import Hook, data_interface, fresh, labels_of, numpy_array, own_tensor, producer, writable
from adversary.values import Stated, device, dtype, entries_of, integer, number, stream, text, truth
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
    access = case.rng.choice(("r", "r", "w", "rw"))
    element = (
        dtype(case)
        if case.rng.random() < 0.2
        else case.rng.choice(("float64", None, "float64 | float32 | int32 | bool"))
    )
    return dl.FieldSpec(element, case.rng.choice((labels, labels, None)), access=access)


def signature(case: Case) -> Any:
    mismatch = case.rng.choice(("raise", "copy"))
    return dl.Signature(
        **{name: field_spec(case) for name in ("x", "y")}, on_mismatch=mismatch, allow_overlap=case.rng.random() < 0.3
    )


def bound(case: Case) -> Any:
    labelled = [dl.from_array(fresh(case), dims="IJK"[: len(case.shape)]) for _ in range(2)]
    second = numpy_array(case) if case.rng.random() < 0.5 else data_interface(case)
    first = numpy_array(case) if case.rng.random() < 0.5 else labelled[0]
    spec = dl.FieldSpec(None, "IJK"[: len(case.shape)], access=case.rng.choice(("r", "w")))
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
    data = np.ones(max(1, int(np.prod(case.shape))))
    # The memory stays: an address is the caller's promise.
    case.promised.append(data)
    return integer(case, data.ctypes.data)


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


def annotation(case: Case) -> Any:
    return case.rng.choice(
        (lambda: labels_of(case), lambda: field_spec(case), lambda: None, lambda: Stated(case, dims="I"))
    )()


def many(kind: Kind, most: int) -> Kind:
    return lambda case: [kind(case) for _ in range(case.rng.randint(0, most))]


def listed(kind: Kind) -> Kind:
    return lambda case: case.keep([kind(case) for _ in range(case.rng.choice((1, 2, 3)))])


_array = producer
_order = one_of("C", "F", "A")
_flag = truth
_copy = one_of(None, True, False)
_name = one_of("x", "y", "nothing")

# By `function.parameter`, or by the parameter's name alone. Functions with `*arguments` get a list for it, those with
# `**keywords` a dictionary.
KINDS: dict[str, Kind] = {
    "shape": shape,
    "dtype": dtype,
    "backend": one_of(None, "gtmc", "numpy", "gt:cpu_ifirst", "torch", "none such"),
    "dims": labels_of,
    "layout": layout,
    "alignment_size": one_of(8, 64, 24, None),
    "aligned_index": zeros,
    "padding": one_of("none", "row", None),
    "halo": halo,
    "origin": zeros,
    "device": device,
    "stream": stream,
    "buffer": lambda case: case.keep(bytearray(1 << 17)) if case.rng.random() < 0.5 else producer(case),
    "fill_value": operand,
    "data": _array,
    "obj": _array,
    "buf": _array,
    "address": address,
    "strides": lambda case: entries_of(case, np.empty(case.shape).strides),
    "owner": lambda case: case.keep(np.ones(3)),
    "readonly": _flag,
    "offset": one_of(0, 8),
    "copy": _copy,
    "writable": _flag,
    "annotation": annotation,
    "default": zeros,
    "target": one_of("numpy", "torch", "jax", "cupy"),
    "write": _flag,
    "name": _name,
    "register_preset.name": one_of(*(f"adversary:{number}" for number in range(8))),
    "gt4py.register.name": one_of(*(f"adversary:{number}" for number in range(8))),
    "gt4py.from_name.name": one_of("numpy", "gtmc", "none such"),
    "alignment": one_of(1, 8, 32),
    "threads": one_of(1, 2),
    "state": state,
    "SyncState.state": one_of(0, 1, 2),
    "tensor": own_tensor,
    "near": device,
    "field": own_tensor,
    "key": key,
    "memory": device,
    "spec": field_spec,
    "bound": bound,
    "export": lambda _case: dl.as_numpy,
    "export_readonly": lambda _case: dl.as_numpy,
    "number": one_of(0, 1),
    "value": operand,
    "other": device,
    "axis": axis,
    "axis1": axis,
    "axis2": axis,
    "axes": many(axis, 3),
    "args": many(lambda case: integer(case, 0), 3),
    "order": _order,
    "casting": one_of("unsafe", "same_kind", "no"),
    "force": _flag,
    "keywords": lambda case: {
        name: kind(case)
        for name, kind in {"out": writable, "keepdims": _flag, "where": _array}.items()
        if case.rng.random() < 0.2
    },
    "ndigits": one_of(None, 1),
    "format_spec": one_of("", ".3f"),
    "ufunc": lambda case: case.rng.choice((np.add, np.multiply, np.hypot, np.less, np.divmod, np.isfinite)),
    "method": one_of("__call__", "__call__", "reduce", "accumulate", "at", "outer", "reduceat"),
    "inputs": inputs,
    "kwargs": ufunc_keywords,
    "memo": lambda case: case.keep({}),
    "protocol": one_of(2, 4, 5),
    "flags": one_of(0, 0x11C, 0x1C),
    "max_version": lambda case: case.rng.choice(
        (lambda: None, lambda: (integer(case, 1), integer(case, 0)), lambda: (0, 8))
    )(),
    "dl_device": lambda case: case.rng.choice((lambda: None, lambda: (integer(case, 1), integer(case, 0))))(),
    "exc_type": one_of(None),
    "exc_value": one_of(None),
    "traceback": one_of(None),
    "access": one_of("r", "w", "rw", "x"),
    "optional": _flag,
    "FieldSpec.shape": lambda case: entries_of(case, [case.rng.choice((2, "I", None)) for _ in case.shape]),
    "on_mismatch": one_of("raise", "copy", "other"),
    "allow_overlap": _flag,
    "fields": fields,
    "Signature.fields": lambda case: {name: field_spec(case) for name in ("x", "y")},
    "annotated": kernel_function,
    "function": callback,
    "kernel.function": kernel_function,
    "path": path,
    "save_field.field": _array,
    "open_field.path": kept_path,
    "mode": one_of("r", "r+", "c"),
    "shared_name.tensor": own_tensor,
    "attach.name": one_of("none such", "1:2"),
    # `dlfield.storage`, `dlfield.xarray`, `dlfield.gt4py`.
    "device_data": _array,
    "sync_state": lambda case: case.rng.choice((None, dl.storage.SyncState())),
    "managed": one_of(None, "gt4py", "cuda"),
    "parameters": lambda case: {"halo": halo(case)} if case.rng.random() < 0.5 else {},
    "storage.copy": _flag,
    "array": _array,
    "data_array": _array,
    "coords": one_of(None),
    "dimensions": labels_of,
    "dimension_names": labels_of,
    "info": one_of(None),
    "device_type": device,
    # The example extension in Rust.
    "x": _array,
    "y": _array,
    "inp": _array,
    "numbers": _array,
    "out": writable,
    "_out": writable,
    "_inp": _array,
    "_array": writable,
    "then": callback,
    "factor": number,
    "rust_extension.kinds.fill.value": number,
    "rust_extension.kinds.several.reading": listed(producer),
    "rust_extension.kinds.several.writing": listed(writable),
    "arrays": listed(numpy_array),
    "stop": one_of(0, 5),
}

# Kinds of arrays, whose functions are called more often.
ARRAYS = {_array, writable, operand, inputs, fields, key, KINDS["rust_extension.kinds.several.reading"]}


def _self_tensor(case: Case) -> Any:
    from adversary.producers import tensor_of

    return case.rng.choice((own_tensor, own_tensor, tensor_of))(case)


def _description(case: Case) -> Any:
    from adversary.producers import description

    return description(case)


SELVES: dict[str | None, Kind] = {
    "Tensor": _self_tensor,
    "Descriptor": _description,
    "Device": lambda _case: dl.Device("cpu"),
    "Preset": lambda _case: dl.presets()["gtmc"],
    "Preflight": lambda case: dl.preflight(producer(case), "numpy"),
    "FieldSpec": field_spec,
    "Signature": signature,
    "Bound": bound,
}


def arguments(case: Case) -> tuple[list[Any], dict[str, Any]]:
    """Arguments for the case's function: the required ones, and others by chance."""
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    form = inspect.Parameter
    by_position = True
    for parameter in case.entry.parameters:
        kind = case.entry.kind(parameter)
        if parameter.form is form.VAR_POSITIONAL:
            positional += kind(case)
            by_position = False
        elif parameter.form is form.VAR_KEYWORD:
            keywords |= kind(case)
        elif not parameter.required and case.rng.random() > 0.3:
            by_position = by_position and parameter.form is form.KEYWORD_ONLY
        elif parameter.form is form.POSITIONAL_ONLY or (by_position and parameter.form is form.POSITIONAL_OR_KEYWORD):
            positional.append(kind(case))
        else:
            keywords[parameter.name] = kind(case)
    return positional, keywords
