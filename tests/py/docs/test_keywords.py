"""The keywords of allocation functions: one list in Rust, which signatures, stubs, `storage` and `gt4py` agree with."""

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dlfield as dl
from dlfield import gt4py, storage
from dlfield.storage.parameters import Parameters, labels_of

ROOT = Path(__file__).parents[3]

FUNCTIONS = ["empty", "zeros", "ones", "full", "empty_like", "zeros_like", "ones_like", "full_like", "from_array"]

# Keywords that other functions have under another name.
STORAGE_NAMES = {"defaults": "backend"}
GT4PY_NAMES = {"dimensions": "dims"}

# What storages do not let the caller choose, and what they have in addition.
NOT_OF_STORAGES = {"padding", "origin", "stream", "buffer"}
ONLY_OF_STORAGES = {"managed"}

# What GT4Py's signatures, which `dlfield.gt4py` copies, do not have: the preset decides.
NOT_OF_GT4PY = {"layout", "alignment_size", "padding", "halo", "origin", "device", "stream", "buffer"}


def listed() -> list[str]:
    """Return the list in Rust."""
    source = (ROOT / "src/python/module/functions/keywords.rs").read_text(encoding="utf8")
    found = re.search(r"^keywords! \{([\w\s,]+)\}", source, re.MULTILINE)
    assert found is not None
    return re.findall(r"\w+", found[1])


def keyword_only(function: Callable[..., Any]) -> list[str]:
    """Return the names of a function's keyword-only parameters."""
    parameters = inspect.signature(function).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_text_signatures_have_the_keywords(name: str) -> None:
    assert keyword_only(getattr(dl, name)) == listed()


def test_stubs_have_the_keywords() -> None:
    stub = ast.parse((ROOT / "python/dlfield/_native.pyi").read_text(encoding="utf8"))
    functions = {node.name: node.args for node in stub.body if isinstance(node, ast.FunctionDef)}
    for name in FUNCTIONS:
        assert [argument.arg for argument in functions[name].kwonlyargs] == listed(), name


def test_the_docstring_explains_the_keywords() -> None:
    text = (dl.empty.__doc__ or "").partition("Parameters\n")[2].partition("Returns\n")[0]
    assert re.findall(r"^(\w+) : .", text, re.MULTILINE) == ["shape", "dtype", *listed()]


def test_storages_have_the_keywords_or_decide_them() -> None:
    names = [STORAGE_NAMES.get(name, name) for name in Parameters.__annotations__ if name not in ONLY_OF_STORAGES]
    assert sorted([*names, *NOT_OF_STORAGES]) == sorted(listed())
    # The device is passed on for each buffer.
    assert labels_of({}).keys() | {"device"} == set(names)


@pytest.mark.parametrize("name", [name for name in storage.__all__ if name[0].islower()])
def test_the_docstrings_of_storages_explain_the_keywords(name: str) -> None:
    text = (inspect.getdoc(getattr(storage, name)) or "").partition("Parameters\n")[2]
    assert [name for name in re.findall(r"^(\w+) : .", text, re.MULTILINE) if name in Parameters.__annotations__] == [
        *Parameters.__annotations__
    ]


@pytest.mark.parametrize("name", ["empty", "zeros", "ones", "full", "from_array"])
def test_gt4py_has_the_keywords_or_its_presets_decide_them(name: str) -> None:
    names = [GT4PY_NAMES.get(name, name) for name in keyword_only(getattr(gt4py, name))]
    assert sorted([*names, *NOT_OF_GT4PY]) == sorted(listed())


class Name(str):
    """A keyword that is not an exact string."""


def not_interned(name: str) -> str:
    """Return the text of a keyword as a string that no other code has."""
    return name.encode().decode()


# The arguments of a call of `empty`, the error that they cause, and the hint in its message.
WRONG: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((), {}, "empty() missing 1 required positional argument: 'shape'"),
    ((), {"shap": 3}, "empty() got an unexpected keyword argument 'shap'; did you mean 'shape'?"),
    (
        (3, 4, 5),
        {},
        "empty() takes at most 2 positional arguments but 3 were given; a shape is one argument, a tuple: ",
    ),
    ((3, "f4", None), {}, "empty() takes at most 2 positional arguments but 3 were given; they are shape, dtype"),
    ((3,), {"shape": 3}, "empty() got multiple values for argument 'shape'"),
    ((3, "f4", 1), {"dtype": "f4"}, "empty() got multiple values for argument 'dtype'"),
    ((3,), {"shap": 3, "shape": 2}, "empty() got multiple values for argument 'shape'"),
    ((3,), {"shap": 3, "order": "C"}, "empty() got an unexpected keyword argument 'shap'; did you mean 'shape'?"),
    ((3, 4, 5), {"order": "C"}, "empty() got an unexpected keyword argument 'order'; write backend='C' or backend='F'"),
    ((3,), {Name("dtyp"): "f4"}, "empty() got an unexpected keyword argument 'dtyp'; did you mean 'dtype'?"),
    ((3,), {"\ud800": 1}, "empty() got an unexpected keyword argument '"),
]


@pytest.mark.parametrize(("args", "keywords", "message"), WRONG)
def test_wrong_calls_are_refused_as_by_python(args: Any, keywords: Any, message: str) -> None:
    with pytest.raises(TypeError) as raised:
        dl.empty(*args, **keywords)
    assert str(raised.value).startswith(message)


def test_all_missing_arguments_are_named() -> None:
    with pytest.raises(TypeError, match=r"full\(\) missing 2 required positional arguments: 'shape' and 'fill_value'"):
        dl.full()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"full\(\) missing 1 required positional argument: 'fill_value'"):
        dl.full(3, dtype="f4")  # type: ignore[call-arg]


class Disguised(str):
    """A keyword that shows another text than it has."""

    def __str__(self) -> str:
        return "dtype"


@pytest.mark.parametrize("function", [dl.empty, dl.describe])
def test_keywords_are_not_asked_for_another_text(function: Callable[..., Any]) -> None:
    keywords: Any = {Disguised("other"): "float32"}
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        function((2, 3), **keywords)


@pytest.mark.parametrize("spelled", [Name, not_interned])
def test_keywords_are_found_by_their_text(spelled: Callable[[str], str]) -> None:
    keywords: Any = {spelled("backend"): spelled("gt:cpu_ifirst"), spelled("dtype"): spelled("float32")}
    assert dl.empty((2, 3), **keywords).strides == (4, 8)
    positions: Any = {spelled("shape"): (2, 3), spelled("fill_value"): 4}
    assert dl.full(**positions).to_numpy().tolist() == [[4.0] * 3] * 2


@pytest.mark.parametrize("name", FUNCTIONS)
def test_absent_and_none_are_the_same(name: str) -> None:
    value = [7] if name.startswith("full") else []
    function, first = getattr(dl, name), (2, 3) if name in {"empty", "zeros", "ones", "full"} else dl.zeros((2, 3))
    made = function(first, *value, None, **dict.fromkeys(listed()))
    assert (made.shape, made.dtype, made.strides) == ((2, 3), "float64", (24, 8))
