"""The signatures of a wrapped stencil: its fields, with its own labels or with those of the caller."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dlfield import _native
from dlfield._native import DimsError, LayoutError
from dlfield.annotations import gt4py_dims, gt4py_spec

__all__ = ["Options", "Signatures"]

# Largest number of combinations of the caller's labels whose signatures are cached.
_CACHE_SIZE = 64


@dataclass(frozen=True, slots=True)
class Options:
    """The keyword arguments of `wrap`."""

    on_mismatch: Literal["raise", "copy"]
    allow_overlap: bool
    labels: Mapping[str, str]


class MissingFieldError(TypeError, ValueError):
    """A call lacks a field: a TypeError as for any missing argument, and the ValueError that GT4Py documents."""


class Signatures:
    """The `Signature` for arrays with the stencil's labels, `of_stencil`, and those for arrays with other labels.

    `layouts` has the fast layout of each field that the stencil accesses; others are not in the signatures.
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
        self._device, self._options = device, options
        self._dims = {name: gt4py_dims(info) for name, info in field_info.items()}
        self.of_stencil = self._with_labels(self._dims)
        self._others: dict[tuple[tuple[str, ...], ...], _native.Signature] = {}

    def of_labels(self, fields: Mapping[str, Any]) -> _native.Signature:
        """Return the signature with the labels of these arrays in place of the stencil's, by the option `labels`."""
        dims = {name: self.labels_of(name, fields.get(name)) for name in self._layouts}
        key = tuple(dims.values())
        found = self._others.get(key)
        if found is None:
            if len(self._others) >= _CACHE_SIZE:
                self._others.clear()
            found = self._others[key] = self._with_labels(dims)
        return found

    def labels_of(self, name: str, value: Any) -> tuple[str, ...]:
        """Return the labels of an array in the stencil's order; the stencil's own for those that it lacks.

        Raises
        ------
        DimsError
            The option `labels` gives two dimensions of the array the same label.
        """
        labels = self._options.labels
        found = None if not labels or value is None or type(value) is np.ndarray else _native.get_dims(value)
        if found is None or labels.keys().isdisjoint(found):
            return self._dims[name]
        given = {labels.get(label, label): label for label in found}
        if len(given) < len(found):
            raise DimsError(
                f'field "{name}": dims: {found}; labels={dict(labels)} gives two of them the same label, allowed is '
                f"each label once"
            )
        return tuple(given.get(label, label) for label in self._dims[name])

    def explain(self, fields: Mapping[str, Any], error: Exception) -> None:
        """Raise a better error than that of `bind`, which knows neither the stencil nor the options of `wrap`.

        Where GT4Py would raise an error for the same reason, the message contains GT4Py's.
        """
        missing = [name for name in self._layouts if fields.get(name) is None]
        if missing:
            raise MissingFieldError(
                f'stencil "{self._stencil}": field "{missing[0]}" is missing; allowed is an array, as the stencil '
                f"uses it"
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
        """Return how to translate labels that the stencil does not have."""
        wanted = self._dims[name]
        if found is None or len(found) != len(wanted) or set(found) <= {*"IJK", *wanted}:
            return ""
        same = {label.upper() for label in found} == set(wanted)
        labels = {label: label.upper() for label in found} if same else dict(zip(found, wanted, strict=True))
        return f"; translate other labels with wrap(..., labels={labels})"

    def _with_labels(self, dims: Mapping[str, tuple[str, ...]]) -> _native.Signature:
        in_place = self._options.on_mismatch == "raise"
        specs = {
            # If nothing is copied, `Call` warns of a slow layout, once.
            name: gt4py_spec(self._field_info[name], dims[name], None if in_place else layout)
            for name, layout in self._layouts.items()
        }
        return _native.Signature(
            device=self._device,
            on_mismatch=self._options.on_mismatch,
            allow_overlap=self._options.allow_overlap,
            **specs,
        )


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
