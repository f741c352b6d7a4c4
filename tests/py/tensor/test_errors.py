"""Bad input gets the error of SPEC 9, which names the argument; warnings point at the line of the program."""

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pytest

import dlfield as dl
from dlfield import storage
from untyped import np


def endless() -> Iterator[int]:
    while True:
        yield 1


# The error that each of the values gets, as this argument of `zeros`; the gallery has more.
REFUSED: list[tuple[type[Exception], str, list[Any]]] = [
    (dl.DTypeError, "dtype", [">f8", np.dtype((">f4", (2,))), [("a", "f8")], object, "U4", "S3", "V8", "M8[s]"]),
    (dl.DTypeError, "dtype", ["m8[s]", np.longdouble, np.clongdouble, "nonsense", "float64" * 9999, 4.5]),
    (dl.LayoutError, "shape", [(3, -4), (1 << 70,), (1 << 31, 1 << 31, 2), (1 << 62,)]),
    (dl.LayoutError, "alignment_size", [0, -8, 1 << 70]),
    (dl.DimsError, "dims", ["II", "I", "IJK", ("I", ""), "lat,lon", "ab" * 99, "I" * 100_000, map(str, endless())]),
    (dl.LayoutError, "halo", [(1,), (1, -1), (2, 1), ((0, 4), 1)]),
    (TypeError, "halo", [((1, 1, 1), 1), 1, np.int64(2), 1.5]),
    (dl.DeviceError, "device", ["gpu", (2, 0), "cuda:1", "cuda_host", "tpu", "cuda:x"]),
]


@pytest.mark.parametrize(("error", "name", "values"), REFUSED)
def test_an_argument_is_named(error: type[Exception], name: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(error, match=f"^{name}: "):
            dl.zeros(**dict[str, Any]({"shape": (3, 4), name: value}))


OTHER_CALLS: list[tuple[type[Exception], str, Callable[[], object]]] = [
    (dl.DTypeError, "^dtype: .*f8", lambda: dl.zeros_like(np.zeros(2), ">f8")),
    (dl.DTypeError, "^dtype: .*object", lambda: dl.from_array(np.zeros(2), "O")),
    (dl.LayoutError, "^aligned_index: ", lambda: dl.zeros_like(np.zeros(3), aligned_index=(4,))),
    (TypeError, r"^halo: .*halo=\(1, 1\)$", lambda: dl.zeros((3, 4), ("f4", (2,)), halo=1)),  # type: ignore[arg-type]
    (dl.DimsError, r"; write axis=\('J', 'I'\)$", lambda: dl.zeros((3, 4)).mean(["J", "I"])),  # type: ignore[arg-type]
    (dl.DimsError, "a tuple of these, got ", lambda: dl.zeros((3, 4)).sum("Ix")),
    (dl.DimsError, "a tuple of these, got ", lambda: dl.zeros((3, 4)).sum(["I", "J", 7])),  # type: ignore[arg-type]
    (dl.NotAnArrayError, "object", lambda: dl.zeros_like(object())),
    (dl.ExchangeError, "^stream: ", lambda: dl.from_array(np.ones(3), stream=1)),
    (TypeError, "'shape'", lambda: dl.from_array([1], shape=4)),  # type: ignore[call-arg]
]


@pytest.mark.parametrize(("error", "words", "call"), OTHER_CALLS)
def test_an_error_of_another_call(error: type[Exception], words: str, call: Callable[[], object]) -> None:
    with pytest.raises(error, match=words):
        call()


def test_a_failed_registration_leaves_no_preset() -> None:
    with pytest.raises(dl.LayoutError, match=r"^layout: "):
        dl.register_preset("bad", layout=(1, 1, 1))
    assert "bad" not in dl.presets()


@pytest.mark.parametrize("make", [dl.empty, dl.zeros, dl.ones, lambda shape, **kw: dl.full(shape, 1, **kw)])
def test_every_allocation_function_checks(make: Any) -> None:
    for keywords in ({"layout": (1, 1)}, {"padding": "x"}, {"backend": "x"}, {"origin": (9, 9)}):
        with pytest.raises(dl.LayoutError, match=next(iter(keywords))):
            make((2, 3), **keywords)
    with pytest.raises(TypeError, match="unknown"):
        make((2, 3), unknown=1)


BUILTINS: dict[type[Exception], tuple[type[Exception], ...]] = {
    dl.LayoutError: (ValueError,),
    dl.DTypeError: (TypeError,),
    dl.DimsError: (ValueError,),
    dl.DeviceError: (RuntimeError,),
    dl.ExchangeError: (BufferError, ValueError),
    dl.NoSuchBufferError: (LookupError, TypeError),
    dl.NotAnArrayError: (TypeError,),
}


@pytest.mark.parametrize("error", BUILTINS)
def test_each_error_is_the_builtin_a_user_would_catch(error: type[Exception]) -> None:
    assert issubclass(error, dl.Error)
    assert all(issubclass(error, builtin) for builtin in BUILTINS[error])


@pytest.mark.parametrize("keyword", ["shape", "layout", "aligned_index", "halo", "origin"])
def test_sequences_without_end_are_refused(keyword: str) -> None:
    with pytest.raises(dl.LayoutError, match=f"{keyword}: expected one entry for each dimension, got more than 64"):
        dl.zeros(**dict[str, Any]({"shape": (2, 2), keyword: endless()}))


@pytest.mark.parametrize("wrong", [True, False, np.True_])
@pytest.mark.parametrize("keyword", ["shape", "halo", "origin", "layout", "alignment_size", "aligned_index"])
def test_bools_are_no_integers(keyword: str, wrong: Any) -> None:
    """As in NumPy, where `zeros((a == b,))` is a TypeError too."""
    value = wrong if keyword == "alignment_size" else (wrong,)
    with pytest.raises(TypeError, match=rf"{keyword}: .*{wrong}"):
        dl.zeros(**dict[str, Any]({"shape": (3,), keyword: value}))


def test_hints_know_registered_presets(scratch_preset: str) -> None:
    dl.register_preset(scratch_preset)
    with pytest.raises(dl.LayoutError, match=re.escape(f"did you mean '{scratch_preset}'?")):
        dl.zeros(3, backend=scratch_preset.replace("test:", "tset:"))


def test_hints_do_not_hide_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("difflib.get_close_matches", None)
    with pytest.raises(dl.DTypeError, match=r"expected an element type, .* got 'flaot64'"):
        dl.zeros(3, "flaot64")


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
