"""Annotations of fields, in dlfield's own and in GT4Py's words, and the `FieldSpec` that each one means."""

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from types import FrameType, NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, Union, cast, get_args, get_origin

from dlfield._native import DimsError, FieldSpec, Signature, _as_optional
from dlfield.kernels.scalars import is_type_alias

__all__ = [
    "Field",
    "dims_of",
    "evaluated",
    "field_spec",
    "gt4py_dims",
    "gt4py_spec",
    "named_specs",
    "signature_from_annotations",
    "signature_from_stencil",
]

# By GT4Py's `AccessKind`; 0 is a field that the stencil does not use.
_ACCESS: dict[int, Literal["r", "w", "rw"]] = {0: "r", 1: "r", 2: "w", 3: "rw"}


class _FieldAnnotation:
    """The annotation of a parameter that is a field: `dl.Field[dtype, dims, access]`.

    It is `Annotated[Any, FieldSpec(dtype, dims, access=access)]`; write that for the other keywords of a `FieldSpec`.
    Type checkers read `dl.Field` as `Annotated`, whose first entry is a type. For them, put `Any` before the dtype.

    Parameters
    ----------
    dtype : str, type or dtype, or several
        The element type, or several, as for `FieldSpec`: `"float64"`, `np.float64`, `"float32 | float64"`.
    dims : str or sequence of str, optional
        Labels, as for `FieldSpec`. In a string with blanks, as `"I J K"`, they also name sizes: dimensions with the
        same name have the same size in all fields of a call. `"I+1 J K"` is one larger in I. Digits label data
        dimensions, whose sizes are free. Without this entry, any dimensions.
    access : {"r", "w", "rw"}, optional
        `"r"` (the default), `"w"` or `"rw"`.

    Raises
    ------
    TypeError
        No entries, or more than three.
    DTypeError, DimsError, ValueError
        As by `FieldSpec`; also a size that is not a label, or a label with a number added or subtracted.

    Example
    -------
    >>> import dlfield as dl
    >>> dl.Field["float64", "IJK", "w"]
    typing.Annotated[typing.Any, FieldSpec('float64', ('I', 'J', 'K'), access='w')]
    """

    def __getitem__(self, entries: Any) -> Any:
        parts = entries if isinstance(entries, tuple) else (entries,)
        if parts and parts[0] is Any:
            parts = parts[1:]
        if not 1 <= len(parts) <= 3:
            raise TypeError(
                f"Field: expected Field[dtype], Field[dtype, dims] or Field[dtype, dims, access], each also with Any "
                f"before the dtype, got {len(parts)} entries"
            )
        dims, shape = _labels_and_sizes(parts[1]) if len(parts) > 1 else (None, None)
        access: Any = parts[2] if len(parts) > 2 else "r"
        return Annotated[Any, FieldSpec(parts[0], dims, access=access, shape=shape)]

    def __call__(self, *args: Any, **keywords: Any) -> NoReturn:  # noqa: ARG002 (any call is wrong)
        raise TypeError("Field is an annotation, not a function; write Field[dtype, dims], or FieldSpec(dtype, dims)")

    def __repr__(self) -> str:
        return "dlfield.Field"


if TYPE_CHECKING:
    from typing import Annotated as Field
else:
    Field = _FieldAnnotation()


def _labels_and_sizes(dims: Any) -> tuple[Any, Any]:
    """Return the labels of `"I+1 J K"`, and their sizes by name; None for labels alone."""
    if not isinstance(dims, str) or re.search(r"[\s+-]", dims) is None:
        return dims, None
    found = [re.fullmatch(r"([^+-]+)([+-]\d+)?", word) for word in dims.split()]
    labels = [match[1] for match in found if match is not None]
    if len(labels) < len(found) or any(match[2] and match[1].isdecimal() for match in found if match is not None):
        raise DimsError(
            f"dims: expected labels separated by blanks, with a number added to or subtracted from those that are not "
            f'digits, such as "I+1 J 0", got {dims!r}'
        )
    sizes = (None if label.isdecimal() else word for label, word in zip(labels, dims.split(), strict=True))
    return tuple(labels), tuple(sizes)


def field_spec(annotation: Any) -> FieldSpec | None:
    """Return the specification that an annotation means, or None if it is not one of a field.

    Those of GT4Py are entries of a stencil's `field_info`, and `gtscript.Field[...]`. That one states no access, so it
    is taken to be read and written.

    Raises
    ------
    TypeError
        An annotation that allows a field or something else, other than None.
    """
    if isinstance(annotation, FieldSpec):
        return annotation
    if is_type_alias(annotation):
        return field_spec(annotation.__value__)
    origin = get_origin(annotation)
    if origin is Annotated:
        found = (field_spec(part) for part in (*annotation.__metadata__, annotation.__origin__))
        return next((spec for spec in found if spec is not None), None)
    if origin is Union or origin is UnionType:
        members = get_args(annotation)
        specs = [spec for spec in map(field_spec, members) if spec is not None]
        if specs and not (len(members) == 2 and NoneType in members):
            raise TypeError(f"expected one field, or a field or None, got {annotation!r}")
        return _as_optional(specs[0]) if specs else None
    return gt4py_spec(annotation) if _is_of_gt4py(annotation) else None


def _is_of_gt4py(annotation: Any) -> bool:
    """Return whether this is a `gtscript.Field[...]` or an entry of a `field_info`."""
    kind = type(annotation)
    return kind.__module__.startswith("gt4py.") and all(hasattr(annotation, name) for name in ("axes", "data_dims"))


def gt4py_spec(info: Any, layout: tuple[int, ...] | None = None, *, boundary: bool = True) -> FieldSpec:
    """Return the specification of a field of a stencil, without `boundary` for a caller that checks origins itself."""
    access, reads = int(getattr(info, "access", 3)), getattr(info, "boundary", None)
    return FieldSpec(
        info.dtype,
        gt4py_dims(info),
        access=_ACCESS[access],
        layout=layout,
        shape=(*(None for _ in info.axes), *info.data_dims),
        optional=access == 0,
        boundary=_boundary(info) if boundary and access and reads is not None else None,
    )


def _boundary(info: Any) -> dict[str, tuple[int, int]] | None:
    """Return how far a stencil reads outside of the domain, None if it does not; GT4Py's numbers may be negative."""
    pairs = ((label, pair) for label, pair in zip("IJK", info.boundary, strict=True) if label in info.axes)
    return {label: (max(lower, 0), max(upper, 0)) for label, (lower, upper) in pairs if max(lower, upper) > 0} or None


def gt4py_dims(info: Any) -> tuple[str, ...]:
    """Return the labels of a field of a stencil, in the stencil's order."""
    return (*map(str, info.axes), *map(str, range(len(info.data_dims))))


def dims_of(annotation: Any) -> Any:
    """Return the dims of an annotation of a field; anything else, which may be dims, as it is."""
    spec = field_spec(annotation)
    return annotation if spec is None else spec.dims


def evaluated(annotation: Any, function: Any, frame: FrameType | None) -> Any:
    """Return an annotation; one that is text, as `from __future__ import annotations` makes it, evaluated.

    Names are looked up where the function was defined, and in the local variables of `frame`, which uses the function:
    there a class or function defines the names that annotations of its own functions use.
    """
    if not isinstance(annotation, str):
        return annotation
    names = getattr(inspect.unwrap(function), "__globals__", None) or vars(sys.modules[function.__module__])
    return eval(annotation, names, None if frame is None else frame.f_locals)


def named_specs(annotated: Any, frame: FrameType | None) -> dict[str, FieldSpec]:
    """Return the specification of each field that a function, a class or a mapping annotates, by name.

    A class has the fields of its bases too, first.
    """
    if isinstance(annotated, type):
        found: dict[str, FieldSpec] = {}
        for base in reversed(annotated.__mro__):
            found |= _named_specs(inspect.get_annotations(base), base, frame)
        return found
    if isinstance(annotated, Mapping):
        return _named_specs(annotated, None, None)
    if callable(annotated):
        return _named_specs(inspect.get_annotations(annotated), annotated, frame)
    raise TypeError(
        f"annotations: expected a function, a class or a mapping of names to annotations, got {annotated!r}"
    )


def _named_specs(annotations: Mapping[str, Any], owner: Any, frame: FrameType | None) -> dict[str, FieldSpec]:
    found = {}
    for name, annotation in annotations.items():
        if name == "return":
            continue
        try:
            if owner is None and isinstance(annotation, str):
                raise TypeError(
                    f"{annotation!r} is text, which only a function or a class says how to evaluate; pass that, or "
                    f"typing.get_type_hints(..., include_extras=True)"
                )
            spec = field_spec(evaluated(annotation, owner, frame))
        except Exception as error:
            error.add_note(f"annotation of {name!r}")
            raise
        if spec is not None:
            found[name] = _as_optional(spec) if _defaults_to_none(owner, name) else spec
    return found


def _defaults_to_none(annotated: Any, name: str) -> bool:
    if not inspect.isroutine(annotated):
        return False
    return inspect.signature(cast(Callable[..., Any], annotated)).parameters[name].default is None


def signature_from_annotations(annotated: Any, device: Any, on_mismatch: Any, allow_overlap: Any) -> Signature:
    """Do the work of `Signature.from_annotations`."""
    specs = named_specs(annotated, sys._getframe(1))
    if not specs:
        raise TypeError(f"annotations: {annotated!r} has none of a field; annotate fields with dl.Field[dtype, dims]")
    return Signature(device=device, on_mismatch=on_mismatch, allow_overlap=allow_overlap, **specs)


def signature_from_stencil(stencil: Any, device: Any, on_mismatch: Any, allow_overlap: Any) -> Signature:
    """Do the work of `Signature.from_stencil`."""
    compiled = getattr(stencil, "__wrapped__", stencil)
    compiled = getattr(compiled, "implementation", compiled)
    compiled = getattr(compiled, "stencil_object", compiled)
    field_info, backend = getattr(compiled, "field_info", None), getattr(compiled, "backend", None)
    if not isinstance(field_info, Mapping) or not isinstance(backend, str):
        raise TypeError(
            f"stencil: expected a stencil of gtscript.stencil or gtscript.lazy_stencil, a frozen one, or one that "
            f"dlfield.gt4py.wrap returned, got {type(stencil).__name__}"
        )
    from dlfield.gt4py.registry import from_name, registered_layout

    # Not the alignment of the backend: a stencil runs on any, so another one must not be an error.
    specs = {
        name: gt4py_spec(info, layout=registered_layout(backend, gt4py_dims(info)).layout)
        for name, info in field_info.items()
    }
    device = from_name(backend)["device"] if device is None else device
    return Signature(device=device, on_mismatch=on_mismatch, allow_overlap=allow_overlap, **specs)
