"""Draws the pictures of docs/fields and docs/gpu: `python docs/_site/draw.py` writes the SVG files.

Places of elements are those of real fields: strides, halos and addresses are asked, not typed.
"""

from itertools import product
from pathlib import Path
from typing import Any

import dlfield as dl
from dlfield.show import picture as _picture

FONT = "system-ui, -apple-system, 'Segoe UI', sans-serif"


class Picture(_picture.Picture):
    """A picture of known size."""

    def __init__(self, width: int, height: int, title: str) -> None:
        super().__init__(title, FONT)
        self.size = width, height

    def write(self) -> str:
        """Return the file."""
        return self.svg(*self.size)


def offset(field: dl.Tensor, *index: int) -> int:
    """Bytes from the element at index 0 to the one at `index`."""
    return sum(place * stride for place, stride in zip(index, field.strides, strict=True))


def layout() -> str:
    """Draw one grid, in memory in two orders."""
    picture = Picture(720, 330, "The same grid of 3 times 4 points in memory, in C order and with I contiguous")
    picture.text(20, 24, "the grid: index (I, J)", "strong")
    for i, j in product(range(3), range(4)):
        picture.cell(60 + 44 * j, 44 + 32 * i, "point", f"{i},{j}", 44, 32)
    picture.text(30, 96, "I", "strong")
    picture.arrow(44, 50, 44, 136)
    picture.arrow(64, 156, 232, 156)
    picture.text(142, 172, "J", "strong")
    for top, order, name in ((186, (0, 1), "layout (0, 1): C order"), (262, (1, 0), "layout (1, 0): I is contiguous")):
        field = dl.zeros((3, 4), layout=order)
        step_i, step_j = field.strides
        picture.text(20, top + 10, name, "strong")
        picture.text(700, top + 10, f"strides ({step_i}, {step_j}) bytes", "faint", "end")
        for i, j in product(range(3), range(4)):
            picture.cell(20 + 55 * offset(field, i, j) / field.itemsize, top + 20, "point", f"{i},{j}", 55)
    return picture.write()


def strip(picture: Picture, field: dl.Tensor, row: int, x: float, y: float, width: float) -> None:
    """Draw the points of one row of a field of two dimensions, at the distances that they have in memory."""
    (below, above), inner = field.halo[1], field.shape[1]
    for j in range(inner):
        kind = "point" if below <= j < inner - above else "halo"
        picture.cell(x + width * offset(field, 0, j) / field.itemsize, y, kind, f"{row},{j}", width)


def alignment() -> str:
    """Draw rows whose first inner point is at a multiple of 64 bytes."""
    field = dl.zeros((3, 10), alignment_size=64, halo=((0, 0), (1, 1)))
    picture = Picture(720, 236, "Three rows of a field; the first inner point of each is at the start of a cache line")
    picture.text(20, 22, "dl.zeros((3, 10), alignment_size=64, halo=(0, 1))", "strong")
    width, left = 40, 60
    per_row = field.strides[0] // field.itemsize
    for row in range(3):
        y = 66 + 44 * row
        for place in range(field.shape[1], per_row):
            picture.cell(left + width * place, y, "padding", "", width)
        strip(picture, field, row, left, y, width)
        picture.text(50, y + 18, f"row {row}", "small faint", "end")
    first = -field.ptr % 64 // field.itemsize
    line = 64 // field.itemsize
    for place in range(first, per_row + 1, line):
        picture.line(left + width * place, 44, left + width * place, 196, "mark")
    picture.text(left + width * (first + line / 2), 52, "a cache line: 64 bytes", "small", "middle")
    unused = f"padding: {per_row - field.shape[1]} elements a row"
    legend(picture, 218, "inner points", "halo", unused, "multiple of 64 bytes")
    return picture.write()


def legend(picture: Picture, y: float, inner: str, halo: str, padding: str, mark: str = "") -> None:
    """Draw the kinds of cells with their names, those that have one."""
    entries = (("point", inner), ("halo", halo), ("padding", padding), ("mark", mark))
    picture.legend(20, y, [entry for entry in entries if entry[1]])


def padding() -> str:
    """Draw the same rows with padding and without."""
    picture = Picture(720, 262, "Rows of five elements, padded to 32 bytes and without padding")
    rows: tuple[tuple[int, str, dict[str, Any]], ...] = (
        (22, "alignment_size=32: each row begins at a multiple of 32 bytes", {}),
        (132, 'alignment_size=32, padding="none": only the first row does', {"padding": "none"}),
    )
    for top, text, keywords in rows:
        field = dl.zeros((3, 5), "float32", alignment_size=32, **keywords)
        picture.text(20, top, text, "strong")
        picture.text(700, top, f"strides {field.strides}", "faint", "end")
        elements = field.strides[0] // field.itemsize
        for i in range(3):
            x = 20 + 28 * elements * i
            strip(picture, field, i, x, top + 24, 28)
            for place in range(5, elements):
                picture.cell(x + 28 * place, top + 24, "padding", "", 28)
        end = elements * 3 if elements > 5 else field.size
        for place in range(0, end + 1, 8):
            picture.line(20 + 28 * place, top + 14, 20 + 28 * place, top + 60, "mark")
    legend(picture, 240, "elements", "", "padding", "multiple of 32 bytes")
    return picture.write()


def halo() -> str:
    """Draw a field with its halo, its domain and its origin."""
    field = dl.zeros((6, 8), halo=((1, 1), (2, 1)))
    picture = Picture(720, 300, "A field of 6 times 8 points with a halo; the domain inside begins at the origin")
    (low_i, high_i), (low_j, high_j) = field.halo
    width, height, left, top = 44, 34, 50, 50
    for i, j in product(range(6), range(8)):
        inside = low_i <= i < 6 - high_i and low_j <= j < 8 - high_j
        picture.cell(left + width * j, top + height * i, "point" if inside else "halo", f"{i},{j}", width, height)
    i, j = field.origin
    picture.cell(left + width * j + 2, top + height * i + 2, "mark", "", width - 4, height - 4)
    picture.cell(410, 159, "mark", "", 12, 12)
    picture.text(left + width * 4, 38, "J: 8 points", "faint", "middle")
    picture.text(14, top + height * 3, "I: 6", "faint")
    rows = (
        ("shape", f"{field.shape}, with the halo"),
        ("halo", str(field.halo)),
        ("origin", f"{field.origin}, the first inner point"),
        ("domain_view.shape", str(field.domain_view.shape)),
    )
    for line, (name, value) in enumerate(rows):
        picture.text(430, 78 + 46 * line, name, "strong")
        picture.text(430, 97 + 46 * line, value)
    legend(picture, 284, "domain: computed", "halo: only read", "")
    return picture.write()


def ownership() -> str:
    """Draw what keeps a block of memory alive."""
    picture = Picture(720, 270, "A tensor, a view, and arrays of NumPy and PyTorch each keep the same block of memory")
    names = ("field", "field[1:-1]", "np.asarray(field)", "dl.as_torch(field)")
    for place, (name, kind) in enumerate(zip(names, ("Tensor", "Tensor", "ndarray", "torch.Tensor"), strict=True)):
        x = 20 + 175 * place
        picture.cell(x, 20, "box", "", 155, 50)
        picture.text(x + 77, 41, name, "strong", "middle")
        picture.text(x + 77, 59, kind, "small faint", "middle")
        picture.arrow(x + 77, 70, 360 + 60 * (place - 1.5), 118)
    picture.text(556, 106, "each keeps the owner", "small faint")
    picture.cell(230, 118, "box", "", 260, 44)
    picture.text(360, 145, "owner: 4 references", "strong", "middle")
    picture.arrow(360, 162, 360, 196)
    picture.text(372, 184, "frees it after the last reference", "small faint")
    for place in range(16):
        picture.cell(120 + 30 * place, 196, "point", "", 30, 30)
    picture.text(360, 250, "one block of memory, allocated once, never copied", "", "middle")
    return picture.write()


def streams() -> str:
    """Draw the order of work on a field in two streams."""
    picture = Picture(720, 250, "A stream writes a field, another one waits and reads it, then the memory is freed")
    for y, name in ((48, "host"), (108, "stream 1"), (168, "stream 2")):
        picture.text(20, y + 5, name, "strong")
        picture.line(100, y, 700, y)
    for x, y, width, text, kind in (
        (110, 34, 72, "launch", "box"),
        (192, 34, 90, "as_torch", "box"),
        (292, 34, 80, "drop both", "box"),
        (150, 94, 170, "kernel writes field", "point"),
        (330, 154, 190, "PyTorch reads field", "point"),
        (590, 94, 80, "free", "halo"),
    ):
        picture.cell(x, y, kind, text, width, 28)
    picture.arrow(320, 122, 330, 154)
    picture.text(340, 142, "event: stream 2 waits", "small faint")
    picture.arrow(520, 154, 588, 122)
    picture.text(566, 146, "event: stream 1 waits", "small faint")
    picture.text(392, 40, "the host stops nowhere", "small faint")
    picture.arrow(100, 212, 700, 212)
    picture.text(400, 232, "time", "faint", "middle")
    return picture.write()


def file_of(name: str) -> Path:
    """Return the file of a picture."""
    return Path(__file__).parents[1] / ("gpu" if name == "streams" else "fields") / f"{name}.svg"


PICTURES = (layout, alignment, padding, halo, ownership, streams)

if __name__ == "__main__":
    for draw in PICTURES:
        file_of(draw.__name__).write_text(draw())
