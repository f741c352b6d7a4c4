"""Dask arrays with tensors as blocks, on the scheduler within the process."""

import operator
import pickle
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from dask.sizeof import sizeof
from distributed.protocol import deserialize, serialize

import dlfield as dl
import dlfield.dask as dd
from catalog import CPU_PRESETS
from childproc import run_python
from dlfield.dask.blocks import concatenate

HALO = ((2, 1), (1, 1), (0, 0))


@pytest.fixture(autouse=True)
def within_the_process() -> Any:
    with dask.config.set(scheduler="sync"):
        yield


def filled(preset: str = "gtmc", **keywords: Any) -> dl.Tensor:
    field = dl.zeros((12, 10, 3), backend=preset, **({"halo": HALO} | keywords))
    field[...] = np.arange(360.0).reshape(12, 10, 3)
    return field


def blocks_of(array: Any) -> list[tuple[tuple[slice, ...], Any]]:
    """Each block, with its place in the array."""
    places = da.core.slices_from_chunks(array.chunks)
    values = [array.blocks[position].compute() for position in np.ndindex(*array.numblocks)]
    return list(zip(places, values, strict=True))


@pytest.mark.parametrize("preset", CPU_PRESETS)
@pytest.mark.parametrize("make", [dd.empty, dd.zeros, dd.ones])
def test_blocks_are_laid_out_as_fields_and_labelled_as_slices(make: Callable[..., Any], preset: str) -> None:
    whole = dl.zeros((12, 10, 3), "f4", backend=preset, dims="JIK", halo=HALO, alignment_size=128)
    array = make((12, 10, 3), (4, (6, 4), 3), "f4", backend=preset, dims="JIK", halo=HALO, alignment_size=128)
    assert (array.halo, array.dtype, array.chunks) == (HALO, "f4", ((4, 4, 4), (6, 4), (3,)))
    for place, block in blocks_of(array):
        assert type(block) is dl.Tensor
        alone = dl.zeros(block.shape, "f4", backend=preset, dims="JIK", halo=whole[place].halo, alignment_size=128)
        for name in ("dtype", "dims", "layout", "strides", "alignment_size", "aligned_index", "halo", "origin"):
            assert getattr(block, name) == getattr(alone, name), name


def test_values_and_sizes_of_all_forms() -> None:
    assert dd.zeros(5, 2).compute().tolist() == [0] * 5
    assert dd.ones((2, 3), (1, 3), "i4").compute().tolist() == [[1] * 3] * 2
    assert dd.full((4,), 2.5, 3).compute().tolist() == [2.5] * 4
    assert dd.empty((0, 3), 2).compute().shape == (0, 3)
    assert dd.zeros((), ()).compute().shape == ()
    assert dd.zeros((1000, 1000)).chunks == ((1000,), (1000,))


@pytest.mark.parametrize("chunks", [(12, 10, 3), (5, 3, 2), ((1, 10, 1), 10, 1)])
@pytest.mark.parametrize("preset", CPU_PRESETS)
def test_a_field_goes_in_and_comes_out_the_same(preset: str, chunks: Any) -> None:
    field = filled(preset, dims="KIJ")
    array = dd.from_tensor(field, chunks)
    # `compute` copies an array of one block.
    assert dask.get(array.dask, (array.name, 0, 0, 0)).ptr == field.ptr
    whole = array.compute()
    for name in ("shape", "dims", "layout", "halo", "alignment_size"):
        assert getattr(whole, name) == getattr(field, name), name
    assert (whole.to_numpy() == field.to_numpy()).all()


@pytest.mark.parametrize(
    "use",
    [
        lambda a: a + 1,
        lambda a: np.sqrt(a) * a,
        lambda a: a.astype("f4"),
        lambda a: a[1:9, ::-2],
        lambda a: a.rechunk((7, 7, 1)),
        lambda a: a.sum(axis=0),
        lambda a: a.max(axis=(0, 2)),
        lambda a: a.mean(axis=1),
        lambda a: a.transpose(2, 0, 1),
        lambda a: a.map_blocks(lambda block: block * 2),
        lambda a: da.concatenate([a, a], axis=1),
        lambda a: a.map_overlap(lambda block: block * 2, depth=1, boundary="none"),
        lambda a: a.map_overlap(lambda block: block * 2, depth=(1, 0, 1), boundary="periodic"),
    ],
)
def test_results_of_dask_have_tensors(use: Callable[[Any], Any]) -> None:
    field = filled(dims="KIJ")
    result = use(dd.from_tensor(field, (5, 4, 3)))
    expected = use(da.from_array(field.to_numpy(), (5, 4, 3))).compute()
    assert all(type(block) is dl.Tensor for _, block in blocks_of(result))
    whole = result.compute()
    assert type(whole) is dl.Tensor
    assert whole.dtype == expected.dtype
    assert np.allclose(whole.to_numpy(), expected, rtol=1e-6)
    assert set(whole.dims) <= set(field.dims)


@pytest.mark.parametrize("make", [dd.from_tensor, da.from_array])
def test_operands_may_be_fields_and_arrays(make: Callable[..., Any]) -> None:
    field, plain = filled(), da.ones((12, 10, 3), chunks=(5, 10, 3))
    for result in (plain + field, field + plain, make(field, (5, 4, 3)) + plain, plain + make(field, (6, 4, 3))):
        assert isinstance(result, da.Array)
        whole = result.compute()
        assert type(whole) is dl.Tensor
        assert (whole.to_numpy() == field.to_numpy() + 1).all()
    assert (make(field, 5) - field).compute().to_numpy().any() == np.False_


def test_equal_fields_have_equal_tokens() -> None:
    assert da.from_array(filled()).name == da.from_array(filled()).name
    assert da.from_array(filled()).name != da.from_array(filled(dims="KIJ")).name


def test_blocks_are_joined_by_index() -> None:
    first, second = dl.ones((2, 3), "i4", dims="IJ", layout=(1, 0)), dl.zeros((1, 3), "f8", dims="JI")
    joined = concatenate([first, second, np.full((1, 3), 7)])
    assert (joined.dims, joined.layout, joined.dtype) == (("I", "J"), (1, 0), np.dtype("f8"))
    assert joined.tolist() == [[1] * 3] * 2 + [[0] * 3] + [[7] * 3]
    halos = [dl.zeros((4, 4), halo=((1, 1), (1, 0))), dl.zeros((4, 4), halo=((0, 2), (1, 1)))]
    assert concatenate(halos).halo == ((1, 2), (1, 0))
    assert concatenate(halos, axis=-1).halo == ((0, 1), (1, 1))


def test_memory_is_counted_with_padding() -> None:
    field = dl.zeros((4, 3), alignment_size=64)
    assert sizeof(field) == 3 * 64 + 24
    assert sizeof(field[1]) == 24
    assert sizeof(field[:0]) == 0
    assert sizeof(dl.from_dlpack(np.broadcast_to(np.zeros(3), (1000, 3)))) == 24


@pytest.mark.parametrize("preset", CPU_PRESETS)
def test_the_frame_that_is_sent_is_the_memory(preset: str) -> None:
    field = dl.full((63, 7, 5), 2.0, backend=preset, dims="KIJ", halo=(1, 1, 0), alignment_size=64)
    header, frames = serialize(field)
    assert len(frames) == 2
    assert memoryview(frames[0]).nbytes < 500
    sent = np.frombuffer(frames[1], "u1")
    assert (sent.ctypes.data, sent.nbytes) == (field.block.ptr, field.block.nbytes)
    back = deserialize(header, frames)
    for name in ("dims", "halo", "layout", "strides", "alignment_size", "aligned_index", "readonly"):
        assert getattr(back, name) == getattr(field, name), name


def test_an_array_keeps_its_halo() -> None:
    array = dd.zeros((8, 8), 4, halo=(1, 1))
    assert array.persist().halo == pickle.loads(pickle.dumps(array)).halo == ((1, 1), (1, 1))
    assert not hasattr(array + 1, "halo")


@pytest.mark.parametrize(
    "first",
    [
        "import dask.array, distributed; import dlfield",
        # As in this process; the tests above use it.
        pytest.param("import dlfield; import dlfield.dask", marks=pytest.mark.exhaustive),
    ],
)
def test_a_process_learns_it_with_the_first_tensor(first: str) -> None:
    output = run_python(f"""
        {first}
        import sys, dlfield, numpy as np
        from dask.sizeof import sizeof
        assert sizeof(dlfield.zeros(100)) == 800
        from dask.array.dispatch import concatenate_lookup
        print(concatenate_lookup.dispatch(dlfield.Tensor) is not np.concatenate)
    """)
    assert output == "True\n"


@pytest.mark.parametrize(
    "combine",
    [
        *(getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")),
        *(getattr(operator, name) for name in ("lshift", "rshift", "eq", "ne", "lt", "le", "gt", "ge")),
        np.maximum,
        lambda left, right: dd.map_overlap(operator.add, left + 0, right, halo=(0, 0)),
    ],
)
def test_labels_in_another_order_are_refused(combine: Callable[[Any, Any], Any]) -> None:
    """Dask pairs blocks by position, and fields match points by label: the result would depend on the blocks."""
    array = dd.from_tensor(dl.from_array(np.arange(16.0).reshape(4, 4), dims="IJ"), 2)
    for other in (array.T, dd.ones((4, 4), 2, dims="JI"), dl.ones((4, 4), dims="JI"), dl.ones(4, dims="I")):
        if isinstance(other, dl.Tensor) and combine not in (operator.add, np.maximum):
            continue
        with pytest.raises(dl.DimsError, match="Dask pairs blocks by position"):
            combine(array, other)


def test_labels_in_the_same_order_are_combined() -> None:
    array = dd.from_tensor(dl.from_array(np.arange(16.0).reshape(4, 4), dims="IJ"), 2)
    total: Any = array + dl.ones(4, dims="J")
    assert (total.compute() - 1).tolist() == array.compute().tolist()
    assert (array.T + np.ones((4, 4))).compute().dims == ("J", "I")
    assert (array * array[0]).compute().tolist() == (array.compute() * array.compute()[0]).tolist()
    alike = dd.map_overlap(lambda left, _: left, array, da.ones((4, 4), chunks=2), halo=(0, 0))
    assert alike.compute().dims == ("I", "J")
    with pytest.raises(dl.DimsError, match="Dask pairs blocks by position"):
        dl.ones((4, 4), dims="JI") * array
    with pytest.raises(dl.DimsError, match="Dask pairs blocks by position"):
        np.add(array, 1, where=array.T > 3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: dd.zeros((4, 4), 2, halo=(1,)), dl.LayoutError, "halo"),
        (lambda: dd.zeros((4, 4), 2, halo="I"), dl.LayoutError, "halo: expected .*got 'I'"),
        (lambda: dd.zeros((4, 4), 2, halo=(3, 0)), dl.LayoutError, "halo: .*axis 0 of extent 4"),
        (lambda: dd.zeros((4, 4), 2, dims="II"), dl.DimsError, "dims"),
        (lambda: dd.zeros((4, 4), 2, backend="none"), dl.LayoutError, "none"),
        (lambda: dd.zeros((4, 4), 2, "datetime64[s]"), dl.DTypeError, "M8"),
        (lambda: dd.zeros((4, 4), 2, colour=1), TypeError, "colour"),
        (lambda: dd.zeros((4, 4), 3.5), ValueError, "hunks"),
        (lambda: dd.from_tensor(dl.zeros((4, 4)), (2, 2, 2)), ValueError, "hunks"),
        (lambda: dd.zeros((4, 4), 2, origin=(0, 0)), TypeError, r"^zeros\(\) got .* 'origin': each block has its own"),
        (lambda: dd.empty((4, 4), 2, buffer=bytearray(999)), TypeError, r"^empty\(\) got .* 'buffer'"),
    ],
)
def test_errors_come_before_the_tasks(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
