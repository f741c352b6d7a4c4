"""HTML of a tensor for notebooks: its attributes next to a drawing of its first rows in memory, and its values."""

from collections.abc import Iterator
from html import escape

from dlfield._native import Tensor
from dlfield.show.picture import Picture, text_width
from dlfield.show.plane import PADDING, Plane, padding_text
from dlfield.show.text import dtype_text, values_text

# Limits of the drawing, which leaves out the middle of longer tensors, so that its size is bounded.
_MAX_ROWS = 10
_MAX_COLUMNS = 32
_CELL = 16
# Lines as close as those of a text, and the drawing below the table where there is no place next to it.
_LINE = "text-align:left;padding:0 .6em 0 0;line-height:1.3"
_SIDE_BY_SIDE = "display:flex;flex-wrap:wrap;gap:0 2em;align-items:flex-start"
_NAMES: dict[str, str] = {"point": "domain", "halo": "halo", "padding": PADDING}


def repr_html(tensor: Tensor) -> str:
    """Return HTML with the attributes of `tensor`, a drawing of its first rows in memory, and its values, folded.

    The HTML is self-contained: no external scripts, styles or links. Its size is bounded for any shape; NumPy's print
    options limit the values. It has the colours of the page around it. A padding of 0 is not mentioned.

    Example
    -------
    >>> import dlfield as dl
    >>> html = repr_html(dl.zeros((4, 6), halo=((1, 1), (1, 1)), alignment_size=64))
    >>> "16 bytes per row" in html and "<svg" in html
    True
    """
    table = "".join(
        f'<tr><th style="{_LINE}">{escape(name)}</th><td style="{_LINE}"><code>{escape(value)}</code></td></tr>'
        for name, value in _rows(tensor)
    )
    # Some notebooks give `pre` the font of their text, in which columns are not one below the other.
    values = f'<pre style="font-family:monospace">{escape(values_text(tensor))}</pre>'
    drawing = _drawing(tensor) if tensor.size else "<p>no elements</p>"
    return (
        f'<div class="dlfield-tensor"><b>dlfield.Tensor</b><div style="{_SIDE_BY_SIDE}"><table>{table}</table>'
        f"<div>{drawing}</div></div><details><summary>values</summary>{values}</details></div>"
    )


def _rows(tensor: Tensor) -> Iterator[tuple[str, str]]:
    yield "shape", str(tensor.shape)
    yield "dtype", dtype_text(tensor)
    yield "size", size_text(tensor.nbytes)
    yield "dims", ", ".join(tensor.dims)
    yield "layout", str(tensor.layout)
    yield "strides", f"{tensor.strides} bytes"
    yield "device", str(tensor.device)
    if tensor.alignment_size > 1:
        yield "alignment", f"{tensor.alignment_size} bytes at index {tensor.aligned_index}"
    padding = padding_text(tensor)
    if padding:
        yield "padding", padding
    yield "halo", str(tensor.halo)
    if any(tensor.origin):
        yield "origin", str(tensor.origin)
    if tensor.readonly:
        yield "access", "read-only"


def size_text(nbytes: int) -> str:
    """Return a number of bytes, and its value in the largest unit that is not larger.

    Example
    -------
    >>> size_text(640), size_text(1_280_000)
    ('640 bytes', '1,280,000 bytes (1.2 MiB)')
    """
    exact = f"{nbytes:,} bytes"
    for unit, power in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if nbytes >> power:
            return f"{exact} ({nbytes / 2**power:.1f} {unit})"
    return exact


def _drawing(tensor: Tensor) -> str:
    """Draw the rows one below the other."""
    plane = Plane(tensor, _MAX_ROWS, _MAX_COLUMNS)
    picture = Picture("memory layout")
    label = "" if plane.outer is None else _shortened(tensor.dims[plane.outer])
    labels = [f"{label}={row.index}" if label and row else "" for row in plane.rows]
    left = max(map(text_width, labels)) + 8
    columns = 0
    for line, (row, text) in enumerate(zip(plane.rows, labels, strict=True)):
        y = 1 + line * _CELL
        if row is None:
            picture.text(left + 2, y + 12, "⋮", "small")
            continue
        if text:
            picture.text(1, y + 12, text, "small")
        columns = len(row.cells)
        for position, cell in enumerate(row.cells):
            x = left + position * _CELL
            if cell is None:
                picture.text(x + 4, y + 12, "…", "small")
                continue
            title = f"{cell.index}, {cell.offset:+d} bytes" + (", halo" if cell.kind == "halo" else "")
            title = PADDING if cell.kind == "padding" else title + (", aligned" if cell.aligned else "")
            picture.cell(x + 1, y + 1, cell.kind, "", _CELL - 2, _CELL - 2, tooltip=title)
            if cell.aligned:
                picture.line(x + 1, y + 1, x + 1, y + _CELL - 1, "mark")
    found: set[str] = {cell.kind for cell in plane.cells()}
    entries = [(kind, name) for kind, name in _NAMES.items() if kind in found]
    if any(cell.aligned for cell in plane.cells()):
        entries.append(("mark", f"multiple of {tensor.alignment_size} bytes"))
    height = len(plane.rows) * _CELL + 26
    right = picture.legend(1, height - 6, entries)
    svg = picture.svg(max(left + columns * _CELL, right) + 1, height, inline=True)
    return f'<p style="margin:0">{escape(plane.caption())}</p>{svg}'


def _shortened(label: str) -> str:
    return label if len(label) <= 4 else f"{label[:3]}…"
