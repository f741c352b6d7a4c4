"""Warnings at the line that has called dlfield, through whichever of its files."""

import os
import sys
import warnings
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, TypeVar

from dlfield._native import LayoutWarning

_FOLDER = os.path.dirname(__file__) + os.sep  # noqa: PTH120 (as it stands in code objects)

_Function = TypeVar("_Function", bound=Callable[..., Any])

_CALLED_BY_OTHERS: set[CodeType] = set()


def called_by_others(function: _Function) -> _Function:
    """Mark a function that another library calls while dlfield has called that library.

    The frames between the two belong to neither the user nor dlfield, and are passed over.
    """
    _CALLED_BY_OTHERS.add(function.__code__)
    return function


def warn(message: str) -> None:
    """Issue a `LayoutWarning` at the line of whoever called dlfield."""
    warnings.warn(message, LayoutWarning, stacklevel=_level())


def _level() -> int:
    """Return the level of the caller's frame, counted from the function that calls this one."""
    frame: FrameType | None = sys._getframe(1)
    level, in_between = 1, False
    while frame is not None:
        if frame.f_code.co_filename.startswith(_FOLDER):
            in_between = frame.f_code in _CALLED_BY_OTHERS
        elif not in_between:
            break
        frame = frame.f_back
        level += 1
    return level
