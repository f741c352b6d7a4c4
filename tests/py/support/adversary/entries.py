"""Every public function, method and property, and the parameters of each."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import dlfield as dl
import dlfield.gt4py
import dlfield.storage
import dlfield.xarray
import rust_extension
from adversary.arguments import ARRAYS, KINDS
from dlfield import _native

# What is not called, and why.
LEFT_OUT = {
    "rust_extension.mixed.forget": "leaves its argument borrowed until the thread ends, on purpose",
    "rust_extension.mixed.forget_readwrite": "leaves its argument borrowed until the thread ends, on purpose",
    "rust_extension.mixed.by_dlpark": "what dlpark does alone, for comparison",
    "_SharedBlock.find": "needs memory of a CUDA device",
    "Signature.from_stencil": "takes a compiled stencil of GT4Py, whose attributes are read once",
    "Tensor.plot": "draws with matplotlib, which keeps every figure",
    "Tensor.to_jax": "does what as_jax does, and JAX keeps arrays of its own",
    "Tensor.to_xarray": "gives xarray the array of to_numpy",
    "gt4py.wrap": "takes a compiled stencil of GT4Py, whose attributes are read once",
}


class Parameter(NamedTuple):
    name: str
    # As `inspect.Parameter.kind`.
    form: Any
    required: bool


class Entry(NamedTuple):
    """A function, or a method of `owner`, or a property if `getter` or `setter`."""

    name: str
    parameters: tuple[Parameter, ...]
    # The class of the object that it is called on.
    owner: str | None = None
    is_property: bool = False
    function: Callable[..., Any] | None = None

    def kind(self, parameter: Parameter) -> Callable[..., Any]:
        """What makes a value for the parameter: by its own name in this function, or by its name alone."""
        for key in (f"{self.name}.{parameter.name}", parameter.name):
            if key in KINDS:
                return KINDS[key]
        raise LookupError(
            f"tests/py/support/adversary/arguments.py: KINDS has neither {self.name}.{parameter.name!r} nor its name"
        )

    def takes_arrays(self) -> bool:
        """Whether an argument is an array, or a sequence of them."""
        return any(self.kind(parameter) in ARRAYS for parameter in self.parameters)


def _parameters(arguments: ast.arguments, skip: int) -> tuple[Parameter, ...]:
    form = inspect.Parameter
    by_position = [*arguments.posonlyargs, *arguments.args]
    first_default = len(by_position) - len(arguments.defaults)
    found = [
        Parameter(
            argument.arg,
            form.POSITIONAL_ONLY if at < len(arguments.posonlyargs) else form.POSITIONAL_OR_KEYWORD,
            at < first_default,
        )
        for at, argument in enumerate(by_position)
    ][skip:]
    if arguments.vararg:
        found.append(Parameter(arguments.vararg.arg, form.VAR_POSITIONAL, False))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append(Parameter(argument.arg, form.KEYWORD_ONLY, default is None))
    if arguments.kwarg:
        found.append(Parameter(arguments.kwarg.arg, form.VAR_KEYWORD, False))
    return tuple(found)


def of_stub(text: str) -> Iterator[Entry]:
    """The entries of a stub."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            yield Entry(node.name, _parameters(node.args, 0), function=getattr(_native, node.name))
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _of_class(node)


def _of_class(node: ast.ClassDef) -> Iterator[Entry]:
    overloaded = set[str]()
    for member in node.body:
        if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
            yield Entry(f"{node.name}.{member.target.id}", (), node.name, True)
        if not isinstance(member, ast.FunctionDef):
            continue
        decorators = {ast.unparse(decorator) for decorator in member.decorator_list}
        name = f"{node.name}.{member.name}"
        if "overload" in decorators:
            # The types of its parameters do not matter here.
            if name in overloaded:
                continue
            overloaded.add(name)
        parameters = _parameters(member.args, 1)
        if member.name == "__new__":
            yield Entry(node.name, parameters, function=getattr(_native, node.name))
        elif "classmethod" in decorators:
            yield Entry(name, parameters, function=getattr(getattr(_native, node.name), member.name))
        else:
            yield Entry(name, parameters, node.name, any("property" in text or "setter" in text for text in decorators))


def of_module(prefix: str, module: Any, names: list[str]) -> Iterator[Entry]:
    """The functions of a module, with the parameters that they state."""
    for name in names:
        function = getattr(module, name)
        if callable(function) and not isinstance(function, type):
            found = inspect.signature(function).parameters.values()
            parameters = tuple(Parameter(each.name, each.kind, each.default is each.empty) for each in found)
            yield Entry(f"{prefix}{name}", parameters, function=function)


def _of_extension(prefix: str, module: Any) -> Iterator[Entry]:
    """The functions of a module in Rust and of the modules in it, except those for comparison."""
    yield from of_module(
        f"{prefix}.", module, sorted(name for name, value in vars(module).items() if inspect.isbuiltin(value))
    )
    for name, value in vars(module).items():
        if inspect.ismodule(value) and name not in ("peers", module.__name__):
            yield from _of_extension(f"{prefix}.{name}", value)


def entries() -> list[Entry]:
    """All of them, in a fixed order."""
    stub = Path(_native.__file__).with_name("_native.pyi").read_text()
    found = list(of_stub(stub))
    names = {entry.name for entry in found}
    found += of_module("", dl, [name for name in dl.__all__ if name not in names and name != "cuda"])
    for name in ("cuda", "storage", "xarray", "gt4py"):
        module = getattr(dl, name)
        found += of_module(f"{name}.", module, sorted(module.__all__))
    found += _of_extension("rust_extension", rust_extension)
    return [entry for entry in found if entry.name not in LEFT_OUT]
