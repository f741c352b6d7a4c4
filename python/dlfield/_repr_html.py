"""HTML of a tensor for notebooks: its attributes, its values, and a drawing of its first rows in memory."""

from html import escape

from dlfield._native import Tensor
from dlfield._repr import values_text

# Limits of the drawing, which leaves out the middle of longer tensors, so that its size is bounded.
_MAX_ROWS = 10
_MAX_COLUMNS = 32
_CELL = 16
_LABEL = 96

_DOMAIN = "#4c8bf5"
_HALO = "#f5a742"
_PADDING = "#d5d8dc"
_EDGE = "#ffffff"
_ALIGNED_EDGE = "#111111"


def repr_html(tensor: Tensor) -> str:
    """Return HTML with the attributes of `tensor`, its values, and a drawing of its first rows in memory.

    The HTML is self-contained: no external scripts, styles or links. Its size is bounded for any shape; NumPy's print
    options limit the values.

    Example
    -------
    >>> import dlfield as dl
    >>> html = repr_html(dl.zeros((4, 6), halo=((1, 1), (1, 1)), alignment_size=64))
    >>> "16 bytes per row" in html and "<svg" in html
    True
    """
    padding = _padding_bytes(tensor)
    rows = [
        ("shape", str(tensor.shape)),
        ("dtype", str(tensor.dtype)),
        ("dims", ", ".join(tensor.dims)),
        ("layout", str(tensor.layout)),
        ("strides", f"{tensor.strides} bytes"),
        ("device", str(tensor.device)),
        ("alignment", f"{tensor.alignment_size} bytes at index {tensor.aligned_index}"),
        ("padding", f"{padding} bytes per row" if padding else "none"),
        ("halo", str(tensor.halo)),
        ("origin", str(tensor.origin)),
    ]
    if tensor.readonly:
        rows.append(("access", "read-only"))
    table = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left"><code>{escape(value)}</code></td></tr>'
        for name, value in rows
    )
    values = f"<pre>{escape(values_text(tensor))}</pre>"
    drawing = _drawing(tensor) if tensor.size else "<p>no elements</p>"
    return f'<div class="dlfield-tensor"><b>dlfield.Tensor</b><table>{table}</table>{values}{drawing}</div>'


def _memory_order(tensor: Tensor) -> list[int]:
    """Return the dimensions in order of decreasing strides."""
    return sorted(range(tensor.ndim), key=lambda dimension: tensor.layout[dimension])


def _row_pitch(tensor: Tensor) -> int:
    """Return the distance from one row to the next in elements, or the length of the row if there is only one."""
    *outer, inner = _memory_order(tensor)
    length = tensor.shape[inner]
    if not outer or tensor.shape[outer[-1]] < 2 or abs(tensor.strides[inner]) != tensor.itemsize:
        return length
    return max(length, abs(tensor.strides[outer[-1]]) // tensor.itemsize)


def _padding_bytes(tensor: Tensor) -> int:
    if tensor.ndim == 0 or tensor.size == 0:
        return 0
    inner = _memory_order(tensor)[-1]
    return (_row_pitch(tensor) - tensor.shape[inner]) * tensor.itemsize


def _shown(count: int, limit: int) -> list[int | None]:
    """Return the indices below `count` to draw, with one None in place of those left out in the middle."""
    if count <= limit:
        return list(range(count))
    head = limit // 2
    tail = limit - head - 1
    return [*range(head), None, *range(count - tail, count)]


def _drawing(tensor: Tensor) -> str:
    """Draw the rows (runs along the smallest stride) one below the other, in the plane through the origin."""
    order = _memory_order(tensor)
    inner = order[-1] if order else None
    row_axis = order[-2] if len(order) > 1 else None
    columns = _shown(1 if inner is None else _row_pitch(tensor), _MAX_COLUMNS)
    lines = _shown(1 if row_axis is None else tensor.shape[row_axis], _MAX_ROWS)
    index = [min(start, size - 1) for start, size in zip(tensor.origin, tensor.shape, strict=True)]

    parts: list[str] = []
    for line, row in enumerate(lines):
        y = line * _CELL
        if row is None:
            parts.append(_text(_LABEL, y, "⋮"))
            continue
        if row_axis is not None:
            index[row_axis] = row
            parts.append(_text(0, y, f"{_shortened(tensor.dims[row_axis])}={row}"))
        for position, column in enumerate(columns):
            x = _LABEL + position * _CELL
            if column is None:
                parts.append(_text(x, y, "…"))
                continue
            if inner is not None:
                index[inner] = column
            parts.append(_cell(tensor, index, inner, x, y))
    width = _LABEL + len(columns) * _CELL + 2
    height = len(lines) * _CELL + 2
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="monospace" font-size="11" role="img" aria-label="memory layout">{"".join(parts)}</svg>'
    )
    return f"<p>{escape(_caption(tensor, order))}</p>{svg}<p>{_legend()}</p>"


def _cell(tensor: Tensor, index: list[int], inner: int | None, x: int, y: int) -> str:
    if inner is not None and index[inner] >= tensor.shape[inner]:
        return _rect(x, y, _PADDING, "#9aa0a6", "padding", dashed=True)
    offset = sum(i * stride for i, stride in zip(index, tensor.strides, strict=True))
    in_halo = any(
        i < lower or i >= size - upper for i, size, (lower, upper) in zip(index, tensor.shape, tensor.halo, strict=True)
    )
    aligned = tensor.alignment_size > tensor.itemsize and (tensor.ptr + offset) % tensor.alignment_size == 0
    title = f"{tuple(index)}, {offset:+d} bytes" + (", halo" if in_halo else "") + (", aligned" if aligned else "")
    return _rect(x, y, _HALO if in_halo else _DOMAIN, _ALIGNED_EDGE if aligned else _EDGE, title)


def _rect(x: int, y: int, fill: str, edge: str, title: str, *, dashed: bool = False) -> str:
    dashes = ' stroke-dasharray="2 2"' if dashed else ""
    return (
        f'<rect x="{x + 1}" y="{y + 1}" width="{_CELL - 2}" height="{_CELL - 2}" fill="{fill}" stroke="{edge}"{dashes}>'
        f"<title>{escape(title)}</title></rect>"
    )


def _text(x: int, y: int, text: str) -> str:
    return f'<text x="{x + 2}" y="{y + _CELL - 4}" fill="currentColor">{escape(text)}</text>'


def _shortened(label: str) -> str:
    return label if len(label) <= 4 else f"{label[:3]}…"


def _caption(tensor: Tensor, order: list[int]) -> str:
    if not order:
        return "one element"
    inner = order[-1]
    text = f"rows in memory, along {tensor.dims[inner]}"
    if abs(tensor.strides[inner]) != tensor.itemsize and tensor.shape[inner] > 1:
        text += f" (elements {tensor.strides[inner]} bytes apart)"
    if len(order) > 2:
        fixed = ", ".join(f"{tensor.dims[d]}={min(tensor.origin[d], tensor.shape[d] - 1)}" for d in order[:-2])
        text += f", at {fixed}"
    return text


def _legend() -> str:
    swatch = '<span style="background:{};padding:0 0.6em;margin-right:0.3em"></span>{}&emsp;'
    entries = ((_DOMAIN, "domain"), (_HALO, "halo"), (_PADDING, "padding"))
    return "".join(swatch.format(colour, name) for colour, name in entries) + "dark edge: aligned address"
