"""Compare the docstrings of python/dlfield/_native.pyi with those of the compiled module; `--write` writes them.

Editors and the pages of the site read the stub, `help()` asks the module. Both texts come from the comments in Rust:
this script copies them. Names with an underscore in front have none, as nobody hovers over them.
"""

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dlfield import _native

STUB = Path(__file__).parents[1] / "python" / "dlfield" / "_native.pyi"

Definition = ast.ClassDef | ast.FunctionDef


def definitions(body: list[ast.stmt], owner: Any, prefix: str = "") -> Iterator[tuple[str, Definition, str | None]]:
    """Yield name, definition and the module's docstring of everything public; of overloads only the first has one."""
    found = set[str]()
    for node in body:
        if isinstance(node, Definition) and not node.name.startswith("_"):
            value = getattr(owner, node.name)
            yield f"{prefix}{node.name}", node, None if node.name in found else inspect.getdoc(value)
            # A setter and further overloads.
            found.add(node.name)
            if isinstance(node, ast.ClassDef):
                yield from definitions(node.body, value, f"{node.name}.")


def literal(text: str, indent: str) -> list[str]:
    """Return the lines of a docstring in source."""
    prefix = "r" if "\\" in text else ""
    if "\n" not in text and not text.endswith('"'):
        return [f'{indent}{prefix}"""{text}"""']
    first, *rest = text.splitlines()
    return [f'{indent}{prefix}"""{first}', *(f"{indent}{line}".rstrip() for line in rest), f'{indent}"""']


def with_docstrings(stub: str) -> str:
    """Return the stub with the docstrings of the module."""
    lines = stub.splitlines()
    # From the end, so that the numbers of the lines before stay.
    for _, node, text in sorted(definitions(ast.parse(stub).body, _native), key=lambda found: -found[1].lineno):
        new = literal(text, " " * (node.col_offset + 4)) if text else []
        first = node.body[0]
        if ast.get_docstring(node) is not None:
            nothing_left = [" " * (node.col_offset + 4) + "..."] if len(node.body) == 1 and not new else []
            lines[first.lineno - 1 : first.end_lineno] = new or nothing_left
        elif new and isinstance(first, ast.Expr):
            lines[first.lineno - 1 : first.lineno] = [lines[first.lineno - 1].removesuffix(" ..."), *new]
        elif new:
            above = min([first.lineno, *(mark.lineno for mark in getattr(first, "decorator_list", []))]) - 1
            lines[above:above] = [*new, ""]
    return "\n".join(lines) + "\n"


def differences(stub: str) -> list[str]:
    """Return the names whose docstrings differ."""
    found = definitions(ast.parse(stub).body, _native)
    return [name for name, node, text in found if (ast.get_docstring(node) or None) != (text or None)]


def main() -> int:
    """Write the docstrings, or print the names that differ."""
    if "--write" in sys.argv:
        STUB.write_text(with_docstrings(STUB.read_text(encoding="utf8")), encoding="utf8")
        return subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", STUB], check=False).returncode
    names = differences(STUB.read_text(encoding="utf8"))
    for name in names:
        print(f"{STUB.name}: the docstring of {name} is not that of the module: tools/stub_docs.py --write")
    return 1 if names else 0


if __name__ == "__main__":
    sys.exit(main())
