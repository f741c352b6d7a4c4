"""The number of threads that copy, and copies after a fork."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from childproc import run_cases

LARGE = (64, 128, 128)  # 8 MB of float64: enough to use other threads


@pytest.fixture(autouse=True)
def default_threads() -> Iterator[None]:
    """Reset the number of threads after each test."""
    yield
    dl.set_num_threads(0)


def test_the_setting_is_obeyed_and_0_resets_it() -> None:
    default = dl.num_threads()
    for threads in (1, 3, np.int64(2)):
        dl.set_num_threads(threads)
        assert dl.num_threads() == threads
    dl.set_num_threads(0)
    assert dl.num_threads() == default


def _running() -> set[str]:
    return {task.name for task in Path("/proc/self/task").iterdir()}


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts threads as Linux does")
def test_that_many_threads_are_started() -> None:
    dl.set_num_threads(1)
    before = _running()
    dl.set_num_threads(5)
    # The threads of the former pool may still be ending.
    assert len(_running() - before) >= 5


@pytest.mark.parametrize("keywords", [{}, {"backend": "F"}, {"alignment_size": 64}])
def test_copies_in_close_succession_are_whole(keywords: dict[str, Any]) -> None:
    dl.set_num_threads(3)
    # Each is too small to wake threads for, but large enough to be divided after some others.
    sources = [np.random.default_rng(number).random((50, 50, 30)) for number in range(12)]
    fields = [dl.zeros(source.shape, **keywords) for source in sources]
    for field, source in zip(fields, sources, strict=True):
        field[...] = source
    for field, source in zip(fields, sources, strict=True):
        assert (field.to_numpy() == source).all()


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_copies_are_the_same_with_any_number(threads: int) -> None:
    dl.set_num_threads(threads)
    source = np.random.default_rng(1).random(LARGE)
    assert (dl.from_array(source, backend="F").to_numpy() == source).all()
    assert (dl.full(LARGE, 2.5).to_numpy() == 2.5).all()


# A forked child inherits a pool's memory but none of its threads, so a wait for them would never end.
FORK = """
    {before}
    child = os.fork()
    if not child:
        signal.alarm(60)
        source = np.arange(2.0**20).reshape(64, 128, 128)
        copied = dl.from_array(source, backend="F")
        copied[...] = dl.from_array(source)
        good = dl.num_threads() == {threads} and (copied.to_numpy() == source).all()
        dl.set_num_threads(2)
        copied = dl.from_array(source, backend="F")
        good = good and (copied.to_numpy() == source).all() and (dl.ones(2**20).to_numpy() == 1).all()
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
BEFORE = ["dl.ones(2**20)", "dl.set_num_threads(2)", "dl.set_num_threads(2); dl.ones(2**20)", "dl.num_threads()"]
NEW_PROCESSES = {
    "rayon's own variable is the default": "os.environ['RAYON_NUM_THREADS'] = '3'; assert dl.num_threads() == 3",
    **{f"the child of a fork after {before} copies alone": FORK.format(before=before, threads=1) for before in BEFORE},
}
# It would have to end the pool of its parent, which may be locked, or half changed, for ever.
STARTS_NO_THREADS = """
    dl.set_num_threads(3)
    child = os.fork()
    if not child:
        dl.set_num_threads(5)
        dl.set_num_threads(0)
        dl.set_num_threads(4)
        os._exit(len(list(Path("/proc/self/task").iterdir())))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert dl.num_threads() == 3
"""


def test_new_and_forked_processes() -> None:
    """Each case is a fork of a process that has no threads, which may have some as a new process may."""
    prelude = """
        import os, signal, warnings
        from pathlib import Path
        import numpy as np
        import dlfield as dl
        warnings.simplefilter("ignore")  # Python 3.12 and newer warn of this
    """
    cases = {**NEW_PROCESSES, "one whose parent had no threads": FORK.format(before="", threads=dl.num_threads())}
    if Path("/proc/self/task").is_dir():
        cases["the child of a fork starts no threads"] = STARTS_NO_THREADS
    run_cases(prelude, cases)


@pytest.mark.parametrize("threads", [-1, -(2**70), 2**70, 2**16, 1.0, "2", None, True, np.True_])
def test_other_counts_are_refused(threads: Any) -> None:
    before = dl.num_threads()
    with pytest.raises(ValueError if type(threads) is int else TypeError, match=r"^threads: "):
        dl.set_num_threads(threads)
    assert dl.num_threads() == before
