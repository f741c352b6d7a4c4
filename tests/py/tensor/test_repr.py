"""The repr of a tensor, in a terminal and in a notebook."""

import re
from collections.abc import Callable
from html.parser import HTMLParser

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


FIELDS: dict[str, Callable[[], dl.Tensor]] = {
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


def values_of(field: dl.Tensor) -> str:
    """NumPy's text for the values after the same prefix."""
    return np.array2string(field.to_numpy(), separator=", ", prefix="Tensor(", suffix=",")


@pytest.mark.parametrize("name", FIELDS)
def test_repr_has_the_values_and_names_every_property(name: str) -> None:
    field = FIELDS[name]()
    text = repr(field)
    assert text.startswith(f"Tensor({values_of(field)},")
    for found in (field.shape, field.dtype, field.dims, field.layout, field.device, field.alignment_size):
        assert str(found) in text
    assert bool(re.search("(?i)read.?only", text)) == field.readonly
    assert len(text) < 20_000
    if field.ndim:
        assert str(field) == f"{field}" == text


def test_halo_and_origin_are_shown_where_they_are_stated() -> None:
    for keywords, shown in (
        ({}, ""),
        ({"halo": (0, (0, 0))}, "halo=((0, 0), (0, 0)), "),
        ({"origin": (1, 0)}, "origin=(1, 0), "),
        ({"halo": (0, (1, 0)), "origin": (0, 2)}, "halo=((0, 0), (1, 0)), origin=(0, 2), "),
    ):
        field = dl.zeros((2, 3), **keywords)
        assert f"dims=('I', 'J'), {shown}layout=" in repr(field) == repr(dl.from_dlpack(field))
    field.halo = (1, 0)
    assert "dims=('I', 'J'), halo=((1, 1), (0, 0)), " in repr(field)


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


def test_a_number_is_printed_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    field = dl.full((), 2.5)
    print(field, np.add.reduce(dl.ones((2, 3)), axis=(0, 1)))
    assert capsys.readouterr().out == "2.5 6.0\n"
    assert repr(field).startswith("Tensor(2.5, shape=(), dtype=float64, dims=()")


def svg_of(field: dl.Tensor) -> str:
    found = re.search("<svg.*</svg>", field._repr_html_(), re.DOTALL)
    assert found
    return found[0]


@pytest.mark.parametrize("name", FIELDS)
def test_html_is_well_formed_and_small(name: str) -> None:
    """Text has no colour of its own, and no cell hides the background, so both show on light and dark pages."""
    text = FIELDS[name]()._repr_html_()
    tags = Checked(text).tags
    assert tags["table"] == 1
    assert len(text) < 100_000
    assert not {"script", "style"} & tags.keys()
    assert not re.search(r"color:|background|<text[^>]* fill=", text)
    if name != "empty":
        assert svg_boxes.check(svg_of(FIELDS[name]()))
        assert ' fill="currentColor"' in text
        filled = re.findall(r'<rect[^>]* fill="#[^>]*>', text)
        assert filled
        assert all("fill-opacity" in cell for cell in filled)


# A field, and what its HTML has, and has not.
TEXTS: list[tuple[Callable[[], dl.Tensor], list[str], list[str]]] = [
    # In a font of equal letters, also where the page gives `pre` another one.
    (lambda: dl.ones((2, 2)), ['<pre style="font-family:monospace">[[1., 1.],\n [1., 1.]]</pre>'], ["&lt;values"]),
    (
        lambda: dl.zeros((3, 5)),
        ["domain</text>", "<code>((0, 0), (0, 0))</code>"],
        ["halo</text>", "origin", ">padding", "alignment", "aligned", "multiple", "read-only"],
    ),
    # Its memory has a halo, but the view does not.
    (lambda: dl.zeros((6, 5), halo=(1, 1)).domain_view, ["<code>((0, 0), (0, 0))</code>"], ["halo</text>"]),
    (lambda: dl.zeros((6, 5), halo=(1, 0)), ["<code>((1, 1), (0, 0))</code>"], ["not stated"]),
    (lambda: dl.zeros((3, 4)), ["<code>96 bytes</code>"], []),
    (FIELDS["large"], ["<code>4,294,967,296 bytes (4.0 GiB)</code>"], []),
    (
        lambda: dl.from_array(np.arange(5000.0)),
        [f">{np.array2string(np.arange(5000.0), separator=', ')}</pre>", "..."],
        [],
    ),
    (lambda: dl.zeros((2, 3, 4), dims=("<b>", "<script>", 'a"b&')), ["&lt;script&gt;"], ["<script>", "<b>="]),
]


@pytest.mark.parametrize(("make", "present", "absent"), TEXTS)
def test_html_has_what_a_field_has(make: Callable[[], dl.Tensor], present: list[str], absent: list[str]) -> None:
    text = make()._repr_html_()
    Checked(text)
    assert [word for word in present if word not in text] == [word for word in absent if word in text] == []


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


@pytest.mark.parametrize("label", ["latitude", "\N{CJK UNIFIED IDEOGRAPH-9AD8}" * 6, "W" * 40])
def test_long_labels_stay_inside(label: str) -> None:
    svg_boxes.check(svg_of(dl.zeros((12_000_000, 2), "int8", dims=(label, "I"))))
