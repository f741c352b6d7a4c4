"""What a tensor says of itself, in a terminal and in a notebook."""

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import dlfield as dl


class Checked(HTMLParser):
    """Fails on tags that don't match; `tags` counts each."""

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


@pytest.mark.parametrize("name", FIELDS)
def test_html_is_well_formed_and_small(name: str) -> None:
    text = FIELDS[name]()._repr_html_()
    tags = Checked(text).tags
    assert tags["table"] == 1
    assert len(text) < 100_000
    assert "script" not in tags


def test_html_draws_halo_domain_padding() -> None:
    text = dl.zeros((3, 5), halo=((1, 0), (1, 1)), alignment_size=64)._repr_html_()
    assert Checked(text).tags["rect"] == 3 * 8
    assert text.count("<title>padding</title>") == 3 * 3
    assert text.count(", halo") == 5 + 2 * 2


def test_html_of_labels_is_escaped() -> None:
    text = dl.zeros((2, 3), dims=("<script>", 'a"b&'))._repr_html_()
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
