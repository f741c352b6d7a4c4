"""`dlfield.dask.map_overlap`: blocks with the points of their neighbours are small fields."""

import itertools
import re
from collections.abc import Iterable
from typing import Any

import dask.array
import numpy as np
import pytest

import dlfield as dl
import dlfield.dask as dd
import oracle
from catalog import CPU_PRESETS

# The whole message.
SHORT = (
    r"^halo: expected blocks of at least 1 points to compute along axis 0 for the halo \(1, 1\), got \[0, 1, 1, 0\]; "
    r"array\.rechunk\(\{0: -1\}\) makes one block there$"
)
CHUNKS: list[Any] = [(12, 10, 3), (4, 5, 2), (6, (5, 3, 2), 3), ((5, 3, 4), (7, 3), 1)]
HALOS = [((2, 1), (1, 1), (0, 0)), ((1, 1), (0, 0), (0, 0)), ((0, 2), (1, 0), (0, 0))]


def chosen(product: Iterable[tuple[Any, ...]], few: list[tuple[Any, ...]]) -> list[Any]:
    """Return all cases of a product; `make check` alone runs those that are not among the few."""
    return [pytest.param(*case, marks=() if case in few else pytest.mark.exhaustive) for case in product]


STEPS = [("gtmc", HALOS[0], CHUNKS[3]), ("F", HALOS[1], CHUNKS[1]), ("jax", HALOS[2], CHUNKS[2])]
STEPS += [(preset, HALOS[0], CHUNKS[1]) for preset in ("numpy", "gt:cpu_ifirst")]
WRAPS = [("J", HALOS[0], CHUNKS[1]), ("IJ", HALOS[2], CHUNKS[3]), (("I",), HALOS[1], CHUNKS[2])]
WRAPS += [("JIK", HALOS[0], CHUNKS[0])]


@pytest.mark.parametrize("make", [dd.empty, dd.zeros, dd.ones, lambda shape, *a, **k: dd.full(shape, 2.0, *a, **k)])
def test_halos_of_new_arrays_by_label(make: Any) -> None:
    array = make((6, 4), (3, 4), dims="JI", halo={"I": 1, "J": (2, 0)})
    assert [block.compute().halo for block in array.blocks] == [((2, 0), (1, 1)), ((0, 0), (1, 1))]
    with pytest.raises(dl.DimsError, match=r"^halo: "):
        make((6, 4), (3, 4), dims="JI", halo={"K": 1})


@pytest.mark.parametrize("halo", [{"I": 1}, {"I": (1, 1), "J": 0}, {"J": (0, 0), "I": [1, 1]}])
@pytest.mark.parametrize("periodic", [{"I": True, "J": False}, {"I": 1}])
def test_a_step_by_label(halo: Any, periodic: Any) -> None:
    array = dd.from_tensor(dl.from_array(np.arange(32.0).reshape(4, 8), "f4", dims="JI"), (2, 4))
    found = dd.map_overlap(stencil, array, halo=halo, periodic=periodic).compute()
    assert np.array_equal(found, dd.map_overlap(stencil, array, halo=(0, 1), periodic="I").compute())
    assert not np.array_equal(found, dd.map_overlap(stencil, array, halo=(0, 1)).compute())


@pytest.fixture(autouse=True)
def within_the_process() -> Any:
    with dask.config.set(scheduler="sync"):
        yield


def filled(preset: str, halo: Any) -> dl.Tensor:
    field = dl.zeros((12, 10, 3), "f4", backend=preset, dims="JIK", halo=halo)
    field[...] = np.random.default_rng(0).random((12, 10, 3), "f4")
    return field


def wrapped(values: Any, halo: Any, axes: tuple[int, ...]) -> Any:
    """The halo along these axes is what is at the other end; NumPy's own padding, for comparison."""
    inner = values[tuple(slice(w[0], -w[1] or None) if a in axes else slice(None) for a, w in enumerate(halo))]
    return np.pad(inner, [w if a in axes else (0, 0) for a, w in enumerate(halo)], mode="wrap")


def stencil(field: dl.Tensor, other: dl.Tensor | None = None, factor: float = 1.0) -> dl.Tensor:
    """Adds all points in reach of the halo, each with a weight of its own, so that a wrong one changes the result."""
    values, total = field.to_numpy(), np.zeros(field.domain_view.shape, "f4")
    steps = [range(lower + upper + 1) for lower, upper in field.halo]
    for weight, offset in enumerate(np.ndindex(*(len(step) for step in steps))):
        total += (
            np.float32(weight + 1)
            * values[tuple(slice(o, o + n) for o, n in zip(offset, field.domain_view.shape, strict=True))]
        )
    result = dl.zeros_like(field)
    result[...] = field
    result.domain_view[...] = total * np.float32(factor / 100)
    if other is not None:
        result.domain_view[...] = result.domain_view.to_numpy() + other.domain_view.to_numpy()
    return result


@pytest.mark.parametrize(("preset", "halo", "chunks"), chosen(itertools.product(CPU_PRESETS, HALOS, CHUNKS), STEPS))
def test_steps_are_those_of_the_whole_field(preset: str, halo: Any, chunks: Any) -> None:
    field = filled(preset, halo)
    array, expected = dd.from_tensor(field, chunks), field
    for _ in range(2):
        array, expected = dd.map_overlap(stencil, array), stencil(expected)
    result = array.compute()
    assert result.to_numpy().tobytes() == expected.to_numpy().tobytes()
    for name in ("halo", "dims", "layout", "alignment_size", "dtype"):
        assert getattr(result, name) == getattr(field, name), name


@pytest.mark.parametrize(
    ("periodic", "halo", "chunks"), chosen(itertools.product(["J", "IJ", ("I",), "JIK"], HALOS, CHUNKS), WRAPS)
)
def test_periodic_dimensions_wrap(periodic: Any, halo: Any, chunks: Any) -> None:
    field = filled("gtmc", halo)
    axes = tuple("JIK".index(label) for label in periodic)
    result = dd.map_overlap(lambda block: block, dd.from_tensor(field, chunks), periodic=periodic).compute()
    assert (result.to_numpy() == wrapped(field.to_numpy(), halo, axes)).all()


@pytest.mark.parametrize("preset", CPU_PRESETS)
def test_blocks_look_like_small_fields(preset: str) -> None:
    seen = []

    def look(block: dl.Tensor) -> dl.Tensor:
        seen.append(block)
        return block

    array = dd.zeros((12, 10, 3), (4, 5, 3), backend=preset, dims="JIK", halo=HALOS[0])
    trimmed = dd.map_overlap(look, array).persist()
    assert len(seen) == 6
    for block in seen:
        alone = dl.zeros(block.shape, backend=preset, dims="JIK", halo=HALOS[0])
        for name in ("dims", "halo", "origin", "layout", "strides", "alignment_size", "aligned_index", "readonly"):
            assert getattr(block, name) == getattr(alone, name), name
        assert oracle.aligned_address(block) % block.alignment_size == 0
    assert trimmed.blocks[1, 1].compute().halo == ((0, 0), (0, 1), (0, 0))


def test_arguments_are_copies() -> None:
    field = dl.ones((6, 6), halo=(1, 1))

    def overwrite(block: dl.Tensor) -> dl.Tensor:
        block[...] = 7.0
        return block

    for chunks in (3, 6):
        assert (dd.map_overlap(overwrite, dd.from_tensor(field, chunks)).compute().to_numpy() == 7).all()
        assert (field.to_numpy() == 1).all()


def test_several_arrays_and_keywords() -> None:
    field, other = filled("gtmc", HALOS[0]), filled("F", HALOS[0])
    arrays = [dd.from_tensor(each, CHUNKS[1]) for each in (field, other)]
    result = dd.map_overlap(stencil, *arrays, factor=3.0).compute()
    assert (result.to_numpy() == stencil(field, other, 3.0).to_numpy()).all()


def test_arrays_of_dask_and_results_of_numpy() -> None:
    field = filled("numpy", HALOS[0])
    plain = dask.array.from_array(field.to_numpy(), CHUNKS[1])
    result = dd.map_overlap(lambda block: block.to_numpy() > 0.5, plain, halo=HALOS[0], dtype=bool)
    assert result.dtype == bool
    assert type(result._meta) is dl.Tensor
    assert type(result.blocks[0, 0, 0].compute()) is dl.Tensor
    assert (result.compute().to_numpy() == (field.to_numpy() > 0.5)).all()
    assert dd.map_overlap(stencil, dd.from_tensor(field, 6) + 0, halo=(1, 1, 0)).halo == ((1, 1), (1, 1), (0, 0))


def test_pieces_have_the_points_of_the_halo_only() -> None:
    """What goes between workers: faces, edges and corners without padding, in memory of their own."""
    array = dd.zeros((8, 8, 4), (4, 4, 4), backend="gtmc", halo=(1, 2, 0))
    result = dd.map_overlap(stencil, array)
    pieces = {key: task for key, task in result.dask.items() if isinstance(key, tuple) and key[0].startswith("piece-")}
    assert len(pieces) == 4 * 3
    values = dask.get(dict(result.dask), list(pieces))
    assert sorted(piece.size for piece in values) == sorted([1 * 4 * 4] * 4 + [4 * 2 * 4] * 4 + [1 * 2 * 4] * 4)
    assert all(piece.block.nbytes == piece.nbytes for piece in values)


@pytest.mark.parametrize(
    ("arguments", "keywords", "error", "message"),
    [
        ((), {}, TypeError, "arrays: "),
        ((dl.zeros((4, 4)),), {}, TypeError, "arrays: expected .*Tensor"),
        ((dd.zeros((4, 4), 2), dd.zeros((4, 4), 4)), {}, dl.LayoutError, "arrays: expected equal chunks"),
        ((dd.zeros((4, 4), 2) + 1,), {}, dl.LayoutError, "halo: found none"),
        ((dd.zeros((4, 4), 2),), {"halo": (1,)}, dl.LayoutError, "halo: expected .*I J"),
        ((dd.zeros((4, 4), 2),), {"halo": (-1, 0)}, dl.LayoutError, "halo: .*-1"),
        ((dd.zeros((4, 4), 2, halo=(1, 0)),), {"periodic": "K"}, dl.DimsError, "periodic: found 'K'.*I, J"),
        ((dd.zeros((4, 4), 2, halo=(1, 0)),), {"periodic": True}, TypeError, "periodic: expected .*, got True"),
        ((dd.zeros((4, 4), 2, halo=(1, 0)),), {"depth": 1}, TypeError, "'depth'; write halo="),
        ((dd.zeros((4, 4), 2, halo=(1, 0)),), {"boundary": "none"}, TypeError, "'boundary'; write periodic="),
        ((dd.zeros((4, 4), 2, dims=("lat", "K"), halo=(1, 0)),), {"periodic": "lon"}, dl.DimsError, "'lon'; .*lat, K"),
        ((dd.zeros((4, 4), (1, 4), halo=(1, 0)),), {}, dl.LayoutError, SHORT),
        ((dd.zeros((4, 4), 4, halo=(0, 2)),), {"periodic": "J"}, dl.LayoutError, "axis 1"),
    ],
)
def test_errors(arguments: Any, keywords: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        dd.map_overlap(stencil, *arguments, **keywords)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: dd.map_overlap(laplacian, x, depth=1, boundary="periodic"), TypeError),
        (lambda x: dd.map_overlap(laplacian, x, periodic="IJ"), dl.LayoutError),
    ],
)
def test_what_the_message_advises_for_an_array_without_a_halo_gives_its_neighbours(call: Any, error: Any) -> None:
    whole = np.arange(64.0).reshape(8, 8)
    x = dask.array.from_array(whole, (4, 4))
    with pytest.raises(error) as caught:
        call(x)
    advice = re.search(r"x = (dask\.array\.pad.*)", str(caught.value))
    assert advice is not None
    found = dd.map_overlap(laplacian, eval(advice[1]), halo=1)[1:-1, 1:-1].compute()
    assert (found == sum(np.roll(whole, by, axis) for axis in (0, 1) for by in (1, -1))).all()


def laplacian(block: dl.Tensor) -> dl.Tensor:
    points = block.to_numpy().copy()
    block.domain_view[...] = points[:-2, 1:-1] + points[2:, 1:-1] + points[1:-1, :-2] + points[1:-1, 2:]
    return block


def test_from_tensor_names_other_arrays() -> None:
    with pytest.raises(TypeError, match=r"field: expected a dlfield\.Tensor, got ndarray"):
        dd.from_tensor(np.ones(3), 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("result", [lambda block: block.domain_view, lambda _: None])
def test_results_of_other_shapes_are_refused(result: Any) -> None:
    with pytest.raises(dl.LayoutError, match=r"<lambda>: expected a result of shape \(5, 4\)"):
        dd.map_overlap(result, dd.zeros((8, 4), 4, halo=(1, 0))).compute()


def test_results_with_other_labels_are_refused() -> None:
    with pytest.raises(dl.DimsError, match=r"relabelled: expected .*\('I', 'J'\), got \('J', 'I'\)"):
        dd.map_overlap(relabelled, dd.zeros((8, 8), 4, halo=(1, 1)), unused=1).compute()


def relabelled(block: dl.Tensor, unused: int) -> dl.Tensor:
    return dl.zeros(block.shape, dims="J" * unused + "I")
