"""Words of translated English, for which NumPy, PyO3 and DLPack have their own: none in pages, docstrings and comments.

A pattern is for the sense that the project does not use. "None", in code and in prose, stays what it is in Python.
"""

import functools
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

#: The word, and what to write instead.
WORDS = {
    r"\bwanted\b": "expected",
    r"\b[Aa]llowed (is|are)\b": "expected X, got Y",
    r"(?<!::)\b[Ff]oreign\b": "of another library",
    r"\b[Bb]eside\b": "next to, with, compared with, in addition to",
    r"\black(s|ed|ing)?\b": "does not have",
    # "is no X" as a predicate; "there is no X" and "is no longer" are English.
    r"(?<![Tt]here )\b(is|are|was|were) no (?!longer\b|more\b|other\b)(?=[a-z])": "is not a",
    r"(?<![Tt]here )\b(is|are|was|were) none\b": "does not exist, is not",
    r"\b[Aa]s above\b": "say it again, in a few words",
    r"\b[Ww]hatever\b": "for every, all, any",
    # A clause as a noun after a preposition: "of what is left".
    r"\b(of|in|to|from|for|with|than|after|before|by|on) what (is|it|was|they)\b": "name the thing",
}

#: This file, which has the words.
EXEMPT = "tests/py/docs/test_words.py"
SUFFIXES = (".md", ".py", ".pyi", ".sh", ".rs")

#: In Rust: a comment or a text, which may be a message, or else code.
PART = re.compile(r"""(//[^\n]*|"(?:[^"\\]|\\.)*")|'\\?.'|[^\n"'/]+|[^\n]""", re.DOTALL)

#: A name in code, a quoted message, a code block of a page, an interface of another library.
QUOTED = re.compile(
    r"""`\w+`|\{\w+\}|match=.*|^>>> .*|^\w+(\.\w+)*(Error|Warning): .*|_foreign_\w+|Owner(::|\()foreign|"foreign\"""",
    re.MULTILINE,
)


def files() -> list[Path]:
    """Return the files of the repository with prose: pages, Python, scripts, comments and texts in Rust."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [ROOT / name for name in listed if name.endswith(SUFFIXES) and name != EXEMPT]


@functools.cache
def prose(file: Path) -> str:
    """Return the text of a file without quotations; of a file in Rust the comments and texts."""
    text = file.read_text(encoding="utf8")
    if file.suffix == ".rs":
        text = PART.sub(lambda part: part[1] or "", text)
    return QUOTED.sub("", text)


@pytest.mark.parametrize("word", WORDS)
def test_the_word_is_not_used(word: str) -> None:
    found = []
    for file in files():
        name, lines = file.relative_to(ROOT), enumerate(prose(file).splitlines(), 1)
        found += [f"{name}:{number}: {line.strip()}" for number, line in lines if re.search(word, line)]
    assert found == [], f"write instead: {WORDS[word]}"
