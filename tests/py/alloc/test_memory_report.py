"""`dl.memory_report()`: the live blocks, equal to the allocation counters."""

import gc
import pickle

import numpy as np
import pytest

import dlfield as dl
from childproc import run_python
from interleaved_threads import run_in_threads


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
        # From Python 3.12 on, for every fork beside threads.
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
