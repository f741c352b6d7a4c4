"""Fields of `gt4py.next` on the memory of any array."""

from collections.abc import Mapping
from typing import Any

from dlfield import _native
from dlfield._native import DimsError, DTypeError
from dlfield.interop.frameworks import as_cupy, imported

__all__ = ["as_field"]


def as_field(obj: Any, dims: Mapping[str, Any]) -> Any:
    """Return a field of `gt4py.next` on the memory of an array, by label and origin, without a copy.

    The grid's point 0 is at the array's origin, so that the lower halo has negative indices. `gt4py.next.as_field`
    copies, and takes dimensions by position.

    Parameters
    ----------
    obj : array
        A field, or any array that `from_dlpack` takes, with labels. In memory of a GPU the field is one of CuPy.
    dims : mapping
        The `gt4py.next.Dimension` of each label.

    Returns
    -------
    gt4py.next.Field
        With the array's order of dimensions, and its dtype.

    Raises
    ------
    DimsError
        The array has a label that is not in `dims`.
    DTypeError
        `gt4py.next` has no such elements.
    ImportError
        GT4Py, or CuPy for memory of a GPU, is not installed.
    Error
        As by `from_dlpack`.

    Example
    -------
    >>> from gt4py import next as gtx
    >>> import dlfield as dl
    >>> Cell, K = gtx.Dimension("Cell"), gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
    >>> tensor = dl.zeros((6, 4), backend="gt4py.next", dims="Cell K", halo={"Cell": (1, 0)})
    >>> field = dl.gt4py.as_field(tensor, {"Cell": Cell, "K": K})
    >>> field.domain.ranges[0], field.ndarray.ctypes.data == tensor.ptr
    (UnitRange(-1, 5), True)
    """
    nd_array_field = imported("gt4py.next.embedded.nd_array_field", "as_field")
    from gt4py._core.definitions import SCALAR_TYPES

    tensor = _native._tensor(obj, "obj")
    missing = [label for label in tensor.dims if label not in dims]
    if missing:
        raise DimsError(f"dims: expected a gt4py.next.Dimension for each of {tensor.dims}, got none for {missing[0]!r}")
    if not issubclass(tensor.dtype.type, SCALAR_TYPES):
        raise DTypeError(f"obj: expected elements that gt4py.next has, got {tensor.dtype}; convert them with astype")
    domain = {
        dims[label]: (-origin, extent - origin)
        for label, origin, extent in zip(tensor.dims, tensor.origin, tensor.shape, strict=True)
    }
    if tensor.device.type == "cuda":
        return nd_array_field.CuPyArrayField.from_array(as_cupy(tensor, copy=False), domain=domain)
    return nd_array_field.NumPyArrayField.from_array(tensor.to_numpy(), domain=domain)
