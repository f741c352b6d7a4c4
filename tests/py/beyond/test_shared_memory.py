"""`t.share()` and `dl.attach(name)`: one memory in several processes."""

import gc
import mmap
import multiprocessing
import os
import pickle
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlfield as dl
import oracle
import shared_fields
from catalog import CODES, CPU_PRESETS, dtype_named
from childproc import run_python
from shared_fields import KEPT, check_killed_processes, check_pools, ended, made, no_files_left_open, same, sent

if not hasattr(os, "memfd_create"):
    pytest.skip("shared memory for tensors needs Linux", allow_module_level=True)


@pytest.fixture(autouse=True)
def no_residue() -> Iterator[None]:
    """No test may leave a file open, nor any in `/dev/shm`, where other programs have theirs."""
    with no_files_left_open("dlfield"):
        yield
    assert not [path for path in Path("/dev/shm").iterdir() if "dlfield" in path.name]


def labelled(preset: str = "numpy") -> dl.Tensor:
    return shared_fields.labelled(preset, "cpu", alignment_size=128)


@pytest.mark.parametrize("preset", CPU_PRESETS)
def test_a_shared_copy_keeps_everything(preset: str) -> None:
    field = labelled(preset)
    shared = field.share()
    assert [getattr(shared, name) for name in KEPT] == [getattr(field, name) for name in KEPT]
    assert shared.to_numpy().tolist() == field.to_numpy().tolist()
    assert oracle.aligned_address(shared) % 128 == 0
    assert shared.block.shape == field.block.shape
    shared[...] = 0
    assert field[2, 3, 4] == 59
    assert shared.share() is shared
    part = shared[1:]
    assert part.share() is part


def test_other_processes_attach_it_by_name() -> None:
    shared = labelled("gtmc").share()
    output = run_python(f"""
        import dlfield as dl
        field = dl.attach({dl.shared_name(shared)!r})
        print([getattr(field, name) for name in {KEPT!r}])
        print(field.to_numpy().ravel().tolist())
        field[2, 3, 4] = -1.0
        readonly = dl.attach({dl.shared_name(shared)!r}, readonly=True)
        print(readonly.readonly, readonly.ptr == field.ptr)
    """).splitlines()
    assert output[0] == str([getattr(shared, name) for name in KEPT])
    assert output[1] == str([float(number) for number in range(60)])
    assert output[2] == "True True"
    assert shared[2, 3, 4] == -1.0


def test_memory_mapped_for_reading_cannot_be_written() -> None:
    shared = labelled().share()
    output = run_python(f"""
        import dlfield as dl, numpy as np, os
        name = {dl.shared_name(shared)!r}
        field = dl.attach(name, readonly=True)
        print(field.readonly, np.asarray(field).flags.writeable, field.block.readonly)
        writable = dl.attach(name)
        print(writable.readonly, writable.ptr != field.ptr)
        writable[0, 0, 0] = 7.0
        print(float(field[0, 0, 0]))
        twin = dl.attach(name, readonly=True)
        print(twin.readonly)
    """)
    assert output.splitlines() == ["True False True", "False True", "7.0", "True"]


@pytest.mark.parametrize("name", CODES)
def test_every_dtype(name: str) -> None:
    field = dl.zeros((3, 5), dtype_named(name), layout=(1, 0))
    raw = np.random.default_rng(0).integers(0, 2 if name == "bool" else 256, 15 * field.itemsize, dtype="u1")
    field.to_numpy().T[...] = raw.view(field.dtype).reshape(5, 3)
    assert field.share().to_numpy().tobytes("F") == raw.tobytes()


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1), (4, 4)])
def test_attached_again_it_is_one_memory(shape: tuple[int, ...]) -> None:
    shared = dl.full(shape, 2.5, backend="gtmc").share()
    twin = dl.attach(dl.shared_name(shared))
    assert (twin.ptr, dl.shared_name(twin)) == (shared.ptr, dl.shared_name(shared))
    assert (twin.shape, twin.to_numpy().tolist()) == (shape, np.full(shape, 2.5).tolist())


def test_views_of_any_source_become_fields_of_their_own() -> None:
    field = labelled()
    broadcast = dl.from_dlpack(np.broadcast_to(np.arange(3.0), (2, 3)))
    for view in (field[1:, ::-2], field.T, broadcast, field.as_readonly()):
        shared = view.share()
        assert shared.to_numpy().tolist() == view.to_numpy().tolist()
        assert not shared.readonly


def test_the_name_goes_with_the_last_tensor_or_array() -> None:
    shared = dl.ones((4, 4)).share()
    name = dl.shared_name(shared)
    array = np.asarray(shared[1:])
    del shared
    gc.collect()
    assert dl.attach(name).shape == (4, 4)
    del array
    gc.collect()
    with pytest.raises(dl.ExchangeError, match="no process has the memory"):
        dl.attach(name)


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*fork.*:RuntimeWarning")
def test_pools_get_the_memory_and_views_of_it(method: str) -> None:
    check_pools(method, ("Pool", "Executor"), labelled("gt:cpu_ifirst").share(), lambda: labelled("gtmc"))


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*fork.*:RuntimeWarning")
def test_what_is_sent_and_dropped_lives_until_it_is_fetched(method: str) -> None:
    """As the result or the argument of a task, through a queue, returned, and after the sender's end."""
    context: Any = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        assert [float(field.sum()) for field in pool.map(made, range(100))] == [4.0 * n for n in range(100)]
        back = [pool.submit(same, made(number)) for number in range(10)]
        assert [float(task.result().sum()) for task in back] == [4.0 * n for n in range(10)]
    with context.Pool(1, maxtasksperchild=1) as workers:
        assert [float(field.sum()) for field in workers.imap(made, range(4))] == [0.0, 4.0, 8.0, 12.0]
        # Dropped here before it comes back.
        tasks = [workers.apply_async(same, (made(number),)) for number in range(2)]
        assert [float(task.get(60).sum()) for task in tasks] == [0.0, 4.0]
    queue = context.Queue()
    process = context.Process(target=sent, args=(queue, 3))
    process.start()
    assert float(queue.get(timeout=60).sum()) == 12.0
    process.join()
    sent(queue, 4)
    assert float(queue.get(timeout=60).sum()) == 16.0


def test_fields_laid_into_shared_memory_are_copied_unless_they_have_all_of_it() -> None:
    shared = dl.zeros(100).share()
    whole, first, later = (
        dl.zeros(size, buffer=memory)
        for size, memory in ((100, shared.block), (4, shared.block), (4, memoryview(shared)[8:]))
    )
    for number, field in enumerate((whole, first, later), 1):
        field[...] = number
        came = pickle.loads(multiprocessing.reduction.ForkingPickler.dumps(field))
        assert came.tolist() == field.tolist()
        assert (came.ptr == field.ptr) == (field is whole)
    assert dl.shared_name(whole) == dl.shared_name(shared)
    with pytest.raises(dl.ExchangeError, match="its memory is not shared"):
        dl.shared_name(first)


def test_ordinary_pickles_of_shared_tensors_are_copies() -> None:
    shared = labelled().share()
    twin = pickle.loads(pickle.dumps(shared[1:]))
    shared[...] = 0
    assert float(twin.to_numpy().sum()) == float(np.arange(20, 60).sum())
    # A view that came by name takes no more than itself into a pickle.
    whole = dl.full((4, 8), 1.0).share()
    whole[:, 7] = 12345.0
    sent = multiprocessing.reduction.ForkingPickler.dumps(whole[:, :7])
    came = pickle.loads(sent)
    assert came.ptr == whole.ptr
    assert np.float64(12345.0).tobytes() not in pickle.dumps(came, 5)


def test_killed_processes_leave_nothing_and_no_warning() -> None:
    ended(check_killed_processes("cpu"))


def test_the_end_of_a_fork_leaves_the_memory_to_its_parent() -> None:
    output = run_python("""
        import os, dlfield as dl
        field = dl.ones(4).share()
        name = dl.shared_name(field)
        child = os.fork()
        if child == 0:
            field[0] = 5.0
            del field
            raise SystemExit
        os.waitpid(child, 0)
        print(float(dl.attach(name)[0]))
    """)
    assert output.strip() == "5.0"


def test_the_size_of_shared_memory_cannot_change() -> None:
    shared = dl.ones(3).share()
    file = int(dl.shared_name(shared).split("-")[2])
    for size in (0, 2**20):
        with pytest.raises(PermissionError):
            os.ftruncate(file, size)


def test_what_cannot_be_shared() -> None:
    with pytest.raises(dl.LayoutError, match=rf"^alignment_size: 192; .*{mmap.PAGESIZE}"):
        dl.zeros((4, 5), alignment_size=192).share()
    assert dl.zeros((4, 5), alignment_size=4096).share().ptr % 4096 == 0


def test_many_segments_leave_no_open_files() -> None:
    for _ in range(2000):
        shared = dl.ones(10).share()
        assert dl.attach(dl.shared_name(shared)).ptr == shared.ptr
