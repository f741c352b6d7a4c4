"""The pages under `docs/` that show code: it is compiled and run as it stands there."""

import doctest
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

WRAPPER = Path(__file__).parents[2] / "docs" / "wrapper.md"


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a page that are marked with the language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture
def wrapper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the page's wrapper defines, around the kernel that the page's own command has compiled."""
    (kernel,), (command,) = blocks(WRAPPER, "c"), blocks(WRAPPER, "console")
    (tmp_path / "laplacian.c").write_text(kernel)
    compiler, *arguments = shlex.split(command.removeprefix("$ "))
    assert compiler == "cc"
    subprocess.run([os.environ.get("CC", "cc"), *arguments], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    defined: dict[str, Any] = {}
    exec(blocks(WRAPPER, "python")[0], defined)
    return defined


def test_the_wrapper_has_30_lines_at_most() -> None:
    code = blocks(WRAPPER, "python")[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 30


def test_the_wrapper_does_what_the_page_says(wrapper: dict[str, Any]) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("xarray")
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    examples = "\n".join(blocks(WRAPPER, "python")[1:])
    assert examples.count(">>>") > 30
    page = doctest.DocTestParser().get_doctest(examples, wrapper, "wrapper.md", str(WRAPPER), 0)
    assert doctest.DocTestRunner(optionflags=flags).run(page).failed == 0


def test_readme_links_the_pages() -> None:
    readme = (WRAPPER.parents[1] / "README.md").read_text()
    for page in WRAPPER.parent.glob("*.md"):
        assert f"(docs/{page.name})" in readme
