"""`dl.draw`: which elements it shows, where, and what it says about them."""

import doctest
import re
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import dlfield as dl
import svg_boxes
from dlfield.show.cache_lines import LINE, Line, Skipped, memory_lines

FIELDS: dict[str, Callable[[], dl.Tensor]] = {
    "one row": lambda: dl.zeros(5),
    "aligned": lambda: dl.zeros((3, 10), alignment_size=64, halo=((0, 0), (1, 1))),
    "three": lambda: dl.zeros((3, 4, 5), "float32", backend="gt:cpu_ifirst", halo=(1, 1, 0)),
    "four": lambda: dl.zeros((5, 3, 4, 2), "float32", alignment_size=32),
    "scalar": lambda: dl.full((), 2.5),
    "empty": lambda: dl.zeros((3, 0)),
    "large": lambda: dl.empty((1024, 1024, 512)),
    "bytes": lambda: dl.ones((4, 50), "int8", alignment_size=64),
    "complex": lambda: dl.zeros((4, 3), "complex128"),
    "reversed": lambda: dl.from_array(np.arange(20.0).reshape(4, 5))[::-1, ::-2],
    "column": lambda: dl.from_array(np.arange(90).reshape(9, 10))[:, 3],
    "far apart": lambda: dl.zeros((100, 1000))[:, 7],
    "repeated": lambda: dl.from_dlpack(np.broadcast_to(np.arange(3.0), (1000, 3))),
    "windows": lambda: dl.from_dlpack(np.lib.stride_tricks.sliding_window_view(np.arange(40.0), 30)),
    "across lines": lambda: complex_across_lines(),
    "small numbers": lambda: dl.ones((3, 4), "bfloat16"),
    "huge numbers": lambda: dl.full((2, 2), -1.23456789e-300),
    "long labels": lambda: dl.zeros((2, 3), dims=("W" * 200, "\N{CJK UNIFIED IDEOGRAPH-9AD8}" * 90)),
}


def complex_across_lines() -> dl.Tensor:
    """Numbers of 16 bytes, each fourth of which begins 8 bytes before the end of a cache line."""
    memory = np.zeros(3000, "uint8")
    return dl.from_dlpack(memory[(-memory.ctypes.data - 8) % LINE :][: 16 * 30].view("complex128"))


def texts(field: dl.Tensor) -> list[str]:
    """All texts of the picture, without tooltips."""
    return [shape.text or "" for shape in ET.fromstring(dl.draw(field).svg).iter(f"{svg_boxes.SPACE}text")]


def tooltips(field: dl.Tensor) -> list[str]:
    """What the cells say."""
    cells = ET.fromstring(dl.draw(field).svg).iter(f"{svg_boxes.SPACE}rect")
    return [title.text or "" for cell in cells for title in cell]


@pytest.mark.parametrize("name", FIELDS)
def test_the_shapes_are_inside_and_apart(name: str) -> None:
    """No text leaves the picture or covers another one, and no cell covers another one."""
    picture = dl.draw(FIELDS[name]())
    found = svg_boxes.check(picture.svg)
    assert svg_boxes.check(picture._repr_html_()) == found
    cells = [box for box in found if not box.text and box.right - box.left > 0 and box.bottom - box.top > 0]
    rows: dict[float, list[svg_boxes.Box]] = {}
    for cell in cells:
        rows.setdefault(cell.top, []).append(cell)
    for row in rows.values():
        row.sort()
        assert not any(left.overlaps(right) for left, right in pairwise(row))
    for text in (box for box in found if re.fullmatch(r"\d+(,\d+)+", box.text)):
        assert any(text.inside(cell) for cell in cells) or text.right <= min(cell.left for cell in cells), text
    assert len(picture.svg) < 300_000


@pytest.mark.parametrize("name", ["one row", "aligned", "three", "bytes", "reversed", "column", "across lines"])
def test_each_element_is_where_its_address_says(name: str) -> None:
    field = FIELDS[name]()
    first = field.ptr + min(sum(i * s for i, s in zip(at, field.strides, strict=True)) for at in indices(field))
    first -= first % LINE
    bytes_of: dict[tuple[int, ...], list[int]] = {}
    for line in memory_lines(field, 1000):
        assert isinstance(line, Line)
        for part in line.parts:
            place = line.number * LINE
            bytes_of.setdefault(part.index, []).extend(range(place + part.start, place + part.stop))
    for at in indices(field):
        begin = field.ptr + sum(i * s for i, s in zip(at, field.strides, strict=True)) - first
        assert sorted(bytes_of.pop(at)) == list(range(begin, begin + field.itemsize))
    assert not bytes_of


def indices(field: dl.Tensor) -> list[tuple[int, ...]]:
    return list(product(*map(range, field.shape)))


def test_the_bytes_between_the_elements_are_padding() -> None:
    field = dl.zeros((2, 3), alignment_size=64)
    assert [line.gaps for line in memory_lines(field, 8) if isinstance(line, Line)] == [[(24, 64)], []]
    assert tooltips(field).count("padding, or not in this view") == 1
    assert "padding, or not in this view" in texts(field)


def test_long_fields_have_their_middle_left_out() -> None:
    lines = memory_lines(dl.zeros(8000, alignment_size=64), 16)
    numbers = [line.number for line in lines if isinstance(line, Line)]
    assert numbers == [*range(8), *range(992, 1000)]
    assert lines[8] == Skipped(984, empty=False)
    assert any("984 cache lines left out" in text for text in texts(dl.zeros(8000, alignment_size=64)))


@pytest.mark.parametrize("layout", [(0, 1, 2), (2, 1, 0)])
@pytest.mark.parametrize("padded", [{}, {"alignment_size": 64}, {"dtype": "complex128"}])
def test_large_fields_begin_at_the_origin(layout: tuple[int, ...], padded: dict[str, Any]) -> None:
    field = dl.zeros((66, 66, 40), layout=layout, halo=(1, 1, 1), **padded)
    field = field[:, ::-1] if layout[0] else field
    lines = memory_lines(field, 16)
    assert isinstance(lines[0], Skipped)
    shown = [line for line in lines if isinstance(line, Line)]
    assert len(shown) == 16
    assert field.origin in [part.index for part in shown[0].parts]
    all_lines = {line.number: line for line in memory_lines(field, 1_000_000) if isinstance(line, Line)}
    assert all(all_lines[line.number] == line for line in shown)
    assert {"domain", "halo"} <= set(texts(field))


def test_an_origin_near_the_end_is_shown_with_the_first_lines() -> None:
    field = dl.zeros(8000, origin=(7999,), alignment_size=64)
    assert [line.number for line in memory_lines(field, 16) if isinstance(line, Line)][:2] == [0, 1]


def test_an_element_that_ends_in_the_first_line_after_the_middle_is_shown_there() -> None:
    field = FIELDS["across lines"]()
    whole = {line.number: line for line in memory_lines(field, 100) if isinstance(line, Line)}
    shown = [line for line in memory_lines(field, 4) if isinstance(line, Line)]
    assert len(shown) == 4
    assert all(whole[line.number] == line for line in shown)


def test_elements_have_their_index_and_value() -> None:
    field = dl.from_array(np.array([[1.5, -2.0, 3e10], [0.1, 1 / 3, np.nan]]))
    found = texts(field)
    for at in indices(field):
        assert ",".join(map(str, at)) in found
    for value in ("1.5", "-2", "3e+10", "0.1", "0.3333", "nan"):
        assert value in found
    assert any(tip.startswith("[1, 0], +24 bytes") and tip.endswith(": 0.1") for tip in tooltips(field))


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int64", "float16", "bfloat16", "float8_e4m3fn", "int4", "complex64"]
)
def test_values_of_every_type_are_read(dtype: str) -> None:
    field = dl.ones((2, 2), dtype)
    assert all(tip.rpartition(": ")[2] == str(field.to_numpy()[0, 0]) for tip in tooltips(field))


def test_domain_halo_and_alignment_look_different() -> None:
    found = texts(FIELDS["aligned"]())
    assert found[-4:] == ["domain", "halo", "padding, or not in this view", "multiple of 64 bytes"]
    tips = tooltips(FIELDS["aligned"]())
    assert sum("halo" in tip for tip in tips) == 6
    aligned = [tip for tip in tips if "aligned" in tip]
    assert [tip.split("]")[0] for tip in aligned if "halo" not in tip] == ["[0, 1", "[1, 1", "[2, 1"]


def test_elements_that_share_memory_are_not_visited_one_by_one() -> None:
    # Millions of indices for 1196 bytes.
    field = dl.from_dlpack(np.lib.stride_tricks.as_strided(np.zeros(2000, "u1"), (200, 200, 200), (1, 2, 3)))
    found = [part.offset for line in memory_lines(field, 1000) if isinstance(line, Line) for part in line.parts]
    assert found == list(range(199 * 6 + 1))


# A field, and what its texts have, and have not.
TEXTS: list[tuple[Callable[[], dl.Tensor], list[str], list[str]]] = [
    (lambda: dl.zeros((2, 4)), ["domain"], ["halo", "padding", "multiple"]),
    (FIELDS["empty"], ["no elements"], []),
    (FIELDS["repeated"], ["the same memory at each index of I"], []),
    (lambda: dl.zeros((1, 3)), [], ["the same memory"]),
    (FIELDS["far apart"], ["cache lines without an element"], []),
    # Characters that XML forbids.
    (lambda: dl.zeros((2, 3), dims=("a\x01", "b")), ["float64  a?: 2, b: 3"], []),
    (lambda: dl.zeros((2, 2), dims=("<script>", 'a"&')), ['<script>: 2, a"&: 2'], []),
]


@pytest.mark.parametrize(("make", "present", "absent"), TEXTS)
def test_texts_name_what_a_field_has(make: Callable[[], dl.Tensor], present: list[str], absent: list[str]) -> None:
    found = " ".join(texts(make()))
    assert [word for word in present if word not in found] == [word for word in absent if word in found] == []


def test_repeated_elements_are_drawn_once_and_lines_without_elements_not_at_all() -> None:
    assert len(tooltips(FIELDS["repeated"]())) == 3
    lines = memory_lines(dl.zeros((3, 100))[:, 0], 16)
    assert [type(line) for line in lines] == [Line, Skipped, Line, Skipped, Line]


def test_arrays_of_at_most_four_dimensions_are_drawn() -> None:
    array = np.ones((2, 2))
    assert dl.draw(array).svg == dl.draw(dl.from_dlpack(array)).svg
    with pytest.raises(dl.DimsError, match=r"^array: expected at most 4 .*; draw a part of it, as array\[0, 0\]$"):
        dl.draw(dl.zeros((2,) * 6))
    dl.draw(dl.zeros((2,) * 6)[0, 0])
    with pytest.raises(dl.NotAnArrayError, match="int"):
        dl.draw(3)


@pytest.mark.parametrize("path", [None, 5, b"x.png", "x\0.svg"])
def test_a_wrong_path_is_named(path: object) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^path: "):
        dl.draw(dl.zeros(3)).save(path)  # type: ignore[arg-type]


def test_a_drawing_is_saved_and_shown(tmp_path: Path) -> None:
    picture = dl.draw(dl.zeros((2, 3)))
    assert isinstance(picture, dl.Drawing)
    picture.save(tmp_path / "field.svg")
    saved = (tmp_path / "field.svg").read_text(encoding="utf8")
    assert saved == picture.svg == str(picture) == picture._repr_svg_()
    assert "prefers-color-scheme: dark" in saved
    assert "\n" not in repr(picture)
    assert "save(" in repr(picture)
    with pytest.raises(ValueError, match=r"path: expected a name that ends in '.svg', got .*field.png'"):
        picture.save(str(tmp_path / "field.png"))
    assert not (tmp_path / "field.png").exists()


def test_in_a_page_it_has_the_colours_of_the_page() -> None:
    """A style sheet would change the pictures of others in the same page."""
    inline = dl.draw(FIELDS["aligned"]())._repr_html_()
    assert "<style" not in inline
    assert "class=" not in inline
    assert ' fill="currentColor"' in inline
    assert not re.search("<text[^>]* fill=", inline)


def test_the_page_shows_what_its_session_saves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the tooltips, whose last digits are those of this machine's sine."""
    pytest.importorskip("matplotlib")
    pytest.importorskip("xarray")
    page = Path(__file__).parents[3] / "docs" / "frameworks" / "notebooks.md"
    monkeypatch.chdir(tmp_path)
    session = doctest.DocTestParser().get_doctest(page.read_text(encoding="utf8"), {}, page.name, str(page), 0)
    assert doctest.DocTestRunner().run(session).failed == 0
    saved, shown = (
        re.sub("<title>.*?</title>", "", file.read_text(encoding="utf8"))
        for file in (tmp_path / "memory.svg", page.with_name("draw.svg"))
    )
    assert saved == shown
