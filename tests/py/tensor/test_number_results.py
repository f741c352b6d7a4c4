"""Results that are numbers, and the methods that a `Tensor` has in common with `numpy.ndarray`."""

from __future__ import annotations

import bisect
import operator
import pydoc
import re
from collections.abc import Callable
from typing import Any

import pytest

import dlfield as dl
from catalog import numbered
from untyped import np

ORDERS: list[dict[str, Any]] = [{}, {"backend": "F"}, {"alignment_size": 64, "halo": (1, 1, 0)}]


def field(dtype: str = "f8", **keywords: Any) -> dl.Tensor:
    return numbered((2, 3, 4), dtype, **keywords)


# Numbers.


def test_full_reductions_are_numbers() -> None:
    total = field().sum()
    assert (str(total), f"{total}", f"{total:.3f}", total.item()) == ("300.0", "300.0", "300.000", 300.0)
    assert (float(total), int(total), complex(total), round(total), bool(total)) == (300.0, 300, 300 + 0j, 300, True)
    assert (f"{total:e}", f"{total:>7}", bool(dl.zeros(()))) == ("3.000000e+02", "  300.0", False)
    assert type(total.item()) is float
    mean = field().mean()
    assert (round(mean, 1), round(mean), mean < 13, max(mean, 3)) == (12.5, 12, True, mean)
    assert [10, 20, 30][field("i4")[0, 0, 1:2].sum()] == 30
    if not (field() > 0).all() or (field() < 0).any():
        pytest.fail("a comparison in an if statement")


def test_what_only_numbers_do() -> None:
    with pytest.raises(TypeError, match=r"^round: .*numpy\.rint"):
        round(field())
    with pytest.raises(ValueError, match="format"):
        f"{field().sum():q}"
    for number in (field().sum(), field("i4")):
        with pytest.raises(TypeError):
            operator.index(number)


@pytest.mark.parametrize("method", ["sum", "prod", "min", "max", "any", "all", "mean", "var", "std"])
def test_errors_about_keywords_name_the_method(method: str) -> None:
    with pytest.raises(TypeError, match=rf"^{method}\(\).* unexpected keyword argument 'foo'"):
        getattr(field(), method)(foo=1)


def test_in_compares_elements() -> None:
    values = field()
    assert (3 in values, 99 in values, "3" in values, None in values) == (True, False, False, False)
    assert values[0] in values
    assert np.nan not in dl.full(2, np.nan)


def test_item() -> None:
    values = field(backend="F")
    for index in ((3,), (-1,), (1, 2, 3), ((1, 0, 2),)):
        assert values.item(*index) == values.to_numpy().item(*index)
        assert type(values.item(*index)) is float
    for wrong, error in (((), ValueError), ((24,), IndexError), ((0, 0), ValueError)):
        with pytest.raises(error):
            values.item(*wrong)


# Reductions.


# Complex numbers have no order, and the product of float16 numbers overflows.
REDUCTIONS = [
    (name, dtype)
    for name in ("sum", "prod", "min", "max", "mean", "var", "std")
    for dtype in ("f8", "f4", "i2", "f2", "c16")
    if (name, dtype) not in (("min", "c16"), ("max", "c16"), ("prod", "f2"))
]


@pytest.mark.parametrize(("name", "dtype"), REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), "J", ("I", "K"), ("K", 1)])
def test_reductions_are_numpys(name: str, dtype: str, axis: Any) -> None:
    values = numbered((2, 2, 3), dtype, backend="F")
    parts = axis if isinstance(axis, tuple) else (axis,)
    positions = None if axis is None else tuple("IJK".index(at) if isinstance(at, str) else at for at in parts)
    for keepdims in (False, True):
        found = getattr(values, name)(axis, keepdims=keepdims)
        expected = getattr(values.to_numpy(), name)(positions, keepdims=keepdims)
        assert isinstance(found, dl.Tensor)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(found.to_numpy(), expected, rtol=1e-2 if dtype == "f2" else 1e-6)


@pytest.mark.parametrize("function", [np.sum, np.prod, np.min, np.max, np.any, np.all, np.mean, np.var, np.std])
def test_the_functions_of_numpy_keep_labels(function: Callable[..., Any]) -> None:
    values = field(dims="KIJ")
    found = function(values, axis=1)
    assert found.dims == ("K", "J")
    np.testing.assert_allclose(found.to_numpy(), function(values.to_numpy(), axis=1))
    mask = values > 3
    if function not in (np.prod, np.min, np.max):
        expected = function(values.to_numpy(), where=mask.to_numpy())
        np.testing.assert_allclose(function(values, where=mask).to_numpy(), expected)


def test_keywords_of_reductions() -> None:
    values, out = field(), dl.zeros((2, 4), dims="IK")
    assert values.mean("J", out=out) is out
    np.testing.assert_array_equal(out, values.to_numpy().mean(1))
    assert values.std("J", ddof=1, out=out) is out
    np.testing.assert_allclose(out, values.to_numpy().std(1, ddof=1))
    assert values.sum(dtype="f4").dtype == np.float32
    assert field("i4").mean(dtype="f4").dtype == np.float32
    assert values.max(initial=100).item() == 100
    assert dl.full(70000, 1, "f2").mean().item() == 1, "the sum is not a float16"
    with pytest.warns(RuntimeWarning):
        assert np.isnan(dl.zeros(0).mean().item())


@pytest.mark.parametrize("name", ["sum", "prod", "min", "max", "mean", "var", "std"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "c16"])
def test_xarrays_words(name: str, dtype: str) -> None:
    """`dim` is `axis`, and `skipna` leaves NaN out."""
    if name in ("min", "max") and dtype == "c16":
        return
    values = numbered((2, 3, 4), dtype, dims=("time", "lat", "lon"))
    for dim, axis in (("lat", 1), (["time", "lon"], (0, 2)), (..., None)):
        np.testing.assert_allclose(getattr(values, name)(dim=dim), getattr(values.to_numpy(), name)(axis), rtol=1e-5)
    if dtype != "i4":
        values[1, :, 2] = np.nan
    found = getattr(values, name)(dim="lon", skipna=True)
    assert found.dims == ("time", "lat")
    np.testing.assert_allclose(found, getattr(np, f"nan{name}")(values.to_numpy(), 2), rtol=1e-5)
    with pytest.raises(TypeError, match=r"^dim: "):
        getattr(values, name)("lat", dim="lon")


@pytest.mark.parametrize("method", ["mean", "var", "std"])
def test_dtypes_of_statistics_are_numpys(method: str) -> None:
    values = field("c16")
    for dtype in (None, "complex128", "complex64"):
        expected = getattr(values.to_numpy(), method)(1, dtype=dtype)
        found = getattr(values, method)("J", dtype=dtype)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    whole = field("f8")
    assert getattr(whole, method)(dtype="i8").item() == getattr(whole.to_numpy(), method)(dtype="i8")
    # NumPy's own result has four bits.
    short = dl.from_array([1, 4], "int4")
    assert getattr(short, method)().item() == getattr(np.array([1, 4]), method)()


# Other methods.


@pytest.mark.parametrize("keywords", ORDERS)
def test_copies_and_views_without_labels(keywords: dict[str, Any]) -> None:
    values = field(**keywords)
    for order in ("C", "F", "A", "K"):
        flat, ravelled = values.flatten(order), values.ravel(order)
        assert type(flat) is type(ravelled) is np.ndarray
        assert flat.tolist() == ravelled.tolist() == values.to_numpy().flatten(order).tolist()
        assert not np.shares_memory(flat, values.to_numpy())
        is_view = np.shares_memory(values.to_numpy().ravel(order), values.to_numpy())
        assert np.shares_memory(ravelled, values.to_numpy()) == is_view
    assert values.tobytes() == values.to_numpy().tobytes()
    assert values.tolist() == values.to_numpy().tolist()
    values.fill(3)
    assert values.ravel().tolist() == [3.0] * 24
    with pytest.raises(dl.ExchangeError, match="read-only"):
        values.as_readonly().fill(1)


def test_squeezed_and_swapped_dimensions() -> None:
    values = dl.zeros((1, 3, 1), halo=(0, 1, 0))
    assert (values.squeeze().dims, values.squeeze().halo, values.squeeze().ptr) == (("J",), ((1, 1),), values.ptr)
    assert (values.squeeze(0).dims, values.squeeze(("K", 0)).dims) == (("J", "K"), ("J",))
    assert (np.squeeze(values, axis=2).dims, np.transpose(values).dims) == (("I", "J"), ("K", "J", "I"))
    assert (values.swapaxes(0, "J").dims, np.swapaxes(values, 0, 2).dims) == (("J", "I", "K"), ("K", "J", "I"))
    with pytest.raises(
        dl.LayoutError, match=r"axis: expected dimensions of one point, got 3 at dimension 1 of dims \(I, J, K\)"
    ):
        values.squeeze("J")
    for wrong in (3, "Q"):
        with pytest.raises(dl.DimsError, match="axis"):
            values.squeeze(wrong)
        with pytest.raises(dl.DimsError, match="axis"):
            values.swapaxes(0, wrong)


@pytest.mark.parametrize("keywords", ORDERS)
@pytest.mark.parametrize("shape", [(24,), (6, 4), (2, 12), (2, 3, 2, 2), (2, 1, 3, 4, 1), (4, -1), (2, 3, 4)])
def test_reshaped_views_are_numpys(keywords: dict[str, Any], shape: tuple[int, ...]) -> None:
    values = field(**keywords)
    try:
        expected = values.to_numpy().reshape(shape, copy=False)
    except ValueError:
        with pytest.raises(dl.LayoutError, match=r"contiguous dimensions.*from_array\(field, backend=\"C\"\)"):
            values.reshape(shape)
        return
    for found in (values.reshape(shape), values.reshape(*shape), values.reshape(list(shape))):
        assert (found.shape, found.strides, found.tolist()) == (expected.shape, expected.strides, expected.tolist())
        assert (found.ptr, found.dims) == (values.ptr, dl.zeros(expected.shape).dims)
        assert found.ptr % found.alignment_size == 0


def test_labels_of_reshaped_views() -> None:
    values = dl.zeros((4, 6), dims="KI", halo=(1, 1))
    assert (values.reshape(4, 6).dims, values.reshape((4, 6)).halo) == (("K", "I"), values.halo)
    assert values.reshape(2, 2, 6, dims=("tile", "K", "I")).dims == ("tile", "K", "I")
    assert values.as_readonly().reshape(24).readonly
    with pytest.raises(dl.DimsError):
        values.reshape(24, dims="IJ")
    for shape in ((5,), (-1, 5), (-1, -1), (-2, -12), (0,), (-1, 0), (2**62, 2**62)):
        with pytest.raises(dl.LayoutError, match="as many elements"):
            values.reshape(shape)
    empty = dl.zeros((0, 3))
    assert (empty.reshape(3, -1).shape, empty.reshape(-1).shape) == ((3, 0), (0,))
    # As in NumPy, any extent would do here; and sizes overflow although there are no elements.
    for unclear in ([-1, 0], [0, -1], [-1, 2**62, 4], [0, 2**40, 2**40]):
        with pytest.raises(dl.LayoutError, match=re.escape(str(tuple(unclear)))):
            empty.reshape(unclear)


def test_astype() -> None:
    values = dl.full((2, 3), -1.5, dims="KI", backend="F", alignment_size=64, halo=(1, 0))
    found = values.astype("i4")
    assert (found.tolist(), found.dtype) == ([[-1] * 3] * 2, np.int32)
    for name in ("dims", "layout", "alignment_size", "halo", "origin", "shape"):
        assert getattr(found, name) == getattr(values, name)
    for copy in (False, 0, np.False_):
        assert values.astype("f8", copy=copy) is values
    assert values.astype("f8").ptr != values.ptr
    if np.lib.NumpyVersion(np.__version__) >= "2.4.0":
        assert dl.ones(2).astype("i4", casting="same_value").tolist() == [1, 1]
        with pytest.raises(ValueError, match="same_value"):
            values.astype("i4", casting="same_value")
    with pytest.warns(np.exceptions.ComplexWarning) as seen:
        dl.zeros(2, "c16").astype("f8")
    assert seen[0].filename == __file__


@pytest.mark.parametrize("keywords", ORDERS)
@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
def test_orders_are_numpys(keywords: dict[str, Any], order: Any) -> None:
    values = field(dims="KIJ", **keywords)
    for found in (values.copy(order), values.astype("f4", order), values.astype("f8", order, copy=False)):
        assert (found.dims, found.tolist()) == (values.dims, values.tolist())
        expected = values.to_numpy().astype(found.dtype, order=order)
        assert order == "K" or found.to_numpy().strides == expected.strides
    with pytest.raises(ValueError, match=r"^order: "):
        values.copy("B")  # type: ignore[arg-type]


def test_views_of_other_types_are_numpys() -> None:
    values = field(dims="KIJ", halo=(0, 1, 0))
    found = values.view("i8")
    assert (found.tolist(), found.ptr) == (values.to_numpy().view("i8").tolist(), values.ptr)
    assert (found.dims, found.halo) == (values.dims, values.halo)
    assert values.view("f4").tolist() == values.to_numpy().view("f4").tolist()
    assert values.view().dims == values.dims
    with pytest.raises(ValueError, match="contiguous"):
        field(backend="F").view("f4")


def test_a_tensor_is_a_sequence() -> None:
    values = dl.from_array([1, 3, 5])
    assert list(reversed(values)) == [5, 3, 1]
    assert bisect.bisect(values, 3) == 2
    assert np.concatenate(field()).tolist() == np.concatenate(field().to_numpy()).tolist()
    torch = pytest.importorskip("torch")
    assert torch.tensor([values, values]).tolist() == torch.as_tensor([values] * 2).tolist() == [[1, 3, 5]] * 2
    assert torch.arange(9)[values].tolist() == [1, 3, 5]


@pytest.mark.parametrize("keywords", ORDERS)
def test_flags_are_numpys(keywords: dict[str, Any]) -> None:
    for values in (field(**keywords), field(**keywords)[::2, :, 1:], field(**keywords).as_readonly(), dl.zeros(())):
        flags, expected = values.flags, np.asarray(values).flags
        names = ("C_CONTIGUOUS", "F_CONTIGUOUS", "WRITEABLE", "OWNDATA", "ALIGNED", "C", "F", "W", "O", "A")
        assert [flags[name] for name in names] == [expected[name] for name in names]
        assert (flags.c_contiguous, flags.contiguous) == (expected.c_contiguous, expected.contiguous)
    with pytest.raises(KeyError, match="expected one of C_CONTIGUOUS"):
        field().flags["OTHER"]
    with pytest.raises(KeyError, match=r"flags: expected .*, got 1"):
        field().flags[1]
    with pytest.raises(AttributeError, match=r"^flags\.writeable: .*as_readonly\(\)"):
        field().flags.writeable = False
    with pytest.raises(AttributeError, match=r"^flags\.writeable: "):
        field().flags["W"] = False


def test_methods_that_a_tensor_lacks_name_the_one_to_use() -> None:
    values: Any = field()
    for name, hint in (("cumsum", r"cumsum\(\.\.\.\)"), ("real", "real$"), ("byteswap", r"byteswap\(\.\.\.\)")):
        with pytest.raises(AttributeError, match=rf"no attribute '{name}': use to_numpy\(\)\.{hint}"):
            getattr(values, name)
        assert not hasattr(values, name)
        assert not hasattr(dl.Tensor, name)
        assert name not in dir(values) + dir(dl.Tensor)
    assert "numpy" not in dir(dl.Descriptor) + dir(dl.describe(values))
    assert {"sum", "dims", "copy", "__len__"} <= set(dir(values)) == set(dir(dl.Tensor))
    assert np.cumsum(values).tolist() == np.cumsum(values.to_numpy()).tolist()
    assert np.argmax(values) == 23
    with pytest.raises(AttributeError, match=r"'nothing'$"):
        values.nothing  # noqa: B018
    shown = pydoc.plain(pydoc.render_doc(dl.Tensor))
    assert ("Returns the sum" in shown, "requires_grad_" in shown) == (True, False)
    for name in ("real", "flat"):
        with pytest.raises(AttributeError, match=rf"use to_numpy\(\)\.{name} = "):
            setattr(values, name, 0)
    with pytest.raises(AttributeError, match=r"use as_readonly\(\)"):
        values.setflags(write=False)
    with pytest.raises(ValueError, match=r"numpy\.delete\(field, "):
        del values[0]
