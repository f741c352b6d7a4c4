"""What `dlfield.xarray` adds to DataArrays: the data interface of GDP 3, and GT4Py's dims."""

import gc
import sys
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from childproc import run_cases
from fake_cupy import FakeCuPy
from fakes_interfaces import MISSING, Duck, Exposing, device_interface, double_matrix, interface_of, lazily_loaded
from oracle import values

pytest.importorskip("xarray")

import xarray

import dlfield.xarray

ROWS = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
NAMES = ["__gt_data_interface__", "__gt_interface__"]
READERS: list[Callable[..., Any]] = [dl.describe, dl.from_dlpack]


def around(dims: Any = ("K", "I"), **attributes: Any) -> Any:
    """A DataArray around an array that has these attributes and no others."""
    return xarray.DataArray(Duck(**attributes), dims=dims)


def buffer(array: Any, **changes: Any) -> dict[str, Any]:
    return interface_of(array, **{"version": MISSING, **changes})


def test_an_ordinary_data_array() -> None:
    array = double_matrix()
    found = xarray.DataArray(array, dims=("K", "x")).__gt_data_interface__
    assert found == {None: {**array.__array_interface__, "dims": ("K", "x")}}
    assert type(found) is dict
    assert isinstance(found[None], dict)


@pytest.mark.parametrize("slices", [{}, {"x": slice(None, None, -1)}, {"K": 1}, {"K": 0, "x": 2}, {"x": slice(1, 3)}])
def test_slices_read_through_it(slices: dict[str, Any]) -> None:
    outer = xarray.DataArray(double_matrix(), dims=("K", "x")).isel(slices).transpose()
    reader = Exposing(__gt_data_interface__=outer.__gt_data_interface__, kept=outer)
    for read in READERS:
        found = read(reader)
        assert (found.ptr, values(found)) == (outer.data.ctypes.data, outer.values.tolist())
        assert (found.shape, found.dims, found.strides) == (outer.shape, outer.dims, outer.data.strides)


def test_other_elements_and_read_only_memory() -> None:
    for dtype in ("float16", "bool", "complex64"):
        array = np.ones((2, 3), dtype)
        array.flags.writeable = False
        outer = xarray.DataArray(array, dims=("I", "J"))
        found = dl.describe(Exposing(__gt_data_interface__=outer.__gt_data_interface__, kept=outer))
        assert (found.dtype, found.readonly, found.ptr) == (array.dtype, True, array.ctypes.data)


def test_dtypes_without_a_type_string_have_no_interface() -> None:
    """As for dlfield's tensors: NumPy's interface would call such elements void."""
    field = dl.zeros((2, 3), "bfloat16")
    assert hasattr(dlfield.xarray.to_xarray(field), "__gt_data_interface__") is False
    assert hasattr(field, "__gt_data_interface__") is False


def test_host_and_device_interfaces_get_dims() -> None:
    array = double_matrix()
    host, device = interface_of(array), device_interface(typestr="<f8")
    expected: dict[Any, Any] = {None: {**host, "dims": ("K", "I")}, "gpu": {**device, "dims": ("K", "I")}}
    both = around(__array_interface__=host, __cuda_array_interface__=device)
    assert both.__gt_data_interface__ == expected
    assert around(__cuda_array_interface__=device).__gt_data_interface__ == {"gpu": expected["gpu"]}
    assert around(__array_interface__=host).__gt_data_interface__ == {None: expected[None]}
    assert "dims" not in host
    assert "dims" not in device


def test_without_any_interface_there_is_none() -> None:
    bare = around()
    assert not hasattr(bare, "__gt_data_interface__")
    with pytest.raises(AttributeError, match="__gt_data_interface__"):
        _ = bare.__gt_data_interface__
    assert hasattr(around(__gt_data_interface__=None, __array_interface__=interface_of(double_matrix())), NAMES[0])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("key", [None, "cpu", "gpu", ("gpu", 3)])
@pytest.mark.parametrize("stated", [MISSING, None, ("K", "I"), ["K", "I"], "KI"])
def test_the_datas_own_interface_gets_dims(name: str, key: Any, stated: Any) -> None:
    inner = buffer(double_matrix(), halo=((1, 0), (0, 0)), dims=stated)
    given = dict(inner)
    expected = {key: {**inner, "dims": ("K", "I")}}
    for wrapped in (inner, MappingProxyType(inner)):
        for interface in ({key: wrapped}, MappingProxyType({key: wrapped}), lambda wrapped=wrapped: {key: wrapped}):
            other = interface_of(np.zeros((2, 3)))
            assert around(**{name: interface, "__array_interface__": other}).__gt_data_interface__ == expected
    assert inner == given, "what belongs to the array inside is not written to"


@pytest.mark.parametrize("stated", [("I", "K"), "IK", ["K"], (), 5])
def test_dims_that_disagree_are_an_error(stated: Any) -> None:
    outer = around(__gt_data_interface__={None: buffer(double_matrix(), dims=stated)})
    with pytest.raises(dl.DimsError, match=r"^data_array: its dims are \('K', 'I'\)"):
        _ = outer.__gt_data_interface__
    one_of_two = {"cpu": buffer(double_matrix(), dims="KI"), "gpu": device_interface(dims=stated)}
    with pytest.raises(dl.DimsError):
        _ = around(__gt_data_interface__=one_of_two).__gt_data_interface__


def test_callables_stay_callable_and_wait() -> None:
    array, called = double_matrix(), []

    def give(**changes: Any) -> Callable[[], Any]:
        def made() -> Any:
            called.append(changes)
            return buffer(array, **changes)

        return made

    found = around(__gt_data_interface__={"cpu": give(), "gpu": give(dims="IK")}).__gt_data_interface__
    assert called == []
    assert found["cpu"]() == buffer(array, dims=("K", "I"))
    with pytest.raises(dl.DimsError, match="data_array"):
        found["gpu"]()
    assert called == [{}, {"dims": "IK"}]


def test_malformed_interfaces_and_dims() -> None:
    with pytest.raises(dl.ExchangeError, match=r"__gt_data_interface__: expected a mapping .*, got 5"):
        _ = around(__gt_data_interface__=5).__gt_data_interface__
    kept = around(__gt_data_interface__={"tpu": 5, None: buffer(double_matrix())}).__gt_data_interface__
    assert kept["tpu"] == 5
    for dims in ((0, "I"), (None, "I")):
        with pytest.raises(dl.DimsError, match="labels are strings"):
            _ = xarray.DataArray(double_matrix(), dims=dims).__gt_data_interface__


def test_the_producers_exception_is_the_callers() -> None:
    class Failing(Duck):
        @property
        def __gt_data_interface__(self) -> Any:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        _ = xarray.DataArray(Failing(), dims=("K", "I")).__gt_data_interface__


def test_nothing_is_cached() -> None:
    outer = xarray.DataArray(np.zeros((2, 3)), dims=("K", "I"))
    before = outer.__gt_data_interface__
    assert outer.__gt_dims__ == ("K", "I")
    array = double_matrix()
    outer.data = array
    assert outer.__gt_data_interface__[None]["data"] == (array.ctypes.data, False) != before[None]["data"]
    outer.name = "renamed"
    assert outer.rename({"K": "J"}).__gt_data_interface__[None]["dims"] == ("J", "I")
    assert outer.T.__gt_dims__ == ("I", "K")
    outer.variable.dims = ("I", "J")
    assert (outer.__gt_data_interface__[None]["dims"], outer.__gt_dims__) == (("I", "J"), ("I", "J"))


def test_the_dictionary_keeps_memory_that_was_made_for_it() -> None:
    outer = lazily_loaded(np.arange(10_000.0), ("x",))
    assert outer.data is not outer.data
    found = outer.__gt_data_interface__
    gc.collect()
    others = [np.zeros(10_000) for _ in range(8)]
    assert values(dl.describe(Exposing(__gt_data_interface__=found))) == list(range(10_000))
    assert len(others) == 8


def test_a_data_array_is_freed_at_once() -> None:
    array = double_matrix()
    outer = xarray.DataArray(array, dims=("K", "I"))
    gc.disable()
    try:
        _ = (outer.__gt_data_interface__, outer.__gt_dims__)
        owners = [found for found in gc.get_referrers(array) if isinstance(found, xarray.Variable)]
        assert len(owners) == 1
        del owners, outer, _
        assert not any(isinstance(found, xarray.Variable) for found in gc.get_referrers(array)), "no cycle keeps it"
    finally:
        gc.enable()


# GT4Py's dims


@pytest.mark.parametrize("dims", [(), ("K",), ("J", "I"), ("0", "K", "I", "J"), ("1", "0")])
def test_gt4py_gets_the_labels_it_knows(dims: tuple[str, ...]) -> None:
    assert xarray.DataArray(np.zeros((2,) * len(dims)), dims=dims).__gt_dims__ == dims


@pytest.mark.parametrize("dims", [("x", "y"), ("I", "level"), (0, 1), ("I", None), ("i", "j")])
def test_other_data_arrays_have_no_gt4py_dims(dims: Any) -> None:
    assert not hasattr(xarray.DataArray(np.zeros((2, 2)), dims=dims), "__gt_dims__")


# dlfield's own readers


@pytest.mark.parametrize("read", READERS)
def test_readers_ask_the_inner_array_once(read: Callable[..., Any]) -> None:
    called = []

    def give() -> Any:
        called.append("cpu")
        return buffer(array, halo=((1, 0), (0, 1)))

    array = double_matrix()
    outer = around(__gt_data_interface__={"cpu": give})
    found = read(outer)
    assert (found.ptr, found.dims, found.origin) == (array.ctypes.data, ("K", "I"), (1, 0))
    assert (found.halo, called) == (((1, 0), (0, 1)), ["cpu"])


def test_readers_see_the_same_as_without_the_accessor() -> None:
    array = double_matrix()
    outer = xarray.DataArray(array, dims=("K", "I"))
    found = dl.describe(outer)
    assert (found.protocol, found.ptr, found.dims, found.origin) == ("numpy", array.ctypes.data, ("K", "I"), None)
    assert (dl.get_dims(outer), dl.get_origin(outer), dl.get_origin(outer, (1, 1))) == (("K", "I"), None, (1, 1))
    odd = xarray.DataArray(array, dims=(0, "I"))
    assert (dl.describe(odd).dims, dl.get_dims(odd), dl.from_dlpack(odd).dims) == (None, None, ("I", "J"))
    differing = around(__gt_data_interface__={None: buffer(array, dims="IK")})
    for read in READERS:
        with pytest.raises(dl.DimsError, match=r"\(K, I\).*\(I, K\)|\(I, K\).*\(K, I\)"):
            read(differing)
        assert read(differing, dims="AB").dims == ("A", "B")


@pytest.mark.usefixtures("fresh_answers")
def test_frameworks_take_it_as_without_the_accessor(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = FakeCuPy()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    odd = xarray.DataArray(double_matrix(), dims=(0, "I"))
    assert isinstance(dl.as_cupy(odd), cupy.ndarray)
    assert dl.as_numpy(odd, copy=False).tolist() == ROWS
    assert dl.preflight(odd, "numpy", write=True)


def test_an_accessor_of_another_package_is_read() -> None:
    """Also one that replaces dlfield's later, with a warning of xarray's."""
    prelude = """
        import importlib, warnings
        import numpy as np
        import xarray
        warnings.simplefilter("error")

        def register():
            accessor = xarray.register_dataarray_accessor("__gt_data_interface__")
            accessor(lambda data_array: {None: {**data_array.data.__array_interface__, "halo": ((1, 1), (0, 2))}})

        def import_dlfield():
            global dl
            import dlfield as dl
            import dlfield.xarray

        outer = xarray.DataArray(np.zeros((4, 3)), dims=("K", "I"))
    """
    earlier = """
        register()
        import_dlfield()
        assert outer.__gt_data_interface__[None]["halo"] == dl.describe(outer).halo == ((1, 1), (0, 2))
        assert outer.__gt_dims__ == ("K", "I")
    """
    later = """
        import_dlfield()
        dl.describe(outer)
        first = xarray.DataArray.__gt_data_interface__
        importlib.reload(dl.xarray)
        assert xarray.DataArray.__gt_data_interface__ is not first
        assert outer.__gt_data_interface__[None]["dims"] == ("K", "I")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            register()
        assert [warning.category.__name__ for warning in caught] == ["AccessorRegistrationWarning"]
        importlib.reload(dl.xarray)
        assert dl.describe(outer).halo == ((1, 1), (0, 2))
    """
    run_cases(prelude, {"earlier": earlier, "later": later})
