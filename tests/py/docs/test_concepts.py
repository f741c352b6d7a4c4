"""The pictures of the pages of concepts are what their script draws."""

import importlib.util
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest

from pages import DOCS


@pytest.fixture(scope="module")
def draw() -> ModuleType:
    """The script that draws the pictures."""
    spec = importlib.util.spec_from_file_location("draw", DOCS / "concepts" / "draw.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_concept_shows_its_picture_as_drawn(draw: ModuleType) -> None:
    drawn = {picture.__name__: picture() for picture in draw.PICTURES}
    assert set(drawn) == {page.stem for page in (DOCS / "concepts").glob("*.md")}
    for name, svg in drawn.items():
        assert (DOCS / "concepts" / f"{name}.svg").read_text() == svg
        page = (DOCS / "concepts" / f"{name}.md").read_text()
        assert f"]({name}.svg)" in page
        assert ">>> " in page


def test_shapes_are_inside_their_pictures(draw: ModuleType) -> None:
    """Each rectangle; texts are as wide as the reader's font."""
    for picture in draw.PICTURES:
        root = ET.fromstring(picture())
        width, height = float(root.attrib["width"]), float(root.attrib["height"])
        boxes = [element.attrib for element in root if element.tag.endswith("rect")]
        assert len(boxes) > 5
        for box in boxes:
            assert 0 <= float(box["x"]) <= width - float(box["width"])
            assert 0 <= float(box["y"]) <= height - float(box["height"])
