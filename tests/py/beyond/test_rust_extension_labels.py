"""Arguments of the example extension that go by label, and what messages advise instead of a `Tensor`."""

from typing import Any

import numpy as np
import pytest

import dlfield as dl
from childproc import run_python
from page_code import ROOT

rx = pytest.importorskip("rust_extension")
kinds = rx.kinds

VALUES = np.random.default_rng(5).random((4, 3, 2))


def in_order(labels: str) -> Any:
    """Return the values I, J, K as a contiguous array with the dimensions in another order."""
    return np.ascontiguousarray(VALUES.transpose(["IJK".index(label) for label in labels]))


def as_xarray(labels: str) -> Any:
    return pytest.importorskip("xarray").DataArray(in_order(labels), dims=list(labels))


@pytest.mark.parametrize("labels", ["IJK", "IKJ", "JIK", "JKI", "KIJ", "KJI"])
def test_views_have_the_order_of_the_labels(labels: str) -> None:
    for array in (dl.from_dlpack(in_order(labels), dims=labels), as_xarray(labels)):
        found, _ = kinds.by_label(array)
        assert np.array_equal(found, VALUES)
        kinds.count_by_label(array)
        found, _ = kinds.by_label(array)
        assert np.array_equal(found, np.add.outer(np.add.outer([0, 100, 200, 300], [0, 10, 20]), [0, 1]))


@pytest.mark.parametrize("labels", ["IJK", "IKJ", "JIK", "JKI", "KIJ", "KJI"])
def test_a_result_has_the_order_and_the_memory_of_the_argument(labels: str) -> None:
    field = dl.from_array(in_order(labels), dims=labels, backend="gt:cpu_ifirst", halo=(1, 0, 0))
    for array in (field, as_xarray(labels)):
        found, values = kinds.doubled_by_label(array), np.asarray(array)
        assert found.dims == tuple(labels)
        assert np.array_equal(found, 2 * values)
    found = kinds.doubled_by_label(field)
    assert (found.halo, found.strides) == (field.halo, field.strides)
    assert kinds.doubled_by_label(VALUES).dims == ("I", "J", "K")


def test_arrays_without_labels_are_in_the_order() -> None:
    found, origin = kinds.by_label(VALUES)
    assert np.array_equal(found, VALUES)
    assert origin is None


def test_the_origin_has_the_order_of_the_labels() -> None:
    field = dl.zeros((5, 6, 7), dims="KJI", halo={"J": (2, 1), "I": 1})
    assert kinds.by_label(field)[1] == [1, 2, 0]
    assert kinds.by_label(field[1:, :, 1:])[1] == [0, 2, 0]


def test_other_labels_are_refused() -> None:
    expected = r"^dims: expected \(I, J, K\), in any order, got \(I, K\)"
    with pytest.raises(TypeError, match=expected):
        kinds.by_label(dl.zeros((3, 4), dims="IK"))
    with pytest.raises(TypeError, match=r"^dims: expected .* labelled in any order, got 2 dimensions without labels"):
        kinds.by_label(np.zeros((3, 4)))
    with pytest.raises(TypeError, match="dtype: expected float64"):
        kinds.by_label(dl.zeros((3, 4, 5), "float32"))


def test_a_copy_goes_by_label() -> None:
    table = np.arange(6.0).reshape(2, 3)
    turned = dl.from_dlpack(np.ascontiguousarray(table.T), dims="lon lat")
    assert kinds.or_copy_by_label(turned) == (True, table.ravel().tolist(), "lat, lon")
    # In this order its elements are contiguous.
    assert kinds.or_copy_by_label(turned.transpose("lat", "lon").copy())[1] == table.ravel().tolist()
    assert kinds.or_copy_by_label(dl.from_array(table, dims="lat lon")) == (False, table.ravel().tolist(), "lat, lon")
    assert kinds.or_copy_by_label(dl.from_array(table, "float32", dims="lat lon"))[:2] == (True, table.ravel().tolist())
    assert kinds.or_copy_by_label(table)[:2] == (False, table.ravel().tolist())


def test_an_array_that_is_written_by_label_is_borrowed() -> None:
    array = in_order("KJI")
    field = dl.from_dlpack(array, dims="KJI")
    assert "overlap: " in str(kinds.writing(array.ravel(), lambda: refused(lambda: kinds.by_label(field))))


def refused(call: Any) -> str:
    with pytest.raises(TypeError) as caught:
        call()
    return str(caught.value)


def test_labels_that_move_an_earlier_argument_are_noticed() -> None:
    first = np.ones(4)

    class Mover:
        dtype = np.dtype("float64")

        def __init__(self) -> None:
            self.array = np.ones((2, 2, 2))
            self.__array_interface__ = self.array.__array_interface__

        @property
        def dims(self) -> tuple[str, ...]:
            first.resize(1000, refcheck=False)
            return ("I", "J", "K")

    with pytest.raises(TypeError, match="moved: "):
        kinds.before_labels(first, Mover())


@pytest.mark.parametrize("make", [np.ones, dl.ones])
def test_the_advice_for_an_argument_of_type_tensor(make: Any) -> None:
    """Take `In` or `Out` instead: these functions are the same with these types."""
    array = make((3,))
    with pytest.raises(dl.ExchangeError, match="to read an argument, take In instead of Tensor"):
        kinds.read_tensor(array)
    assert rx.sum(array) == 3.0
    with pytest.raises(dl.ExchangeError, match="to write to an argument, take Out instead of Tensor") as caught:
        kinds.write_tensor(array)
    assert "copy" not in str(caught.value)
    kinds.fill(array, 2.0)
    assert rx.sum(array) == 6.0


WITHOUT_DLFIELD = """
import sys
sys.modules["dlfield"] = None  # as where it is not installed
import numpy as np
import rust_extension as rx
array = np.array([1.0, 2.0])
weights, out = rx.Weights(array), np.ones(2)
weights.apply(out)
weights.apply(out)
print(out.tolist(), rx.sum(out))
try:
    rx.count_to(3)
except ModuleNotFoundError as error:
    print(error.name.split(".")[0])
"""


def test_arguments_and_kept_arrays_need_no_package() -> None:
    assert run_python(WITHOUT_DLFIELD) == "[1.0, 4.0] 5.0\ndlfield\n"


def test_the_page_says_what_needs_the_package() -> None:
    page = (ROOT / "docs" / "kernels" / "rust.md").read_text(encoding="utf8")
    assert "needs the Python package `dlfield` at run time; taking arrays does not" in page
