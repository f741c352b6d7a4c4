"""The short text of `FieldSpec` and `Signature`, and where errors show it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from calls import spec

TEXTS = [
    (spec(), "Field[float64, I J]"),
    (spec((), "int8"), "Field[int8, ()]"),
    (spec(None, None), "Field[any, ...]"),
    (spec(("cell", "0"), "float32 | float64", access="w"), "Field[float32 | float64, cell 0, w]"),
    (spec(access="rw", layout=(1, 0), optional=True), "Field[float64, I J, rw, layout=[1, 0], optional]"),
    (spec(alignment_size=64), "Field[float64, I J, alignment_size=64]"),
    (spec(backend="gtmc"), "Field[float64, I J, backend=gtmc]"),
    (spec(shape=(5, None)), "Field[float64, I=5 J]"),
    (spec("IJK", shape=("I", "J - 1", "n+1")), "Field[float64, I J-1 K=n+1]"),
    (spec(None, shape=("n", None, 3)), "Field[float64, n * 3]"),
    (spec(None, layout=(1, 0)), "Field[float64, * *, layout=[1, 0]]"),
]


@pytest.mark.parametrize(("field", "text"), TEXTS)
def test_the_text_says_what_a_field_must_be(field: dl.FieldSpec, text: str) -> None:
    assert str(field) == text


SIG = dl.Signature(device="cpu", a=spec(shape=("n", None)), b=spec("I", access="w", shape=("n",)))
TEXT = "(a: Field[float64, I=n J, cpu], b: Field[float64, I=n, cpu, w])"


def test_the_text_of_a_signature_names_the_device() -> None:
    assert str(SIG) == TEXT
    assert str(dl.Signature()) == "()"
    assert str(dl.Signature(device="cuda:1", x=spec())) == "(x: Field[float64, I J, cuda:1])"


bind: Any = SIG.bind
CALLS: dict[str, Callable[[], object]] = {
    "missing": lambda: bind(a=np.zeros((3, 4))),
    "unknown": lambda: bind(a=np.zeros((3, 4)), c=5),
    "by position": lambda: bind(np.zeros((3, 4))),
    "sizes": lambda: bind(a=np.zeros((3, 4)), b=np.zeros(4)),
}


@pytest.mark.parametrize("name", CALLS)
def test_errors_about_all_fields_note_the_signature(name: str) -> None:
    with pytest.raises((TypeError, dl.LayoutError)) as caught:
        CALLS[name]()
    assert caught.value.__notes__ == [f"expected: {TEXT}"]


def test_errors_about_one_field_stay_short() -> None:
    with pytest.raises(dl.DimsError) as caught:
        bind(a=np.zeros(3), b=np.zeros(3))
    assert not hasattr(caught.value, "__notes__")
