"""What an array is, how it lies in memory, and which frameworks can share it: `explain`."""

import importlib.util
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import dlfield as dl
from dlfield.show.html import size_text
from dlfield.show.plane import PADDING, Cell, Plane, padding_text

__all__ = ["FRAMEWORKS", "Explanation", "explain", "explained"]

_MAX_ROWS = 12
_MAX_COLUMNS = 24
_SIGNS = {"point": "o", "halo": "h", "padding": "."}
#: The frameworks that `preflight` knows.
FRAMEWORKS = ("numpy", "torch", "jax", "cupy")


class Explanation(str):
    """The text of `explain`, which an interpreter or a notebook shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def explain(array: Any) -> Explanation:
    """Explain what an array is: its memory, a picture of its rows, and which frameworks can share it.

    Parameters
    ----------
    array : array
        A field, or any array that `from_dlpack` takes.

    Returns
    -------
    str
        The text; without `print` an interpreter shows it line by line, too. Only frameworks that this process has
        imported are asked; `preflight` imports the others.

    Raises
    ------
    NotAnArrayError
        `array` has no array protocol. Exceptions of its protocol pass through.

    Example
    -------
    >>> import dlfield as dl
    >>> explained = dl.explain(dl.zeros((2, 3, 4), layout=(0, 2, 1), halo=(0, 1, 0)))
    >>> print(explained.partition("address")[0])
    what       a dlfield.Tensor
    shape      (2, 3, 4)
    dtype      float64
    size       192 bytes
    dims       I, J, K
    strides    (96, 8, 24) bytes
    layout     (0, 2, 1), compact, neither in C nor in Fortran order
    <BLANKLINE>
    """
    return Explanation(explained(array, "", [name for name in FRAMEWORKS if name in sys.modules]))


def explained(array: Any, target: str, asked: Sequence[str]) -> str:
    """Return the text about an array that is called `target`, with what the frameworks in `asked` say."""
    described = dl.describe(array)
    # PyTorch's tensors that require grad are described, but no field may own them.
    tensor = dl.from_dlpack(array.detach() if getattr(array, "requires_grad", False) else array)
    rows = [("what", f"{target}a {type(array).__module__.partition('.')[0]}.{type(array).__name__}")]
    rows += _facts(described, tensor)
    picture = _picture(tensor) if tensor.size else ["no elements"]
    shared = [("framework", "without a copy?"), *_shared(array, asked)]
    return "\n".join([*_table(rows), "", *picture, "", *_table(shared)])


def _facts(described: dl.Descriptor, tensor: dl.Tensor) -> Iterator[tuple[str, str]]:
    yield "shape", str(described.shape)
    yield "dtype", str(described.dtype)
    yield "size", size_text(described.nbytes)
    labels = ", ".join(tensor.dims)
    yield "dims", labels if described.dims is not None else f"not stated; dlfield's default is {labels or 'none'}"
    yield "strides", f"{described.strides} bytes"
    yield "layout", f"{described.layout}, {_compactness(described)}"
    yield "address", f"a multiple of {described.alignment()} bytes"
    if tensor.alignment_size > tensor.itemsize:
        yield "alignment", f"{tensor.alignment_size} bytes at index {tensor.aligned_index}"
    if padding_text(tensor):
        yield "padding", padding_text(tensor)
    if any(map(any, described.halo or ())):
        yield "halo", str(described.halo)
    if any(described.origin or ()):
        yield "origin", str(described.origin)
    yield "device", str(described.device)
    yield "access", "read-only" if described.readonly else "read and write"
    yield "protocol", described.protocol


def _picture(tensor: dl.Tensor) -> Iterator[str]:
    plane = Plane(tensor, _MAX_ROWS, _MAX_COLUMNS)
    yield plane.caption()
    label = "" if plane.outer is None else f"{tensor.dims[plane.outer]}="
    labels = [f"{label}{row.index}" if label and row else "" for row in plane.rows]
    width = max(map(len, labels))
    for row, text in zip(plane.rows, labels, strict=True):
        yield f"{text:<{width}} " + ("..." if row is None else "".join(map(_sign, row.cells)))
    cells = list(plane.cells())
    names = {"point": "o domain", "halo": "h halo", "padding": f". {PADDING}"}
    yield ", ".join(name for kind, name in names.items() if any(cell.kind == kind for cell in cells))
    if any(cell.aligned for cell in cells):
        yield f"| before a multiple of {tensor.alignment_size} bytes"


def _sign(cell: Cell | None) -> str:
    if cell is None:
        return " ..."
    return ("|" if cell.aligned else " ") + _SIGNS[cell.kind]


def _compactness(described: dl.Descriptor) -> str:
    """Return whether the elements lie in memory without gaps, and in which order."""
    orders = [name for order, name in (("C", "C"), ("F", "Fortran")) if described.is_contiguous(order)]  # type: ignore[arg-type]
    if orders:
        return f"compact in {' and '.join(orders)} order"
    expected = described.itemsize
    for _, stride, extent in sorted(zip(described.layout, described.strides, described.shape, strict=True))[::-1]:
        if extent > 1 and abs(stride) != expected:
            return "not compact: there are gaps" if abs(stride) > expected else "elements share memory"
        expected *= extent
    backwards = any(stride < 0 for stride in described.strides)
    return "compact, backwards in memory" if backwards else "compact, neither in C nor in Fortran order"


def _shared(array: Any, asked: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name in FRAMEWORKS:
        if importlib.util.find_spec(name) is None:
            yield name, "not installed"
        elif name not in asked:
            yield name, f"not imported here; preflight(..., {name!r}) asks it"
        else:
            try:
                yield name, str(dl.preflight(array, name))  # type: ignore[arg-type]
            except Exception as error:  # a broken installation of one framework must not hide the others
                text = str(error).partition("\n")[0]
                yield name, f"cannot be asked: {type(error).__name__}: {text}"


def _table(rows: list[tuple[str, str]]) -> list[str]:
    width = max(len(name) for name, _ in rows)
    return [f"{name:<{width}}  {value}" for name, value in rows]
