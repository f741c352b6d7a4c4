"""The stub of the compiled module: editors show its docstrings, `help()` those of the module."""

import ast
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dlfield import _native

TOOLS = Path(__file__).parents[3] / "tools"


@pytest.fixture(scope="module")
def stub_docs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("stub_docs", TOOLS / "stub_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_stub_has_the_docstrings_of_the_module(stub_docs: Any) -> None:
    stub = stub_docs.STUB.read_text(encoding="utf8")
    assert stub_docs.differences(stub) == []


def test_all_that_is_public_has_one(stub_docs: Any) -> None:
    stub = stub_docs.STUB.read_text(encoding="utf8")
    found = {name: text for name, _, text in stub_docs.definitions(ast.parse(stub).body, _native) if text}
    public = {name for name in _native.__all__ if not name.startswith("_")}
    methods = {f"Tensor.{name}" for name in dir(_native.empty(1)) if not name.startswith("_")}
    assert public | methods <= set(found)


def test_a_changed_docstring_is_named_and_written(stub_docs: Any) -> None:
    stub = stub_docs.STUB.read_text(encoding="utf8")
    changed = stub.replace("The base class of all errors of dlfield.", "Another text.")
    changed = changed.replace('"""Extents, in index order."""', "...", 1)
    assert stub_docs.differences(changed) == ["Error", "Tensor.shape"]
    assert stub_docs.differences(stub_docs.with_docstrings(changed)) == []
