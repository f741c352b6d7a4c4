"""`dlfield explain`: `dl.explain` of an array in a file or in a module."""

import importlib
import sys
from pathlib import Path
from typing import Any

import dlfield as dl
from dlfield.show.explain import FRAMEWORKS, explained

__all__ = ["ExplainError", "explain_target"]


class ExplainError(Exception):
    """The target names no array; the text says why."""


def explain_target(target: str) -> str:
    """Return the text about a file, `FILE.npy` or `FILE.dlf`, or about an object, `MODULE:NAME`.

    Imports the installed frameworks to ask them. Raises `ExplainError` for a target that names no array.

    Example
    -------
    >>> print(explain_target("math:pi"))
    Traceback (most recent call last):
        ...
    dlfield.cli.explain.ExplainError: TARGET: expected an array, got math:pi, a float
    """
    array: Any = _file(target) if Path(target).suffix in (".npy", ".dlf") else _object(target)
    try:
        return explained(array, f"{target}, ", FRAMEWORKS)
    except dl.NotAnArrayError:
        raise ExplainError(f"TARGET: expected an array, got {target}, a {type(array).__name__}") from None
    except Exception as error:  # anything that a protocol of the user's object raises
        raise ExplainError(f"TARGET: {target}: {_said(error)}") from error


def _file(target: str) -> dl.Tensor:
    try:
        # Writable memory without a change of the file: what is said holds for the array that `np.load` returns.
        return dl.open_field(target, "c" if target.endswith(".npy") else "r")
    except OSError as error:
        raise ExplainError(f"TARGET: cannot open {target}: {error.strerror or error}") from error
    except Exception as error:  # any header of a file
        raise ExplainError(f"TARGET: {target}: {_said(error)}") from error


def _object(target: str) -> Any:
    module, colon, name = target.partition(":")
    if not (module and colon and name):
        raise ExplainError(
            f"TARGET: expected a file .npy or .dlf, or MODULE:NAME, such as mymodel:field, got {target!r}"
        )
    # A script that pip has installed does not look in the current folder, as `python -m` does.
    if not {"", str(Path.cwd())} & set(sys.path):
        sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # anything that the user's module raises
        raise ExplainError(f"TARGET: cannot import {module}: {_said(error)}") from error
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except Exception as error:  # anything that a property or `__getattr__` raises
            raise ExplainError(f"TARGET: {target}: {_said(error)}") from error
    return found


def _said(error: BaseException) -> str:
    text = str(error).partition("\n")[0]
    return text if isinstance(error, dl.Error) else f"{type(error).__name__}: {text}"
