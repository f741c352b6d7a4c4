"""What a notebook shows of a field: an executed notebook in headless Chromium, light and dark as in JupyterLab."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import browser
import dlfield as dl
from browser import Shape

pytest.importorskip("PyQt6")
pytest.importorskip("ipykernel")
nbclient = pytest.importorskip("nbclient")
nbconvert = pytest.importorskip("nbconvert")
nbformat = pytest.importorskip("nbformat")

pytestmark = pytest.mark.exhaustive

WIDTH = 1000
FIRST = """
import numpy as np
import matplotlib.pyplot as plt
import dlfield as dl
from dlfield.xarray import to_xarray

field = dl.zeros((6, 5, 4), backend="gt:cpu_ifirst", halo=(1, 1, 0))
field[...] = np.arange(120).reshape(6, 5, 4)
"""
CELLS = {
    "first": FIRST,
    "halo": "field",
    "padding": "dl.zeros((3, 10), 'float32', alignment_size=64)",
    "plain": "dl.ones((2, 3))",
    "large": "dl.zeros((1024, 1024, 512))",
    "drawing": "dl.draw(field)",
    "drawing of padding": "dl.draw(dl.zeros((3, 4, 10), 'float32', halo=(0, 1, 1), alignment_size=64))",
    "drawing of one dimension": "dl.draw(dl.ones(5))",
    "drawing of four": "dl.draw(dl.zeros((2, 3, 4, 5), 'int8'))",
    "xarray": "to_xarray(field.domain_view).isel(K=0).plot();",
    "matplotlib": "plt.imshow(field[:, :, 0].T, origin='lower');",
}
FIELDS = ("halo", "padding", "plain", "large")
DRAWINGS = tuple(name for name in CELLS if name.startswith("drawing"))


class Page:
    """An executed notebook as Chromium shows it."""

    def __init__(self, notebook: Any, theme: str, folder: Path) -> None:
        page, picture = folder / f"{theme}.html", folder / f"{theme}.png"
        html, _ = nbconvert.HTMLExporter(theme=theme).from_notebook_node(notebook)
        page.write_text(html)
        shown = browser.visit(page, picture, WIDTH)
        self.cells = {name: shown[str(number)] for number, name in enumerate(CELLS)}
        image = pytest.importorskip("matplotlib.image").imread(picture)
        self.picture = np.rint(image[:, :, :3] * 255)

    def shapes(self, *tags: str) -> Iterator[tuple[str, Shape]]:
        """The shapes with these tags, and the names of their cells."""
        for name, shapes in self.cells.items():
            yield from ((name, shape) for shape in shapes if shape.tag in tags)

    def drawings(self) -> Iterator[tuple[Shape, list[Shape]]]:
        """Each SVG picture, of which a cell has one at most, and what is in it."""
        for shapes in self.cells.values():
            for drawing in (shape for shape in shapes if shape.tag == "svg"):
                yield drawing, [shape for shape in shapes if shape.tag in ("rect", "path", "text")]

    def words(self, name: str) -> list[str]:
        """The texts next to the values."""
        return [shape.box.text for shape in self.cells[name] if shape.box.text and shape.tag != "line"]


@pytest.fixture(scope="module")
def notebook() -> Any:
    """The cells with their output, run in a kernel of their own."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in CELLS.values()])
    nbclient.NotebookClient(notebook, kernel_name="python3", timeout=600).execute()
    return notebook


@pytest.fixture(scope="module", params=["light", "dark"])
def page(request: pytest.FixtureRequest, notebook: Any, tmp_path_factory: pytest.TempPathFactory) -> Page:
    return Page(notebook, request.param, tmp_path_factory.mktemp("notebook"))


def test_nothing_is_cut_off(page: Page) -> None:
    for name, shape in page.shapes("div", "pre", "svg", "img", "td", "th"):
        assert shape.hidden <= 0, (name, shape)
        assert 0 <= shape.box.left < shape.box.right <= WIDTH, (name, shape)
        assert shape.box.top < shape.box.bottom, (name, shape)


def test_texts_can_be_read(page: Page) -> None:
    """The contrast is at least the 4.5 of WCAG 2.2, level AA."""
    texts = [(name, shape) for name, shape in page.shapes("th", "td", "p", "b", "text", "line") if shape.box.text]
    assert {name for name, _ in texts} == {*FIELDS, *DRAWINGS}
    for name, shape in texts:
        assert shape.contrast >= 4.5, (name, shape)


def test_pictures_are_whole_and_no_text_covers_another(page: Page) -> None:
    drawings = list(page.drawings())
    assert len(drawings) == len(FIELDS) + len(DRAWINGS)
    for drawing, parts in drawings:
        assert {part.tag for part in parts} >= {"rect", "text"}
        for part in parts:
            assert part.box.inside(drawing.box), (drawing, part)
        for tag in ("text", "rect"):
            for one, other in combinations([part.box for part in parts if part.tag == tag], 2):
                assert not one.overlaps(other), (one, other)


def test_a_field_takes_a_part_of_the_screen(tmp_path: Path) -> None:
    """The drawing is next to the table, and the values are folded."""
    field = dl.zeros((12, 10, 6), backend="gt:cpu_ifirst", halo=(1, 1, 0))
    (tmp_path / "field.html").write_text(f"<body>{field._repr_html_()}</body>")
    height = "String(document.body.firstElementChild.getBoundingClientRect().height)"
    assert browser.ask([((tmp_path / "field.html").as_uri(), WIDTH, height)])[0] < 260


def test_cells_have_their_colours_in_the_picture(page: Page) -> None:
    """What the browser painted in the middle of each cell of a field's picture; those of `dl.draw` have texts there."""
    seen = set()
    for name in FIELDS:
        for shape in page.cells[name]:
            if shape.tag == "rect":
                row, column = int(shape.box.top + shape.box.bottom) // 2, int(shape.box.left + shape.box.right) // 2
                assert np.allclose(page.picture[row, column], shape.color, atol=2), (name, shape)
                seen.add(shape.color)
    assert len(seen) == 3, "domain, halo, padding"


def test_values_are_in_columns(page: Page) -> None:
    """All letters of the values are equally wide."""
    lines = [shape for name, shape in page.shapes("line") if name in FIELDS and shape.box.text]
    widths = {round((shape.box.right - shape.box.left) / len(shape.box.text), 2) for shape in lines}
    assert len(widths) == 1, widths


def test_only_what_a_field_has_is_named(page: Page) -> None:
    # In the legend of the drawing; the table says of every field whether it has a halo.
    legends = {name: {shape.box.text for shape in page.cells[name] if shape.tag == "text"} for name in FIELDS}
    known = {"domain", "halo", "padding", "multiple of 64 bytes"}
    named = {name: known & {text.partition(",")[0] for text in legend} for name, legend in legends.items()}
    assert named["halo"] == {"domain", "halo"}
    assert named["padding"] == {"domain", "padding", "multiple of 64 bytes"}
    assert named["plain"] == named["large"] == {"domain"}
    assert "4,294,967,296 bytes (4.0 GiB)" in page.words("large")


def test_each_element_is_drawn_once(page: Page) -> None:
    indices = [f"{i},{j},{k}" for i in range(6) for j in range(5) for k in range(4)]
    drawn = [text for text in page.words("drawing") if text.count(",") == 2 and " " not in text]
    assert sorted(drawn) == sorted(indices)


def test_plots_show_the_field(page: Page) -> None:
    """The colours of the smallest and of the largest value are in the picture, on much of its area."""
    viridis = pytest.importorskip("matplotlib").colormaps["viridis"]
    for name in ("xarray", "matplotlib"):
        (image,) = (shape.box for shape in page.cells[name] if shape.tag == "img")
        area = page.picture[int(image.top) : int(image.bottom), int(image.left) : int(image.right)]
        assert min(area.shape[:2]) > 300, (name, image)
        for end in (0.0, 1.0):
            painted = np.all(np.abs(area - np.multiply(viridis(end)[:3], 255)) <= 2, axis=2)
            assert painted.mean() > 0.01, (name, end)
