"""Mean, variance and standard deviation of tensors, made of ufuncs and their reductions: by label, on every device."""

from typing import Any

import numpy as np

from dlfield._native import Tensor


def in_numpys_words(tensor: Tensor, method: str, axis: Any, keywords: dict[str, Any]) -> tuple[Any, Any, str | None]:
    """Return axis and keywords of a reduction with `dim` and `skipna` replaced, and the ufunc if another one computes.

    Example
    -------
    >>> import dlfield as dl
    >>> in_numpys_words(dl.ones((2, 3)), "min", None, {"dim": "J", "skipna": True})
    ('J', {}, 'fmin')
    """
    dim = keywords.pop("dim", None)
    if dim is not None:
        if axis is not None:
            raise TypeError(f"dim: expected axis or dim, got both, {axis!r} and {dim!r}")
        axis = None if dim is ... else tuple(dim) if isinstance(dim, list) else dim
    if method in ("any", "all") or not keywords.pop("skipna", False) or _is_integer(tensor.dtype):
        return axis, keywords, None
    if method in ("min", "max"):
        return axis, keywords, f"f{method}"
    valid, where = ~np.isnan(tensor), keywords.get("where", True)
    keywords["where"] = valid if where is True else valid & where
    return axis, keywords, None


def mean(
    tensor: Tensor,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    *,
    keepdims: bool = False,
    where: Any = True,
) -> Any:
    """Return the mean along `axis`, as `numpy.mean` but by label.

    Example
    -------
    >>> import dlfield as dl
    >>> mean(dl.from_array([[1, 2], [3, 4]]), "J").tolist()
    [1.5, 3.5]
    """
    total = tensor.sum(axis, dtype=_sum_dtype(tensor, dtype), keepdims=keepdims, where=where)
    return _divided(total, _count(tensor, axis, where, total, keepdims), _result_dtype(tensor, dtype), out)


def var(
    tensor: Tensor,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    *,
    keepdims: bool = False,
    where: Any = True,
) -> Any:
    """Return the variance along `axis`, as `numpy.var` but by label; `ddof` is subtracted from the number of elements.

    Example
    -------
    >>> import dlfield as dl
    >>> var(dl.from_array([1.0, 3.0]), ddof=1).item()
    2.0
    """
    sum_dtype = _sum_dtype(tensor, dtype)
    difference = tensor - mean(tensor, axis, sum_dtype, keepdims=True, where=where)
    squares = np.square(abs(difference))
    total = squares.sum(axis, keepdims=keepdims, where=where)
    count = np.maximum(_count(tensor, axis, where, total, keepdims) - ddof, 0)
    result = _result_dtype(tensor, dtype)
    if dtype is None and result.kind == "c":
        result = np.empty(0, result).real.dtype
    return _divided(total, count, result, out)


def std(
    tensor: Tensor,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    *,
    keepdims: bool = False,
    where: Any = True,
) -> Any:
    """Return the standard deviation along `axis`: the square root of `var`.

    Example
    -------
    >>> import dlfield as dl
    >>> std(dl.from_array([1.0, 5.0])).item()
    2.0
    """
    found = var(tensor, axis, dtype, out, ddof, keepdims=keepdims, where=where)
    return np.sqrt(found, out=found, casting="unsafe")


def _result_dtype(tensor: Tensor, dtype: Any) -> Any:
    """Return the dtype of a result: NumPy's, float64 for integers."""
    if dtype is not None:
        return np.dtype(dtype)
    return np.dtype("float64") if _is_integer(tensor.dtype) else tensor.dtype


def _is_integer(dtype: Any) -> bool:
    """Return whether a dtype has integers or bools; int4 and uint4 have no kind of their own."""
    return dtype.kind in "biu" or dtype.name.startswith(("int", "uint"))


def _sum_dtype(tensor: Tensor, dtype: Any) -> Any:
    """Return the dtype to add in: float32 for shorter floats, whose sums would overflow."""
    result = _result_dtype(tensor, dtype)
    is_short_float = result.itemsize < 4 and not _is_integer(result)
    return np.dtype("float32") if is_short_float and dtype is None else result


def _count(tensor: Tensor, axis: Any, where: Any, total: Any, keepdims: bool) -> Any:
    """Return the number of elements in each sum."""
    if where is True:
        return tensor.size / total.size if total.size else 1
    return np.logical_or(tensor, True).sum(axis, dtype="int64", where=where, keepdims=keepdims)


def _divided(total: Any, count: Any, dtype: Any, out: Any) -> Any:
    if out is not None:
        return np.true_divide(total, count, out=out, casting="unsafe")
    if total.dtype == dtype:
        return np.true_divide(total, count, out=total, casting="unsafe")
    return np.true_divide(total, count).astype(dtype)
