"""Mistakes of newcomers and the messages that they get: what the files of `gallery/` hold, and how a mistake is run.

A file has paragraphs: the mistake in words, the code after `>>>`, and the error or warning as Python prints it. In a
message, `…` stands for the text of another library; all else is compared, apart from where lines end.

    .venv/bin/python tests/py/docs/mistakes.py

writes today's messages into the files. Read each one as a newcomer before you commit it: does it name the argument,
what was expected, what was found, and what to do? `--json` prints them instead, those of missing libraries left out.
"""

import ast
import functools
import importlib
import importlib.util
import json
import os
import re
import sys
import tempfile
import textwrap
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import dlfield as dl

FILES = sorted((Path(__file__).parent / "gallery").glob("*.txt"))
ANY_TEXT = "…"
# What a line of the program after the advice starts with.
FIX = "fix "
# What the code may use without an import, and the module of each name.
MODULES = {
    "dl": "dlfield",
    "np": "numpy",
    "torch": "torch",
    "jax": "jax",
    "jnp": "jax.numpy",
    "pd": "pandas",
    "xr": "xarray",
    "sparse": "scipy.sparse",
}

# The libraries that these functions import.
IMPORTED = {"as_torch": "torch", "to_torch": "torch", "as_jax": "jax", "to_jax": "jax", "wrap": "gt4py"}


class Mistake(NamedTuple):
    """A paragraph of a file."""

    subject: str
    words: str
    # The lines as printed.
    session: str
    message: str
    # The program that follows the message's advice, without prompts; empty if that is not code.
    fix: str = ""

    @property
    def code(self) -> str:
        """The session's code without its prompts."""
        return "\n".join(line[4:] for line in self.session.splitlines())

    def modules(self) -> list[str]:
        """Return the modules that the code uses."""
        nodes = list(ast.walk(ast.parse(self.code)))
        names = [node.id for node in nodes if isinstance(node, ast.Name)]
        functions = [node.attr for node in nodes if isinstance(node, ast.Attribute)]
        used = [module for name, module in MODULES.items() if name in names]
        return used + [module for name, module in IMPORTED.items() if name in functions]


def mistakes(file: Path) -> list[Mistake]:
    """Return the mistakes of a file; its first paragraph says what it is about."""
    paragraphs = file.read_text(encoding="utf8").strip().split("\n\n")[1:]
    return [parsed(file.stem, paragraph) for paragraph in paragraphs]


def gallery() -> list[Mistake]:
    """Return the mistakes of all files."""
    return [mistake for file in FILES for mistake in mistakes(file)]


def parsed(subject: str, paragraph: str) -> Mistake:
    """Return the mistake that a paragraph describes."""
    lines = [line for line in paragraph.splitlines() if not line.startswith(FIX)]
    fix = [line.removeprefix(FIX) for line in paragraph.splitlines() if line.startswith(FIX)]
    code = [line for line in lines if line.startswith((">>> ", "... "))]
    start = lines.index(code[0])
    words, message = lines[:start], lines[start + len(code) :]
    assert lines[start : start + len(code)] == code, paragraph
    return Mistake(subject, " ".join(words), "\n".join(code), " ".join(" ".join(message).split()), "\n".join(fix))


def happened(mistake: Mistake, names: dict[str, Any]) -> str:
    """Run the code; return its error, after dlfield's warnings, as Python prints them, on one line."""
    messages = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(compile(mistake.code, mistake.subject, "exec"), {"__name__": "__main__", **names})
        except Exception as error:
            messages.append(shown(error))
    ours = [shown(found.message) for found in caught if issubclass(found.category, dl.LayoutWarning)]
    return " ".join(" ".join(ours + messages).split())


def shown(error: str | Warning | Exception) -> str:
    """Return an error or warning as Python prints it after a traceback, with its notes."""
    module, name = type(error).__module__, type(error).__qualname__
    notes = getattr(error, "__notes__", [])
    return " ".join([f"{name if module == 'builtins' else f'{module}.{name}'}: {error}", *notes])


def is_same(found: str, expected: str) -> bool:
    """Return whether the message is the expected one, whose `…` stands for any text."""
    pattern = ".*".join(re.escape(part) for part in expected.split(ANY_TEXT))
    return re.fullmatch(pattern, found) is not None


def imported(mistake: Mistake) -> dict[str, Any]:
    """Return the modules under the names that the code uses."""
    return {name: importlib.import_module(module) for name, module in MODULES.items() if module in mistake.modules()}


def renewed(mistake: Mistake, found: str) -> str:
    """Return the paragraph with today's message, unless the one in the file still describes it."""
    message = mistake.message if mistake.message and is_same(found, mistake.message) else found
    lines = textwrap.wrap(message, 120, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    return "\n".join([mistake.words, mistake.session, *lines, *(FIX + line for line in mistake.fix.splitlines())])


def fixed(mistake: Mistake) -> Mistake:
    """Return the program that follows the advice, as a mistake, which it must not be."""
    prompts = "\n".join(f">>> {line}" for line in mistake.fix.splitlines())
    return mistake._replace(session=prompts, message="", fix="")


def todays_message(mistake: Mistake) -> str:
    """Run the code in an empty folder; return what `happened`."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        return happened(mistake, imported(mistake))


def print_messages() -> None:
    """Print the messages of mistakes and of their advice, by the code, as JSON, where the libraries are installed."""
    programs = [program for each in gallery() for program in (each, fixed(each)) if program.session]
    # Of a package that is missing, `find_spec` cannot look for a module.
    there = functools.cache(lambda module: importlib.util.find_spec(module.partition(".")[0]) is not None)
    found = {each.code: todays_message(each) for each in programs if all(map(there, each.modules()))}
    json.dump(found, sys.stdout)


def write_messages() -> None:
    """Write today's messages into the files."""
    for file in FILES:
        head = file.read_text(encoding="utf8").split("\n\n")[0].strip()
        paragraphs = [head, *(renewed(mistake, todays_message(mistake)) for mistake in mistakes(file))]
        file.write_text("\n\n".join(paragraphs) + "\n", encoding="utf8")


if __name__ == "__main__":
    print_messages() if sys.argv[1:] == ["--json"] else write_messages()
