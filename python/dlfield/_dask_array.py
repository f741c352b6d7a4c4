"""`dlfield.dask.Array`, and what Dask has to know of tensors. Importing this module tells it."""

from collections.abc import Callable, Sequence
from operator import index
from typing import TYPE_CHECKING, Any

from dlfield._dask_blocks import Allocation, concatenate, size_of
from dlfield._native import Tensor
from dlfield.frameworks import imported

if TYPE_CHECKING:
    import dask.array as da
    from dask.array.dispatch import concatenate_lookup
    from dask.sizeof import sizeof
else:
    da = imported("dask.array", "dlfield.dask")
    from dask.array.dispatch import concatenate_lookup
    from dask.sizeof import sizeof

__all__ = ["Array", "Halo", "da", "labelled", "pairs"]

Halo = tuple[tuple[int, int], ...]


class Array(da.Array):  # type: ignore[misc, unused-ignore]
    """A Dask array of tensors that knows the halo of the whole field.

    Everything else is `dask.array.Array`. Results of Dask's own functions are of that class, and have no `halo`.

    Attributes
    ----------
    halo
        For each dimension the lower and upper ghost widths, which are part of the shape, as those of `dlfield.Tensor`.
    """

    halo: Halo
    _allocation: Allocation

    def __dask_postpersist__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        rebuild, arguments = super().__dask_postpersist__()
        return _persisted, (rebuild, arguments, self.halo, self._allocation)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (*super().__reduce__(), self.halo, self._allocation)


def _persisted(graph: Any, rebuild: Callable[..., Any], arguments: Any, *stated: Any, **keywords: Any) -> Array:
    return labelled(rebuild(graph, *arguments, **keywords), *stated)


def _unpickled(make: Callable[..., Any], arguments: Any, *stated: Any) -> Array:
    return labelled(make(*arguments), *stated)


def labelled(array: Any, halo: Halo, allocation: Allocation) -> Array:
    """Return a Dask array of tensors with the halo of the whole field."""
    made = Array(array.dask, array.name, array.chunks, meta=array._meta)
    made.halo, made._allocation = halo, allocation
    return made


def pairs(halo: Any) -> Halo:
    """Return widths of a halo, or pairs of them, as pairs."""
    if not isinstance(halo, Sequence):
        raise TypeError(f"halo: found {halo!r}; allowed is for each dimension a width, or a lower and an upper one")
    return tuple((index(w[0]), index(w[1])) if isinstance(w, Sequence) else (index(w),) * 2 for w in halo)


da.register_chunk_type(Tensor)
concatenate_lookup.register(Tensor, concatenate)
sizeof.register(Tensor, size_of)
