"""`dlfield.gt4py` compared with gt4py.storage, and dlfield's tensors passed to compiled stencils."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import dlfield as dl
from catalog import permutations_of_subsets
from dlfield import gt4py as ours

pytest.importorskip("gt4py")

from gt4py import storage as theirs
from gt4py.cartesian import gtscript
from gt4py.cartesian.gtscript import PARALLEL, computation, interval
from gt4py.storage.cartesian.layout_registry import REGISTRY

PRESETS = sorted(name for name, info in REGISTRY.items() if info["device"] == "cpu")
DIMENSIONS = [
    tuple(labels) + tuple(str(number) for number in range(data))
    for labels in permutations_of_subsets("IJK")
    for data in (0, 1, 2)
]
SUBARRAYS = [np.dtype(("f4", (2,))), np.dtype(("i8", (3, 2)))]
DTYPES: list[Any] = ["f8", "f4", "i4", "u1", "?", "c16", float, np.int16, *SUBARRAYS]


def same(mine: npt.NDArray[Any], reference: npt.NDArray[Any]) -> None:
    """Check that shape, dtype and strides equal gt4py.storage's."""
    assert isinstance(mine, np.ndarray)
    assert (mine.shape, mine.dtype, mine.strides) == (reference.shape, reference.dtype, reference.strides)
    assert mine.flags.writeable


def test_every_cpu_preset_of_gt4py_is_known() -> None:
    assert set(PRESETS) <= set(dl.presets())


@pytest.mark.parametrize("backend", PRESETS)
@pytest.mark.parametrize("dimensions", DIMENSIONS, ids="".join)
def test_layout_for_every_set_of_dimensions(backend: str, dimensions: tuple[str, ...]) -> None:
    """As in gt4py.storage the order of the labels does not matter."""
    shape = tuple(range(2, 2 + len(dimensions)))
    same(
        ours.empty(shape, backend=backend, dimensions=dimensions),
        theirs.empty(shape, backend=backend, dimensions=dimensions),
    )


@pytest.mark.parametrize("backend", PRESETS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(4,), (4, 5), (4, 5, 6), (2, 3, 4, 5), (2, 3, 4, 2, 3)], ids=str)
def test_values_and_dtypes(backend: str, dtype: Any, shape: tuple[int, ...]) -> None:
    for name in ("zeros", "ones"):
        mine = getattr(ours, name)(shape, dtype, backend=backend)
        reference = getattr(theirs, name)(shape, dtype, backend=backend)
        same(mine, reference)
        assert (mine == reference).all()
    mine, reference = ours.full(shape, 3, dtype, backend=backend), theirs.full(shape, 3, dtype, backend=backend)
    same(mine, reference)
    assert (mine == reference).all()


@pytest.mark.parametrize("backend", PRESETS)
@pytest.mark.parametrize("dtype", ["f8", "i2", None])
def test_from_array(backend: str, dtype: Any) -> None:
    data = (np.arange(60, dtype="f4") / 4).reshape(3, 4, 5)
    mine, reference = ours.from_array(data, dtype, backend=backend), theirs.from_array(data, dtype, backend=backend)
    same(mine, reference)
    assert (mine == reference).all()
    mine[...] = 0
    assert data[2, 3, 4] == 59 / 4


def test_from_array_of_subarrays() -> None:
    data, vector = np.arange(24.0).reshape(3, 4, 2), np.dtype(("f8", (2,)))
    mine = ours.from_array(data, vector, backend="gt:cpu_ifirst")
    same(mine, theirs.from_array(data, vector, backend="gt:cpu_ifirst"))
    assert (mine == data).all()
    with pytest.raises(ValueError, match="shape"):
        ours.from_array(data, np.dtype(("f8", (3,))), backend="gt:cpu_ifirst")


@pytest.mark.parametrize("aligned_index", [None, (0, 0, 0), (1, 2, 3)])
def test_aligned_index(aligned_index: tuple[int, ...] | None) -> None:
    same(
        ours.zeros((4, 5, 6), backend="gt:cpu_kfirst", aligned_index=aligned_index),
        theirs.zeros((4, 5, 6), backend="gt:cpu_kfirst", aligned_index=aligned_index),
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda module: module.zeros((2, 3), backend="nothing"),
        lambda module: module.zeros((2, 3), backend="numpy", dimensions=("I",)),
        lambda module: module.zeros((2, 3), backend="numpy", dimensions=("I", "X")),
        lambda module: module.zeros((2, 3), backend="numpy", aligned_index=(1,)),
        lambda module: module.zeros((2, 3), backend="numpy", aligned_index=(-1, 0)),
        lambda module: module.zeros((2, -3), backend="numpy"),
    ],
)
def test_what_gt4py_refuses_is_refused(call: Callable[[Any], object]) -> None:
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        call(theirs)
    with pytest.raises(dl.Error):
        call(ours)


def test_backend_is_a_must() -> None:
    with pytest.raises(TypeError, match="backend"):
        ours.zeros((2, 3))  # type: ignore[call-arg]


def test_gt4pys_limits_do_not_apply() -> None:
    """GT4Py has 32-bit sizes and no empty arrays."""
    large = ours.empty((1024, 1024, 512), backend="gt:cpu_kfirst")
    assert (large.nbytes, large.strides) == (1 << 32, (4 << 20, 4096, 8))
    large[-1, -1, -1] = 2.5
    assert large[-1, -1, -1] == 2.5
    assert ours.zeros((0, 3, 4), backend="gt:cpu_kfirst").shape == (0, 3, 4)
    with pytest.raises(dl.DeviceError):
        ours.zeros((2, 3), backend="gt:gpu")


# Stencils. One definition covers offsets in I and J, a field of K alone, and a data dimension.

DOMAIN = (6, 5, 4)


def mix(  # type: ignore[no-untyped-def]  # noqa: ANN201 (GTScript allows no return type)
    inp: gtscript.Field[np.float64],
    level: gtscript.Field[gtscript.K, np.float64],
    pair: gtscript.Field[(np.float64, (2,))],
    out: gtscript.Field[np.float64],
):
    with computation(PARALLEL), interval(...):
        out = (  # noqa: F841 (GTScript assigns to the field)
            inp[1, 0, 0]
            + 2.0 * inp[-1, 0, 0]
            + 3.0 * inp[0, 1, 0]
            + 5.0 * inp[0, -1, 0]
            + level
            + 7.0 * pair[0, 0, 0][0]
            + 11.0 * pair[0, 0, 0][1]
        )


@pytest.fixture(scope="module", params=["numpy", "gt:cpu_kfirst", "gt:cpu_ifirst"])
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def stencil(backend: str) -> Any:
    return gtscript.stencil(backend=backend, definition=mix)


HALOS = {"I": (2, 1), "J": (1, 2), "K": (0, 3), "0": (0, 0)}
SIZES = {"I": 9, "J": 8, "K": 7, "0": 2}


def field(labels: str, backend: str, first: int) -> dl.Tensor:
    """A field whose dimensions come in the order of `labels`, each with its own halo, filled from `first` on."""
    made = dl.zeros(
        [SIZES[label] for label in labels], backend=backend, dims=labels, halo=[HALOS[label] for label in labels]
    )
    in_order = sorted(labels, key="IJK0".index)
    ordered = made.transpose(*in_order).to_numpy()
    ordered[...] = np.arange(first, first + made.size).reshape(ordered.shape)
    return made


def in_order(made: dl.Tensor) -> npt.NDArray[Any]:
    """The values of `made` with its dimensions in the order I, J, K, 0."""
    return made.transpose(*sorted(made.dims, key="IJK0".index)).to_numpy()


def expected(inp: dl.Tensor, level: dl.Tensor, pair: dl.Tensor, out: dl.Tensor) -> npt.NDArray[Any]:
    """The result of `mix` computed by NumPy: all values of `out`, with its halo unchanged."""
    (i, j, k), (ni, nj, nk) = (tuple(HALOS[label][0] for label in "IJK"), DOMAIN)
    values, pairs = in_order(inp), in_order(pair)

    def shifted(by_i: int, by_j: int) -> npt.NDArray[Any]:
        return values[i + by_i : i + by_i + ni, j + by_j : j + by_j + nj, k : k + nk]

    here = pairs[i : i + ni, j : j + nj, k : k + nk]
    result = in_order(out).copy()
    result[i : i + ni, j : j + nj, k : k + nk] = (
        shifted(1, 0)
        + 2.0 * shifted(-1, 0)
        + 3.0 * shifted(0, 1)
        + 5.0 * shifted(0, -1)
        + in_order(level)[k : k + nk]
        + 7.0 * here[..., 0]
        + 11.0 * here[..., 1]
    )
    return result


@pytest.mark.parametrize(
    ("inp", "pair", "out"),
    [
        ("IJK", "IJK0", "IJK"),
        ("KJI", "IJK0", "IJK"),
        ("IJK", "0KJI", "JKI"),
        ("JIK", "I0JK", "KIJ"),
        ("KIJ", "KIJ0", "KIJ"),
    ],
)
def test_tensors_go_straight_into_stencils(stencil: Any, backend: str, inp: str, pair: str, out: str) -> None:
    """Without an origin each field's own is used, the lower halo, for any order of its dimensions."""
    fields = (field(inp, backend, 1), field("K", backend, 1000), field(pair, backend, 2000), field(out, backend, 5000))
    wanted = expected(*fields)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="The layout of the field")
        stencil(*fields, domain=DOMAIN)
    assert np.array_equal(in_order(fields[3]), wanted)


@pytest.mark.parametrize(
    ("inp", "pair", "out"), [("IJK", "IJK0", "IJK"), ("KJI", "0KJI", "JKI"), ("KIJ", "I0JK", "KIJ")]
)
def test_data_arrays_go_straight_into_stencils(stencil: Any, backend: str, inp: str, pair: str, out: str) -> None:
    """Their dims count once `dlfield.xarray` is imported; they have no origin."""
    convert = pytest.importorskip("dlfield.xarray", exc_type=ImportError).to_xarray
    fields = (field(inp, backend, 1), field("K", backend, 1000), field(pair, backend, 2000), field(out, backend, 5000))
    wanted = expected(*fields)
    names = ("inp", "level", "pair", "out")
    origins = {name: made.__gt_origin__ for name, made in zip(names, fields, strict=True)}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="The layout of the field")
        stencil(*(convert(made) for made in fields), domain=DOMAIN, origin=origins)
    assert np.array_equal(in_order(fields[3]), wanted)


def test_data_arrays_with_unknown_dims_go_by_position(stencil: Any, backend: str) -> None:
    xarray = pytest.importorskip("xarray")
    fields = (field("IJK", backend, 1), field("K", backend, 10), field("IJK0", backend, 20), field("IJK", backend, 50))
    wanted = expected(*fields)
    names = ("inp", "level", "pair", "out")
    origins = {name: made.__gt_origin__ for name, made in zip(names, fields, strict=True)}
    stencil(*(xarray.DataArray(made.to_numpy()) for made in fields), domain=DOMAIN, origin=origins)
    assert np.array_equal(in_order(fields[3]), wanted)


def test_origin_of_the_call_wins(stencil: Any, backend: str) -> None:
    fields = (
        field("IJK", backend, 1),
        field("K", backend, 1000),
        field("IJK0", backend, 2000),
        field("IJK", backend, 9),
    )
    shifted = [made[1:] if "I" in made.dims else made for made in fields]
    wanted = expected(*fields)
    stencil(*shifted, domain=DOMAIN, origin={"_all_": (1, 1, 0)})
    assert np.array_equal(in_order(fields[3]), wanted)


def test_views_go_into_stencils_with_their_own_origin(stencil: Any, backend: str) -> None:
    fields = (
        field("IJK", backend, 1),
        field("K", backend, 1000),
        field("IJK0", backend, 2000),
        field("KJI", backend, 9),
    )
    wanted = expected(*fields)
    inp, level, pair, out = fields
    stencil(inp[1:, :, :5], level[:6], pair.domain_view, out.domain_view, domain=DOMAIN)
    assert np.array_equal(in_order(out), wanted)


def test_arrays_of_dlfield_gt4py_go_into_stencils(stencil: Any, backend: str) -> None:
    fields = (
        field("IJK", backend, 1),
        field("K", backend, 1000),
        field("IJK0", backend, 2000),
        field("IJK", backend, 9),
    )
    wanted = expected(*fields)
    arrays = [
        ours.from_array(in_order(made), backend=backend, dimensions=sorted(made.dims, key="IJK0".index))
        for made in fields
    ]
    stencil(*arrays, domain=DOMAIN, origin={"_all_": (2, 1, 0)})
    assert np.array_equal(arrays[3], wanted)
