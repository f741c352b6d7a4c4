"""`python -m dlfield explain`: what an array is, how it lies in memory, and which frameworks can share it."""

import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import dlfield as dl
from dlfield.show.html import size_text
from dlfield.show.plane import PADDING, Cell, Plane, padding_text

_MAX_ROWS = 12
_MAX_COLUMNS = 24
_SIGNS = {"point": "o", "halo": "h", "padding": "."}
_FRAMEWORKS: tuple[Literal["numpy", "torch", "jax", "cupy"], ...] = ("numpy", "torch", "jax", "cupy")


class ExplainError(Exception):
    """The target names no array; the text says why."""


def explain(target: str) -> str:
    """Return the text about a file, `FILE.npy` or `FILE.dlf`, or about an object, `MODULE:NAME`.

    Raises `ExplainError` for a target that names no array.

    Example
    -------
    >>> print(explain("math:pi"))
    Traceback (most recent call last):
        ...
    dlfield.show.explain.ExplainError: TARGET: expected an array, got math:pi, a float
    """
    array: Any = _file(target) if Path(target).suffix in (".npy", ".dlf") else _object(target)
    try:
        described = dl.describe(array)
        # PyTorch's tensors that require grad are described, but no field may own them.
        tensor = dl.from_dlpack(array.detach() if getattr(array, "requires_grad", False) else array)
    except dl.NotAnArrayError:
        raise ExplainError(f"TARGET: expected an array, got {target}, a {type(array).__name__}") from None
    except Exception as error:  # anything that a protocol of the user's object raises
        raise ExplainError(f"TARGET: {target}: {_said(error)}") from error
    rows = [("what", f"{target}, a {type(array).__module__.partition('.')[0]}.{type(array).__name__}")]
    rows += _facts(described, tensor)
    picture = _picture(tensor) if tensor.size else ["no elements"]
    shared = [("framework", "without a copy?"), *_shared(array)]
    return "\n".join([*_table(rows), "", *picture, "", *_table(shared)])


def _file(target: str) -> dl.Tensor:
    try:
        return dl.open_field(target)
    except OSError as error:
        raise ExplainError(f"TARGET: cannot open {target}: {error.strerror or error}") from error
    except Exception as error:  # any header of a file
        raise ExplainError(f"TARGET: {target}: {_said(error)}") from error


def _object(target: str) -> Any:
    module, colon, name = target.partition(":")
    if not (module and colon and name):
        raise ExplainError(
            f"TARGET: expected a file .npy or .dlf, or MODULE:NAME, such as mymodel:field, got {target!r}"
        )
    try:
        found: Any = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # anything that the user's module raises
        raise ExplainError(f"TARGET: cannot import {module}: {_said(error)}") from error
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except Exception as error:  # anything that a property or `__getattr__` raises
            raise ExplainError(f"TARGET: {target}: {_said(error)}") from error
    return found


def _said(error: BaseException) -> str:
    text = str(error).partition("\n")[0]
    return text if isinstance(error, dl.Error) else f"{type(error).__name__}: {text}"


def _facts(described: dl.Descriptor, tensor: dl.Tensor) -> Iterator[tuple[str, str]]:
    yield "shape", str(described.shape)
    yield "dtype", str(described.dtype)
    yield "size", size_text(described.nbytes)
    labels = ", ".join(tensor.dims)
    yield "dims", labels if described.dims is not None else f"not stated; dlfield's default is {labels or 'none'}"
    yield "strides", f"{described.strides} bytes"
    orders = [name for order, name in (("C", "C"), ("F", "Fortran")) if described.is_contiguous(order)]  # type: ignore[arg-type]
    yield "layout", f"{described.layout}, " + (f"compact in {' and '.join(orders)} order" if orders else "not compact")
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
    legend = [name for kind, name in names.items() if any(cell.kind == kind for cell in cells)]
    if any(cell.aligned for cell in cells):
        legend.append(f"| before a multiple of {tensor.alignment_size} bytes")
    yield ", ".join(legend)


def _sign(cell: Cell | None) -> str:
    if cell is None:
        return " ..."
    return ("|" if cell.aligned else " ") + _SIGNS[cell.kind]


def _shared(array: Any) -> Iterator[tuple[str, str]]:
    for name in _FRAMEWORKS:
        if importlib.util.find_spec(name) is None:
            yield name, "not installed"
            continue
        try:
            yield name, str(dl.preflight(array, name))
        except Exception as error:  # a broken installation of one framework must not hide the others
            yield name, f"cannot be asked: {_said(error)}"


def _table(rows: list[tuple[str, str]]) -> list[str]:
    width = max(len(name) for name, _ in rows)
    return [f"{name:<{width}}  {value}" for name, value in rows]
