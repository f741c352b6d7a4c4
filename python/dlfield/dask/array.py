"""`dlfield.dask.Array`, and what Dask has to know of tensors. Importing this module tells it."""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any

from dlfield._native import DimsError, Tensor
from dlfield.dask.blocks import Allocation, concatenate, size_of
from dlfield.interop.frameworks import imported

if TYPE_CHECKING:
    import dask.array as da
    from dask.array.dispatch import concatenate_lookup
    from dask.sizeof import sizeof
else:
    da = imported("dask.array", "dlfield.dask")
    from dask.array.dispatch import concatenate_lookup
    from dask.sizeof import sizeof

__all__ = ["Array", "Halo", "check_order", "da", "labelled"]

Halo = tuple[tuple[int, int], ...]


class Array(da.Array):  # type: ignore[misc, unused-ignore]
    """A Dask array of tensors that knows the halo of the whole field.

    Everything else is `dask.array.Array`. Results of Dask's own functions are of that class, and have no `halo`.
    Operators and ufuncs raise `DimsError` for operands with labels in another order: Dask pairs blocks by position, and
    fields go by label.

    Attributes
    ----------
    halo
        For each dimension the lower and upper ghost widths, which are part of the shape, as those of `dlfield.Tensor`.
    """

    __module__ = "dlfield.dask"

    halo: Halo
    _allocation: Allocation

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        check_order([*inputs, *keywords.get("out", ()), keywords.get("where")])
        return super().__array_ufunc__(ufunc, method, *inputs, **keywords)

    def __dask_postpersist__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        rebuild, arguments = super().__dask_postpersist__()
        return _persisted, (rebuild, arguments, self.halo, self._allocation)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (*super().__reduce__(), self.halo, self._allocation)


def check_order(operands: Iterable[Any]) -> None:
    """Reject operands with labels in another order, of which Dask would pair the wrong blocks.

    The labels of fields and of this package's arrays are compared, counted from the last. Results of Dask's functions
    may state labels that their blocks do not have, as `array[0]` does: they are rejected only if they state the same
    ones in another order.
    """
    known, stated = [], []
    for operand in operands:
        if isinstance(operand, Tensor):
            known.append(operand.dims)
        elif isinstance(operand, Array):
            known.append(operand._allocation.dims)
        elif isinstance(meta := getattr(operand, "_meta", None), Tensor):
            stated.append(meta.dims)
    most: tuple[str, ...] = max(known or stated, key=len, default=())
    wrong = [dims for dims in known if dims != most[len(most) - len(dims) :]]
    wrong += [dims for dims in stated if dims != most and sorted(dims) == sorted(most)]
    if wrong:
        raise DimsError(
            f"dims: expected operands with the same last labels in the same order, as Dask pairs blocks by position, "
            f"got {wrong[0]} and {most}; transpose() one"
        )


def _checked(name: str) -> Callable[..., Any]:
    """Return an operator of Dask's arrays that rejects labels in another order."""
    operation = getattr(da.Array, name)

    @wraps(operation)
    def method(self: Any, other: Any) -> Any:
        check_order([self, other])
        return operation(self, other)

    return method


for _name in ["add", "and", "floordiv", "lshift", "mod", "mul", "or", "pow", "rshift", "sub", "truediv", "xor"]:
    for _operator in (f"__{_name}__", f"__r{_name}__"):
        setattr(Array, _operator, _checked(_operator))
for _name in ["eq", "ge", "gt", "le", "lt", "ne"]:
    setattr(Array, f"__{_name}__", _checked(f"__{_name}__"))


def _persisted(graph: Any, rebuild: Callable[..., Any], arguments: Any, *stated: Any, **keywords: Any) -> Array:
    return labelled(rebuild(graph, *arguments, **keywords), *stated)


def _unpickled(make: Callable[..., Any], arguments: Any, *stated: Any) -> Array:
    return labelled(make(*arguments), *stated)


def labelled(array: Any, halo: Halo, allocation: Allocation) -> Array:
    """Return a Dask array of tensors with the halo of the whole field."""
    made = Array(array.dask, array.name, array.chunks, meta=array._meta)
    made.halo, made._allocation = halo, allocation
    return made


da.register_chunk_type(Tensor)
concatenate_lookup.register(Tensor, concatenate)
sizeof.register(Tensor, size_of)
