"""`ufunc(a, b)` on tensors: labels, results, keywords, outputs, assignment by labels."""

import gc
from typing import Any

import pytest

import dlfield as dl
import oracle
from catalog import numbered
from untyped import np


@pytest.mark.parametrize(
    ("dims", "expected"),
    [
        (("IJ", "K"), "IJK"),
        (("K", "IJ"), "IJK"),
        (("KJ", "I"), "IKJ"),
        (("0", "I"), "I0"),
        (("I1", "0"), "I01"),
        (("JI", "IJK"), "JIK"),
        (("x", "I"), "Ix"),
        (("x0", "yK"), "Kxy0"),
        (("", "KI"), "KI"),
    ],
)
def test_further_labels_are_inserted_in_order(dims: tuple[str, str], expected: str) -> None:
    first, second = (dl.zeros((2,) * len(labels), dims=tuple(labels)) for labels in dims)
    assert (first + second).dims == tuple(expected)


def test_errors_name_operands_as_in_the_call() -> None:
    short, long, plain = dl.ones((2, 3)), dl.ones((4, 3)), np.ones((2, 3))
    with pytest.raises(dl.LayoutError, match="2 points in operand 1 and 4 in operand 2"):
        np.clip(1.0, short, long)
    with pytest.raises(dl.LayoutError, match="2 points in operand 1 and 4 in where"):
        np.add(1, short, where=dl.ones((4, 3), "?"))
    with pytest.raises(dl.LayoutError, match="4 points in out and 2 in operand 1"):
        np.add(plain, short, out=long)


def test_the_result_is_laid_out_as_the_first_tensor() -> None:
    field = numbered((4, 5, 6), "f4", backend="gt:cpu_ifirst", halo=(1, 1, 0), alignment_size=64)
    twin = field + 1
    for name in ("shape", "dims", "layout", "strides", "halo", "origin", "alignment_size", "aligned_index"):
        assert getattr(twin, name) == getattr(field, name), name
    assert oracle.aligned_address(twin) % 64 == 0
    wide = np.add(field, 1, dtype="f8")
    assert (wide.dtype, wide.layout, wide.alignment_size) == (np.float64, field.layout, 64)
    assert wide.strides == dl.empty_like(field, "f8").strides


@pytest.mark.parametrize(
    ("first", "second", "layout"),
    [
        (("IJ", (0, 1)), ("K", (0,)), (0, 1, 2)),
        (("IJ", (1, 0)), ("K", (0,)), (2, 1, 0)),
        (("K", (0,)), ("IJ", (0, 1)), (0, 1, 2)),
        (("IJ", (1, 0)), ("KI", (0, 1)), (2, 0, 1)),
        (("IJ", (0, 1)), ("KJ", (1, 0)), (0, 1, 2)),
        (("I", (0,)), ("IJK", (1, 2, 0)), (1, 2, 0)),
        # The largest operand decides, in any order; a dimension of one point has no layout.
        (("IJ", (0, 1)), ("IJK", (2, 1, 0)), (2, 1, 0)),
        (("IJK", (2, 1, 0)), ("IJ", (0, 1)), (2, 1, 0)),
    ],
)
def test_dimensions_that_the_largest_lacks_are_laid_out_as_in_the_next(
    first: tuple[str, tuple[int, ...]], second: tuple[str, tuple[int, ...]], layout: tuple[int, ...]
) -> None:
    a, b = (dl.zeros((2,) * len(dims), dims=dims, layout=order) for dims, order in (first, second))
    assert (a + b).layout == layout


@pytest.mark.parametrize("backend", ["gt:cpu_ifirst", "gtmc", "F"])
def test_a_broadcast_operand_does_not_decide_on_the_layout(backend: str) -> None:
    """It has one row of memory, in an order of its own."""
    field = numbered((4, 5, 6), backend=backend)
    row = numbered((6,), dims="K")
    for broadcast in (
        dl.from_dlpack(np.broadcast_to(row.to_numpy(), (4, 5, 6)), dims="IJK"),
        numbered((1, 1, 6)),
        row,
        numbered((4, 5), dims="IJ"),
    ):
        expected = broadcast.to_numpy()[..., None] if broadcast.dims == ("I", "J") else broadcast.to_numpy()
        for found in (broadcast * field, field * broadcast):
            assert (found.layout, found.strides) == (field.layout, field.strides)
            assert oracle.values(found) == (expected * field.to_numpy()).tolist()


def test_alignment_and_margins_are_the_largest() -> None:
    a = dl.zeros((6, 6), "f4", dims="IJ", alignment_size=32, halo=((1, 2), 0), origin=(1, 3))
    b = dl.zeros((6, 6), "f4", dims="JI", alignment_size=48, origin=(3, 1), aligned_index=(2, 0))
    found = a + b
    assert (found.alignment_size, found.halo, found.origin) == (96, ((1, 2), (0, 0)), (1, 3))
    assert found.aligned_index == (1, 2)
    narrow = dl.zeros((1, 6), dims="IJ", halo=((0, 1), 1))
    assert (dl.zeros((6, 6)) + narrow).halo == ((0, 0), (1, 1)), "of a size that is repeated nothing is taken"


def test_differing_halos_of_slices_are_no_error() -> None:
    a, b = dl.zeros((5,), halo=((4, 0),))[1:], dl.zeros((5,), halo=((0, 4),))[:-1]
    assert (a.halo, b.halo) == (((3, 0),), ((0, 3),))
    assert (a + b).halo == ((3, 1),)


@pytest.mark.parametrize("dtypes", [("i4", "f4"), ("u1", "i1"), ("?", "?"), ("f2", "c8"), ("bfloat16", "bfloat16")])
def test_the_dtype_is_numpys(dtypes: tuple[str, str]) -> None:
    a, b = (numbered((2, 3), dtype) for dtype in dtypes)
    for ufunc in (np.add, np.multiply, np.less):
        expected = ufunc(a.to_numpy(), b.to_numpy())
        for _ in range(2):  # computed, then cached
            found = ufunc(a, b)
            assert found.dtype == expected.dtype
            assert found.to_numpy().astype("c16").tolist() == expected.astype("c16").tolist()


@pytest.mark.parametrize("number", [2, 2.5, True, 1j, np.float32(2), np.int64(3), np.array(2), np.array(2.0, "f4")])
@pytest.mark.parametrize("dtype", ["i2", "f4", "u1"])
def test_numbers_promote_as_in_numpy(number: Any, dtype: str) -> None:
    field = numbered((2, 3), dtype)
    expected = field.to_numpy() * number
    assert (field * number).dtype == (number * field).dtype == expected.dtype
    assert oracle.values(field * number) == expected.tolist()


def test_types_of_numbers_that_are_freed() -> None:
    """A new type may get the address of a deleted one."""
    field = numbered((2,), "f4")
    for round_ in range(40):
        number = type("Number", ((np.float64, np.complex64, np.float32)[round_ % 3],), {})(1)
        assert (field + number).dtype == (field.to_numpy() + number).dtype
        del number
        gc.collect()


def test_results_of_unsupported_dtypes_are_refused() -> None:
    with pytest.raises(dl.DTypeError):
        np.add(dl.zeros((2,), "i8"), np.timedelta64(1, "s"))
    with pytest.raises(dl.DTypeError):
        np.frompyfunc(lambda x: x, 1, 1)(dl.zeros((2,)))


def test_several_results() -> None:
    field = numbered((2, 3), dims="KI", layout=(1, 0)) / 2
    fraction, whole = np.modf(field)
    assert (fraction.dims, whole.layout) == (("K", "I"), (1, 0))
    assert oracle.values(fraction) == np.modf(field.to_numpy())[0].tolist()
    mantissa, exponent = np.frexp(field)
    assert (mantissa.dtype, exponent.dtype) == (np.float64, np.intc)
    out = dl.zeros((3, 2, 3), dims="I K x")
    first, second = np.modf(field, out=(None, out))
    assert second is out
    assert first.dims == ("K", "I", "x")

    assert (out.to_numpy() == whole.to_numpy().T[:, :, None]).all()
    assert (first.to_numpy() == fraction.to_numpy()[:, :, None]).all()


def test_where_may_be_an_array_or_a_bool() -> None:
    field, out = numbered((2, 3), dims="IJ"), dl.zeros((3, 2), dims="JI")
    for where in (field.to_numpy() > 5, False):
        np.negative(field, out=out, where=where)
        assert oracle.values(out) == [[0, 0], [0, 0], [0, -6]]


def test_keywords_are_obeyed_or_refused() -> None:
    field = numbered((2, 3), "i4")
    assert np.add(field, 1, dtype="f4").dtype == np.float32
    assert np.add(field, 1, signature=("f8", "f8", "f8")).dtype == np.float64
    assert np.add(field, 1, sig="ff->f", casting="unsafe").dtype == np.float32
    assert np.add(field, 1, subok=False, order="K").dtype == np.int32
    with pytest.raises(TypeError, match=r"same_kind|safe"):
        np.add(field, np.float64(1.5), dtype="i4", casting="safe")
    with pytest.raises(ValueError, match=r"order: expected 'K', got 'F'"):
        np.add(field, 1, order="F")
    with pytest.raises(TypeError, match="unexpected keyword argument 'axis'"):
        np.add(field, 1, axis=0)


@pytest.mark.parametrize("method", ["accumulate", "outer", "reduceat", "at"])
def test_other_methods_are_refused(method: str) -> None:
    field = dl.zeros((3,))
    arguments: Any = {"accumulate": (), "outer": (field,), "reduceat": ([0],), "at": ([0], 1)}[method]
    with pytest.raises(TypeError, match=rf"add\.{method}: .*to_numpy"):
        getattr(np.add, method)(field, *arguments)
    with pytest.raises(TypeError, match=r"matmul: .*to_numpy"):
        np.matmul(dl.zeros((2, 2)), dl.zeros((2, 2)))


def test_out_of_another_dtype() -> None:
    field, out = numbered((2, 3), dims="IJ"), dl.zeros((4, 3, 2), "f4", dims="KJI")
    np.add(field, 1, out=out)
    assert (out.to_numpy() == field.to_numpy().T + 1).all()
    np.add(1, 2, out=out)
    assert (out.to_numpy() == 3).all()
    with pytest.raises(TypeError, match="same_kind"):
        np.add(field, 1j, out=out)


def test_out_that_does_not_fit() -> None:
    field = dl.zeros((2, 3), dims="IJ")
    with pytest.raises(dl.DimsError, match=r"out: expected dims with all of \(I, J\), .*, got \(I, K\) without J"):
        np.add(field, 1, out=dl.zeros((2, 3), dims="IK"))
    with pytest.raises(dl.LayoutError, match=r'out: expected 3 points in dimension "J", as the result has, got 1'):
        np.add(field, 1, out=dl.zeros((2, 1), dims="IJ"))
    with pytest.raises(dl.ExchangeError, match=r"out: the memory is read-only"):
        np.add(field, 1, out=dl.zeros((2, 3)).as_readonly())
    with pytest.raises(TypeError):
        np.add(field, 1, out=[1, 2])
    with pytest.raises(dl.LayoutError, match=r"out: expected an array .* \(2, 3\), .* got shape \(3, 2\)"):
        np.add(field, 1, out=np.zeros((3, 2)))


def test_out_may_be_an_array_of_numpys() -> None:
    field = numbered((2, 3), dims="JI")
    out = np.zeros((2, 3))
    assert np.add(field, 1, out=out) is out
    assert out.tolist() == [[2, 3, 4], [5, 6, 7]]
    box = np.zeros((3, 2, 4))
    np.add(field, 1, out=box)
    assert (box == out.T[:, :, None]).all(), "three dimensions are I, J, K"


def test_operands_and_outputs_may_overlap() -> None:
    field = numbered((5, 5))
    expected = field.to_numpy() + field.to_numpy().T
    np.add(field, field.to_numpy().T, out=field)
    assert (field.to_numpy() == expected).all()
    row = numbered((6,))
    expected = row.to_numpy()[1:] + row.to_numpy()[:-1]
    np.add(row[1:], row[:-1], out=row[1:])
    assert oracle.values(row[1:]) == expected.tolist()


def test_errors_of_numpy_pass_through() -> None:
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        dl.ones((2,)) / 0.0
    field = dl.ones((2,), "i4")
    with pytest.raises(TypeError, match="same_kind"):
        field += 0.5
    with pytest.raises(TypeError, match="bitwise_and"):
        dl.ones((2,)) & dl.ones((2,))


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)])
def test_few_elements(shape: tuple[int, ...]) -> None:
    field = dl.ones(shape)
    found = field + field
    assert isinstance(found, dl.Tensor)
    assert (found.shape, oracle.values(found)) == (shape, (np.ones(shape) * 2).tolist())


def test_no_elements_beside_one_or_more() -> None:
    assert (numbered((1, 3), dims="IJ") + dl.zeros((0,), dims="I")).shape == (0, 3)


def test_assignment_goes_by_labels() -> None:
    box = dl.zeros((2, 3, 4))
    plane, column = numbered((3, 2), dims="JI"), numbered((4,), dims="K")
    box[...] = plane
    assert (box.to_numpy() == plane.to_numpy().T[:, :, None]).all()
    box[1] = column
    assert (box.to_numpy()[1] == column.to_numpy()).all()
    box[:, 2, 0] = dl.full((1,), 7.0, dims="I")
    assert box.to_numpy()[:, 2, 0].tolist() == [7, 7]
    with pytest.raises(dl.DimsError, match=r'the labels \(J, K\) only, got one with "I"'):
        box[0] = plane
    with pytest.raises(dl.LayoutError, match='"K"'):
        box[...] = numbered((3,), dims="K")


def test_assignment_without_labels_goes_by_position() -> None:
    square = dl.zeros((3, 3), dims="JI")
    for value in (numbered((3, 3)), numbered((3, 3)).to_numpy()):
        square[...] = value
        assert square[0, 1] == 2
    row = dl.zeros((2, 3), dims="KJ")
    row[1] = numbered((3,))
    assert row.to_numpy()[1].tolist() == [1, 2, 3]
    box = dl.zeros((2, 3), dims="K0")
    box[...] = numbered((3,))
    assert box.to_numpy().tolist() == [[1, 2, 3], [1, 2, 3]], "the box has no I"


def test_default_labels_count_if_dimensions_are_missing() -> None:
    """The labels count for all sizes, so a square field is treated like any other."""
    for size in (3, 4):
        box = dl.zeros((4, size))
        box[...] = numbered((4,))
        assert (box.to_numpy() == np.arange(1, 5)[:, None]).all()
    with pytest.raises(
        dl.LayoutError, match=r'"I", or 1 to repeat, got 3.*\(I\) are matched with dims \(I, J\) by label.*to_numpy\(\)'
    ):
        dl.zeros((4, 3))[...] = numbered((3,))


def test_assignment_of_foreign_labelled_arrays(xarray: Any) -> None:
    box = dl.zeros((2, 3))
    box[...] = xarray.DataArray(np.arange(6.0).reshape(3, 2), dims=("J", "I"))
    assert oracle.values(box) == [[0, 2, 4], [1, 3, 5]]
    with pytest.raises(dl.DimsError):
        box[...] = xarray.DataArray(np.zeros(3), dims=("x",))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u8"])
def test_rows_of_one_element_are_right(dtype: str) -> None:
    """NumPy 2.4 negates elements wrongly at some strides, such as those of padded rows of one element."""
    values = np.array([[2], [3], [100], [1], [0]], dtype)
    for size in (16, 32, 64):
        field = dl.from_array(values, alignment_size=size)
        assert field.strides[0] == size
        assert ((-field).to_numpy() == -values).all()
        assert np.isfinite(field).to_numpy().all()
