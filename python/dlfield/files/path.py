"""The paths of files, as the functions that read and write them take them."""

import os
from typing import Any


def text_of_path(path: Any, fix: str = "") -> str:
    """Return a path as text, or raise an error that ends with `fix` if it is not a path.

    Example
    -------
    >>> text_of_path(b"field.npy")
    'field.npy'
    """
    if not isinstance(path, str | bytes | os.PathLike):
        raise TypeError(f"path: expected a string or another path, got {type(path).__name__}{fix}")
    text = os.fsdecode(path)
    if "\0" in text:
        raise ValueError(f"path: expected a name without a null character, got {text!r}")
    return text
