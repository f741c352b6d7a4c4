"""The site in headless Chromium: pages on a wide and on a narrow window, the search, the copy button."""

import functools
import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import browser

pytest.importorskip("PyQt6")
pytest.importorskip("mkdocs", reason="`make docs` installs MkDocs")

pytestmark = pytest.mark.exhaustive

ROOT = Path(__file__).parents[3]
PAGES = ("", "tour/", "kernels/c/", "reference/allocate/", "about/measured/")
WIDTHS = (1280, 390)
WORDS = {"zeros": "dlfield.zeros", "from_dlpack": "dlfield.from_dlpack", "cupy": "dlfield.as_cupy"}

# By how much a page, and each table, is wider than its place; where the first code begins.
LOOK = """JSON.stringify({
  page: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  tables: [...document.querySelectorAll(".md-typeset__scrollwrap")].map((it) => it.scrollWidth - it.clientWidth),
  out: [...document.querySelectorAll(".md-content__inner *")]
    .filter((part) => part.getBoundingClientRect().right > innerWidth && !part.closest("pre, .md-typeset__scrollwrap"))
    .map((part) => part.outerHTML.slice(0, 100)),
  sessions: [...document.querySelectorAll(".language-pycon code")].map((code) => code.scrollWidth - code.clientWidth),
  code: document.querySelector(".md-content pre")?.getBoundingClientRect().top ?? null,
})"""
# What the site's own script reads when the button is pressed.
COPY = """(() => {
  const code = document.querySelector(".language-pycon code");
  code.setAttribute("data-md-copying", "");
  return JSON.stringify(code.innerText);
})()"""
SEARCH = """(() => {
  const box = document.querySelector(".md-search__input");
  if (!document.querySelector("#__search").checked) document.querySelector("#__search").click();
  if (box.value !== WORD) box.value = WORD;
  box.focus();
  box.dispatchEvent(new KeyboardEvent("keyup", { bubbles: true }));
  const found = [...document.querySelectorAll(".md-search-result__item:first-child .md-search-result__link")];
  return found.length ? JSON.stringify(found.map((link) => link.href)) : "";
})()"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the site, built and served."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_the_site_is_readable(site: str) -> None:
    """One browser for all questions: most of the time is its start."""
    looks = [(page, width) for page in PAGES for width in WIDTHS]
    questions = [(site + page, width, LOOK) for page, width in looks]
    questions += [(site, 1280, COPY)]
    questions += [(site, 1280, SEARCH.replace("WORD", f'"{word}"')) for word in WORDS]
    *shown, copied, zeros, from_dlpack, cupy = browser.ask(questions)

    for (page, width), seen in zip(looks, shown, strict=True):
        assert seen["page"] <= 0, (page, width)
        assert seen["out"] == [], (page, width)
        if width == 1280:
            assert all(over <= 0 for over in seen["tables"]), (page, seen["tables"])
        # The examples of docstrings are as wide as their source.
        if width == 1280 and not page.startswith("reference/"):
            assert all(over <= 0 for over in seen["sessions"]), (page, seen["sessions"])
        if not page:
            assert seen["code"] < 900, width

    lines = copied.splitlines()
    assert lines[0] == "import dlfield as dl"
    assert not [line for line in lines if line.startswith((">>>", "((", "True"))]

    # Of the first page that is found, with its sections.
    for name, links in zip(WORDS.values(), (zeros, from_dlpack, cupy), strict=True):
        assert links[0].split("?")[0].endswith(("reference/allocate/", "reference/exchange/")), links
        assert any(link.endswith(f"#{name}") for link in links), links
