"""Tensors with other operands: plain and labelled arrays, other libraries, types with their own `__array_ufunc__`."""

import operator
import re
from decimal import Decimal
from typing import Any

import pytest
import xarray

import dlfield as dl
import oracle
from catalog import numbered
from untyped import np


def test_an_array_of_the_tensors_shape_has_its_dims(tmp_path: Any) -> None:
    field = numbered((2, 3), dims="KI", layout=(1, 0))
    mapped = np.memmap(tmp_path / "numbers", np.float64, "w+", shape=(2, 3))
    mapped[...] = 1
    for found in (
        field + np.ones((2, 3)),
        np.ones((2, 3)) + field,
        np.add(field, ([1, 1, 1], (1, 1, 1))),
        field + mapped,
    ):
        assert isinstance(found, dl.Tensor)
        assert (found.dims, found.strides) == (("K", "I"), (8, 16))
        assert oracle.values(found) == (field.to_numpy() + 1).tolist()


def test_an_array_with_the_results_dims() -> None:
    plane, column = numbered((2, 3), dims="IJ"), numbered((4,), dims="K")
    box = np.arange(24.0).reshape(2, 3, 4)
    out = dl.zeros((2, 3, 4))
    np.add(plane, np.ones((1, 3, 1)), out=out)
    assert (out.to_numpy() == plane.to_numpy()[:, :, None] + 1).all()
    ufunc = np._core.umath.clip
    assert ufunc(box, plane, column).dims == ("I", "J", "K")
    wide = plane + np.ones((1, 3))
    assert wide.shape == (2, 3)
    with pytest.raises(dl.LayoutError, match='"I", or 1, got 2 points in operand 0 and 5 in operand 1'):
        np.add(plane, np.ones((5, 3, 4)), out=out)


def test_three_dimensions_are_those_of_the_grid() -> None:
    plane = numbered((2, 3), dims="IJ")
    box = np.arange(24.0).reshape(2, 3, 4)
    found = plane * box
    assert (found.dims, found.shape) == (("I", "J", "K"), (2, 3, 4))
    assert (found.to_numpy() == plane.to_numpy()[:, :, None] * box).all()
    flat = plane * np.full((1, 3, 1), 2.0)
    assert (flat.dims, flat.shape) == (("I", "J"), (2, 3)), "sizes of 1 do not count"
    turned = numbered((4, 2, 3), dims="KIJ")
    assert ((turned + box).to_numpy() == turned.to_numpy() + box.transpose(2, 0, 1)).all()


@pytest.mark.parametrize("shape", [(4,), (2, 3), (2, 3, 1), (1, 1, 5), (2, 1, 2, 2)])
def test_a_field_without_dimensions_is_a_number(shape: tuple[int, ...]) -> None:
    number = dl.full((2,), 1.5, dims="x").sum()
    array = np.arange(float(np.prod(shape))).reshape(shape)
    mask = array > 1
    for found, expected in (
        (array - number, array - 3),
        (number - array, 3 - array),
        (number - array.tolist(), 3 - array),
        (array < number, array < 3),
        (number == array, array == 3),
        (np.clip(array, number, 4), np.clip(array, 3, 4)),
        (np.subtract(array, number, where=mask, out=np.zeros(shape)), np.where(mask, array - 3, 0)),
        (np.add(number, number, where=mask)[mask], np.full(mask.sum(), 6)),
        (np.add(array, array[-1]) - number, array + array[-1] - 3),
    ):
        assert type(found) is np.ndarray, "without labels it is not a field"
        assert found.tolist() == expected.tolist()
    array /= number
    assert array.tolist() == (np.arange(float(np.prod(shape))).reshape(shape) / 3).tolist()


def test_a_field_without_dimensions_beside_arrays_of_other_libraries(torch: Any, jax: Any, xarray: Any) -> None:
    number = dl.full((2, 3), 0.5).sum()
    pandas = pytest.importorskip("pandas")
    frames = pandas.Series([1.0] * 2), pandas.DataFrame({"a": [1.0, 1.0], "b": [1.0, 1.0]})
    for ones in (torch.ones(2, 3), jax.numpy.ones((2, 3)), xarray.DataArray(np.ones((2, 3))), *frames):
        for found in (ones * number, number * ones):
            assert np.asarray(found).tolist() == np.full(np.shape(ones), 3).tolist()


@pytest.mark.parametrize(("dims", "axis"), [("IJ", "J"), ("KI", 0), (("y", "x"), "x"), ("KJI", "J"), ("KJI", (0, 1))])
def test_kept_dimensions_are_those_of_the_array(dims: Any, axis: Any) -> None:
    field = numbered((3,) * len(dims), dims=dims)
    array = field.to_numpy()
    axes = tuple(dims.index(one) if isinstance(one, str) else one for one in (axis if type(axis) is tuple else (axis,)))
    found: Any = array - field.mean(axis, keepdims=True)
    assert (found.dims, found.tolist()) == (field.dims, (array - array.mean(axes, keepdims=True)).tolist())


@pytest.mark.parametrize(
    ("shape", "dims"),
    [((3,), "('J',)"), ((4,), "..."), ((3, 2), "('J', 'I')"), ((2, 2), "..."), ((1, 2, 3, 4), "...")],
)
def test_arrays_with_unclear_dims_are_refused(shape: tuple[int, ...], dims: str) -> None:
    with pytest.raises(dl.DimsError, match=rf"label it: dl\.from_dlpack\(array, dims={re.escape(dims)}\)$"):
        numbered((2, 3), dims="IJ") + np.ones(shape)
    with pytest.raises(dl.DimsError, match="from_dlpack"):
        numbered((2, 3), dims="x y") + np.ones((2, 3, 1))


def test_inputs_of_the_same_shape_with_different_dims_are_ambiguous() -> None:
    mask = np.ones((2, 2), "?")
    a, b = numbered((2, 2), dims="IJ"), numbered((2, 2), dims="JK")
    with pytest.raises(dl.DimsError, match=r"dims \(I, J\) and dims \(J, K\)"):
        np.add(a, b, where=mask)
    assert np.add(a, a, where=mask).dims == ("I", "J")


def test_arrays_that_state_their_dims(xarray: Any) -> None:
    field = numbered((2, 3), dims="IJ", halo=(1, 0), alignment_size=64, layout=(1, 0))
    outer = xarray.DataArray(np.arange(6.0).reshape(3, 2), dims=("J", "I"))
    found = np.add(field, outer)
    assert isinstance(found, dl.Tensor)
    assert (found.to_numpy() == field.to_numpy() + outer.values.T).all()
    found = np.add(xarray.DataArray(np.ones(4), dims="K"), field)
    assert (found.dims, found.halo, found.layout) == (("I", "J", "K"), ((1, 1), (0, 0), (0, 0)), (2, 1, 0))

    class Stating:
        __gt_dims__ = ("J", "I")
        __array_interface__ = np.arange(6.0).reshape(3, 2).__array_interface__

    assert (field + Stating()).dims == ("I", "J")
    with pytest.raises(dl.LayoutError, match='"I"'):
        field + xarray.DataArray(np.ones(3), dims="I")


def test_arrays_of_torch(torch: Any) -> None:
    field = numbered((2, 3), "f4", dims="KI")
    other = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    for found in (field + other, other + field):
        assert isinstance(found, dl.Tensor)
        assert oracle.values(found) == (field.to_numpy() + other.numpy()).tolist()
    assert isinstance(field * torch.tensor(2.0), dl.Tensor)


def described(_self: Any, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> str:
    return f"{ufunc.__name__} {method} {len(inputs)} {sorted(keywords)}"


class Own:
    """A type with its own `__array_ufunc__`, and with memory."""

    __array_interface__ = np.zeros((2, 3)).__array_interface__
    __array_ufunc__ = described


class Counting(float):
    """A number with its own `__array_ufunc__`."""

    __array_ufunc__ = described


class Reflecting(float):
    """A number that opts out of ufuncs and has its own operators."""

    __array_ufunc__: Any = None

    def __radd__(self, other: object) -> str:  # type: ignore[override]
        return "mine"


class Hesitating:
    """A type whose operators support more than its `__array_ufunc__`."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        return NotImplemented

    def __radd__(self, other: object) -> str:
        return "mine"


def test_array_ufunc_of_other_types_is_called() -> None:
    field = dl.zeros((2, 3))
    assert np.add(field, Own()) == "add __call__ 2 []"
    assert np.add(field, 1, out=(Own(),)) == "add __call__ 2 ['out']"
    assert np.add.reduce(field, where=Own()) == "add reduce 1 ['where']"
    assert field + Own() == Own() + field == np.zeros((2, 3)) + Own() == "add __call__ 2 []"
    computed: Any = field
    computed -= Own()
    assert computed == "subtract __call__ 2 ['out']"


def test_array_ufunc_of_numbers_and_reflected_operators_are_called() -> None:
    field = dl.zeros((2, 3))
    for number, expected in ((Counting(2), "add __call__ 2 []"), (Reflecting(2), "mine")):
        assert field + number == np.zeros((2, 3)) + number == expected
    assert field + Hesitating() == "mine"
    with pytest.raises(TypeError, match="NotImplemented"):
        field += Hesitating()


class Unwrapped(np.ndarray):  # type: ignore[misc]
    """A subclass of ndarray whose `__array_wrap__` cannot be read: NumPy 2.4 crashes in `np.add` of it and a number."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__array_wrap__":
            raise TypeError(name)
        return super().__getattribute__(name)


def test_a_subclass_without_dimensions_whose_wrapper_fails() -> None:
    number = np.array(2.0).view(Unwrapped)
    assert (dl.ones(3) + number).to_numpy().tolist() == [3.0, 3.0, 3.0]
    assert (number + dl.ones(())).to_numpy() == 3.0
    swapped = np.array(2.0, ">f8").view(type("Subclass", (np.ndarray,), {}))
    assert (dl.ones(3) + swapped).to_numpy().tolist() == [3.0, 3.0, 3.0]


@pytest.mark.parametrize(
    "array",
    [
        *("a", b"a", ["1", "2"], [b"1", b"2"], np.datetime64("2020-01-01"), [np.timedelta64(1, "s")] * 2),
        *(np.array(None), np.array([1.0, None]), np.array([1, 2], "longdouble"), np.array(2.0, object)),
    ],
    ids=str,
)
def test_equality_with_elements_that_no_field_has_is_numpys(array: Any) -> None:
    field, array = dl.from_array([1.0, 2.0], dims="K", halo=((1, 0),)), np.array(array)
    for found, expected in (
        (field == array, field.to_numpy() == array),
        (field != array, field.to_numpy() != array),
        (array == field, array == field.to_numpy()),
        (array != field, array != field.to_numpy()),
    ):
        assert (found.dims, found.halo, found.tolist()) == (("K",), ((1, 0),), expected.tolist())


@pytest.mark.parametrize("array", [np.zeros(2, "i4,f4"), np.array(["a"] * 3)], ids=str)
def test_what_numpy_does_not_compare_is_an_error(array: Any) -> None:
    with pytest.raises(dl.DTypeError, match=r"^dtype: "):
        dl.ones(2) == array  # noqa: B015


@pytest.mark.parametrize("dtype", [">f8", ">i4", ">c16", ">f2"])
def test_operands_of_the_other_byte_order(dtype: str) -> None:
    """They are converted, with their labels; a result cannot be written to them."""
    array = np.arange(6).reshape(2, 3).astype(dtype)
    labelled = xarray.DataArray(array, dims=("J", "I"))
    field: Any = dl.ones((3, 2))
    for found in (field + labelled, labelled.variable.data.T + field, field + array.T):
        assert (found.dims, found.tolist()) == (("I", "J"), (array.T + 1.0).tolist())
    like = dl.zeros_like(labelled)
    assert (like.dims, like.dtype, like.shape) == (("J", "I"), np.dtype(dtype).newbyteorder("="), (2, 3))
    assert dl.ones_like(np.asfortranarray(array)).layout == (1, 0)
    with pytest.raises(dl.DTypeError, match="native byte order"):
        np.add(field, 1, out=array.T)


@pytest.mark.parametrize("value", [None, "text", b"text", Decimal(1), object(), {}])
def test_operands_that_are_no_array_or_number(value: object) -> None:
    field = dl.zeros((2, 3))
    with pytest.raises(TypeError, match="unsupported operand"):
        field + value
    with pytest.raises(TypeError):
        np.add(field, value)
    assert (field == value, field != value) == (False, True)
    with pytest.raises(TypeError):
        field < value  # noqa: B015


class Declining:
    """An array of a library that declines fields, as Dask does before `dlfield.dask` is imported."""

    shape, dtype = (3,), np.dtype("f8")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        return NotImplemented

    def __add__(self, other: object) -> Any:
        return NotImplemented

    __array_priority__ = 1

    def __eq__(self, other: object) -> Any:
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]


def test_arrays_that_decline_are_not_unequal() -> None:
    field = dl.zeros(3)
    sparse = pytest.importorskip("scipy.sparse").csr_array(np.zeros((1, 3)))
    for other in (Declining(), sparse):
        for compare in (operator.eq, operator.ne):
            for pair in ((field, other), (other, field)):
                with pytest.raises(TypeError, match=r"'[!=]=' not supported between instances of 'dlfield.Tensor' and"):
                    compare(*pair)

    class Decided(Declining):
        def __eq__(self, other: object) -> Any:
            return "mine"

        __hash__ = None

    assert (field == Decided()) == "mine"


@pytest.mark.parametrize("masked", [np.ma.array(np.ones((2, 2)), mask=True), np.ma.array(5.0, mask=True), np.ma.masked])
def test_masked_operands_are_errors(masked: Any) -> None:
    with pytest.raises(dl.ExchangeError, match="mask"):
        dl.zeros((2, 2)) + masked


def test_arrays_that_cannot_be_read_are_errors() -> None:
    field = dl.zeros((2, 2))
    with pytest.raises(dl.DTypeError):
        field + np.array([["a", "b"], ["c", "d"]])
    with pytest.raises(ValueError, match="inhomogeneous"):
        np.add(field, [[1], [1, 2]])
