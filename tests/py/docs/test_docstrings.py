"""The docstrings of the compiled module: the stub has the same, which editors show, and their examples run."""

import ast
import doctest
import inspect
import re
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dlfield as dl
from catalog import numbered
from dlfield import _native
from untyped import np

stub_docs: Any = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[3] / "tools" / "stub_docs.py")))
STUB = stub_docs.STUB.read_text(encoding="utf8")


def test_the_stub_has_the_docstrings_of_the_module() -> None:
    assert stub_docs.differences(STUB) == []


def test_all_that_is_public_has_one() -> None:
    found = {name: text for name, _, text in stub_docs.definitions(ast.parse(STUB).body, _native) if text}
    public = {name for name in _native.__all__ if not name.startswith("_")}
    methods = {f"Tensor.{name}" for name in dir(_native.empty(1)) if not name.startswith("_")}
    assert public | methods <= set(found)


def test_a_changed_docstring_is_named_and_written() -> None:
    changed = STUB.replace("The base class of all errors of dlfield.", "Another text.")
    changed = changed.replace('"""Extents, in index order."""', "...", 1)
    assert stub_docs.differences(changed) == ["Error", "Tensor.shape"]
    assert stub_docs.differences(stub_docs.with_docstrings(changed)) == []


def public(module: Any) -> Iterator[Callable[..., Any]]:
    """Yield the functions of a module, and the methods of its classes."""
    for name in module.__all__:
        found = getattr(module, name)
        if inspect.isclass(found):
            members = [getattr(found, member, None) for member in vars(found) if not member.startswith("_")]
            yield from filter(inspect.isroutine, members)
        elif inspect.isroutine(found):
            yield found


@pytest.mark.parametrize("name", ["", ".cuda", ".dask", ".gt4py", ".memory", ".storage", ".xarray"])
def test_parameters_have_types(name: str) -> None:
    """Those of each function with more than two."""
    untold = {}
    for function in public(pytest.importorskip(f"dlfield{name}", exc_type=ImportError)):
        parameters = list(inspect.signature(function).parameters.values())
        named = [each.name for each in parameters if each.kind is not each.VAR_KEYWORD and each.name != "self"]
        entries = re.findall(r"^([*\w, ]+) : .", inspect.getdoc(function) or "", re.MULTILINE)
        typed = [name.lstrip("*") for entry in entries for name in entry.split(", ")]
        if len(named) > 2:
            untold[function.__qualname__] = [name for name in named if name not in typed]
    assert {name: names for name, names in untold.items() if names} == {}


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


PAGE = (Path(__file__).parents[3] / "docs/fields/compute.md").read_text(encoding="utf8")
ROWS = {
    name: result
    for names, result in re.findall(r"^\| (`\w+`[^|]*) \| ([^|]*) \|", PAGE, re.M)
    for name in re.findall(r"\w+", names)
}
# Arguments of a function after the field.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("add", "maximum", "roll", "isclose", "pad"), (1,)),
    **dict.fromkeys(("moveaxis", "swapaxes", "clip"), (0, 1)),
    **dict.fromkeys(("dot", "matmul"), (np.ones(3),)),
    "flip": (0,),
    "split": (2,),
    "percentile": (50,),
    "reshape": ((3, 2),),
}


@pytest.mark.parametrize("name", ROWS)
def test_the_result_is_what_the_page_says(name: str) -> None:
    field, function = numbered((2, 3), "f8", dims=("lat", "lon")), getattr(np, name)

    def call(*more: Any, **keywords: Any) -> Any:
        if name in ("concatenate", "stack"):
            return function([field, field])
        if name == "where":
            return function(field > 1, field, 0)
        found = function(field, *ARGUMENTS.get(name, ()), *more, **keywords)
        return found[0] if isinstance(found, (list, tuple)) else found

    if ROWS[name].startswith("TypeError"):
        with pytest.raises(TypeError):
            call()
        return
    kind = dl.Tensor if ROWS[name].startswith("field") else (np.ndarray, np.number)
    assert isinstance(call(), kind)
    if "axis" in ROWS[name] and not isinstance(function, np.ufunc):
        assert call(axis="lat").dims == ("lon",)
    if "for a label" in ROWS[name]:
        with pytest.raises(TypeError):
            call(axis="lat")
