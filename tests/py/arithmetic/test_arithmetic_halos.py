"""Fields with halos in arithmetic: their domains coincide, or an error says so."""

import operator
import pickle
from typing import Any

import pytest

import dlfield as dl
import oracle
from catalog import numbered
from dlfield import _native
from untyped import np

NARROW, WIDE = ((1, 1), (0, 0)), ((2, 0), (0, 0))


def field(halo: Any = None, **keywords: Any) -> dl.Tensor:
    return numbered((6, 4), halo=halo, **keywords)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "lt", "eq", "iadd", "imul"])
def test_halos_that_differ_are_an_error(name: str) -> None:
    with pytest.raises(dl.LayoutError, match=r"^halo: "):
        getattr(operator, name)(field(NARROW), field(WIDE))


def test_a_halo_error_writes_nothing() -> None:
    left = field(NARROW)
    before = oracle.values(left)
    with pytest.raises(dl.LayoutError, match="halo"):
        left += field(WIDE)
    out = field(NARROW)
    with pytest.raises(dl.LayoutError, match=r"operand 0 with .*, and out with"):
        np.negative(field(WIDE), out=out)
    assert oracle.values(left) == oracle.values(out) == before


def test_halos_of_all_operands_are_compared() -> None:
    with pytest.raises(dl.LayoutError, match=r"operand 1 with halo .*, and operand 2 with halo"):
        np.clip(1.0, field(NARROW), field(WIDE))
    with pytest.raises(dl.LayoutError, match=r"operand 0 with .*, and where with"):
        np.add(field(NARROW), 1, where=field(WIDE).to_numpy().astype(bool) & dl.ones((6, 4), "?", halo=WIDE))
    with pytest.raises(dl.LayoutError, match=r"operand 0 with .*, and where with"):
        np.add.reduce(field(NARROW), where=dl.ones((6, 4), "?", halo=WIDE))
    with pytest.raises(dl.LayoutError, match=r"operand 0 with .*, and out with"):
        np.add.reduce(field(NARROW), axis="J", out=dl.zeros((6,), halo=((2, 0),)))
    with pytest.raises(dl.LayoutError, match=r"out with halo .*, and out with halo"):
        np.modf(np.ones((6, 4)), out=(field(NARROW), field(WIDE)))


def test_labels_say_which_dimensions_are_shared() -> None:
    turned = numbered((4, 6), dims="JI", halo=((0, 0), (2, 0)))
    with pytest.raises(dl.LayoutError, match='along "I"'):
        field(NARROW) + turned
    with pytest.raises(dl.LayoutError, match='along "I"'):
        field(NARROW) + dl.ones((6,), halo=((2, 0),))
    assert (field(NARROW) + dl.ones((3,), dims="K", halo=((1, 1),))).halo == (*NARROW, (1, 1))


@pytest.mark.parametrize("other", [field(NARROW, origin=(2, 0)), field(origin=(2, 0)), field(origin=(0, 0))])
@pytest.mark.parametrize("name", ["add", "lt", "iadd", "setitem"])
def test_origins_that_differ_are_an_error(name: str, other: dl.Tensor) -> None:
    left = field(NARROW)
    before = oracle.values(left)
    with pytest.raises(dl.LayoutError, match=r"origin \(1, 0\), and .* origin \((2|0), 0\)"):
        left.__setitem__(..., other) if name == "setitem" else getattr(operator, name)(left, other)
    with pytest.raises(dl.LayoutError, match=r"origin \((2|0), 0\)"):
        left[:] = other.astype("float32")
    assert oracle.values(left) == before


def test_origins_without_halos() -> None:
    one, two = field(origin=(1, 0)), field(origin=(0, 0))
    with pytest.raises(dl.LayoutError, match=r"^origin: .* along \"I\", .*; slice both to the points that they share"):
        one - two
    # Slices match by index, and so do results of them.
    assert oracle.values(one[1:] - two[:-1]) == (one.to_numpy()[1:] - two.to_numpy()[:-1]).tolist()
    flux = one[1:] - one[:-1]
    assert oracle.values(flux + two[1:] + flux) == (2 * flux.to_numpy() + two.to_numpy()[1:]).tolist()
    left = field(origin=(1, 0))
    left[1:] = two[:-1]
    left[:, :2] = two[:, :2]
    field(NARROW)[:, 1:3] = field(WIDE).copy()[:, :2]
    # A dimension that the value does not have is repeated, and not compared.
    left[...] = dl.full((4,), 5.0, dims="J", origin=(0,))
    left[...] = dl.full((1, 4), 5.0, dims="IJ", origin=(0, 0))
    assert oracle.values(left) == [[5.0] * 4] * 6
    # An assignment compares origins only.
    left[...] = field(((1, 2), (0, 0)))
    with pytest.raises(dl.LayoutError, match='along "J"'):
        left[...] = dl.ones((4,), dims="J", origin=(2,))
    # By position, as the value states no labels.
    with pytest.raises(dl.LayoutError, match='along "J"'):
        dl.zeros((6, 4), dims="JI", origin=(2, 0))[...] = field(origin=(0, 0))


def test_fixes_of_differing_halos() -> None:
    one, other = field(NARROW), numbered((7, 4), halo=((2, 1), (0, 0)))
    assert (one.domain_view + other.domain_view).shape == (4, 4)
    same = field(WIDE)
    same.halo = NARROW
    assert oracle.values(one + same) == (one.to_numpy() + same.to_numpy()).tolist()


def test_operands_without_a_halo_match_by_index() -> None:
    plain = np.ones((6, 4))
    for other in (field(), plain, dl.from_dlpack(plain), 2.0, dl.ones((1, 4), halo=((1, 0), (0, 0)))):
        assert (field(NARROW) + other).halo == NARROW


def test_slices_match_by_index() -> None:
    """Slices match by index, as in stencils written with arrays; so do results computed from them, in any order."""
    field, other = numbered((8,), halo=((1, 2),)), numbered((8,), halo=((2, 1),))
    array = field.to_numpy()
    found, computed = field[2:] - 2 * field[1:-1] + field[:-2], array[2:] - 2 * array[1:-1] + array[:-2]
    assert oracle.values(found) == computed.tolist()
    flux = field[1:] - field[:-1]
    assert oracle.values(flux[1:] - flux[:-1]) == oracle.values(found)
    assert oracle.values(other[1:-1] * found + found.copy()) == (array[1:-1] * computed + computed).tolist()
    even = field[::2] + other[1::2]
    assert oracle.values(even) == (array[::2] + array[1::2]).tolist()


def test_a_stated_halo_holds_beside_those_of_slices() -> None:
    field = numbered((6, 6), halo=(1, 1))
    parts = [field.domain_view, field[2:, 1:-1], field[:-2, 1:-1], field[1:-1, 2:], field[1:-1, :-2]]
    for first in range(5):
        found = sum(parts[first:] + parts[:first], start=dl.zeros((4, 4)))
        assert (found.halo, found.origin) == (((0, 0), (0, 0)), (0, 0))
        with pytest.raises(dl.LayoutError, match=r"halo: .* got operand 0"):
            found + dl.ones((4, 4), halo=(1, 1))
    # One label is stated, and the other is not.
    found = field[2:, 1:-1] + dl.ones((4,), dims="J", halo=(2,)) + field[:-2, 1:-1]
    assert found.halo == ((1, 1), (2, 2))
    assert (found + dl.ones((4, 4), halo=(1, 1))).halo == ((1, 1), (1, 1))


@pytest.mark.parametrize(
    "again",
    [dl.Tensor.copy, lambda part: pickle.loads(pickle.dumps(part)), dl.zeros_like, dl.from_array, dl.from_dlpack],
)
def test_copies_of_a_slice_are_slices(again: Any) -> None:
    field = numbered((8,), halo=((1, 2),))
    assert (again(field[1:]) + again(field[:-1])).halo == ((1, 2),)


@pytest.mark.parametrize("is_cut", [False, True])
def test_extensions_say_whether_a_halo_is_cut(is_cut: bool) -> None:
    state = (None, None, [(2, 0), (0, 0)], is_cut, None, "none", 1, None)
    part = _native._with_metadata(field(), state)
    assert part.halo == WIDE
    if is_cut:
        assert (field(NARROW) + part).shape == (6, 4)
    else:
        with pytest.raises(dl.LayoutError, match="halo"):
            field(NARROW) + part


def test_a_slice_of_all_is_the_field() -> None:
    for whole in (field(WIDE)[:], field(WIDE)[0:6, :], field(WIDE).T.T, field(WIDE).copy(), field(WIDE).as_readonly()):
        with pytest.raises(dl.LayoutError, match="halo"):
            field(NARROW) + whole
