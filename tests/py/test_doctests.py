"""The examples in the compiled module's docstrings, which pytest's own collection does not see."""

import doctest

import pytest

import dlfield as dl
from dlfield import _native

DOCUMENTED = [name for name in _native.__all__ if ">>>" in (getattr(_native, name).__doc__ or "")]


def test_every_function_has_an_example() -> None:
    functions = {name for name in dl.__all__ if name in _native.__all__ and name[0].islower()}
    assert functions <= set(DOCUMENTED)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_examples_run(name: str) -> None:
    example = doctest.DocTestParser().get_doctest(getattr(_native, name).__doc__, {}, name, None, None)
    assert doctest.DocTestRunner().run(example).failed == 0
