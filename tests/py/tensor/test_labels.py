"""What a label is: a non-empty string, or an integer from 0 on for a data dimension."""

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


@pytest.mark.parametrize("dims", [("I", 0), ["I", np.int64(0)], ("I", "0"), "I0"])
def test_integers_are_data_dimensions(dims: Any) -> None:
    assert dl.zeros((2, 3), dims=dims).dims == ("I", "0")
    assert dl.from_dlpack(np.zeros((2, 3)), dims=dims).dims == ("I", "0")
    assert dl.get_dims(np.zeros((2, 3)), dims) == ("I", "0")
    assert dl.FieldSpec("f8", dims).dims == ("I", "0")


@pytest.mark.parametrize("label", NO_LABELS, ids=repr)
def test_other_values_are_refused(label: Any) -> None:
    for call in (
        lambda dims: dl.zeros((2, 3), dims=dims),
        lambda dims: dl.from_dlpack(np.zeros((2, 3)), dims=dims),
        lambda dims: dl.get_dims(np.zeros((2, 3)), dims),
        lambda dims: dl.FieldSpec("f8", dims),
    ):
        with pytest.raises(
            dl.DimsError, match=r"dims: .* is not a label; allowed is a non-empty string, or a non-negative integer"
        ):
            call(("I", label))


@pytest.mark.parametrize("label", NO_LABELS, ids=repr)
def test_objects_cannot_state_them_either(label: Any) -> None:
    with pytest.raises(dl.DimsError, match=r"__gt_dims__: .* is not a label"):
        dl.get_dims(stating(__gt_dims__=("I", label)))
    with pytest.raises(dl.DimsError, match=r"__gt_dims__: .* is not a label"):
        dl.from_dlpack(stating(__gt_dims__=lambda: ("I", label)))


def test_objects_state_numbers_and_axes() -> None:
    gtscript = pytest.importorskip("gt4py.cartesian.gtscript")
    assert dl.get_dims(stating(__gt_dims__=("K", 0))) == ("K", "0")
    assert dl.get_dims(stating(__gt_dims__=(gtscript.K, gtscript.I))) == ("K", "I")
    # Any object with a text, such as an axis of an unknown library.
    axis: Any = type("Axis", (SimpleNamespace,), {"__str__": lambda self: self.name})
    assert dl.get_dims(stating(__gt_dims__=(axis(name="cell"), axis(name="K")))) == ("cell", "K")
    with pytest.raises(dl.DimsError, match="empty"):
        dl.get_dims(stating(__gt_dims__=(axis(name=""), "K")))
