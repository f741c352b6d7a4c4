"""The examples of docstrings, which stand at their end, as a section that mkdocstrings knows."""

import re
from typing import Any

import griffe

# A section of its own, or the first line of a session.
BEGIN = re.compile(r"^(?:Example\n-+\n)?(?=>>> )", re.MULTILINE)


class Examples(griffe.Extension):  # type: ignore[misc]
    """Give every docstring with a session the section "Examples" of NumPy's style."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of one object."""
        if obj.docstring:
            obj.docstring.value = BEGIN.sub("Examples\n--------\n", obj.docstring.value, count=1)
