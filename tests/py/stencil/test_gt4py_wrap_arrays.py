"""The arrays that a wrapped stencil for the host passes to the compiled one."""

from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield.gt4py import wrap

pytest.importorskip("gt4py")

from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import PARALLEL, computation, interval
from gt4py.storage import layout_registry

SHAPE = (4, 3, 2)


def add(inp: gtscript.Field[np.float64], out: gtscript.Field[np.float64]):  # type: ignore[no-untyped-def]  # noqa: ANN201
    with computation(PARALLEL), interval(...):
        out = out + 2.0 * inp


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that calls the wrapped stencil, and returns the arrays that the compiled one gets."""
    stencil = gtscript.stencil(backend="numpy", definition=add)

    def call(*arrays: Any, **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        with monkeypatch.context() as patch:
            patch.setattr(type(stencil), "run", lambda _, **arguments: found.update(arguments))
            wrap(stencil, **options)(*arrays)
        return found

    return call


def test_numpy_arrays_are_passed_as_they_are(passed: Any) -> None:
    inp, out = np.ones(SHAPE), np.zeros(SHAPE)
    found = passed(inp, out[:, ::-1])
    assert found["inp"] is inp
    assert np.shares_memory(found["out"], out)
    assert found["out"].strides == (48, -16, 8)


def test_tensors_become_writable_arrays_in_the_stencils_order(passed: Any) -> None:
    inp, out = dl.ones((2, 3, 4), dims="KJI").as_readonly(), dl.zeros((6, 3, 2))[1:5]
    with pytest.warns(dl.LayoutWarning):
        found = passed(inp, out)
    for name, tensor, strides in [("inp", inp, (8, 32, 96)), ("out", out, (48, 16, 8))]:
        array = found[name]
        assert type(array) is np.ndarray
        assert (array.shape, array.strides, array.ctypes.data) == (SHAPE, strides, tensor.ptr)
        # GT4Py's C++ takes writable arrays only, also for fields that it only reads.
        assert array.flags.writeable
        base: Any = array.base
        assert base is tensor


def test_readonly_arrays_become_writable_ones(passed: Any) -> None:
    inp = np.ones(SHAPE)
    inp.flags.writeable = False
    found = passed(inp, np.zeros(SHAPE))["inp"]
    assert (found.flags.writeable, found.ctypes.data) == (True, inp.ctypes.data)


def test_an_array_in_another_order_is_not_passed_as_it_is(passed: Any, xarray: Any) -> None:
    inp = np.arange(8.0).reshape(2, 2, 2)
    field = xarray.DataArray(inp, dims=("K", "J", "I"))
    with pytest.warns(dl.LayoutWarning):
        found = passed(field, np.zeros((2, 2, 2)))["inp"]
    assert np.array_equal(found, inp.transpose())
    assert np.shares_memory(found, inp)


class Subclass(np.ndarray[Any, Any]):
    pass


def test_subclasses_of_arrays_become_plain_ones(passed: Any) -> None:
    found = passed(np.ones(SHAPE).view(Subclass), np.zeros(SHAPE))["inp"]
    assert type(found) is np.ndarray


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
def test_temporaries_are_passed_in_place_of_other_dtypes(passed: Any) -> None:
    inp, out = np.ones(SHAPE, "f4"), np.zeros(SHAPE)
    found = passed(inp, out, on_mismatch="copy")
    assert found["inp"].dtype == np.float64
    assert np.array_equal(found["inp"], inp)
    assert found["out"] is out


def test_empty_fields_are_not_a_crash(passed: Any) -> None:
    with pytest.raises(dl.LayoutError, match="is empty"):
        passed(dl.zeros((0, 3, 2)), np.zeros((0, 3, 2)))


def test_origin_and_halo_of_fields_of_equal_shape_are_told_apart() -> None:
    wrapped = wrap(gtscript.stencil(backend="numpy", definition=add))
    fields = [
        dl.ones((6, 6, 2)),
        dl.ones((6, 6, 2), origin=(1, 1, 0)),
        dl.ones((6, 6, 2), halo=(1, 1, 0)),
        dl.ones((6, 6, 2), halo=(1, 1, 0), origin=(2, 1, 0)),
    ]
    found = []
    for field in fields * 2:
        info: dict[str, Any] = {}
        wrapped(field, np.zeros((6, 6, 2)), exec_info=info)
        found.append((tuple(info["origin"]["inp"]), tuple(info["domain"])))
    assert found[:4] == [((0, 0, 0), (6, 6, 2)), ((1, 1, 0), (5, 5, 2)), ((1, 1, 0), (4, 4, 2)), ((2, 1, 0), (3, 4, 2))]
    assert found[4:] == found[:4]


def test_the_fast_layout_is_the_one_that_gt4py_has_registered() -> None:
    """A newer GT4Py has other layouts than dlfield's presets."""
    stencil = gtscript.stencil(backend="numpy", definition=add)
    before: Any = layout_registry.from_name("numpy")
    fields = [dl.ones(SHAPE, layout=(2, 1, 0)), dl.ones(SHAPE, layout=(2, 1, 0))]
    layout_registry.register("numpy", {**before, "layout_map": lambda _: (2, 1, 0)})
    try:
        wrap(stencil)(*fields)
        with pytest.warns(dl.LayoutWarning, match=r"fast is \(2, 1, 0\)"):
            wrap(stencil)(fields[0], np.zeros(SHAPE))
        assert dl.Signature.from_stencil(stencil).fields["inp"].layout == (2, 1, 0)
    finally:
        layout_registry.register("numpy", before)


def test_the_error_of_an_array_that_can_be_described_only_once_is_that_of_bind() -> None:
    wrapped = wrap(gtscript.stencil(backend="numpy", definition=add))
    with pytest.raises(dl.DimsError, match='field "inp": dims: 2 dimensions without labels; wanted are'):
        wrapped(np.zeros((4, 3)).__dlpack__(), np.zeros(SHAPE))
