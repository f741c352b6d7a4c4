"""Python's operators on tensors, each against the same on NumPy's arrays."""

import copy
import operator
from typing import Any

import pytest

import dlfield as dl
import oracle
from catalog import numbered
from untyped import np

FLOATS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]
BITS = ["lshift", "rshift", "and_", "xor", "or_"]
COMPARISONS = ["lt", "le", "eq", "ne", "gt", "ge"]


@pytest.mark.parametrize("name", FLOATS + BITS + COMPARISONS)
def test_two_operands(name: str) -> None:
    compute = getattr(operator, name)
    field = numbered((2, 3), "i4", dims="KI")
    array, other = field.to_numpy().copy(), np.array([[3, 2, 1], [1, 2, 3]], "i4")
    cases = [(field, dl.from_array(other, dims="KI"), array, other), (field, 2, array, 2), (2, field, 2, array)]
    cases += [(field, other, array, other), (other, field, other, array), (field, np.int32(2), array, np.int32(2))]
    cases += [(np.int64(2), field, np.int64(2), array), (field, [[1, 2, 3]] * 2, array, [[1, 2, 3]] * 2)]
    for left, right, plain_left, plain_right in cases:
        found, expected = compute(left, right), compute(plain_left, plain_right)
        assert isinstance(found, dl.Tensor), (type(left), type(right))
        assert (found.dims, found.dtype, oracle.values(found)) == (("K", "I"), expected.dtype, expected.tolist())


@pytest.mark.parametrize("name", FLOATS + BITS)
def test_in_place(name: str) -> None:
    compute = getattr(operator, f"i{name.rstrip('_')}")
    whole: list[Any] = [3, np.full((2, 3), 2), dl.full((3,), 2, "i8", dims="J")]
    for other in whole if name in BITS else [2.5, np.full((2, 3), 0.5), *whole]:
        array = np.arange(1, 7).reshape(2, 3).astype("i8" if name in BITS else "f8")
        field = dl.from_array(array)
        plain = other.to_numpy() if isinstance(other, dl.Tensor) else other
        assert compute(field, other) is field
        assert oracle.values(field) == compute(array, plain).tolist()


def test_in_place_writes_to_views() -> None:
    field = dl.zeros((4, 4), halo=(1, 1))
    field.domain_view[...] = 1.0
    inside = field.domain_view
    inside += 1
    inside *= numbered((2,), dims="J")
    assert oracle.values(field) == [[0, 0, 0, 0], [0, 2, 4, 0], [0, 2, 4, 0], [0, 0, 0, 0]]
    field[1:3] -= 1
    assert oracle.values(field)[1] == [-1, 1, 3, -1]
    inside = field.as_readonly()
    with pytest.raises(dl.ExchangeError, match="read-only"):
        inside += 1
    with pytest.raises(dl.DimsError, match="without K"):
        field += dl.zeros((3,), dims="K")


class Reflecting:
    """Has reflected operators, as unit types do; NumPy defers to it except for in-place operators."""

    __array_ufunc__: Any = None

    def reflected(self, _other: object) -> str:
        return "mine"

    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rmatmul__ = reflected
    __rlshift__ = __rrshift__ = __rand__ = __rxor__ = __ror__ = reflected


class WithoutRules(Reflecting):
    """The same, but NumPy treats it like any other object."""

    __array_ufunc__ = np.ndarray.__array_ufunc__


@pytest.mark.parametrize("name", [*FLOATS, *BITS, "matmul"])
@pytest.mark.parametrize("operand", [Reflecting(), WithoutRules(), None, "text", b"text", object(), {}], ids=type)
@pytest.mark.parametrize("shape", [(2,), ()])
def test_in_place_with_operands_that_are_no_array_or_number(name: str, operand: Any, shape: tuple[int, ...]) -> None:
    """In-place operators raise, as for NumPy's arrays, and never bind the name to another object."""
    compute = getattr(operator, f"i{name.rstrip('_')}")
    for make in (dl.full, np.full):
        left = make(shape, 2, dtype="i4")
        with pytest.raises((TypeError, ValueError) if make is np.full else TypeError):
            compute(left, operand)
    assert getattr(operator, name)(left, Reflecting()) == getattr(operator, name)(dl.ones(2), Reflecting()) == "mine"


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("operand", [[3.0, 4.0], (3.0, 4.0), [[3.0, 4.0]], [1, 2, 3]], ids=repr)
def test_in_place_with_lists(name: str, operand: Any) -> None:
    compute = getattr(operator, f"i{name.rstrip('_')}")
    field, array = dl.full((2,), 5.0), np.full((2,), 5.0)
    try:
        expected = compute(array, operand).tolist()
    except ValueError:
        with pytest.raises((dl.LayoutError, dl.DimsError)):
            compute(field, operand)
    else:
        assert compute(field, operand) is field
        assert oracle.values(field) == expected


def test_an_operand_that_declines_ufuncs_is_named() -> None:
    field = dl.zeros((2,))
    with pytest.raises(TypeError, match=r"add in place: 'Tensor' and 'Reflecting'; it sets __array_ufunc__ = None"):
        field += Reflecting()
    with pytest.raises(TypeError, match="'NoneType'; pass a tensor, an array or a number"):
        field += None
    with pytest.raises(TypeError):
        np.add(field, Reflecting())


@pytest.mark.parametrize("name", ["neg", "pos", "abs", "invert"])
def test_one_operand(name: str) -> None:
    compute = getattr(operator, name)
    field = numbered((2, 3), "i2", dims="JI", layout=(1, 0)) - 3
    found = compute(field)
    assert (found.dims, found.layout, found.dtype) == (("J", "I"), (1, 0), np.int16)
    assert oracle.values(found) == compute(field.to_numpy()).tolist()


def test_divmod() -> None:
    field = numbered((2, 3), "i4")
    for found, expected in (
        (divmod(field, 4), divmod(field.to_numpy(), 4)),
        (divmod(7, field), divmod(7, field.to_numpy())),
        (divmod(field, field + 1), divmod(field.to_numpy(), field.to_numpy() + 1)),
    ):
        assert [oracle.values(part) for part in found] == [part.tolist() for part in expected]


def test_matrix_products_are_refused_with_a_way_out() -> None:
    field = dl.zeros((2, 2))
    for other in (field, np.zeros((2, 2)), 2):
        for left, right in ((field, other), (other, field)):
            with pytest.raises(TypeError, match=r"matmul: .*to_numpy"):
                left @ right  # type: ignore[operator]
    with pytest.raises(TypeError, match="matmul"):
        field @= field
    with pytest.raises(TypeError):
        field @ None


def test_powers_modulo_are_refused() -> None:
    with pytest.raises(TypeError):
        pow(dl.ones((2,)), 2, 3)  # type: ignore[call-overload]


def test_equality_is_by_element_and_hashes_by_identity() -> None:
    field = numbered((2,))
    twin = copy.copy(field)
    assert oracle.values(field == twin) == [True, True]
    assert hash(field) != hash(twin)
    assert {field: 1}[field] == 1
    assert field in [field]
    with pytest.raises(ValueError, match="ambiguous"):
        bool(field == twin)
    assert (field == None) is False  # noqa: E711
    assert field != "text"


def test_comparisons_of_labels_and_sizes_that_differ() -> None:
    assert (numbered((2,), dims="I") < numbered((3,), dims="J")).shape == (2, 3)
    with pytest.raises(dl.LayoutError):
        numbered((2,)) == numbered((3,))  # noqa: B015


def test_long_expressions() -> None:
    u, v = numbered((3, 4), dims="IJ"), numbered((5,), dims="K")
    with np.errstate(divide="ignore"):
        found: Any = -(u * v + 1) / (2 - v) ** 2
        a, b = u.to_numpy()[:, :, None], v.to_numpy()
        expected = -(a * b + 1) / (2 - b) ** 2
    assert np.array_equal(found.to_numpy(), expected)
