"""The code of docs/memory.md runs as shown."""

import doctest
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "memory.md"


def test_the_page_runs_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # The page's own classes are in its namespace, as in a session.
    text = PAGE.read_text(encoding="utf8")
    page = doctest.DocTestParser().get_doctest(text, {"__name__": "__main__"}, PAGE.name, str(PAGE), 0)
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(page).failed == 0
