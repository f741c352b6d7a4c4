"""The line of the user's code that called dlfield, and warnings there."""

import os
import sys
import warnings
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, TypeVar

from dlfield._native import LayoutWarning

_FOLDER = os.path.dirname(os.path.dirname(__file__)) + os.sep  # noqa: PTH120 (the form in code objects)

_Function = TypeVar("_Function", bound=Callable[..., Any])

_CALLED_BY_OTHERS: set[CodeType] = set()


def called_by_others(function: _Function) -> _Function:
    """Mark a function that another library calls back while dlfield calls that library.

    The frames between the two calls belong to neither the user nor dlfield, and `warn` skips them.
    """
    _CALLED_BY_OTHERS.add(function.__code__)
    return function


def warn(message: str) -> None:
    """Issue a `LayoutWarning` at the line that called dlfield."""
    warnings.warn(message, LayoutWarning, stacklevel=_caller()[0])


def callers_line() -> str:
    """Return the line that called dlfield, as "file.py:12"."""
    frame = _caller()[1]
    return "?" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _caller() -> tuple[int, FrameType | None]:
    """Return the stack level of the caller of dlfield, counted from the function that calls this one, and its frame."""
    frame: FrameType | None = sys._getframe(1)
    level, in_between = 1, False
    while frame is not None:
        if frame.f_code.co_filename.startswith(_FOLDER):
            in_between = frame.f_code in _CALLED_BY_OTHERS
        elif not in_between:
            break
        frame = frame.f_back
        level += 1
    return level, frame
