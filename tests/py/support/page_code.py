"""Code of documentation pages: its blocks, and sessions that are run as printed."""

import doctest
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page: Path, language: str) -> list[str]:
    """Return the code blocks of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf8"), re.MULTILINE | re.DOTALL)


def run_session(text: str, names: dict[str, Any] | None = None) -> int:
    """Run the examples in a text, after `names` were defined; return how many. Their classes are those of a session."""
    session = doctest.DocTestParser().get_doctest(text, {"__name__": "__main__", **(names or {})}, "page", None, 0)
    results = doctest.DocTestRunner(optionflags=FLAGS).run(session)
    assert results.failed == 0
    return results.attempted
