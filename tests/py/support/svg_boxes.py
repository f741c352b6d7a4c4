"""Where the shapes of an SVG picture are, without a browser."""

import re
from typing import NamedTuple
from xml.etree import ElementTree as ET

from dlfield.show.picture import text_width

SPACE = "{http://www.w3.org/2000/svg}"


class Box(NamedTuple):
    """A rectangle around a shape; `text` is empty for one that is not a text."""

    left: float
    top: float
    right: float
    bottom: float
    text: str = ""

    def overlaps(self, other: "Box") -> bool:
        """Whether both share more than an edge."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return across > 0.01 and down > 0.01

    def inside(self, other: "Box") -> bool:
        """Whether no part is outside of the other."""
        down = self.top >= other.top - 0.01 and self.bottom <= other.bottom + 0.01
        return down and self.left >= other.left - 0.01 and self.right <= other.right + 0.01


def boxes(svg: str) -> tuple[Box, list[Box]]:
    """Return the picture's view box and the boxes of its shapes. A text is as wide as in a wide monospaced font."""
    root = ET.fromstring(svg)
    left, top, width, height = map(float, root.attrib["viewBox"].split())
    found = []
    for shape in root:
        if shape.tag == f"{SPACE}rect":
            x, y = float(shape.attrib["x"]), float(shape.attrib["y"])
            found.append(Box(x, y, x + float(shape.attrib["width"]), y + float(shape.attrib["height"])))
        elif shape.tag == f"{SPACE}path":
            places = [float(number) for number in re.findall(r"-?\d+\.?\d*", shape.attrib["d"])]
            found.append(Box(min(places[::2]), min(places[1::2]), max(places[::2]), max(places[1::2])))
        elif shape.tag == f"{SPACE}text":
            found.append(_box_of_text(shape, float(shape.attrib.get("font-size", root.attrib["font-size"]))))
        else:
            assert shape.tag in (f"{SPACE}title", f"{SPACE}style"), shape.tag
    return Box(left, top, left + width, top + height), found


def _box_of_text(shape: ET.Element, size: float) -> Box:
    text = shape.text or ""
    x, y, width = float(shape.attrib["x"]), float(shape.attrib["y"]), text_width(text, size)
    before = {"start": 0.0, "middle": width / 2, "end": width}[shape.attrib.get("text-anchor", "start")]
    return Box(x - before, y - 0.8 * size, x - before + width, y + 0.25 * size, text)


def check(svg: str) -> list[Box]:
    """Assert that all shapes are inside of the picture and that no text covers another one; return the boxes."""
    view, found = boxes(svg)
    outside = [box for box in found if not box.inside(view)]
    assert not outside, (view, outside)
    texts = [box for box in found if box.text]
    for place, one in enumerate(texts):
        covered = [other.text for other in texts[:place] if one.overlaps(other)]
        assert not covered, (one, covered)
    return found
