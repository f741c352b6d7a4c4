"""The pages of concepts and the glossary: their code runs as printed, their pictures are what the script draws."""

import doctest
import importlib.util
import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest

DOCS = Path(__file__).parents[3] / "docs"
PAGES = sorted([*(DOCS / "concepts").glob("*.md"), DOCS / "glossary.md", DOCS / "comparison.md"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_does_what_the_page_says(page: Path) -> None:
    pytest.importorskip("jax")
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    results = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert results.failed == 0
    assert results.attempted == page.read_text().count(">>> ")
    assert results.attempted > 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for target, heading in re.findall(r"\]\(([^)#:]*)#?([^):]*)\)", page.read_text()):
        file = page.parent / target if target else page
        assert file.is_file(), target
        if heading:
            headings = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
            assert heading in {re.sub(r"[^\w -]", "", text).lower().replace(" ", "-") for text in headings}


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
        assert f"]({name}.svg)" in (DOCS / "concepts" / f"{name}.md").read_text()


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
