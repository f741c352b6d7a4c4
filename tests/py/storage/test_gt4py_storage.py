"""`dlfield.gt4py` gives what the installed `gt4py.storage` gives, case by case, also for dtypes without tensors."""

import itertools
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from catalog import permutations_of_subsets
from dlfield import gt4py as ours
from dlfield.gt4py.registry import registered_layout
from fakes import Meddling

pytest.importorskip("gt4py")

from gt4py import storage as theirs
from gt4py.cartesian import gtscript

PRESETS = sorted(name for name, info in theirs.layout_registry.REGISTRY.items() if info["device"] == "cpu")
DIMENSIONS: list[Any] = [
    (),
    ("I", "I"),
    ("K", "K", "K"),
    ("J", "3", "I", "J"),
    ("I", "J", "K", "3", "3"),
    ("3",),
    ("1", "I", "0"),
    (gtscript.K,),
    (gtscript.K, gtscript.I),
    [gtscript.J, "7"],
    "KI",
]
DTYPES: list[Any] = ["f8", "f4", "i2", ">f8", ">i4", ">c8", "longdouble", "clongdouble", "M8[s]", "m8[ns]", "f2", "?"]
DTYPES += ["i4", "u1", "c16", float, np.int16]
DTYPES += [np.dtype((base, (2, 3))) for base in ("f4", ">f8", "longdouble", "M8[D]")]


def outcome(module: Any, name: str, *args: Any, **keywords: Any) -> Any:
    """Return the properties of the array, or the builtin exceptions that the error can be caught as."""
    try:
        made = getattr(module, name)(*args, **keywords)
    except Exception as error:
        return {kind for kind in type(error).__mro__ if kind.__module__ == "builtins"}
    return made.shape, made.dtype, made.strides, made.flags.writeable, None if name == "empty" else made.tolist()


def compare(name: str, *args: Any, **keywords: Any) -> None:
    mine, reference = (outcome(module, name, *args, **keywords) for module in (ours, theirs))
    assert reference <= mine if isinstance(reference, set) and isinstance(mine, set) else mine == reference


@pytest.fixture
def in_blocks() -> Any:
    """A preset for the host with the alignment and padding of GPU presets, registered in GT4Py."""
    theirs.register("in blocks", {**theirs.from_name("gt:cpu_ifirst"), "alignment": 4})
    yield "in blocks"
    theirs.register("in blocks", None)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("dimensions", DIMENSIONS, ids=str)
def test_results_for_all_presets_dimensions_dtypes_and_indices(in_blocks: str, dimensions: Any, dtype: Any) -> None:
    shape = tuple(range(3, 3 + len(dimensions)))
    indices = (None, (1,) * len(shape), (20,) * len(shape))
    for backend, aligned_index in itertools.product([*PRESETS, in_blocks], indices):
        keywords = {"backend": backend, "aligned_index": aligned_index, "dimensions": dimensions}
        compare("empty", shape, dtype, **keywords)
        compare("zeros", shape, dtype, **keywords)
        compare("ones", shape, dtype, **keywords)
        compare("full", shape, 3, dtype, **keywords)
        compare("full", shape, 3, dtype, backend=backend)


@pytest.mark.parametrize("backend", PRESETS)
def test_layouts_for_every_order_of_dimensions(backend: str) -> None:
    for labels, data in itertools.product(permutations_of_subsets("IJK"), ("", "0", "01")):
        compare("empty", tuple(range(2, 2 + len(labels + data))), backend=backend, dimensions=tuple(labels + data))
    assert backend in dl.presets()


@pytest.mark.parametrize("dtype", ["f8", ">f4", "longdouble", "clongdouble", "m8"])
@pytest.mark.parametrize("aligned_index", [(0, 0), (1, 2), (3, 0), (3, 3), (9, 9)])
def test_the_aligned_index_is_aligned_as_in_gt4py(in_blocks: str, dtype: str, aligned_index: tuple[int, int]) -> None:
    for module in (ours, theirs):
        array = module.zeros((3, 5), dtype, backend=in_blocks, aligned_index=aligned_index)
        for row in range(5):
            address = array.ctypes.data + aligned_index[0] * array.strides[0] + row * array.strides[1]
            assert address % (4 * array.itemsize) == 0


@pytest.mark.parametrize("dtype", [np.float64, None, "i4", ">f8", "longdouble", "m8"])
@pytest.mark.parametrize("source", ["f8", ">f8", ">i2", "longdouble", "m8[s]", ">m8[s]"])
def test_from_array_of_any_byte_order(source: str, dtype: Any) -> None:
    data = np.arange(24).astype(source).reshape(2, 3, 4)
    for backend in PRESETS:
        compare("from_array", data, dtype, backend=backend)


def test_from_array_of_subarrays() -> None:
    data = np.arange(24.0).reshape(3, 4, 2)
    compare("from_array", data, np.dtype(("f8", (2,))), backend="gt:cpu_ifirst")
    assert not np.shares_memory(ours.from_array(data, backend="gt:cpu_kfirst"), data)
    with pytest.raises(ValueError, match="shape"):
        ours.from_array(data, np.dtype(("f8", (3,))), backend="gt:cpu_ifirst")


def test_from_array_of_dates() -> None:
    for dates in (np.array(["2024-02-29"], "M8[D]"), np.array(["NaT"], "M8")):
        for dtype in (None, "M8[D]", "f8"):
            compare("from_array", dates, dtype, backend="numpy")


def test_dtypes_of_other_libraries() -> None:
    torch = pytest.importorskip("torch")
    assert ours.zeros((2,), torch.float32, backend="numpy").dtype == np.float32
    assert ours.from_array(torch.arange(3), torch.float32, backend="numpy").tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), ()], ids=str)
def test_a_longdouble_array_of_no_or_one_element(shape: tuple[int, ...]) -> None:
    array = ours.zeros(shape, "longdouble", backend="gt:cpu_ifirst", aligned_index=(0,) * len(shape))
    assert (array.shape, array.dtype) == (shape, np.dtype("longdouble"))
    assert not array.any()


def test_the_memory_of_a_longdouble_array_stays_alive() -> None:
    arrays = [ours.full((50, 40), number, "longdouble", backend="gt:cpu_ifirst") for number in range(20)]
    assert [(array == number).all() for number, array in enumerate(arrays)] == [True] * 20


def test_an_axis_alone_is_one_dimension() -> None:
    """GT4Py would iterate over it forever."""
    compare("zeros", (3,), backend="numpy", dimensions=(gtscript.K,))
    assert ours.zeros((3,), backend="numpy", dimensions=gtscript.K).shape == (3,)
    with pytest.raises(dl.DimsError, match="found 1 names"):
        ours.zeros((3, 4), backend="numpy", dimensions=gtscript.K)


WRONG: list[tuple[str, list[Any]]] = [
    ("backend", ["nothing", None, 5]),
    ("shape", [3, None, (3.0, 2), (2, -1)]),
    ("dtype", ["nothing", object]),
    ("dimensions", [("I",), ("I", "x"), ("I", 1), ("I", None)]),
    ("aligned_index", [(1,), 1, (1.0, 0), (-1, 0)]),
]


@pytest.mark.parametrize(("keyword", "values"), WRONG)
def test_errors_can_be_caught_as_gt4pys(keyword: str, values: list[Any]) -> None:
    for name, value in itertools.product(("empty", "zeros", "ones"), values):
        compare(name, **{"shape": (2, 3), "backend": "numpy", keyword: value})


@pytest.mark.parametrize("backend", sorted(theirs.layout_registry.REGISTRY))
def test_registered_layout_is_gt4pys(backend: str) -> None:
    info = theirs.from_name(backend)
    assert info is not None
    for dimensions in (("I", "J", "K"), ("J", "K"), ("I", "I"), ("I", "J", "K", "0", "1"), ()):
        found = registered_layout(backend, dimensions)
        assert found == (tuple(info["layout_map"](dimensions)), info["alignment"], info["device"])


def test_other_arguments_are_read_before_the_data() -> None:
    array = np.ones((100, 100))

    class Label(str):
        def __eq__(self, other: object) -> bool:
            raise AssertionError("dims are compared as plain strings")

        __hash__ = str.__hash__

    index = Meddling(lambda: array.resize((2, 3), refcheck=False))
    found = ours.from_array(array, backend=Label("numpy"), dimensions=(Label("I"), "J"), aligned_index=(index, 0))
    assert found.tolist() == [[1.0] * 3] * 2


def test_data_is_converted_once() -> None:
    class Once:
        calls = 0

        def __array__(self, *_: Any, **__: Any) -> Any:
            self.calls += 1
            return np.arange(12.0).reshape(3, 4)[1:]

    data = Once()
    assert ours.from_array(data, backend="numpy").tolist() == [[4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]]
    assert data.calls == 1
