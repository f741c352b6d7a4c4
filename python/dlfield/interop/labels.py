"""Arguments by label in the parts of the package that are written in Python."""

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from dlfield._native import DimsError, LayoutError, Tensor, get_dims

__all__ = ["by_label", "halo_widths", "labels_of", "renamed"]


def labels_of(dims: str | Sequence[Any]) -> tuple[str, ...]:
    """Return labels from a text or a sequence, by the rule of every `dims=`: "IJK", "lat lon", "lat".

    Example
    -------
    >>> labels_of("IJ"), labels_of("lat lon"), labels_of(["lat"])
    (('I', 'J'), ('lat', 'lon'), ('lat',))
    """
    return get_dims(None, dims if isinstance(dims, str) else tuple(dims)) or ()


def by_label(argument: str, value: Any, dims: Sequence[str], others: Sequence[Any]) -> Any:
    """Return a mapping by label as a list, with `others` for dimensions that it leaves out; other values as they are.

    Example
    -------
    >>> by_label("halo", {"J": (1, 2)}, ("I", "J"), (0, 0))
    [0, (1, 2)]
    """
    if not isinstance(value, Mapping):
        return value
    for label in value:
        if label not in dims:
            raise DimsError(f"{argument}: expected labels of {', '.join(dims)}, got {label!r}")
    return [value.get(label, other) for label, other in zip(dims, others, strict=True)]


def halo_widths(halo: Any, dims: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Return a halo as pairs: from one number for all, or for each of the dims a number or a pair, also by label.

    Example
    -------
    >>> halo_widths({"J": (1, 2)}, ("I", "J")), halo_widths(1, ("I",))
    (((0, 0), (1, 2)), ((1, 1),))
    """
    entries = by_label("halo", halo, dims, (0,) * len(dims))
    try:
        each = list(entries) if isinstance(entries, Sequence) else [operator.index(entries)] * len(dims)
        pairs = [tuple(map(operator.index, width if isinstance(width, Sequence) else (width, width))) for width in each]
    except TypeError:
        pairs = [()]
    if len(pairs) != len(dims) or any(len(pair) != 2 or min(pair) < 0 for pair in pairs):
        raise LayoutError(
            f"halo: expected a number of points, or for each of the dims {' '.join(dims)} a number or (lower, upper), "
            f"at least 0, got {halo!r}"
        )
    return tuple((pair[0], pair[1]) for pair in pairs)


def renamed(field: Tensor, labels: Mapping[str, str] | None, names: Mapping[str, str] | None) -> Tensor:
    """Do the work of `Tensor.rename`."""
    if labels is not None and names is not None:
        raise TypeError(f"labels: expected a mapping or keywords, got both, {labels!r} and {names!r}")
    labels = names if labels is None else labels
    if not isinstance(labels, Mapping):
        raise TypeError(f"labels: expected a mapping of old to new labels, got {labels!r}; with_dims takes all labels")
    return field.with_dims(by_label("labels", labels, field.dims, field.dims))
