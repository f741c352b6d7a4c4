"""`Tensor.plot`: one plane of a field with matplotlib."""

from typing import Any

from dlfield._native import DimsError, Tensor
from dlfield.interop.frameworks import imported

# The colour of the frame, which no colour map of matplotlib's own has.
_FRAME = "#e5484d"


def plot(tensor: Tensor, axes: Any, **keywords: Any) -> Any:
    """Do the work of `Tensor.plot`."""
    labels = [label for label in tensor.dims if label in keywords]
    if labels:
        index = ", ".join(repr(keywords[label]) if label in labels else ":" for label in tensor.dims)
        raise TypeError(f"plot() got an unexpected keyword argument {labels[0]!r}; write field[{index}].plot()")
    pyplot = imported("matplotlib.pyplot", "Tensor.plot")
    long = [dimension for dimension, size in enumerate(tensor.shape) if size > 1][:2]
    if not long or 0 in tensor.shape:
        raise DimsError(f"plot: expected points along at least one dimension, got shape {tensor.shape}")
    # The first point of the domain in all other dimensions.
    at = [min(first, size - 1) for first, size in zip(tensor.origin, tensor.shape, strict=True)]
    others = [dimension for dimension in range(tensor.ndim) if dimension not in long]
    part = tensor[tuple(slice(None) if dimension in long else at[dimension] for dimension in range(tensor.ndim))]
    values = (part if tensor.device.type in ("cpu", "cuda_host", "cuda_managed") else part.to_device("cpu")).to_numpy()
    if axes is None:
        axes = pyplot.figure().add_subplot()
    if len(long) == 1:
        axes.plot(values, **keywords)
    else:
        axes.imshow(values.T, **{"origin": "lower", "interpolation": "nearest", **keywords})
        axes.set_ylabel(tensor.dims[long[1]])
    axes.set_xlabel(tensor.dims[long[0]])
    axes.set_title(", ".join(f"{tensor.dims[dimension]}={at[dimension]}" for dimension in others))
    _frame(pyplot, axes, [(tensor.halo[dimension], tensor.shape[dimension]) for dimension in long])
    return axes


def _frame(pyplot: Any, axes: Any, extents: list[tuple[tuple[int, int], int]]) -> None:
    """Draw the border of the domain where there is a halo; points are in the middle of their pixels."""
    if not any(any(halo) for halo, _ in extents):
        return
    begins = [lower - 0.5 for (lower, _), _ in extents]
    ends = [size - upper - 0.5 for (_, upper), size in extents]
    if len(extents) == 1:
        for place in (*begins, *ends):
            axes.axvline(place, color=_FRAME)
        return
    (left, bottom), (right, top) = begins, ends
    frame = pyplot.Rectangle((left, bottom), right - left, top - bottom, fill=False, edgecolor=_FRAME, linewidth=2)
    axes.add_patch(frame)
