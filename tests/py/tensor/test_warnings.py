"""Warnings point at the line of the program, past frames of dlfield and other libraries."""

import warnings
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pytest

import dlfield as dl
from dlfield import storage
from untyped import np

SLOW = np.zeros((3, 4), order="F")


@pytest.fixture
def caught() -> Iterator[list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


def bound(**keywords: Any) -> Any:
    spec = dl.FieldSpec("f8", "IJ", layout=(0, 1))
    return dl.Signature(x=spec, **keywords)


@dl.kernel
def slow(inp: Annotated[Any, dl.FieldSpec("f8", "IJ", layout=(0, 1))]) -> None: ...


UNPLACED: dict[str, Any] = {"backend": "gt:cpu_ifirst", "dims": ("x", "y")}
CALLS: dict[str, Callable[[], object]] = {
    "bind": lambda: bound().bind(x=SLOW),
    "bind, copies": lambda: bound(on_mismatch="copy").bind(x=SLOW),
    "kernel": lambda: slow(SLOW),
    "zeros": lambda: dl.zeros((3, 4), **UNPLACED),
    "from_array": lambda: dl.from_array(SLOW, **UNPLACED),
    "storage": lambda: storage.storage(SLOW, defaults="gtmc", dims=("x", "y")),
    "storage.zeros": lambda: storage.zeros((3, 4), defaults="gtmc", dims=("x", "y")),
    "storage.as_storage": lambda: storage.zeros_like(SLOW, defaults="gtmc", dims=("x", "y")),
}


@pytest.mark.parametrize("name", CALLS)
def test_warnings_point_at_the_caller(name: str, caught: list[warnings.WarningMessage]) -> None:
    CALLS[name]()
    assert caught, name
    assert {(warning.filename, warning.category) for warning in caught} == {(__file__, dl.LayoutWarning)}
    assert {warning.lineno for warning in caught} == {CALLS[name].__code__.co_firstlineno}


def test_a_hook_counts_as_the_caller(caught: list[warnings.WarningMessage]) -> None:
    """User code that dlfield calls counts as the caller, even between frames of dlfield."""
    array = np.zeros((3, 4))

    class Warns:
        @property
        def __gt_data_interface__(self) -> dict[None, dict[str, Any]]:
            dl.zeros((3, 4), **UNPLACED)
            return {None: {**array.__array_interface__, "acquire": None}}

    storage.as_storage(Warns())
    assert {warning.filename for warning in caught} == {__file__}


def test_code_without_a_file_is_warned(caught: list[warnings.WarningMessage]) -> None:
    exec(compile("make()", "<cell>", "exec"), {"make": lambda: dl.zeros((3, 4), **UNPLACED)})
    exec(compile("dl.zeros((3, 4), backend='gtmc', dims='x y')", "<cell>", "exec"), {"dl": dl})
    assert [warning.filename for warning in caught] == [__file__, "<cell>"]


def test_the_same_line_warns_once_by_default() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            dl.zeros((3, 4), **UNPLACED)
        dl.zeros((3, 4), **UNPLACED)
    assert len(caught) == 2


# Presets with user-defined labels.


@pytest.mark.parametrize("backend", dl.presets())
@pytest.mark.parametrize("dims", [("x", "y", "z"), ("x", "y", "0"), ("0", "x", "y")])
def test_presets_warn_of_labels_they_do_not_know(
    backend: str, dims: tuple[str, ...], caught: list[warnings.WarningMessage]
) -> None:
    """Presets that order dimensions by name warn if they know none of the names."""
    field = dl.zeros((2, 3, 4), backend=backend, dims=dims, device="cpu")
    if isinstance(dl.presets()[backend].layout, str):
        assert caught == []
        return
    (warning,) = caught
    assert f"backend: {backend!r}" in str(warning.message)
    assert f"({', '.join(dims)})" in str(warning.message)
    assert "'I', 'J' and 'K', or pass layout=" in str(warning.message)
    caught.clear()
    assert dl.zeros((2, 3, 4), backend=backend, dims=dims, device="cpu", layout=field.layout).layout == field.layout
    assert caught == []


@pytest.mark.parametrize("dims", ["x", "x 0", "0 x 1", "01", "x K", "x y I", "IJK", None, ""])
def test_unambiguous_labels_do_not_warn(dims: str | None, caught: list[warnings.WarningMessage]) -> None:
    """A single user-defined label has only one possible place, with data dimensions or with the grid's."""
    shape = (2,) * (3 if dims is None else len(dims.replace(" ", "")))
    for backend in ("gt:cpu_ifirst", "gtmc", "dace:cpu"):
        dl.zeros(shape, backend=backend, dims=dims)
    dl.zeros((2, 3), dims="x y")
    assert caught == []


def test_labels_of_the_data_count(caught: list[warnings.WarningMessage]) -> None:
    field = dl.zeros((2, 3), dims="x y")
    dl.zeros_like(field, backend="gtmc")
    dl.from_array(field, backend="gtmc")
    assert len(caught) == 2
    dl.zeros_like(field)
    dl.from_array(field, backend="C")
    assert len(caught) == 2


def test_a_warning_that_is_an_error_leaves_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(dl.LayoutWarning, match="backend"):
            dl.zeros((3, 4), **UNPLACED)
