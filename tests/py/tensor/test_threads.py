"""The number of threads that copy, and copies after a fork."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from childproc import run_python

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


def test_rayons_own_variable_is_the_default() -> None:
    code = "import os; os.environ['RAYON_NUM_THREADS'] = '3'; import dlfield as dl; print(dl.num_threads())"
    assert run_python(code) == "3\n"


# A forked child inherits a pool's memory but none of its threads, so a wait for them would never end.
FORK = """
    import os, signal, warnings
    import numpy as np
    import dlfield as dl

    warnings.simplefilter("ignore")  # Python 3.12 and newer warn of what is tested
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
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize(
    "before",
    ["dl.ones(2**20)", "dl.set_num_threads(2)", "dl.set_num_threads(2); dl.ones(2**20)", "dl.num_threads()"],
)
def test_the_child_of_a_fork_copies_alone(before: str) -> None:
    assert run_python(FORK.format(before=before, threads=1)) == "0\n"


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts threads as Linux does")
def test_the_child_of_a_fork_starts_no_threads() -> None:
    """It would have to end the pool of its parent, which may be locked, or half changed, for ever."""
    output = run_python("""
        import os, warnings
        from pathlib import Path
        import dlfield as dl

        warnings.simplefilter("ignore")
        dl.set_num_threads(3)
        child = os.fork()
        if not child:
            dl.set_num_threads(5)
            dl.set_num_threads(0)
            dl.set_num_threads(4)
            os._exit(len(list(Path("/proc/self/task").iterdir())))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), dl.num_threads())
    """)
    assert output == "1 3\n"


def test_a_child_whose_parent_had_no_threads_may_have_some() -> None:
    assert run_python(FORK.format(before="", threads=dl.num_threads())) == "0\n"


@pytest.mark.parametrize("threads", [-1, -(2**70), 2**70, 2**16])
def test_counts_out_of_range_are_refused(threads: int) -> None:
    before = dl.num_threads()
    with pytest.raises(ValueError, match=rf"threads: {threads}; allowed is 0 to"):
        dl.set_num_threads(threads)
    assert dl.num_threads() == before


@pytest.mark.parametrize("threads", [1.0, "2", None, True, np.True_])
def test_counts_of_wrong_types_are_refused(threads: Any) -> None:
    with pytest.raises(TypeError, match="threads: "):
        dl.set_num_threads(threads)
