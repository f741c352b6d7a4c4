"""`t.block`, the whole memory block of a tensor, and `dl.memory_report()`, which lists the live ones."""

import gc
import pickle
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from catalog import CODES, CPU_PRESETS, dtype_named
from childproc import run_python
from interleaved_threads import run_in_threads


@pytest.mark.parametrize("preset", CPU_PRESETS)
def test_all_views_of_an_allocation_have_its_block(preset: str) -> None:
    field = dl.zeros((3, 4, 5), "f4", backend=preset, halo=((1, 0), 1, (0, 2)), alignment_size=128)
    block = field.block
    assert (block.dtype, block.strides, block.readonly, block.halo) == (field.dtype, (4,), False, ((0, 0),))
    assert block.ptr <= field.ptr
    assert field.ptr + field.strides[0] * 2 < block.ptr + block.nbytes
    assert block.nbytes >= field.nbytes
    for view in (field.T, field[1:, ::-2], field[2, 3, 4, ...], field[1:1], field.domain_view, block, block[3:]):
        assert (view.block.ptr, view.block.shape) == (block.ptr, block.shape)


def test_it_is_the_memory_with_its_padding() -> None:
    field = dl.zeros((3, 5), alignment_size=64)
    field[...] = np.arange(15.0).reshape(3, 5)
    assert field.block.shape == (24,)
    rows = np.asarray(field.block).reshape(3, 8)
    assert (rows[:, :5] == np.arange(15.0).reshape(3, 5)).all()
    assert not rows[:, 5:].any()
    rows[1, 2] = 70.0
    assert field[1, 2] == 70.0


def test_it_keeps_the_memory_and_its_access() -> None:
    block = dl.ones((3, 5)).block
    assert (block.to_numpy() == 1).all()
    readonly = dl.ones((3, 5)).as_readonly().block
    assert readonly.readonly
    assert not readonly.to_numpy().flags.writeable


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1), (7,)])
def test_scalars_and_empties(shape: tuple[int, ...]) -> None:
    field = dl.full(shape, 2.5)
    assert field.block.to_numpy().tolist() == [2.5] * field.size
    assert field.block.dims == ("I",)


@pytest.mark.parametrize("name", CODES)
def test_elements_are_those_of_every_dtype(name: str) -> None:
    field = dl.zeros((3, 5), dtype_named(name), alignment_size=64)
    row = max(1, 64 // field.itemsize)
    assert field.block.shape == (3 * -(-5 // row) * row,)
    assert field.block.dtype == field.dtype


def test_memory_that_went_through_numpy_is_the_allocation_still() -> None:
    field = dl.zeros((3, 5), alignment_size=64)
    back = dl.from_dlpack(np.asarray(field)[1:, 2:])
    assert (back.block.ptr, back.block.shape) == (field.block.ptr, (24,))
    # A view with other elements has blocks on its own grid: 24 doubles are 192 bytes, 2 before the first whole element.
    other = dl.from_dlpack(np.asarray(field.block).view("u1")[2:-2].view("f4"))
    assert other.block.dtype == np.float32
    assert (other.block.ptr, other.block.shape) == (field.block.ptr + 2, (47,))


@pytest.mark.parametrize(
    "key", [np.s_[:], np.s_[::-1], np.s_[:, ::-1, :], np.s_[1:2, 1:2, 1:2], np.s_[2:, :, :], np.s_[1, 2], np.s_[1:1]]
)
@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_memory_of_others_between_its_elements(axes: tuple[int, ...], key: Any) -> None:
    array = np.arange(24.0).reshape(2, 3, 4)
    part = array[key] if array[key].ndim < 3 else array[key].transpose(axes)
    block = dl.from_dlpack(part).block
    assert sorted(part.ravel()) == block.to_numpy().tolist()
    if part.size:
        assert block.ptr == np.lib.array_utils.byte_bounds(part)[0]


@pytest.mark.parametrize(
    ("array", "found"),
    [
        (np.zeros((4, 6))[:, :5], r"160 bytes, shape \(4, 5\) and strides \(6, 1\) in 184 bytes"),
        (np.zeros(9)[::2], r"40 bytes, shape \(5,\) and strides \(2,\) in 72 bytes"),
        (np.broadcast_to(np.zeros(3), (2, 3)), r"48 bytes, shape \(2, 3\) and strides \(0, 1\) in 24 bytes"),
        # As many elements as the memory between them has room for, but not all of that.
        (np.lib.stride_tricks.as_strided(np.zeros(4), (2, 2), (0, 24)), r"32 bytes, .* in 32 bytes"),
    ],
)
def test_memory_of_others_with_gaps_has_none(array: Any, found: str) -> None:
    with pytest.raises(dl.ExchangeError, match=rf"block: expected .*, got elements of {found}.*pass a copy"):
        _ = dl.from_dlpack(array).block
    assert dl.from_dlpack(array).copy().block.size == array.size


def listed(field: dl.Tensor) -> dl.MemoryBlock:
    [found] = [block for block in dl.memory_report().blocks if block.address == field.block.ptr]
    return found


def check_sums(report: dl.MemoryReport) -> None:
    assert sum(block.nbytes for block in report.blocks) + report.small_nbytes == report.nbytes


def test_a_block_and_who_shares_it() -> None:
    field = dl.zeros((100, 100, 10), "f4", dims="KJI", alignment_size=64)
    found = listed(field)
    shown = (("K", "J", "I"), 1, False, (100, 100, 10), "float32", None)
    assert found == (field.block.ptr, 640_000, 240_000, "cpu", *shown)
    views = [field[1:], field.T]
    assert listed(field).owners == 3
    del views
    capsule = field.__dlpack__(max_version=(1, 0))
    assert (listed(field).owners, listed(field).exported) == (2, True)
    del capsule
    assert listed(field).owners == 1
    check_sums(dl.memory_report())


def test_freed_blocks_are_gone() -> None:
    before = dl.memory_report()
    field = dl.ones((1000, 100))
    address = field.block.ptr
    assert dl.memory_report().nbytes == before.nbytes + 800_000
    array = np.asarray(field)
    del field
    assert address in [block.address for block in dl.memory_report().blocks]
    del array
    gc.collect()
    after = dl.memory_report()
    assert address not in [block.address for block in after.blocks]
    assert after.nbytes == before.nbytes
    check_sums(after)


@pytest.mark.parametrize("count", [1, 100])
def test_small_blocks_are_counted(count: int) -> None:
    before = dl.memory_report()
    fields = [dl.zeros(1000) for _ in range(count)]
    report = dl.memory_report()
    assert (report.small_blocks, report.small_nbytes) == (
        before.small_blocks + count,
        before.small_nbytes + 8000 * count,
    )
    assert report.blocks == before.blocks
    check_sums(report)
    del fields
    after = dl.memory_report()
    assert (after.small_blocks, after.small_nbytes) == (before.small_blocks, before.small_nbytes)
    assert after.cached_nbytes >= 8000


def test_blocks_of_copies_and_loaded_pickles_count() -> None:
    field = dl.ones((100, 1000), alignment_size=64)
    twin = pickle.loads(pickle.dumps(field, 4))
    assert listed(twin).nbytes == 800_000
    assert listed(field.copy()).padding == 0
    check_sums(dl.memory_report())


def test_sums_are_right_with_threads() -> None:
    def work(number: int) -> None:
        rng = np.random.default_rng(number)
        kept = [dl.empty(1)] * 8
        for size in rng.integers(0, 40_000, 500):
            kept[size % 8] = dl.empty(int(size))
            assert dl.memory_report().nbytes >= kept[size % 8].nbytes

    before = dl.memory_report()
    run_in_threads(work, range(4))
    after = dl.memory_report()
    assert (after.nbytes, after.small_blocks) == (before.nbytes, before.small_blocks)
    check_sums(after)


def test_a_fork_reports_its_own_memory() -> None:
    output = run_python("""
        import os, threading, warnings, dlfield as dl
        # From Python 3.12 on, for every fork while threads run.
        warnings.simplefilter("ignore", DeprecationWarning)
        # What the first call looks up is locked meanwhile: the threads must not do that during a fork.
        dl.empty(10_000)
        def work():
            while not stop:
                dl.empty(10_000)
        stop = False
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(50):
            child = os.fork()
            if child == 0:
                field = dl.empty(1_000_000)
                dl.memory_report()
                del field
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        stop = True
        print("done")
    """)
    assert output.strip() == "done"


def test_the_text_is_a_sentence_and_a_table() -> None:
    field = dl.zeros((100, 1000), dims="KI")
    text = str(dl.memory_report())
    first, heading, *rows = text.splitlines()
    assert first.startswith(f"{dl.memory_report().nbytes:,} bytes are in use, in ")
    assert " ".join(heading.split()) == "address bytes padding shape dtype dims device owners exported"
    shown = f"{field.block.ptr:#x} 800,000 0 (100, 1000) float64 K I cpu 1 no"
    assert shown in [" ".join(row.split()) for row in rows]


def test_lines_that_allocated_are_known_if_asked_for() -> None:
    before = dl.zeros(100_000)
    dl.memory.trace_lines()
    try:
        made = {
            "zeros": dl.zeros((100, 100, 10)),
            "from_array": dl.from_array(np.zeros(100_000)),
            "copy": before.copy(),
            "arithmetic": before + 1,
        }
        places = {name: listed(field).place for name, field in made.items()}
        assert listed(made["zeros"][1:]).place == places["zeros"]
    finally:
        dl.memory.trace_lines(False)
    first = test_lines_that_allocated_are_known_if_asked_for.__code__.co_firstlineno + 5
    assert places == {name: f"{__file__}:{first + number}" for number, name in enumerate(made)}
    assert listed(before).place is None
    assert listed(made["zeros"]).place is None
