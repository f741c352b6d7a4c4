"""The repr of a tensor, in a terminal and in a notebook."""

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import dlfield as dl
import svg_boxes


class Checked(HTMLParser):
    """An HTML parser that fails on mismatched tags; `tags` counts each."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: dict[str, int] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags[tag] = self.tags.get(tag, 0) + 1
        assert all(value is not None for _name, value in attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


FIELDS: dict[str, Any] = {
    "ordinary": lambda: dl.zeros((4, 5, 6), halo=(1, 1, 0)),
    "padded": lambda: dl.zeros((4, 5), alignment_size=64, halo=(1, 1)),
    "scalar": lambda: dl.zeros(()),
    "empty": lambda: dl.zeros((3, 0, 2)),
    "line": lambda: dl.zeros(3),
    "large": lambda: dl.empty((1024, 1024, 512)),
    "reversed": lambda: dl.zeros((4, 5))[::-1, ::-2],
    "broadcast": lambda: dl.from_dlpack(np.broadcast_to(1.0, (3, 4))),
    "bfloat16": lambda: dl.zeros((3, 4), "bfloat16", backend="gt:cpu_ifirst"),
    "many dimensions": lambda: dl.zeros((2,) * 9),
}


@pytest.mark.parametrize("name", FIELDS)
def test_repr_names_every_property(name: str) -> None:
    field = FIELDS[name]()
    text = repr(field)
    for found in (field.shape, field.dtype, field.dims, field.layout, field.device, field.alignment_size):
        assert str(found) in text
    assert re.search("(?i)read.?only", text) if field.readonly else not re.search("(?i)read.?only", text)


def values_of(field: dl.Tensor) -> str:
    """NumPy's text for the values after the same prefix."""
    return np.array2string(field.to_numpy(), separator=", ", prefix="Tensor(", suffix=",")


@pytest.mark.parametrize("name", FIELDS)
def test_repr_and_str_begin_with_the_values(name: str) -> None:
    field = FIELDS[name]()
    assert repr(field).startswith(f"Tensor({values_of(field)},")
    if field.ndim:
        assert str(field) == f"{field}" == repr(field)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float4_e2m1fn", "int4", "?", "u1", "f2", "c16"])
def test_values_of_every_type_are_shown(dtype: str) -> None:
    field = dl.ones((2, 3), dtype)
    assert repr(field).startswith(f"Tensor({values_of(field)},\n       shape=(2, 3), dtype={field.dtype}, ")
    one = dl.ones((), dtype)
    assert str(one) == f"{one}" == str(one.to_numpy()[()])


def test_numpys_print_options_count() -> None:
    field = dl.from_array(np.linspace(0, 1, 40).reshape(4, 10))
    for options in ({"precision": 2}, {"threshold": 5}, {"threshold": 5, "edgeitems": 1}, {"linewidth": 40}):
        with np.printoptions(**options):  # type: ignore[arg-type]
            assert repr(field).startswith(f"Tensor({values_of(field)},")


def test_the_text_of_a_large_field_is_small() -> None:
    text = repr(FIELDS["large"]())
    assert "..." in text
    assert len(text) < 20_000


def test_a_number_is_printed_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    field = dl.full((), 2.5)
    print(field, np.add.reduce(dl.ones((2, 3)), axis=(0, 1)))
    assert capsys.readouterr().out == "2.5 6.0\n"
    assert repr(field).startswith("Tensor(2.5, shape=(), dtype=float64, dims=()")


@pytest.mark.parametrize("name", FIELDS)
def test_html_is_well_formed_and_small(name: str) -> None:
    text = FIELDS[name]()._repr_html_()
    tags = Checked(text).tags
    assert tags["table"] == 1
    assert len(text) < 100_000
    assert "script" not in tags


def test_html_has_the_values() -> None:
    """In a font of equal letters, also where the page gives `pre` another one."""
    assert '<pre style="font-family:monospace">[[1., 1.],\n [1., 1.]]</pre>' in dl.ones((2, 2))._repr_html_()
    assert "&lt;values" not in dl.ones((2, 2))._repr_html_()


def svg_of(field: dl.Tensor) -> str:
    found = re.search("<svg.*</svg>", field._repr_html_(), re.DOTALL)
    assert found
    return found[0]


def test_html_draws_halo_domain_padding() -> None:
    text = dl.zeros((3, 5), halo=((1, 0), (1, 1)), alignment_size=64)._repr_html_()
    legend = 3
    assert Checked(text).tags["rect"] == 3 * 8 + legend
    assert text.count("<title>padding, or not in this view</title>") == 3 * 3
    assert text.count(", halo</title>") + text.count(", halo, aligned</title>") == 5 + 2 * 2
    assert re.findall(r"<text[^>]*>([^<=]*)</text>", text) == [
        "domain",
        "halo",
        "padding, or not in this view",
        "multiple of 64 bytes",
    ]


def test_html_does_not_mention_what_a_field_lacks() -> None:
    text = dl.zeros((3, 5))._repr_html_()
    assert "domain</text>" in text
    for word in ("halo", "origin", "padding", "alignment", "aligned", "multiple", "read-only"):
        assert word not in text


def test_html_of_a_domain_has_no_halo() -> None:
    """Its memory has one, but the view does not."""
    text = dl.zeros((6, 5), halo=(1, 1)).domain_view._repr_html_()
    assert "halo" not in text


def test_html_has_the_size() -> None:
    assert "<code>96 bytes</code>" in dl.zeros((3, 4))._repr_html_()
    assert "<code>4,294,967,296 bytes (4.0 GiB)</code>" in FIELDS["large"]()._repr_html_()


def test_html_elides_values_as_numpy_does() -> None:
    field = dl.from_array(np.arange(5000.0))
    assert f">{np.array2string(field.to_numpy(), separator=', ')}</pre>" in field._repr_html_()
    assert "..." in field._repr_html_()


@pytest.mark.parametrize("name", FIELDS)
def test_html_has_the_colours_of_its_page(name: str) -> None:
    """Text has no colour of its own, and no cell hides the background, so both show on light and dark pages."""
    text = FIELDS[name]()._repr_html_()
    assert "<style" not in text
    assert "color:" not in text
    assert not re.search(r"background|<text[^>]* fill=", text)
    if "<svg" in text:
        assert ' fill="currentColor"' in text
        filled = re.findall(r'<rect[^>]* fill="#[^>]*>', text)
        assert filled
        assert all("fill-opacity" in cell for cell in filled)


@pytest.mark.parametrize("name", [name for name in FIELDS if name != "empty"])
def test_the_shapes_of_the_html_are_inside_and_apart(name: str) -> None:
    assert svg_boxes.check(svg_of(FIELDS[name]()))


@pytest.mark.parametrize("label", ["latitude", "\N{CJK UNIFIED IDEOGRAPH-9AD8}" * 6, "W" * 40])
def test_long_labels_stay_inside(label: str) -> None:
    svg_boxes.check(svg_of(dl.zeros((12_000_000, 2), "int8", dims=(label, "I"))))


def test_html_of_labels_is_escaped() -> None:
    text = dl.zeros((2, 3, 4), dims=("<b>", "<script>", 'a"b&'))._repr_html_()
    Checked(text)
    assert "<script>" not in text
    assert "<b>=" not in text
    assert "&lt;script&gt;" in text
