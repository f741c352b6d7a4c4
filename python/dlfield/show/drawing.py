"""Pictures of the memory of a field: `draw`."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dlfield._native import DimsError, Error, Tensor, _tensor
from dlfield.files.path import text_of_path
from dlfield.show.cache_lines import LINE, Line, Part, Skipped, memory_lines
from dlfield.show.html import size_text
from dlfield.show.picture import Picture, text_width
from dlfield.show.plane import PADDING, in_halo
from dlfield.show.text import dtype_text

__all__ = ["Drawing", "draw"]

# Larger fields have the middle left out.
_MAX_LINES = 16
_MAX_DIMENSIONS = 4
_BYTE = 13
_TOP = 62
_GAP = 6
_NAMES = {"point": "domain", "halo": "halo", "padding": PADDING}


class Drawing:
    """An SVG picture from `draw`. A notebook shows it; `str` and `svg` are the text of the file."""

    __module__ = "dlfield"

    __slots__ = ("_inline", "svg")

    def __init__(self, svg: str, inline: str) -> None:
        #: The picture as the text of an SVG file.
        self.svg: str = svg
        self._inline = inline

    def save(self, path: str | bytes | os.PathLike[Any]) -> None:
        """Write the picture to a file.

        Raises `ValueError` for a name that does not end in `.svg`.
        """
        target = Path(text_of_path(path))
        if target.suffix != ".svg":
            raise ValueError(f"path: expected a name that ends in '.svg', got {str(target)!r}")
        target.write_text(self.svg, encoding="utf8")

    def _repr_html_(self) -> str:
        return self._inline

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<Drawing, {len(self.svg)} characters of SVG: a notebook shows it, save('name.svg') writes it>"


def draw(array: Any) -> Drawing:
    """Draw the memory of a field: its elements in the order of their addresses, one cache line (64 bytes) a row.

    Each element has its index and, in memory that the host can read, its value. Domain, halo and bytes that belong to
    no element look different. A red edge is an address that is a multiple of the field's alignment. Of more than 16
    lines the middle is left out.

    Parameters
    ----------
    array : array
        A `Tensor`, or any array that `from_dlpack` takes, of at most four dimensions. No value changes.

    Raises
    ------
    DimsError
        More than four dimensions.
    NotAnArrayError, ExchangeError, DTypeError, DeviceError
        As for `from_dlpack`.

    Example
    -------
    >>> import dlfield as dl
    >>> picture = dl.draw(dl.zeros((3, 10), alignment_size=64, halo=((0, 0), (1, 1))))
    >>> picture
    <Drawing, ... characters of SVG: a notebook shows it, save('name.svg') writes it>
    >>> "multiple of 64 bytes" in picture.svg
    True
    """
    tensor = _tensor(array, "array")
    if tensor.ndim > _MAX_DIMENSIONS:
        raise DimsError(
            f"array: expected at most {_MAX_DIMENSIONS} dimensions, got {tensor.ndim}, of shape {tensor.shape}; "
            f"draw a part of it, as array[{', '.join(['0'] * (tensor.ndim - _MAX_DIMENSIONS))}]"
        )
    return _MemoryPicture(tensor).drawing()


class _MemoryPicture:
    """The picture of one tensor while it is drawn."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.picture = Picture(f"The memory of a field of shape {tensor.shape}")
        self.lines = memory_lines(tensor, _MAX_LINES) if tensor.size else []
        self.value = _reader(tensor)
        self.kinds: set[str] = set()
        self.aligned = False
        labels = [f"{line.number * LINE:,}" for line in self.lines if isinstance(line, Line)]
        self.left = max(map(text_width, ["byte", *labels])) + 16
        self.height = 36 if self.value else 22

    def drawing(self) -> Drawing:
        tensor, picture = self.tensor, self.picture
        width = self.left + _BYTE * LINE + 8
        dims = ", ".join(f"{name}: {size}" for name, size in zip(tensor.dims, tensor.shape, strict=True))
        strides = ", ".join(map(str, tensor.strides))
        picture.text(8, 20, _fitted(f"{dtype_text(tensor)}  {dims or 'no dimensions'}", width - 16, 13), "strong")
        device = "" if str(tensor.device) == "cpu" else f", on {tensor.device}"
        facts = (
            f"{size_text(tensor.nbytes)}, strides ({strides}) bytes, alignment {tensor.alignment_size} bytes{device}"
        )
        picture.text(8, 38, _fitted(facts, width - 16), "small faint")
        y = float(_TOP)
        if self.lines:
            picture.text(self.left - 8, y - 6, "byte", "small faint", "end")
            picture.text(self.left, y - 6, "one row is one cache line: 64 bytes", "small faint")
        else:
            picture.text(8, y, "no elements", "small")
        for line in self.lines:
            y += self._skipped(line, y) if isinstance(line, Skipped) else self._line(line, y)
        extents = zip(tensor.dims, tensor.shape, tensor.strides, strict=True)
        shared = [name for name, size, stride in extents if size > 1 and stride == 0]
        if shared and self.lines:
            text = f"the same memory at each index of {', '.join(shared)}"
            picture.text(self.left, y + 10, _fitted(text, width - self.left - 8), "small")
            y += 22
        entries = [(kind, name) for kind, name in _NAMES.items() if kind in self.kinds]
        if self.aligned:
            entries.append(("mark", f"multiple of {tensor.alignment_size} bytes"))
        picture.legend(self.left, y + 14, entries)
        return Drawing(picture.svg(width, y + 26), picture.svg(width, y + 26, inline=True))

    def _skipped(self, line: Skipped, y: float) -> float:
        what = "cache lines without an element" if line.empty else "cache lines left out"
        self.picture.text(self.left, y + 12, f"⋮ {line.count:,} {what}", "small")
        return 18 + _GAP

    def _line(self, line: Line, y: float) -> float:
        self.picture.text(self.left - 8, y + self.height / 2 + 4, f"{line.number * LINE:,}", "small faint", "end")
        for start, stop in line.gaps:
            self.kinds.add("padding")
            self._cell("padding", start, stop, y, PADDING)
        for part in line.parts:
            self._element(part, y)
        return self.height + _GAP

    def _element(self, part: Part, y: float) -> None:
        tensor = self.tensor
        kind = "halo" if in_halo(tensor, part.index) else "point"
        self.kinds.add(kind)
        address = tensor.ptr + part.offset
        aligned = tensor.alignment_size > tensor.itemsize and address % tensor.alignment_size == 0
        begins = address % LINE == part.start
        value = None if self.value is None else self.value(part.index)
        facts = [f"[{', '.join(map(str, part.index))}]", f"{part.offset:+d} bytes"]
        facts += ["halo"] if kind == "halo" else []
        facts += ["aligned"] if aligned else []
        self._cell(kind, part.start, part.stop, y, ", ".join(facts) + ("" if value is None else f": {value!s}"))
        if not begins:
            return
        if aligned:
            self.aligned = True
            x = self.left + part.start * _BYTE + 1
            self.picture.line(x, y, x, y + self.height, "mark")
        width, middle = (part.stop - part.start) * _BYTE - 3, self.left + (part.start + part.stop) * _BYTE / 2
        index = ",".join(map(str, part.index))
        if text_width(index) <= width:
            self.picture.text(middle, y + 15, index, "small" if value is None else "small faint", "middle")
        if value is not None:
            shortest = [text for text in _texts(value) if text_width(text) <= width]
            if shortest:
                self.picture.text(middle, y + 30, shortest[0], "small", "middle")

    def _cell(self, kind: str, start: int, stop: int, y: float, tooltip: str) -> None:
        x, width = self.left + start * _BYTE, (stop - start) * _BYTE
        self.picture.cell(x + 0.5, y, kind, "", width - 1, self.height, tooltip=tooltip)


def _reader(tensor: Tensor) -> Callable[[tuple[int, ...]], Any] | None:
    """Return a function that reads an element, or None where the host cannot read the memory."""
    if tensor.device.type not in ("cpu", "cuda_host", "cuda_managed"):
        return None
    try:
        return tensor.to_numpy().__getitem__
    except (Error, ImportError):
        # During graph capture, and for dtypes of another package.
        return None


def _texts(value: Any) -> Iterator[str]:
    """Yield texts for an element, the most exact one first."""
    kind = np.asarray(value).dtype.kind
    if kind in "biu":
        yield str(value)
        return
    # Kind "V" are the small numbers of ml_dtypes.
    number = complex(value) if kind == "c" else float(value)
    for digits in range(4, 0, -1):
        yield f"{number:.{digits}g}"


def _fitted(text: str, width: float, size: float = 11) -> str:
    """Return the text, or as much of it as is at most so wide."""
    if text_width(text, size) <= width:
        return text
    # No letter is narrower than one place, so no more of them fit.
    text = text[: int(width / text_width("x", size))]
    while text_width(text + "…", size) > width:
        text = text[:-1]
    return f"{text}…"
