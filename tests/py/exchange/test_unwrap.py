"""Wrappers that label an array, of xarray and gt4py.next: memory of the array, labels of the wrapper."""

import gc
import re
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from catalog import READERS
from childproc import run_python
from fakes import FakeTensor, Producer, int_matrix
from fakes_interfaces import Duck, double_matrix
from oracle import values

ROWS = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


@pytest.fixture
def gtx() -> Any:
    return pytest.importorskip("gt4py.next")


def test_a_data_array_is_its_data_with_dims(xarray: Any) -> None:
    array = double_matrix()
    for wrap in (xarray.DataArray, xarray.Variable):
        outer = wrap(data=array, dims=("level", "K"))
        for read in READERS:
            found = read(outer)
            assert (found.ptr, found.shape, found.dims) == (array.ctypes.data, (2, 3), ("level", "K"))
        found = dl.describe(outer)
        assert (found.owner, found.protocol, found.origin) == (outer, "numpy", None)
        assert (dl.get_dims(outer), dl.get_origin(outer), dl.get_origin(outer, (1, 1))) == (
            ("level", "K"),
            None,
            (1, 1),
        )


def test_subclasses_and_views_of_data_arrays(xarray: Any) -> None:
    class Mine(xarray.DataArray):  # type: ignore[misc]
        __slots__ = ()

    outer = Mine(double_matrix(), dims=("x", "y"))
    assert values(dl.describe(outer)) == ROWS
    found = dl.describe(outer.transpose("y", "x")[1:])
    assert (found.dims, found.shape, values(found)) == (("y", "x"), (2, 2), [[1.0, 4.0], [2.0, 5.0]])
    assert dl.from_array(outer).dims == ("x", "y")
    assert dl.as_numpy(outer).tolist() == ROWS


def test_names_that_are_no_strings_are_no_labels(xarray: Any) -> None:
    assert dl.describe(xarray.DataArray(double_matrix(), dims=(0, "y"))).dims is None


def test_coordinates_stay_readonly(xarray: Any) -> None:
    outer = xarray.DataArray(np.zeros(3), dims="x", coords={"x": [1.0, 2.0, 3.0]})
    assert (dl.describe(outer.x).readonly, values(dl.describe(outer.x))) == (True, [1.0, 2.0, 3.0])


class Exporting(Duck):
    """With memory through DLPack; `labels` become attributes."""

    def __init__(self, fake: FakeTensor, **labels: Any) -> None:
        super().__init__(fake=fake, dtype=fake.data.dtype, **labels)

    def __array_namespace__(self) -> Any:
        return np

    def __dlpack__(self, **keywords: Any) -> Any:
        return Producer(self.fake).__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_the_protocol_is_the_inner_arrays(xarray: Any) -> None:
    fake = FakeTensor(int_matrix())
    outer = xarray.DataArray(Exporting(fake), dims=("x", "y"))
    found = dl.describe(outer)
    assert (found.protocol, found.ptr, found.dims) == ("dlpack", fake.data.ctypes.data, ("x", "y"))
    del found
    assert fake.settled()
    legacy = xarray.DataArray(Exporting(FakeTensor(int_matrix(), version=None)), dims=("x", "y"))
    assert dl.describe(legacy).readonly
    assert not dl.describe(legacy, writable=True).readonly


def test_inner_labels_agree_or_are_an_error(xarray: Any) -> None:
    inner = Exporting(FakeTensor(int_matrix()), __gt_dims__=("I", "J"), __gt_origin__=(1, 2))
    agreeing = xarray.DataArray(inner, dims=("I", "J"))
    assert (dl.describe(agreeing).dims, dl.describe(agreeing).origin) == (("I", "J"), (1, 2))
    assert dl.get_origin(agreeing) == (1, 2)
    inner = Exporting(FakeTensor(int_matrix()), __gt_dims__=("I", "J"))
    differing = xarray.DataArray(inner, dims=("J", "I"))
    for read in READERS:
        with pytest.raises(dl.DimsError, match=r"\(J, I\).*\(I, J\)|\(I, J\).*\(J, I\)"):
            read(differing)
    assert dl.from_dlpack(differing, dims="KI").dims == ("K", "I"), "the caller's dims replace those of the object"


def test_arrays_made_at_each_access_are_not_described(xarray: Any) -> None:
    """Lazy data is loaded at each access of `.data`, and not kept."""

    class Lazy(xarray.backends.BackendArray):  # type: ignore[misc]
        shape, dtype = (2, 3), np.dtype(float)

        def __getitem__(self, key: Any) -> Any:
            return double_matrix()

    data = xarray.core.indexing.LazilyIndexedArray(Lazy())
    outer = xarray.Variable(("x", "y"), data, fastpath=True)
    with pytest.raises(dl.ExchangeError, match="obj: the object has no array in memory"):
        dl.describe(outer)
    assert dl.get_dims(outer) == ("x", "y")
    made = dl.from_dlpack(outer)
    assert (made.to_numpy().tolist(), made.dims) == (ROWS, ("x", "y"))


def test_the_replaced_array_of_a_wrapper_is_kept(xarray: Any, read: Callable[..., Any]) -> None:
    array = double_matrix()
    gone = weakref.ref(array)
    outer = xarray.DataArray(array, dims=("x", "y"))
    found = read(outer)
    outer.data = np.zeros((2, 3))
    del array
    gc.collect()
    assert gone() is not None
    assert values(found) == ROWS
    del found
    gc.collect()
    assert gone() is None


def test_a_wrapper_of_itself_does_not_recurse_forever(xarray: Any) -> None:
    class Endless(xarray.DataArray):  # type: ignore[misc]
        __slots__ = ()

        @property
        def data(self) -> Any:
            return self

    assert dl.from_dlpack(Endless(double_matrix(), dims=("x", "y"))).shape == (2, 3)


def test_the_wrappers_exception_is_the_callers(xarray: Any) -> None:
    class Failing(xarray.DataArray):  # type: ignore[misc]
        __slots__ = ()

        @property
        def data(self) -> Any:
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        dl.describe(Failing(double_matrix()))


def field_of(gtx: Any, dims: str, starts: tuple[int, ...], shape: tuple[int, ...], array: Any = None) -> Any:
    """A gt4py.next Field over a NumPy array, on a domain that starts at `starts`."""
    ranges = {
        gtx.Dimension(name): (start, start + extent) for name, start, extent in zip(dims, starts, shape, strict=True)
    }
    data = np.arange(np.prod(shape), dtype=float).reshape(shape) if array is None else array
    return gtx.common._field(data, domain=gtx.domain(ranges))


def test_a_field_is_its_ndarray_with_the_domains_dims(gtx: Any) -> None:
    field = field_of(gtx, "JI", (-1, 0), (2, 3))
    for read in READERS:
        found = read(field)
        assert (found.ptr, found.shape, found.strides) == (field.ndarray.ctypes.data, (2, 3), field.ndarray.strides)
        assert (values(found), found.dims) == (ROWS, ("J", "I"))
        assert found.origin == (1, 0), "the index of the grid's point zero, in index order"
    found = dl.describe(field)
    assert (found.owner, found.protocol) == (field, "numpy")
    assert (dl.get_dims(field), dl.get_origin(field)) == (("J", "I"), (1, 0))
    assert dl.describe(field, dims="KI").dims == ("K", "I")


@pytest.mark.parametrize(("starts", "origin"), [((0, 0), (0, 0)), ((-2, -3), (2, 3)), ((-2, 0), (2, 0))])
def test_the_grid_point_zero_is_the_origin(gtx: Any, starts: tuple[int, int], origin: tuple[int, int]) -> None:
    field = field_of(gtx, "IJ", starts, (2, 3))
    assert dl.describe(field).origin == dl.from_dlpack(field).origin == dl.get_origin(field, (1, 1)) == origin


@pytest.mark.parametrize(
    ("starts", "fix"), [((1, 0), (0, 0)), ((-3, -2), (0, 2)), ((-1, 3), (1, 0)), ((-(2**40), 2**40), (0, 0))]
)
@pytest.mark.parametrize(
    "read",
    [
        dl.from_dlpack,
        dl.describe,
        dl.from_array,
        dl.zeros_like,
        dl.get_origin,
        lambda field: dl.Signature(x=dl.FieldSpec("float64", "IJ")).bind(x=field),
        lambda field: dl.zeros((2, 3)) + field,
        lambda field: dl.zeros((2, 3)).__setitem__(..., field),
    ],
)
def test_a_field_without_the_grid_point_zero_needs_an_origin(
    gtx: Any, read: Any, starts: tuple[int, int], fix: tuple[int, int]
) -> None:
    """Its points would be paired with others; the other dimensions keep their origin in the fix."""
    field = field_of(gtx, "IJ", starts, (2, 3))
    with pytest.raises(dl.LayoutError, match=rf"dl\.from_dlpack\(field, origin={re.escape(str(fix))}\)$"):
        read(field)
    for read in (dl.from_dlpack, dl.from_array, dl.zeros_like):
        assert read(field, origin=fix).origin == fix
    assert values(dl.from_dlpack(field, origin=fix)) == dl.as_numpy(field, copy=True).tolist() == ROWS
    assert dl.preflight(field, "numpy")


def test_fields_of_one_and_no_dimension(gtx: Any) -> None:
    assert values(dl.describe(field_of(gtx, "K", (0,), (3,)))) == [0.0, 1.0, 2.0]
    scalar = gtx.common._field(np.array(2.5), domain=gtx.common.Domain())
    assert (values(dl.describe(scalar)), dl.describe(scalar).dims) == (2.5, ())


def test_fields_on_jax_arrays(gtx: Any, jnp: Any) -> None:
    found = dl.describe(field_of(gtx, "IJ", (0, 0), (2, 3), jnp.arange(6.0).reshape(2, 3)))
    assert (values(found), found.readonly, found.dims) == (ROWS, True, ("I", "J"))


def test_fields_without_an_array_are_refused(gtx: Any) -> None:
    embedded = pytest.importorskip("gt4py.next.iterator.embedded")
    dimension = gtx.Dimension("I")
    for field, named in (
        (embedded.ConstantField(2.5), "constant"),
        (embedded.IndexField(dimension), "infinite in dimension I"),
        (gtx.common.CartesianConnectivity.for_translation(dimension, 1), "infinite in dimension I"),
        (field_of(gtx, "IJ", (0, 0), (2, 3), np.zeros((1, 3))), "2 points in dimension I"),
    ):
        for read in READERS:
            with pytest.raises(dl.ExchangeError, match=named):
                read(field)


def test_an_interrupt_in_the_bounds_of_a_domain_arrives(gtx: Any) -> None:
    sound = field_of(gtx, "I", (0,), (2,))

    class Bound:
        def __index__(self) -> int:
            raise KeyboardInterrupt("in __index__")

    class Odd(type(sound)):  # type: ignore[misc]
        domain = SimpleNamespace(dims=sound.domain.dims, ranges=[SimpleNamespace(start=Bound(), stop=2)])
        ndarray = np.zeros(2)

    for read in READERS:
        with pytest.raises(KeyboardInterrupt, match="in __index__"):
            read(object.__new__(Odd))


def test_fields_and_their_arrays_have_the_same_dimensions(gtx: Any) -> None:
    sound = field_of(gtx, "I", (0,), (2,))

    class Odd(type(sound)):  # type: ignore[misc]
        domain = sound.domain
        ndarray = double_matrix()

    for read in READERS:
        with pytest.raises(dl.ExchangeError, match="a field of 1 dimension on an array of 2"):
            read(object.__new__(Odd))


def test_neither_library_is_imported_for_this() -> None:
    output = run_python("""
        import sys
        import numpy as np
        import dlfield as dl

        class Wrapper:
            __array_interface__ = np.zeros(3).__array_interface__

        dl.describe(Wrapper())
        print([name for name in ("xarray", "gt4py", "torch", "jax") if name in sys.modules])
    """)
    assert output == "[]\n"
