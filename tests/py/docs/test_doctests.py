"""The examples in the compiled module's docstrings, which pytest does not collect itself."""

import doctest
from collections.abc import Iterator

import pytest

import dlfield as dl
from dlfield import _native


def documented() -> Iterator[tuple[str, str]]:
    """Yield name and docstring of everything public that shows an example."""
    for name in _native.__all__:
        found = getattr(_native, name)
        members = vars(found).items() if isinstance(found, type) else ()
        for full, owner in ((name, found), *((f"{name}.{member}", value) for member, value in members)):
            text = getattr(owner, "__doc__", None) or ""
            if ">>>" in text:
                yield full, text


# Sorted, as the order of attributes differs between processes.
DOCUMENTED = dict(sorted(documented()))


def test_every_function_has_an_example() -> None:
    functions = {name for name in dl.__all__ if name in _native.__all__ and name[0].islower()}
    assert functions <= set(DOCUMENTED)


def test_every_method_of_a_tensor_has_an_example() -> None:
    methods = {name for name, value in vars(dl.Tensor).items() if callable(value) and not name.startswith("_")}
    assert {f"Tensor.{name}" for name in methods} <= set(DOCUMENTED)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_examples_run(name: str) -> None:
    example = doctest.DocTestParser().get_doctest(DOCUMENTED[name], {"__name__": "__main__"}, name, None, None)
    assert doctest.DocTestRunner().run(example).failed == 0
