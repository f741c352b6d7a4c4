"""The paths of files, as the functions that read and write them take them."""

import os
from typing import Any


def text_of_path(path: Any, fix: str = "") -> str:
    """Return a path as text, or raise an error that ends with `fix` for what is no path.

    Example
    -------
    >>> text_of_path(b"field.npy")
    'field.npy'
    """
    if not isinstance(path, str | bytes | os.PathLike):
        raise TypeError(f"path: found {type(path).__name__}; allowed is a string or another path{fix}")
    text = os.fsdecode(path)
    if "\0" in text:
        raise ValueError(f"path: {text!r} has a null character; allowed is a name without one")
    return text
