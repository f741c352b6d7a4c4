"""What the site does with pages: those that are files outside of docs/, links, sessions, and what a search finds."""

import os
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
# Files of the repository, and the pages that they are.
OUTSIDE = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    ".github/SECURITY.md": "project/security.md",
    "examples/README.md": "project/examples.md",
    "examples/rust_extension/README.md": "project/extension.md",
}
# A search finds functions first, and no numbers or changes.
FUNCTIONS = re.compile(r"reference/(?!presets|protocols)")
NEVER = ("about/measured.md", "project/changelog.md", "contributing/design.md")
SESSION = re.compile(r"^```python\n(?=>>> )", re.MULTILINE)
LINK = re.compile(r"\[(?P<text>[^][]*)\]\((?P<path>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the files outside of docs/."""
    for source, page in OUTSIDE.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Make the links of a page, which lead to files of the repository, links of the site, and mark its sessions."""
    here = page.file.src_uri
    if FUNCTIONS.match(here):
        page.meta["search"] = {"boost": 4}
    elif here in NEVER:
        page.meta["search"] = {"exclude": True}
    sources = {target: source for source, target in OUTSIDE.items()}
    markdown = LINK.sub(lambda link: _on_site(link, sources.get(here, f"docs/{here}"), here), markdown)
    # Whose prompts and results the copy button leaves out.
    return SESSION.sub("```pycon\n", markdown)


def _on_site(link: re.Match[str], source: str, here: str) -> str:
    """Return the link of a file of the repository as that of the page `here`, made from this file.

    Of a link to a file that is not on the site, such as a program, the text is left. One to no file stays as it is,
    and MkDocs reports it.
    """
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link["path"]))
    if target == "docs":
        page = "index.md"
    elif target.startswith("docs/"):
        page = target.removeprefix("docs/")
    elif target in OUTSIDE:
        page = OUTSIDE[target]
    else:
        return link["text"] if (ROOT / target).exists() else link[0]
    return f"[{link['text']}]({os.path.relpath(page, posixpath.dirname(here) or '.')}{link['anchor'] or ''})"
