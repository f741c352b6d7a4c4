"""The signature of a wrapped stencil, the translation of the caller's labels to its own, and its errors."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dlfield import _native
from dlfield._native import DimsError, LayoutError
from dlfield.kernels.annotations import gt4py_dims, gt4py_spec

__all__ = ["Options", "StencilSignature"]


@dataclass(frozen=True, slots=True)
class Options:
    """The keyword arguments of `wrap`."""

    on_mismatch: Literal["raise", "copy"]
    allow_overlap: bool
    labels: Mapping[str, str]


class MissingFieldError(TypeError, ValueError):
    """A field of a call is missing: the TypeError of any missing argument, and the ValueError that GT4Py documents."""


class StencilSignature:
    """What a stencil takes: `signature` for arrays with its labels, and `translated` for arrays with others.

    `layouts` has the fast layout of each field that the stencil accesses; others are not in the signature.
    """

    def __init__(
        self,
        stencil: str,
        field_info: Mapping[str, Any],
        layouts: Mapping[str, tuple[int, ...]],
        device: str,
        options: Options,
    ) -> None:
        self._stencil, self._field_info, self._layouts = stencil, field_info, layouts
        self._device, self._labels = device, options.labels
        self.dims: dict[str, tuple[str, ...]] = {name: gt4py_dims(info) for name, info in field_info.items()}
        in_place = options.on_mismatch == "raise"
        specs = {
            # If nothing is copied, `Call` warns of a slow layout, once.
            name: gt4py_spec(field_info[name], None if in_place else layout, boundary=False)
            for name, layout in layouts.items()
        }
        self.signature: _native.Signature = _native.Signature(
            device=device, on_mismatch=options.on_mismatch, allow_overlap=options.allow_overlap, **specs
        )

    def translated(self, name: str, value: Any) -> Any:
        """Return an array with the stencil's labels in place of its own, by the option `labels`.

        Its `__gt_origin__` is in the order of the stencil's labels, so labels are translated before it is read.

        Raises
        ------
        DimsError
            The option gives two dimensions of the array the same label.
        """
        labels = self._labels
        found = None if not labels or value is None or type(value) is np.ndarray else _native.get_dims(value)
        if found is None or labels.keys().isdisjoint(found):
            return value
        dims = tuple(labels.get(label, label) for label in found)
        if len(set(dims)) < len(dims):
            raise DimsError(
                f'field "{name}": dims: expected each label once, got {dims} from {found} by labels={dict(labels)}'
            )
        try:
            return _native._relabelled(value, dims, self._device)
        except _native.Error:
            # `bind` names the field in the same error.
            return value

    def explain(self, fields: Mapping[str, Any], error: Exception) -> None:
        """Raise a better error than that of `bind`, which knows neither the stencil nor the options of `wrap`.

        Where GT4Py would raise an error for the same reason, the message contains GT4Py's.
        """
        missing = [name for name in self._layouts if fields.get(name) is None]
        if missing:
            raise MissingFieldError(
                f'stencil "{self._stencil}": field "{missing[0]}" is missing; pass an array, as the stencil uses it'
            ) from None
        if not isinstance(error, DimsError | LayoutError):
            return
        for name in self._layouts:
            if str(error).startswith(f'field "{name}": '):
                try:
                    found = _native.describe(fields[name])
                except Exception:
                    # Some arrays can be described only once, as raw DLPack capsules: the error of `bind` has to do.
                    return
                theirs = _message_of_gt4py(name, self._field_info[name], found.shape, found.dims)
                raise type(error)(f"{error}{self._hint(name, found.dims)}{theirs}") from None

    def _hint(self, name: str, found: tuple[str, ...] | None) -> str:
        """Return how to translate labels that the stencil does not have. Names pair them, never positions."""
        expected = self.dims[name]
        known = {*"IJK", *expected}
        if found is None or len(found) != len(expected) or known.issuperset(found):
            return ""
        is_by_case = {label.upper() for label in found} == set(expected)
        unknown = {label: repr(label.upper()) if is_by_case else "..." for label in found if label not in known}
        pairs = {label: repr(given) for label, given in self._labels.items()} | unknown
        text = ", ".join(f"{label!r}: {given}" for label, given in pairs.items())
        blanks = "" if is_by_case else f", where each ... is one of {expected}"
        return f"; translate other labels with wrap(..., labels={{{text}}}){blanks}"


def _message_of_gt4py(name: str, info: Any, shape: tuple[int, ...], dims: tuple[str, ...] | None) -> str:
    """Return GT4Py's message for a field of other dimensions or data dimensions, which callers may look for."""
    axes, data_dims = info.axes, info.data_dims
    if dims is not None and sorted(dims) != sorted(gt4py_dims(info)):
        return f" (Storage for '{name}' has dimensions '{dims}' but the API signature expects '[{', '.join(axes)}]')"
    if len(shape) != info.ndim:
        expected = f"{info.ndim} ('{axes}[{data_dims}]')"
        return f" (Storage for '{name}' has {len(shape)} dimensions but the API signature expects {expected})"
    if dims is None and shape[len(axes) :] != data_dims:
        return f" (Field '{name}' expects data dimensions {data_dims} but got {shape[len(axes) :]})"
    return ""
