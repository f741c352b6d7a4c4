"""SVG pictures in colours that can be read on light and on dark backgrounds.

Text has the colour of the page around it, cells are half transparent. A file of its own has no page around it: it asks
the viewer which background it has. Nothing here has a style sheet that could change the rest of a page.
"""

import re
import unicodedata
from collections.abc import Sequence
from xml.sax import saxutils

# All but what the standard of XML 1.0 lists as characters.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Wide enough for every monospaced font, whose letters are 0.55 to 0.61 of their size wide.
_LETTER = 0.61
_FONT = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

_SHAPES = {
    "point": 'fill="#3b7ddd" fill-opacity="0.3" stroke="#3b7ddd"',
    "halo": 'fill="#d9822b" fill-opacity="0.35" stroke="#d9822b"',
    "padding": 'fill="none" stroke="#8a929c" stroke-dasharray="3 3"',
    "box": 'fill="#8a929c" fill-opacity="0.15" stroke="#8a929c"',
    "line": 'fill="none" stroke="#8a929c" stroke-width="1.5"',
    "mark": 'fill="none" stroke="#e5484d" stroke-width="2"',
    "tip": 'fill="#8a929c"',
}
_SIZES = {"small": 11}
_TEXT = {
    "small": 'font-size="11"',
    "strong": 'font-weight="600"',
    "faint": 'fill-opacity="0.7"',
}
_SIZE = 13

_STYLE = (
    "<style>.dlfield-picture { color: #1f2328; } "
    "@media (prefers-color-scheme: dark) { .dlfield-picture { color: #e6edf3; } }</style>"
)


def escaped(text: str) -> str:
    """Return the text as XML has it, with question marks for characters that no XML file may have.

    Example
    -------
    >>> escaped("a < b" + chr(1))
    'a &lt; b?'
    """
    return saxutils.escape(_FORBIDDEN.sub("?", text))


def text_width(text: str, size: float = _SIZES["small"]) -> float:
    """Return how wide a text is at most in a monospaced font, in which letters of East Asia take two places.

    Example
    -------
    >>> text_width("IJ", 10), text_width("\N{CJK UNIFIED IDEOGRAPH-9AD8}", 10)
    (12.2, 12.2)
    """
    places = sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
    return places * _LETTER * size


class Picture:
    """Shapes of an SVG picture. `font` None takes the monospaced font that `text_width` measures."""

    def __init__(self, title: str, font: str | None = None) -> None:
        self._title = title
        self._font = font or _FONT
        self._parts: list[str] = []

    def cell(
        self,
        x: float,
        y: float,
        kind: str,
        text: str = "",
        width: float = 36,
        height: float = 28,
        *,
        tooltip: str = "",
    ) -> None:
        """Draw a rectangle with a text in its middle."""
        box = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" {_SHAPES[kind]}'
        self._parts.append(f"{box}><title>{escaped(tooltip)}</title></rect>" if tooltip else f"{box}/>")
        if text:
            self.text(x + width / 2, y + height / 2 + 4, text, "small", "middle")

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
        """Write a text at its baseline. `kind` has words of "small", "strong", "faint"."""
        attributes = [_TEXT[word] for word in kind.split()]
        if anchor != "start":
            attributes.append(f'text-anchor="{anchor}"')
        self._parts.append(" ".join([f'<text x="{x:g}" y="{y:g}"', *attributes]) + f">{escaped(text)}</text>")

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str = "line") -> None:
        """Draw a straight line."""
        self._parts.append(f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" {_SHAPES[kind]}/>')

    def arrow(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """Draw a straight arrow to the second point."""
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
        dx, dy = (x2 - x1) / length, (y2 - y1) / length
        back_x, back_y = x2 - 8 * dx, y2 - 8 * dy
        self.line(x1, y1, back_x, back_y)
        tip = f"M{x2:g} {y2:g}L{back_x - 4 * dy:g} {back_y + 4 * dx:g}L{back_x + 4 * dy:g} {back_y - 4 * dx:g}z"
        self._parts.append(f'<path d="{tip}" {_SHAPES["tip"]}/>')

    def legend(self, x: float, y: float, entries: Sequence[tuple[str, str]]) -> float:
        """Draw kinds of cells, and "mark", with their names on the baseline `y`; return where they end."""
        for kind, name in entries:
            if kind == "mark":
                self.line(x + 8, y - 12, x + 8, y + 4, kind)
            else:
                self.cell(x, y - 11, kind, "", 16, 14)
            self.text(x + 22, y, name, "small")
            x += 22 + text_width(name) + 16
        return x - 16 if entries else x

    def svg(self, width: float, height: float, *, inline: bool = False) -> str:
        """Return the picture: the text of a file, or `inline` a part of a page whose colour its text has."""
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}"'
        head += f' height="{height:g}" role="img" aria-label={saxutils.quoteattr(self._title)} fill="currentColor"'
        head += f" font-family={saxutils.quoteattr(self._font)} font-size={saxutils.quoteattr(str(_SIZE))}"
        if inline:
            return "".join([f"{head}>", *self._parts, "</svg>"])
        first = [f'{head} class="dlfield-picture">', f"<title>{escaped(self._title)}</title>", _STYLE]
        return "\n".join([*first, *self._parts, "</svg>", ""])
