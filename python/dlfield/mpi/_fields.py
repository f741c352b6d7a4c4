"""The arguments of a halo exchange: specification, halos and fields, checked on this process alone."""

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dlfield._native import DeviceError, DimsError, LayoutError, Tensor, _tensor
from dlfield.interop.labels import by_label, halo_widths, labels_of
from dlfield.mpi._geometry import Axis, FieldShape, Widths

# The processor reads and writes this memory.
_HOST = ("cpu", "cuda_host", "cuda_managed")


class Specification(NamedTuple):
    """The exchanged dimensions: labels, compute points of this process, widths of the halo, edges that wrap."""

    dims: tuple[str, ...]
    sizes: tuple[int, ...]
    widths: Widths
    periodic: tuple[bool, ...]


class Field(NamedTuple):
    """What an exchange knows of a field; fields of which this is equal have the same messages."""

    dtype: np.dtype[Any]
    dims: tuple[str, ...]
    layout: tuple[int, ...]
    halo: Widths
    shape: FieldShape

    def describe(self, dims: Sequence[str]) -> str:
        """Return what has to be the same on all processes. The extents of exchanged dimensions may differ."""
        sizes = dict(zip(self.dims, self.shape.shape, strict=True))
        extents = [f"{label} {sizes[label]}" for label in self.dims if label not in dims]
        staggered = [label for label, axis in zip(dims, self.shape.axes, strict=True) if axis and axis.staggered]
        return (
            f"{self.dtype.name}, dims {' '.join(self.dims)}, layout {self.layout}, halo {self.halo}"
            + "".join(f", {extent} points" for extent in extents)
            + "".join(f", staggered in {label}" for label in staggered)
        )


def specification(
    spec: Any, dims: Sequence[str], halo: Any, periodic: Any, processes: Sequence[int], wraps: Sequence[bool]
) -> Specification:
    """Check the arguments of `HaloExchange`, for a communicator of this shape with these periods."""
    if not isinstance(dims, Sequence):
        raise DimsError(f"dims: expected one label for each dimension of the communicator, got {dims!r}")
    labels = labels_of(dims)
    if len(labels) != len(processes):
        raise DimsError(
            f"dims: {labels} has {len(labels)} labels; the communicator has {len(processes)} dimensions, one for each"
        )
    stated = getattr(spec, "dims", None)
    if stated is not None:
        if missing := [label for label in labels if label not in stated]:
            raise DimsError(
                f"spec: expected a field with the exchanged dims {labels}, got {tuple(stated)} without {missing}"
            )
        axes = [tuple(stated).index(label) for label in labels]
        extents = [int(spec.shape[axis]) for axis in axes]
        own = [spec.halo[axis] for axis in axes] if hasattr(spec, "halo") else None
        found = own if halo is None else by_label("halo", halo, labels, own or (0,) * len(labels))
    else:
        try:
            extents, found = [operator.index(size) for size in spec], halo
        except TypeError:
            raise TypeError(
                f"spec: expected a field with dims, or its extents along {labels}, got {type(spec).__name__}"
            ) from None
        if len(extents) != len(labels):
            raise LayoutError(f"spec: expected one extent for each of {labels}, got {tuple(extents)}")
    if found is None:
        raise LayoutError(f"halo: missing; needed where `spec` has none. Found for `spec` is {type(spec).__name__}")
    widths = halo_widths(found, labels)
    if labels and not any(map(any, widths)):
        names = ", ".join(labels)
        what = f"spec: it has no halo along {names}" if halo is None else f"halo: {halo!r} along {names}"
        raise LayoutError(f"{what}, so nothing would be exchanged; pass the width, as in halo=1")
    sizes = tuple(extent - lower - upper for extent, (lower, upper) in zip(extents, widths, strict=True))
    around = (wraps if periodic is None else _periods(periodic, labels)) if labels else ()
    for label, extent, size, width, count, wrapped in zip(
        labels, extents, sizes, widths, processes, around, strict=True
    ):
        # Without another process and without wrapping, nothing comes from this direction.
        if size < (max(width) if count > 1 or wrapped else 0):
            raise LayoutError(
                f"spec: {extent} points along {label} with the halo {width} leave {size} to compute; the halo of a "
                f"neighbour needs at least {max(width)} of one process"
            )
    return Specification(labels, sizes, widths, tuple(bool(wrapped) for wrapped in around))


def narrower(halo: Any, spec: Specification) -> Widths:
    """Return the halo of one call, which is at most that of the specification."""
    widths = halo_widths(halo, spec.dims)
    for label, found, most in zip(spec.dims, widths, spec.widths, strict=True):
        if found[0] > most[0] or found[1] > most[1]:
            raise LayoutError(f"halo: {found} along {label}; the exchange was built for {most} at most")
    return widths


def tensor(field: Any, number: int) -> Tensor:
    """Return an argument as a tensor on the same memory."""
    found = field if isinstance(field, Tensor) else _tensor(field, f"field {number}", copy=False)
    if found.device.type not in _HOST:
        raise DeviceError(f"field {number}: on {found.device}; MPI takes its halo from host memory, {', '.join(_HOST)}")
    if found.readonly:
        raise ValueError(f"field {number}: read-only, and an exchange writes its halo")
    return found


def described(field: Tensor, number: int, spec: Specification, widths: Widths) -> Field:
    """Check a field against the specification, for an exchange of these widths."""
    dims, shape, stated = field.dims, field.shape, field.halo
    if not any(label in dims for label in spec.dims):
        raise DimsError(f"field {number}: its dims {dims} have none of the exchanged dims {spec.dims}")
    places = [dims.index(label) if label in dims else None for label in spec.dims]
    # A halo that nobody stated is 0, and then it is that of the specification.
    unstated = not any(any(stated[axis]) for axis in places if axis is not None)
    axes: list[Axis | None] = []
    for label, axis, size, most, width in zip(spec.dims, places, spec.sizes, spec.widths, widths, strict=True):
        if axis is None:
            axes.append(None)
            continue
        lower, upper = most if unstated else stated[axis]
        staggered = shape[axis] - lower - upper - size
        if staggered not in (0, 1):
            raise LayoutError(
                f"field {number}: expected {size + lower + upper} points along {label} with the halo {(lower, upper)}, "
                f"or {size + lower + upper + 1} if it is staggered, got {shape[axis]}"
            )
        if lower < width[0] or upper < width[1]:
            raise LayoutError(f"field {number}: its halo {(lower, upper)} along {label} is less than {width} exchanged")
        axes.append(Axis(axis, lower, shape[axis] - upper, staggered))
    return Field(field.dtype, dims, field.layout, stated, FieldShape(shape, tuple(axes)))


def yes_or_no(value: Any, name: str) -> bool:
    """Return an argument that is a bool."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}: expected a bool, got {value!r}")
    return bool(value)


def _periods(periodic: Any, labels: Sequence[str]) -> Sequence[bool]:
    found = by_label("periodic", periodic, labels, (False,) * len(labels))
    each = found if isinstance(found, Sequence) else [found] * len(labels)
    if len(each) != len(labels) or not all(isinstance(wrapped, bool | np.bool_) for wrapped in each):
        raise LayoutError(
            f"periodic: expected a bool, or one for each of the dims {' '.join(labels)}, got {periodic!r}"
        )
    return [bool(wrapped) for wrapped in each]
