"""What each parameter gets, by its name, and what methods are called on."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

import dlfield as dl
import dlfield.storage
from adversary.classes import labels_of, numpy_array
from adversary.kinds import (
    Kind,
    address,
    annotation,
    axis,
    bound,
    callback,
    callback_beside_views,
    field_spec,
    fields,
    halo,
    inputs,
    kept_path,
    kernel_function,
    key,
    layout,
    listed,
    many,
    one_of,
    operand,
    path,
    self_tensor,
    shape,
    signature,
    state,
    true_shape,
    true_strides,
    ufunc_keywords,
    zeros,
)
from adversary.producers import description, own_tensor, producer, writable
from adversary.stated import device, dtype, stream
from adversary.values import entries_of, integer, number, truth

if TYPE_CHECKING:
    from adversary.case import Case

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
    "boundary": halo,
    "origin": zeros,
    "device": device,
    "stream": stream,
    "buffer": lambda case: case.keep(bytearray(1 << 17)) if case.rng.random() < 0.5 else producer(case),
    "fill_value": operand,
    "data": producer,
    "obj": producer,
    "_tensor.argument": one_of("obj", "field"),
    "buf": producer,
    # How far the memory reaches is the caller's promise.
    "address": address,
    "from_pointer.shape": true_shape,
    "from_pointer.strides": true_strides,
    "strides": lambda case: entries_of(case, np.empty(case.shape).strides),
    "owner": lambda case: case.keep(np.ones(3)),
    "readonly": truth,
    "offset": one_of(0, 8),
    "copy": one_of(None, True, False),
    "writable": truth,
    "annotation": annotation,
    "default": zeros,
    "target": one_of("numpy", "torch", "jax", "cupy"),
    "write": truth,
    "name": one_of("x", "y", "nothing"),
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
    "view": operand,
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
    "order": one_of("C", "F", "A"),
    "casting": one_of("unsafe", "same_kind", "no"),
    "force": truth,
    "keywords": lambda case: {
        name: kind(case)
        for name, kind in {"out": writable, "keepdims": truth, "where": producer}.items()
        if case.rng.random() < 0.2
    },
    "ndigits": one_of(None, 1),
    "format_spec": one_of("", ".3f"),
    "ufunc": lambda case: case.rng.choice((np.add, np.multiply, np.hypot, np.less, np.divmod, np.isfinite)),
    "method": one_of("__call__", "__call__", "reduce", "accumulate", "at", "outer", "reduceat"),
    "inputs": inputs,
    "kwargs": ufunc_keywords,
    "type": one_of(None, "float32"),
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
    "optional": truth,
    "FieldSpec.shape": lambda case: entries_of(case, [case.rng.choice((2, "I", None)) for _ in case.shape]),
    "on_mismatch": one_of("raise", "copy", "other"),
    "allow_overlap": truth,
    "fields": fields,
    "Signature.fields": lambda case: {name: field_spec(case) for name in ("x", "y")},
    "annotated": kernel_function,
    "function": callback,
    "kernel.function": kernel_function,
    "path": path,
    "save_field.field": producer,
    "open_field.path": kept_path,
    "mode": one_of("r", "r+", "c"),
    "pad.mode": one_of("edge", "wrap", "empty", "constant"),
    "Tensor.fill_halo.mode": one_of("edge", "wrap", "constant"),
    "constant_values": number,
    "labels": one_of({"I": "K"}, {"I": 3, "none such": "J"}, {"I": "J", "J": "I"}, None),
    "names": one_of({}, {"I": "K"}, {"none such": "J"}, {"I": object()}),
    "on": truth,
    "shared_name.tensor": own_tensor,
    "attach.name": one_of("none such", "1:2"),
    "like": own_tensor,
    "file": one_of(-1, 1 << 20),
    "uuid": one_of(bytes(16), b""),
    "handle": one_of(bytes(64), b""),
    "nbytes": one_of(0, 96, -1),
    # `dlfield.storage`, `dlfield.xarray`, `dlfield.gt4py`.
    "device_data": producer,
    "sync_state": lambda case: case.rng.choice((None, dl.storage.SyncState())),
    "managed": one_of(None, "gt4py", "cuda"),
    "parameters": lambda case: {"halo": halo(case)} if case.rng.random() < 0.5 else {},
    "storage.copy": truth,
    "array": producer,
    "data_array": producer,
    "coords": one_of(None),
    "dimensions": labels_of,
    "dimension_names": labels_of,
    "info": one_of(None),
    "device_type": device,
    # The example extension in Rust.
    "x": producer,
    "y": producer,
    "inp": producer,
    "numbers": producer,
    "out": writable,
    "_out": writable,
    "_inp": producer,
    "_array": writable,
    "then": callback_beside_views,
    "factor": number,
    "rust_extension.kinds.before_labels.first": producer,
    "rust_extension.kinds.before_labels._labelled": producer,
    "rust_extension.kinds.fill.value": number,
    "rust_extension.kinds.flags_before.value": number,
    "rust_extension.kinds.any_flags_before.value": number,
    "rust_extension.kinds.several.reading": listed(producer),
    "rust_extension.kinds.several.writing": listed(writable),
    "arrays": listed(numpy_array),
    "stop": one_of(0, 5),
}

# Kinds of arrays, whose functions are called more often.
ARRAYS = {producer, writable, operand, inputs, fields, key, KINDS["rust_extension.kinds.several.reading"]}


SELVES: dict[str | None, Kind] = {
    "Tensor": self_tensor,
    "Descriptor": description,
    "Device": lambda _case: dl.Device("cpu"),
    "Preset": lambda _case: dl.presets()["gtmc"],
    "Preflight": lambda case: dl.preflight(producer(case), "numpy"),
    "FieldSpec": field_spec,
    "Signature": signature,
    "BoundCall": bound,
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
