"""`to_xarray` and `from_xarray`: one memory, the same dims."""

import copy
import gc
import pickle
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dlfield as dl
from catalog import CPU_PRESETS, count_up
from childproc import run_python
from fakes_interfaces import Duck, Exposing, double_matrix, host, lazily_loaded
from oracle import values

pytest.importorskip("xarray")

import xarray

from dlfield.xarray import from_xarray, to_xarray

ROWS = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


@pytest.mark.parametrize("preset", CPU_PRESETS)
def test_there_and_back_on_one_memory(preset: str) -> None:
    field = count_up(preset)
    outer = to_xarray(field)
    assert (outer.dims, outer.shape, outer.dtype) == (field.dims, field.shape, field.dtype)
    assert (outer.data.ctypes.data, outer.data.strides) == (field.ptr, field.strides)
    assert (dict(outer.coords), outer.attrs, outer.name) == ({}, {}, None)
    back = from_xarray(outer)
    assert (back.ptr, back.strides, back.layout, back.dims) == (field.ptr, field.strides, field.layout, field.dims)


def test_writes_are_seen_by_both_libraries() -> None:
    field = dl.zeros((2, 3), dims="KI")
    outer = to_xarray(field)
    outer.loc[{"K": 1, "I": 2}] = 7.0
    assert field[1, 2] == 7.0
    field[0, 0] = 3.0
    assert float(outer[0, 0]) == 3.0
    from_xarray(outer)[0, 1] = 4.0
    assert (float(outer[0, 1]), field[0, 1]) == (4.0, 4.0)


def test_permuted_dims_stay_where_they_are() -> None:
    field = dl.from_array(np.arange(24.0).reshape(2, 3, 4), backend="gt:cpu_ifirst")
    turned = from_xarray(to_xarray(field).transpose("K", "I", "J"))
    expected = field.transpose("K", "I", "J")
    assert (turned.dims, turned.shape, turned.strides) == (expected.dims, expected.shape, expected.strides)
    assert turned.to_numpy().tolist() == expected.to_numpy().tolist()


def test_views_of_a_data_array() -> None:
    array = np.arange(24.0).reshape(2, 3, 4)
    outer = xarray.DataArray(array, dims=("K", "J", "I"))
    for view in (
        outer.isel(J=1),
        outer.isel(I=slice(1, None, 2)),
        outer[:, ::-1, ::-2],
        outer.isel(K=slice(0, 0)),
        outer.isel(K=1, J=2, I=3),
        outer.squeeze(),
    ):
        field = from_xarray(view)
        assert (field.dims, field.shape, field.strides) == (view.dims, view.shape, view.data.strides)
        assert field.ptr == view.data.ctypes.data
        assert field.to_numpy().tolist() == view.values.tolist()
    from_xarray(outer[:, ::-1])[0, 0, 0] = -1.0
    assert array[0, 2, 0] == -1.0


DTYPES: list[Any] = ["float16", "bool", "complex64", "complex128", "uint8", "int64"]


@pytest.mark.parametrize("dtype", [*DTYPES, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_dtypes_are_kept(dtype: Any) -> None:
    field = dl.ones((2, 3), dtype, dims="JK")
    outer = to_xarray(field)
    assert (outer.dtype, outer.data.ctypes.data) == (np.dtype(dtype), field.ptr)
    back = from_xarray(outer)
    assert (back.dtype, back.ptr, back.dims) == (field.dtype, field.ptr, ("J", "K"))


def test_no_dimensions_and_no_elements() -> None:
    scalar = dl.full((), 2.5)
    outer = to_xarray(scalar)
    outer[...] = 3.5
    assert (outer.dims, float(scalar.to_numpy()), from_xarray(outer).ptr) == ((), 3.5, scalar.ptr)
    empty = from_xarray(to_xarray(dl.zeros((0, 3), dims="x y")))
    assert (empty.shape, empty.dims) == ((0, 3), ("x", "y"))


def test_read_only_stays_so() -> None:
    outer = to_xarray(dl.ones((2, 3)).as_readonly())
    with pytest.raises(ValueError, match=r"[Aa]ssignment destination"):
        outer[0, 0] = 1.0
    assert from_xarray(outer).readonly
    coordinate = xarray.DataArray(np.zeros(2), dims="x", coords={"x": [1.0, 2.0]}).x
    assert (from_xarray(coordinate).readonly, values(from_xarray(coordinate))) == (True, [1.0, 2.0])


def test_origin_is_given_and_never_guessed() -> None:
    """A slice in xarray keeps the attributes of the whole array, so an origin among them would be wrong."""
    field = dl.zeros((6, 5), dims="KI", halo=((2, 1), (1, 1)))
    outer = to_xarray(field)
    assert (from_xarray(outer).origin, from_xarray(outer).halo) == ((0, 0), ((0, 0), (0, 0)))
    assert from_xarray(outer, origin=field.origin).origin == (2, 1)
    with pytest.raises(dl.LayoutError, match="origin"):
        from_xarray(outer, origin=(1,))


def test_name_and_coordinates() -> None:
    outer = to_xarray(dl.zeros((2, 3), dims="KI"), name="pressure", coords={"K": [850.0, 500.0]})
    assert (outer.name, outer.sel(K=500.0).dims) == ("pressure", ("I",))
    with pytest.raises(ValueError, match="K"):
        to_xarray(dl.zeros((2, 3), dims="KI"), coords={"K": [1.0, 2.0, 3.0]})


def test_other_arrays_that_state_their_dims(torch: Any) -> None:
    tensor = torch.zeros((2, 3))
    outer = to_xarray(dl.describe(tensor, dims="JK"))
    assert (outer.dims, outer.data.ctypes.data) == (("J", "K"), tensor.data_ptr())
    labelled = Exposing(**vars(host(double_matrix())), __gt_dims__=("a", "b"))
    assert (to_xarray(labelled).dims, to_xarray(labelled).values.tolist()) == (("a", "b"), ROWS)
    with pytest.raises(dl.DimsError, match=r"obj: found Tensor without dims; from_dlpack\(obj, dims="):
        to_xarray(tensor)
    with pytest.raises(dl.NotAnArrayError, match="obj"):
        to_xarray([1.0, 2.0])


def test_variables_of_a_dataset() -> None:
    field = dl.full((2, 3), 2.0, dims="KI")
    dataset = xarray.Dataset({"p": to_xarray(field), "t": to_xarray(dl.zeros((3,), dims="I"))})
    assert (from_xarray(dataset["p"]).ptr, from_xarray(dataset.t).dims) == (field.ptr, ("I",))
    with pytest.raises(dl.NotAnArrayError, match=r"data_array: expected .*, got Dataset; .*dataset\['name'\]"):
        from_xarray(dataset)


def test_names_that_are_no_labels() -> None:
    for dims, fix in (((0, "y"), r"0 in .*rename\(\{0: 'name'\}\)"), (("x", None), "None in ")):
        with pytest.raises(dl.DimsError, match=f"data_array: found {fix}"):
            from_xarray(xarray.DataArray(double_matrix(), dims=dims))
    assert from_xarray(xarray.DataArray(double_matrix(), dims=(0, "y")).rename({0: "x"})).dims == ("x", "y")
    with pytest.raises(dl.DimsError, match="empty"):
        from_xarray(xarray.DataArray(double_matrix(), dims=("", "y")))
    with pytest.warns(UserWarning, match="[Dd]uplicate"):
        twice = xarray.DataArray(np.zeros((2, 2)), dims=("x", "x"))
    with pytest.raises(dl.DimsError, match='got "x" at 0 and at 1'):
        from_xarray(twice)


@pytest.mark.parametrize("other", [np.zeros(3), [1.0], None, xarray.Variable("x", [1.0])])
def test_what_is_no_data_array(other: Any) -> None:
    with pytest.raises(dl.NotAnArrayError, match=f"^data_array: .*, got {type(other).__name__}"):
        from_xarray(other)


@pytest.mark.parametrize("data", [["a", "b"], np.array(["2020-01-01"], "M8[ns]"), np.array([1, "x"], object)])
def test_unsupported_dtypes(data: Any) -> None:
    with pytest.raises(dl.DTypeError, match="dtype"):
        from_xarray(xarray.DataArray(data, dims="x"))


class OutOfMemory(Duck):
    """Data like dask's: `__array__` computes its chunks anew each time."""

    chunks: tuple[tuple[int, ...], ...] | None = ((1, 1), (3,))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return double_matrix()


class Computing(OutOfMemory):
    chunks = None


def test_data_that_is_not_in_memory() -> None:
    with pytest.raises(dl.ExchangeError, match=r"data_array: .*chunks.*data_array\.compute\(\)"):
        from_xarray(xarray.DataArray(OutOfMemory(), dims=("x", "y")))
    lazy = lazily_loaded(double_matrix(), ("x", "y"))
    for outer in (xarray.DataArray(Computing(), dims=("x", "y")), lazy):
        with pytest.raises(dl.ExchangeError, match=r"made for this call|load it first"):
            from_xarray(outer)
    assert values(from_xarray(lazy.load())) == ROWS


def test_both_libraries_keep_the_memory() -> None:
    outer = to_xarray(dl.full((100, 100), 2.5))[50:]
    gc.collect()
    others = [dl.zeros((100, 100)) for _ in range(4)]
    assert (bool((outer == 2.5).all()), len(others)) == (True, 4)
    array = double_matrix()
    gone = weakref.ref(array)
    field = from_xarray(xarray.DataArray(array, dims=("x", "y")))
    del array
    gc.collect()
    assert (gone() is not None, values(field)) == (True, ROWS)
    del field
    gc.collect()
    assert gone() is None


def test_pickles_and_copies_of_the_data_array() -> None:
    field = dl.from_array(double_matrix(), dims="KI", backend="gt:cpu_ifirst")
    outer = to_xarray(field, name="p")
    for other in (pickle.loads(pickle.dumps(outer)), copy.deepcopy(outer)):
        assert other.identical(outer)
        back = from_xarray(other)
        assert (back.dims, values(back), back.ptr == field.ptr) == (("K", "I"), ROWS, False)


@pytest.mark.parametrize(
    "compute",
    [
        lambda array, field: array - field,
        lambda array, field: array.where(array > 3, field),
        lambda array, field: xarray.where(array > 3, array, field),
        lambda array, field: array.where(array > 3).fillna(field),
        lambda array, field: array.clip(field, 4),
        lambda array, field: xarray.Dataset({"a": array})["a"] - field,
        lambda array, field: array.variable - field.variable,
        lambda array, field: array.copy().__isub__(field),
        lambda array, field: assigned(array, field.variable),
        lambda array, field: np.subtract(array, field),
    ],
)
def test_xarray_computes_with_fields_by_name(compute: Any) -> None:
    """`variable` gives it the labels."""
    field = dl.from_array(np.arange(9.0).reshape(3, 3), dims="IJ")
    array = xarray.DataArray(np.arange(9.0)[::-1].reshape(3, 3), dims=("J", "I"))
    found = compute(array, field)
    assert found.dims == ("J", "I")
    assert np.asarray(found).tolist() == np.asarray(compute(array, to_xarray(field))).tolist()


def assigned(array: Any, value: Any) -> Any:
    made = array.copy()
    made[...] = value
    return made


def test_variable_is_on_the_fields_memory() -> None:
    field = dl.zeros((2, 3), dims="KI", halo=(0, 1))
    field.variable[0, 1] = 7.0
    assert (field[0, 1], field.as_readonly().variable.data.flags.writeable) == (7.0, False)
    code = (
        "import dlfield as dl; f = dl.ones(2); assert not hasattr(f, 'variable'); import xarray; print(f.variable.dims)"
    )
    assert run_python(code).split() == ["('I',)"]
