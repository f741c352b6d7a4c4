"""Arguments by label in the parts of the package that are written in Python."""

from collections.abc import Mapping, Sequence
from typing import Any

from dlfield._native import DimsError, get_dims

__all__ = ["by_label", "labels_of"]


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
