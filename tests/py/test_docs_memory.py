"""The code of docs/memory.md and docs/processes.md runs as shown."""

import doctest
import os
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", ["memory.md", "processes.md"])
def test_the_page_runs_as_shown(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "processes.md" and not hasattr(os, "memfd_create"):
        pytest.skip("shared memory for tensors needs Linux")
    monkeypatch.chdir(tmp_path)
    page = DOCS / name
    # The page's own classes are in its namespace, as in a session.
    text = page.read_text(encoding="utf8")
    parsed = doctest.DocTestParser().get_doctest(text, {"__name__": "__main__"}, name, str(page), 0)
    assert len(parsed.examples) > 20
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(parsed).failed == 0
