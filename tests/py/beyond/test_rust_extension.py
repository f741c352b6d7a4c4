"""The example extension in Rust: arguments from every library, refusals, and returned tensors.

`make test` builds it, with the functions of `kinds`, which only these tests call.
"""

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace as Some
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from calls import torch_of
from catalog import NUMPY_CODES, dtype_named
from fakes import RaisingProducer
from fakes_interfaces import NOWHERE, cuda
from interleaved_threads import run_in_threads
from leak_checks import grown
from page_code import ROOT, blocks, run_session

rx = pytest.importorskip("rust_extension")
kinds = rx.kinds

SHAPE = (6, 5, 4)
EXAMPLE = ROOT / "examples/rust_extension"


def numbers(shape: tuple[int, ...] = SHAPE) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.random.default_rng(7).random(shape)


def test_an_extension_does_not_contain_the_module() -> None:
    # maturin installs a package around the compiled module.
    library = Path(getattr(rx, "rust_extension", rx).__file__).read_bytes()
    assert b"PyInit_rust_extension" in library
    assert b"PyInit__native" not in library


def laplacian_of(inp: Any) -> Any:
    inner = (slice(1, -1),) * 3
    out = -6.0 * inp[inner]
    for axis in range(3):
        for cut in (slice(2, None), slice(None, -2)):
            out = out + inp[tuple(cut if at == axis else slice(1, -1) for at in range(3))]
    return out


def as_jax(array: Any) -> Any:
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        return jax.numpy.asarray(array)


def as_xarray(array: Any) -> Any:
    return pytest.importorskip("xarray").DataArray(array, dims=[f"d{axis}" for axis in range(array.ndim)])


def as_buffer(array: Any) -> Any:
    return np.ascontiguousarray(array).data


SOURCES: list[Callable[[Any], Any]] = [
    np.asarray,
    torch_of,
    as_jax,
    as_xarray,
    as_buffer,
    dl.from_array,
    lambda array: dl.from_array(array, backend="gt:cpu_ifirst"),
    lambda array: dl.from_array(array).as_readonly(),
    lambda array: dl.describe(array),
    lambda array: dl.from_array(array).__dlpack__(max_version=(1, 3)),
    lambda array: dl.from_array(array).__dlpack__(),
]


@pytest.mark.parametrize("source", SOURCES)
def test_every_array_is_accepted(source: Callable[[Any], Any]) -> None:
    array = numbers()
    assert rx.ndim(source(array)) == 3
    assert rx.sum(source(array)) == pytest.approx(array.sum(), rel=1e-12)
    out = np.full(SHAPE, np.nan)
    rx.laplacian(source(array), out)
    np.testing.assert_allclose(out[1:-1, 1:-1, 1:-1], laplacian_of(array), rtol=1e-12)
    assert np.isnan(out[0]).all()
    assert np.isnan(out[:, :, -1]).all()


@pytest.mark.parametrize(
    "out",
    [
        lambda: np.zeros(SHAPE),
        lambda: np.zeros(SHAPE, order="F"),
        lambda: np.zeros((2 * SHAPE[0], *SHAPE[1:]))[::-2],
        lambda: np.zeros((*SHAPE[:2], 2 * SHAPE[2]))[:, ::-1, 1::2],
        lambda: torch_of(np.zeros(SHAPE)),
        lambda: as_xarray(np.zeros(SHAPE)),
        lambda: dl.zeros(SHAPE),
        lambda: dl.zeros(SHAPE, backend="gtmc", halo=(1, 1, 1)),
        lambda: rx.make_field(SHAPE),
    ],
)
@pytest.mark.parametrize("turn", [1, -1])
def test_every_array_is_written(out: Callable[[], Any], turn: int) -> None:
    target, inp = out(), numbers()[:, ::turn]
    rx.laplacian(inp, target)
    np.testing.assert_allclose(dl.as_numpy(target)[1:-1, 1:-1, 1:-1], laplacian_of(inp), rtol=1e-12)
    assert not dl.as_numpy(target)[:, 0].any()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("cut", [np.s_[...], np.s_[::-1, ::2], np.s_[..., 1], np.s_[1:-1, 1:-1, 1:-1], np.s_[:, 2:2]])
def test_two_arrays_of_any_strides_are_visited_together(cut: Any, order: Any) -> None:
    inp, out = numbers()[cut], numbers().copy(order=order)
    rx.add_scaled(0.5, inp, out[cut])
    expected = numbers()
    expected[cut] += 0.5 * inp
    assert out.tolist() == expected.tolist()


def test_arrays_of_different_shapes_are_not_visited() -> None:
    out = numbers()
    with pytest.raises(dl.LayoutError, match=r"got \(6, 5, 4\) for the array at position 1"):
        rx.add_scaled(1.0, out[0].copy(), out)
    assert out.tolist() == numbers().tolist()


@pytest.mark.parametrize(
    "cut", [np.s_[::-1], np.s_[:, ::-2, 1:], np.s_[..., 0], np.s_[2:2], np.s_[1, 2, 3], np.s_[::-1, ::-1, ::-1]]
)
def test_any_strides_are_read(cut: Any) -> None:
    array = numbers()[cut]
    assert rx.sum(array) == pytest.approx(array.sum(), rel=1e-12)
    copy = kinds.echo(np.asarray(array))
    assert copy.to_numpy().tolist() == array.tolist()
    assert rx.sum(np.broadcast_to(np.float64(0.5), (3, 4))) == 6.0


@pytest.mark.parametrize("name", [*NUMPY_CODES, "bfloat16"])
def test_every_element_type_has_its_rust_type(name: str) -> None:
    array = np.arange(12).reshape(3, 4).astype(dtype_named(name))[:, ::-1]
    for given in (array, dl.from_array(array), dl.from_array(array).as_readonly()):
        copy = kinds.echo(given)
        assert (copy.dtype, copy.to_numpy().tolist()) == (array.dtype, array.tolist())


MISMATCHES: list[tuple[Callable[[], Any], str]] = [
    (lambda: kinds.c_order(np.zeros((2, 2))), "dtype: expected float32, got float64"),
    (lambda: kinds.c_order(np.zeros(2, "f4")), "ndim: expected 2 dimensions, got 1 of shape .2,."),
    (lambda: kinds.c_order(np.zeros((2, 3), "f4", order="F")), "strides: .* in C order, got .* .1, 2. elements"),
    (lambda: kinds.f_order(np.zeros((2, 3), "f4")), "strides: .* in F order, got .* .3, 1. elements"),
    (lambda: kinds.or_copy(np.zeros(2)), "ndim: expected 2 dimensions, got 1"),
    (lambda: kinds.or_copy(np.zeros((2, 2), "complex128")), "got a cast of complex128 to float64"),
    (lambda: kinds.on_cuda(np.zeros(2)), "device: expected memory on cuda:0, got memory on cpu"),
    (lambda: rx.sum([1.0]), "expected an array, got"),
    (lambda: rx.sum(np.zeros(3, ">f8")), "native byte order"),
    (
        lambda: rx.sum(np.frombuffer(bytes(17), "u1")[1:].view("f8")),
        "expected an address that is a multiple of 8 bytes",
    ),
    (lambda: kinds.fill(np.broadcast_to(0.0, (3,)), 1.0), "read-only"),
    (lambda: kinds.fill(dl.zeros(3).as_readonly(), 1.0), "read-only"),
    (lambda: kinds.fill(dl.zeros(3).__dlpack__(), 1.0), "read-only"),
    (lambda: kinds.fill(as_jax(np.zeros(3)), 1.0), "read-only; JAX arrays cannot be written: pass a field"),
    (lambda: kinds.fill([0.0], 1.0), "got <class 'list'>; it is written, so pass an array, which keeps the result"),
    (
        lambda: kinds.fill(np.lib.stride_tricks.as_strided(np.zeros(4), (2, 3), (0, 8)), 1.0),
        "elements may share memory",
    ),
    (lambda: kinds.flags(np.array([0, 1, 2], "u1").view("?")), "bool with the byte 2"),
]


@pytest.mark.parametrize(("call", "message"), MISMATCHES)
def test_a_mismatch_is_a_type_error_with_the_reason(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message) as caught:
        call()
    assert type(caught.value) is TypeError
    (note,) = caught.value.__notes__
    assert note.startswith("while processing '")


def test_the_producers_own_errors_are_raised() -> None:
    with pytest.raises(ZeroDivisionError, match="mine"):
        rx.sum(RaisingProducer(ZeroDivisionError("mine")))


def test_matching_orders() -> None:
    array = np.arange(6, dtype="f4").reshape(2, 3)
    assert kinds.c_order(array) == kinds.f_order(np.asfortranarray(array)) == list(range(6))
    assert kinds.c_order(torch_of(array)) == list(range(6))


def test_a_copy_is_made_only_if_needed() -> None:
    array = np.arange(6.0).reshape(2, 3)
    assert kinds.or_copy(np.asfortranarray(array)) == (False, list(range(6)))
    for other in (array, array.astype("i4"), array.astype("f4", order="F"), torch_of(array.astype("f2"))):
        assert kinds.or_copy(other) == (True, list(range(6)))
    odd = np.frombuffer(bytes(1) + np.asfortranarray(array).tobytes("F"), "u1")[1:].view("f8").reshape(2, 3, order="F")
    assert kinds.or_copy(odd) == (True, list(range(6)))


def test_memory_of_a_gpu_is_described() -> None:
    array = cuda(shape=(3,), typestr="<f8")
    assert kinds.on_cuda(array) == (NOWHERE, "cuda:0")
    assert rx.ndim(array) == 1
    with pytest.raises(TypeError, match=r"memory that the host can read, .* got memory on cuda:0"):
        rx.sum(array)


def overlapping() -> list[tuple[Any, Any]]:
    cube = np.zeros(SHAPE)
    longer = np.zeros((SHAPE[0] + 1, *SHAPE[1:]))
    field = dl.zeros(SHAPE)
    return [
        (cube, cube),
        (cube[::-1], cube),
        (longer[1:], longer[:-1]),
        (torch_of(cube), cube),
        (field, np.asarray(field)),
        (field, field),
        (as_xarray(cube), torch_of(cube)),
    ]


@pytest.mark.parametrize("case", range(len(overlapping())))
def test_arguments_that_overlap_are_refused(case: int) -> None:
    inp, out = overlapping()[case]
    with pytest.raises(
        TypeError, match=r"^overlap: this array would be written, but .* reads memory.*another array, or"
    ) as caught:
        rx.laplacian(inp, out)
    assert caught.value.__notes__ == ["while processing 'out'"]
    # No borrow outlives the call.
    rx.laplacian(inp, np.zeros(SHAPE))
    kinds.fill(out, 1.0)


def test_interleaved_arguments_do_not_overlap() -> None:
    both = np.zeros((*SHAPE, 2))
    both[..., 0] = numbers()
    rx.laplacian(both[..., 0], both[..., 1])
    np.testing.assert_allclose(both[1:-1, 1:-1, 1:-1, 1], laplacian_of(both[..., 0]), rtol=1e-12)


def test_overlap_of_many_arguments() -> None:
    array = np.ones(10)
    assert kinds.several([array[:3], array[1:4]], [array[4:6], array[6::2], array[7::2]]) == 6.0
    assert array.tolist() == [1.0] * 4 + [2.0] * 6
    for reading, writing in (
        ([array], [array[:1]]),
        ([], [array[:4], array[3:]]),
        ([array[9:]], [array[:9], array[8:]]),
    ):
        with pytest.raises(TypeError, match="overlap"):
            kinds.several(reading, writing)
    assert kinds.several([array] * 50, []) == 50 * 16.0


def test_borrows_last_for_the_whole_call() -> None:
    array, other = np.zeros(4), np.zeros(4)

    def said(call: Callable[..., Any], *arguments: Any) -> str:
        try:
            return str(call(*arguments))
        except TypeError as error:
            return str(error)

    def read_elsewhere() -> str:
        found: list[str] = []
        thread = threading.Thread(target=lambda: found.append(said(rx.sum, array)))
        thread.start()
        thread.join()
        return found[0]

    assert kinds.reading(array, lambda: (said(kinds.fill, other, 3.0), rx.sum(array)))[1] == ("None", 0.0)
    assert "reads memory" in kinds.reading(array, lambda: said(kinds.fill, array[1:], 3.0))[1]
    assert "writes memory" in kinds.writing(array, lambda: said(kinds.fill, array[:1], 3.0))
    message = "this array would be read, but another argument or a running call writes memory of it"
    assert message in kinds.writing(array, read_elsewhere)
    with pytest.raises(ZeroDivisionError):
        kinds.writing(array, lambda: 1 // 0)
    assert rx.sum(array) == 4.0


def test_returned_tensors_are_dlfields() -> None:
    field = rx.make_field((8, 6, 4))
    assert type(field) is dl.Tensor
    assert (field.layout, field.halo, field.origin) == ((2, 1, 0), ((1, 1),) * 3, (1, 1, 1))
    like = dl.zeros((8, 6, 4), backend="gt:cpu_ifirst", halo=(1, 1, 1))
    for name in ("dims", "strides", "alignment_size", "aligned_index", "readonly"):
        assert getattr(field, name) == getattr(like, name), name
    count = rx.count_to(5)
    assert (type(count), count.dtype, count.to_numpy().tolist()) == (dl.Tensor, np.dtype("u4"), [0, 1, 2, 3, 4])


def test_labels_alignment_and_layout_survive_both_ways() -> None:
    field = kinds.labelled()
    assert (field.dims, field.origin, field.halo) == (("K", "x"), (2, 1), ((1, 0), (0, 2)))
    assert field.alignment_size == 64
    assert (field.ptr + field.aligned_index[0] * field.strides[0]) % 64 == 0
    assert dl.zeros_like(field).strides == field.strides
    assert kinds.labels(field)[:2] == (["K", "x"], [2, 1])
    assert kinds.labels(np.zeros(3)) == (None, None, None)
    labelled = pytest.importorskip("xarray").DataArray(np.zeros((2, 3)), dims=("x", "K"))
    assert kinds.labels(labelled)[0] == ["x", "K"]


def test_arrays_of_rust_keep_their_layout() -> None:
    field = kinds.turned()
    assert field.strides == (-4, 12)
    assert field.to_numpy().tolist() == [[10.0 * i + j for j in range(4)] for i in (2, 1, 0)]
    readonly = kinds.readonly()
    assert readonly.readonly
    with pytest.raises(TypeError, match="read-only"):
        kinds.fill(readonly, 1.0)


def test_rusts_errors_are_dlfields() -> None:
    for call in (kinds.fail, lambda: rx.make_field((-1, 3, 3))):
        with pytest.raises(dl.LayoutError, match=r"^shape: "):
            call()


def test_nothing_is_kept_after_a_call() -> None:
    class Array(np.ndarray[Any, Any]):
        pass

    array = np.zeros(3).view(Array)
    gone = weakref.ref(array)
    count = sys.getrefcount(array)
    rx.sum(array)
    with pytest.raises(TypeError):
        kinds.c_order(array)
    with pytest.raises(TypeError):
        kinds.several([array], [array])
    assert sys.getrefcount(array) == count
    del array
    assert gone() is None


def calls() -> dict[str, Callable[[], object]]:
    """Calls of the extension, for `leak_checks`."""
    array = np.zeros((4, 4), "f4")
    sources = [array, torch_of(array), dl.from_array(array), as_xarray(array), as_buffer(array)]
    field = dl.zeros((4, 5), dims=("cell", "K"), halo=(1, 1))

    def everything() -> None:
        for source in sources:
            rx.ndim(source)
            kinds.c_order(source)
            kinds.or_copy(source)
            with suppress(TypeError):
                rx.sum(source)
        kinds.labels(field)
        kinds.labelled()
        rx.make_field((4, 4, 4))
        rx.count_to(9)

    return {"everything": everything}


OWNED: dict[str, Callable[[Any], Any]] = {
    "array": lambda array: array,
    "view": lambda array: array[::-1],
    "capsule": lambda array: array.__dlpack__(),
    "capsule of version 1": lambda array: array.__dlpack__(max_version=(1, 0)),
    "export": lambda array: Some(__dlpack__=array.__dlpack__, __dlpack_device__=array.__dlpack_device__),
    "memoryview": memoryview,
    "array interface": lambda array: Some(__array_interface__=array.__array_interface__, kept=array),
    "array struct": lambda array: Some(__array_struct__=array.__array_struct__, kept=array),
    "field": dl.from_dlpack,
    "torch": lambda array: pytest.importorskip("torch").from_numpy(array),
    "jax": lambda array: pytest.importorskip("jax").dlpack.from_dlpack(array),
    "xarray": lambda array: pytest.importorskip("xarray").DataArray(array, dims="x"),
}


@pytest.mark.parametrize("make", OWNED.values(), ids=OWNED)
def test_a_thread_that_a_call_waits_for_drops_the_last_owner(make: Callable[[Any], Any]) -> None:
    """The drop does not wait for the GIL, which the waiting call holds. Memory of Python goes at the next call."""
    array = dl.ones(1000).to_numpy()
    gone = weakref.ref(array)
    owner = make(array)
    assert kinds.dropped_elsewhere([owner, dl.zeros(3)]) == 1003
    del array, owner
    assert kinds.dropped_elsewhere([dl.zeros(3)]) == 3
    gc.collect()
    assert gone() is None


def test_no_memory_grows_from_call_to_call() -> None:
    grown("test_rust_extension", "calls", rounds=200)["everything"].assert_none_in(200)


def test_the_tutorial_runs() -> None:
    pytest.importorskip("torch")
    # Errors are in text blocks: before Python 3.13 doctest cannot match an exception with notes.
    assert run_session("".join(blocks(EXAMPLE / "README.md", "pycon"))) >= 7


def test_the_tutorial_shows_the_code_there_is() -> None:
    flat = " ".join(" ".join((EXAMPLE / "src" / name).read_text().split()) for name in ("lib.rs", "gpu.rs"))
    shown = blocks(EXAMPLE / "README.md", "rust")
    assert len(shown) == 8
    lines = [" ".join(line.split()) for block in shown for line in block.splitlines() if "..." not in line]
    assert [line for line in lines if line not in flat] == []


def test_no_thread_reads_what_another_writes() -> None:
    arrays = [np.zeros(1000) for _ in range(3)]
    outcomes: set[str] = set()

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(1000):
            array = arrays[random.integers(3)]
            try:
                # Sums release the GIL.
                rx.sum(array) if random.integers(2) else kinds.fill(array[::2], 1.0)
                outcomes.add("done")
            except TypeError as error:
                outcomes.add(str(error).split(":")[0])

    run_in_threads(work, range(4))
    assert "done" in outcomes
    assert outcomes <= {"done", "overlap"}
    # No borrow outlives the calls.
    kinds.several([], arrays)
