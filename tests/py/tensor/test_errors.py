"""Bad input: the error of SPEC 9, which names the argument. The gallery has the whole messages."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import dlfield as dl
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
    (dl.DimsError, r": axis=\('J', 'I'\)$", lambda: dl.zeros((3, 4)).mean(["J", "I"])),  # type: ignore[arg-type]
    (dl.DimsError, "a tuple of these$", lambda: dl.zeros((3, 4)).sum("Ix")),
    (dl.DimsError, "a tuple of these$", lambda: dl.zeros((3, 4)).sum(["I", "J", 7])),  # type: ignore[arg-type]
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
    with pytest.raises(dl.LayoutError, match=f"{keyword}: more than 64"):
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
    with pytest.raises(dl.DTypeError, match="'flaot64' is not an element type"):
        dl.zeros(3, "flaot64")
