"""What a label is: a non-empty string, or an integer from 0 on for a data dimension."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import dlfield as dl
from fakes_interfaces import Exposing
from untyped import np

NO_LABELS = [1.0, True, False, -1, None, b"I", 1j, 1 << 40, np.float64(1), np.int8(-1), np.True_]


def stating(**labels: Any) -> Any:
    array = np.zeros((2, 3))
    return Exposing(kept=array, __array_interface__=array.__array_interface__, **labels)


CALLS: dict[str, Callable[[Any], Any]] = {
    "zeros": lambda dims: dl.zeros((2, 3), dims=dims).dims,
    "from_dlpack": lambda dims: dl.from_dlpack(np.zeros((2, 3)), dims=dims).dims,
    "get_dims": lambda dims: dl.get_dims(np.zeros((2, 3)), dims),
    "FieldSpec": lambda dims: dl.FieldSpec("f8", dims).dims,
    "an attribute": lambda dims: dl.get_dims(stating(__gt_dims__=dims)),
    "a method": lambda dims: dl.from_dlpack(stating(__gt_dims__=lambda: dims)).dims,
}


@pytest.mark.parametrize("dims", [("I", 0), ["I", np.int64(0)], ("I", "0"), "I0"])
def test_integers_are_data_dimensions(dims: Any) -> None:
    for name, call in CALLS.items():
        assert call(dims) == ("I", "0"), name


@pytest.mark.parametrize("label", NO_LABELS, ids=repr)
def test_other_values_are_refused(label: Any) -> None:
    for call in CALLS.values():
        with pytest.raises(dl.DimsError, match=r"^(__gt_)?dims(__)?: .* is not a label"):
            call(("I", label))


def test_objects_state_numbers_and_axes() -> None:
    gtscript = pytest.importorskip("gt4py.cartesian.gtscript")
    assert dl.get_dims(stating(__gt_dims__=("K", 0))) == ("K", "0")
    assert dl.get_dims(stating(__gt_dims__=(gtscript.K, gtscript.I))) == ("K", "I")
    # Any object with a text, such as an axis of an unknown library.
    axis: Any = type("Axis", (SimpleNamespace,), {"__str__": lambda self: self.name})
    assert dl.get_dims(stating(__gt_dims__=(axis(name="cell"), axis(name="K")))) == ("cell", "K")
    with pytest.raises(dl.DimsError, match="empty"):
        dl.get_dims(stating(__gt_dims__=(axis(name=""), "K")))
