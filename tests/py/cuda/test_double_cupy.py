"""The test double of CuPy takes the arguments that CuPy takes, so that a call which works there works on a GPU."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest

import cupy_double

METHODS = ("astype", "copy", "flatten", "ravel")


def documented(method: Any) -> list[str]:
    """Names of the parameters of a method that Cython compiled: its docstring starts with the signature."""
    line = method.__doc__.strip().splitlines()[0].split("(", 1)[1].rpartition(")")[0]
    found = ast.parse(f"def method({line}): pass").body[0]
    assert isinstance(found, ast.FunctionDef)
    return [argument.arg for argument in found.args.args]


def named(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


@pytest.mark.parametrize("name", [*cupy_double.REDUCTIONS, *METHODS])
def test_arguments_are_cupys(name: str) -> None:
    cupy = pytest.importorskip("cupy")
    if name in METHODS:
        expected, found = documented(getattr(cupy.ndarray, name)), named(getattr(cupy_double.ndarray, name))
    else:
        expected, found = named(getattr(cupy, name)), named(cupy_double.REDUCTIONS[name])
    assert found == expected
