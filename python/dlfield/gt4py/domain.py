"""Origin and domain of a stencil call: the rules of `gt4py.cartesian`, with errors that name the field.

Both are checked for each dimension separately. GT4Py compares whole tuples: it accepts an origin that is too small in
one dimension if it is larger than necessary in another, and an empty domain if one of its sizes is not zero.
"""

import itertools
import operator
from collections.abc import Iterable, Mapping
from typing import Any, cast

from dlfield._native import LayoutError

Ints = tuple[int, ...]
Halo = tuple[tuple[int, int], ...]


def field_origins(field_info: Mapping[str, Any], array_origins: Mapping[str, Ints], origin: Any) -> dict[str, Ints]:
    """Return the origin of each field in the order of its dimensions, after those that `origin` has for other names.

    GT4Py passes the latter on too, "_all_" among them, and they appear in `exec_info`.

    Parameters
    ----------
    field_info
        The stencil's `field_info`: a description of each field, by name.
    array_origins
        The origin of each field's array, zeros if it has none.
    origin
        The caller's argument: None, an integer or a sequence for all fields, or a dictionary by name with "_all_" for
        the fields that it does not name.

    Raises
    ------
    LayoutError
        `origin` has another type, or the wrong length for a field.
    """
    given = _by_name(origin)
    common = given.get("_all_")
    own = {name: _origin_of(name, info, given.get(name), common, array_origins) for name, info in field_info.items()}
    return {**given, **own}


def largest_domain(
    field_info: Mapping[str, Any],
    shapes: Mapping[str, Ints],
    origins: Mapping[str, Ints],
    halos: Mapping[str, Halo | None],
) -> Ints:
    """Return the largest sizes in I, J and K that fit every field in `shapes`, 1 if no field has the dimension.

    The upper halo of a field that states one is outside of the domain.

    Raises
    ------
    LayoutError
        A field is too small for its origin and the points that the stencil reads beyond the domain.
    """
    largest: list[int | None] = [None, None, None]
    for name, shape in shapes.items():
        for axis, room in _room(field_info[name], shape, origins[name], halos[name]):
            if room < 0:
                halo = halos[name]
                raise LayoutError(
                    f'field "{name}": shape: {shape} is too small for the origin {origins[name]} and the points that '
                    f"the stencil reads beyond the domain{f' or the halo {halo}' if halo else ''}; pass a larger "
                    f"array or a smaller origin"
                )
            found = largest[axis]
            largest[axis] = room if found is None else min(found, room)
    return tuple(1 if size is None else size for size in largest)


def given_domain(domain: Any) -> Ints:
    """Return the caller's `domain` as three sizes.

    Raises
    ------
    LayoutError
        `domain` is not a sequence of three integers of 0 or more.
    """
    sizes = _integers("domain", domain)
    if len(sizes) != 3 or min(sizes) < 0:
        raise LayoutError(f"domain: expected three sizes of 0 or more, for I, J and K, got {domain!r}")
    return sizes


def check(
    field_info: Mapping[str, Any],
    domain_info: Any,
    shapes: Mapping[str, Ints],
    origins: Mapping[str, Ints],
    domain: Ints,
) -> None:
    """Check that the stencil stays inside every field in `shapes`.

    Raises
    ------
    LayoutError
        The domain is empty, too large for a field or has too few levels, or an origin is too small.
    """
    if 0 in domain:
        raise LayoutError(f"domain: expected 1 or more in each of I, J and K, got {domain}")
    if domain[2] < domain_info.min_sequential_axis_size:
        raise LayoutError(
            f"domain: {domain} has {domain[2]} levels, the stencil needs {domain_info.min_sequential_axis_size} or more"
        )
    for name, shape in shapes.items():
        info, origin = field_info[name], origins[name]
        least = tuple(lower for _, (lower, _) in _boundaries(info))
        if any(found < lower for found, lower in zip(origin, least, strict=False)):
            raise LayoutError(
                f'field "{name}": origin: expected {least} or more, as the stencil reads so far below, got {origin}'
            )
        if any(origin[len(least) :]):
            raise LayoutError(f'field "{name}": origin: expected 0 in data dimensions, got {origin}')
        for axis, room in _room(info, shape, origin):
            if room < domain[axis]:
                raise LayoutError(
                    f'field "{name}": shape: {shape} with the origin {origin} has room for {room} points in '
                    f"{'IJK'[axis]}, the domain is {domain}; pass a smaller domain or origin, or a larger array"
                )


def differing_origins(
    field_info: Mapping[str, Any], shapes: Mapping[str, Ints], origins: Mapping[str, Ints]
) -> tuple[str, str, Ints] | None:
    """Return two fields of the same extents whose origins differ, and the larger origin in I, J and K; None if none do.

    Extents and origins are compared along those of I, J and K that both fields have. A stencil pairs the points at the
    origins, but two such fields mostly cover the same points, one of them without its halo.
    """
    grids = {
        name: {axis: (shape[at], origins[name][at]) for at, (axis, _) in enumerate(_boundaries(field_info[name]))}
        for name, shape in shapes.items()
    }
    for (one, grid), (other, second) in itertools.combinations(grids.items(), 2):
        shared = grid.keys() & second.keys()
        if all(grid[axis][0] == second[axis][0] for axis in shared) and any(
            grid[axis][1] != second[axis][1] for axis in shared
        ):
            firsts = ([each[axis][1] for each in (grid, second) if axis in each] for axis in range(3))
            return one, other, tuple(max(found, default=0) for found in firsts)
    return None


def _by_name(origin: Any) -> dict[str, Ints]:
    if origin is None:
        return {}
    if isinstance(origin, Mapping):
        return {str(name): _integers(f"origin of {name!r}", value) for name, value in origin.items()}
    if isinstance(origin, Iterable):
        return {"_all_": _integers("origin", origin)}
    return {"_all_": _integers("origin", (origin,)) * 3}


def _integers(what: str, values: Any) -> Ints:
    try:
        return tuple(operator.index(value) for value in values)
    except TypeError:
        raise LayoutError(f"{what}: expected a sequence of integers, got {values!r}") from None


def _origin_of(name: str, info: Any, own: Ints | None, common: Ints | None, array_origins: Mapping[str, Ints]) -> Ints:
    """Return the origin that was given for the field, else for all fields, else that of its array."""
    data = (0,) * len(info.data_dims)
    if own is not None:
        if len(own) not in (info.ndim, info.domain_ndim):
            raise LayoutError(f'field "{name}": origin: expected one number for each of {info.axes}, got {own}')
        return own if len(own) == info.ndim else own + data
    if common is not None:
        grid = tuple(value for value, present in zip(common, info.domain_mask, strict=False) if present)
        if len(grid) != info.domain_ndim:
            raise LayoutError(
                f'origin: expected three numbers, for I, J and K, got {common}; field "{name}" has {info.axes}'
            )
        return grid + data
    return array_origins.get(name, (0,) * info.ndim)


def _boundaries(info: Any) -> list[tuple[int, tuple[int, int]]]:
    """Return the number of each of the field's I, J and K, and how far the stencil reads below and above a point."""
    return [
        (axis, cast(tuple[int, int], pair))
        for axis, (pair, present) in enumerate(zip(info.boundary, info.domain_mask, strict=True))
        if present
    ]


def _room(info: Any, shape: Ints, origin: Ints, halo: Halo | None = None) -> list[tuple[int, int]]:
    """Return the number of each of the field's I, J and K, and the largest size of a domain along it."""
    # Negative if the stencil reads only below a point: then the domain may reach beyond the end of the field.
    above = [upper for _, (_, upper) in _boundaries(info)]
    if halo is not None:
        above = [max(upper, outside) for upper, (_, outside) in zip(above, halo, strict=False)]
    axes = (axis for axis, _ in _boundaries(info))
    return [
        (axis, size - first - beyond) for axis, size, first, beyond in zip(axes, shape, origin, above, strict=False)
    ]
