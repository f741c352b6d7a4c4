"""`asarray`: a field of anything, on the same memory where that can be."""

from contextlib import nullcontext
from typing import Any

from dlfield._native import (
    DimsError,
    DTypeError,
    ExchangeError,
    LayoutError,
    NotAnArrayError,
    Tensor,
    describe,
    empty,
    from_array,
    from_dlpack,
    get_dims,
)
from dlfield.interop.copies import because

__all__ = ["asarray"]


def asarray(
    obj: Any,
    dtype: Any = None,
    *,
    dims: Any = None,
    halo: Any = None,
    origin: Any = None,
    like: Any = None,
    copy: bool | None = None,
    device: Any = None,
) -> Tensor:
    """Return a field of an array, or of anything that NumPy can convert; on the same memory where that can be.

    Parameters
    ----------
    obj : array, or nested lists
        Any array that `from_dlpack` takes, which shares its memory, or nested lists and numbers, which are copied.
    dtype : str, type or dtype, optional
        The element type, as for `numpy.asarray`; another one than that of `obj` needs a copy.
    dims, halo, origin : optional
        Labels of the dimensions, halo and origin, instead of those of `obj`, as for `empty`.
    like : Tensor or array, optional
        A field, or another array with labels, whose dims, halo and origin the result gets unless they are given: for
        what a framework has computed without them. If `obj` has the same labels in another order, it keeps that order.
        Of an array of another shape its halo would be a guess: give it.
    copy : bool, optional
        None copies only where it must; True always; False never.
    device : str or device, optional
        The device that the memory must be on; None accepts any.

    Returns
    -------
    Tensor
        `obj` itself if it is a field and nothing else is asked for.

    Raises
    ------
    ExchangeError
        `copy=False`, and there is no way without a copy.
    DimsError, LayoutError
        Labels, halo or origin that do not fit the shape.
    Error
        As by `from_dlpack`, and for lists as by `from_array`.

    Example
    -------
    >>> import dlfield as dl, torch
    >>> field = dl.ones((3, 4), dims="JI", halo=(1, 1))
    >>> doubled = dl.asarray(2 * dl.as_torch(field), like=field)
    >>> doubled.dims, doubled.domain_view.shape
    (('J', 'I'), (1, 2))
    """
    asked = any(value is not None for value in (dtype, dims, halo, origin, like, device)) or copy
    if not asked and isinstance(obj, Tensor):
        return obj
    guessed, of_like = None, like is not None and dims is None
    if like is not None:
        known = describe(_ordered(like, obj) if of_like else like)
        if halo is None and known.halo is not None and any(map(any, known.halo)):
            guessed = known.shape
        dims, halo, origin = (
            getattr(known, name) if given is None else given
            for name, given in (("dims", dims), ("halo", halo), ("origin", origin))
        )
    try:
        with because("asarray: copy=True") if copy else nullcontext():
            field = from_dlpack(obj, device=device, copy=copy, dims=dims, origin=origin)
    except DimsError as error:
        if of_like:
            raise DimsError(str(error).replace("dims:", "like:", 1)) from None
        raise
    except (NotAnArrayError, DTypeError) as error:
        # Lists and numbers, and elements that only NumPy has, as those of the other byte order.
        what = str(error).partition("; ")[0]
        has_elements = isinstance(obj, int | float | complex | list | tuple)
        if copy is False and has_elements:
            raise NotAnArrayError(f"{what}, which has no memory to share; leave out copy=False to copy it") from None
        if copy is False:
            raise
        keywords = {"dims": dims, "halo": halo, "origin": origin, "device": device}
        reason = f"{type(obj).__name__} has no memory to share" if isinstance(error, NotAnArrayError) else what
        with because(f"asarray: {reason}"):
            try:
                field = from_array(obj, dtype, **keywords)
            except DTypeError:
                # A conversion that `from_array` does not make, and NumPy's function does.
                field = from_array(obj, **keywords)
        halo = None
    if guessed not in (None, field.shape):
        raise LayoutError(f"like: expected shape {field.shape} for its halo to fit obj, got {guessed}; give halo= too")
    if halo is not None:
        # The halo alone would set the origin.
        field = field.with_halo(halo) if origin is None else from_dlpack(field.with_halo(halo), origin=origin)
    if dtype is None or field.dtype == (given := empty(0, dtype).dtype):
        return field
    if copy is False:
        raise ExchangeError(f"obj: expected elements of {given} for copy=False, got {field.dtype}; pass copy=None")
    return field.astype(given)


def _ordered(like: Any, obj: Any) -> Any:
    """Return the field with its dims in the order in which `obj` states the same ones."""
    stated, dims = get_dims(obj), get_dims(like)
    if stated is None or dims is None or stated == dims or sorted(stated) != sorted(dims):
        return like
    if isinstance(obj, Tensor) and stated == empty((0,) * len(dims)).dims:
        # The default labels, which say nothing.
        return like
    return from_dlpack(like).transpose(*stated)
