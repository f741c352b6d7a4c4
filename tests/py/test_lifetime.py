"""Who keeps memory and how long: drop counters for each owner, RSS over many rounds, threads, the interpreter's end."""

import copy
import ctypes
import gc
import pickle
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from childproc import run_python
from dlpack_structs import release, take
from fakes import FakeTensor, Producer, int_matrix
from heap import malloc_bytes, python_blocks, resident_bytes

BLOCK = 1 << 20
ROUNDS = 150
# A leak of every block would be ROUNDS * BLOCK, 150 MiB; allocators and imports may keep a little.
ALLOWED = 40 * BLOCK


def block() -> dl.Tensor:
    """A tensor of one MiB whose pages are really there."""
    return dl.ones((BLOCK // 8,))


def consumed(max_version: tuple[int, int] | None) -> Callable[[dl.Tensor], object]:
    return lambda field: release(take(field.__dlpack__(max_version=max_version)))


def failed_setitem(field: dl.Tensor) -> None:
    with suppress(ValueError):  # pytest.raises would leave cycles behind for the garbage collector
        field[...] = np.zeros(7)


def failed_export(field: dl.Tensor) -> None:
    with suppress(BufferError):
        field.__dlpack__(max_version=(1, 3), dl_device=(2, 0), copy=True)


USES: dict[str, Callable[[dl.Tensor], object]] = {
    "nothing": lambda _field: None,
    "legacy capsule never consumed": lambda field: field.__dlpack__(),
    "versioned capsule never consumed": lambda field: field.__dlpack__(max_version=(1, 3)),
    "copied capsule never consumed": lambda field: field.__dlpack__(max_version=(1, 3), copy=True),
    "legacy capsule consumed": consumed(None),
    "versioned capsule consumed": consumed((1, 3)),
    "export refused": failed_export,
    "np.from_dlpack": np.from_dlpack,
    "np.from_dlpack copied": lambda field: np.from_dlpack(field, copy=True),
    "np.asarray": np.asarray,
    "np.array": np.array,
    "to_numpy": dl.Tensor.to_numpy,
    "memoryview": memoryview,
    "__array_interface__": lambda field: field.__array_interface__,
    "__gt_data_interface__": lambda field: field.__gt_data_interface__,
    "describe": dl.describe,
    "from_dlpack": dl.from_dlpack,
    "from_dlpack copied": lambda field: dl.from_dlpack(field, copy=True),
    "views": lambda field: (field[1:], field[::2].T, field.domain_view, field.as_readonly()),
    "copies": lambda field: (field.copy(), copy.copy(field), copy.deepcopy(field)),
    "like": lambda field: (dl.empty_like(field), dl.from_array(field)),
    "pickle": lambda field: pickle.loads(pickle.dumps(field)),
    "pickle out of band": lambda field: pickle.dumps(field, 5, buffer_callback=lambda _buffer: True),
    "setitem": lambda field: field.__setitem__(..., 2),
    "setitem refused": failed_setitem,
    "repr": lambda field: (repr(field), field._repr_html_()),
}


def growth(action: Callable[[], object], measure: Callable[[], int] = resident_bytes, rounds: int = ROUNDS) -> int:
    """How much more of what `measure` counts there is after `rounds` of `action`, warmed up."""
    for _ in range(5):
        action()
    before = measure()
    for _ in range(rounds):
        action()
    return measure() - before


@pytest.mark.parametrize("name", USES)
def test_no_use_of_a_tensor_leaks_it(name: str) -> None:
    assert growth(lambda: USES[name](block())) < ALLOWED


@pytest.mark.parametrize("name", USES)
def test_no_use_of_a_tensor_leaks_a_little_at_a_time(name: str) -> None:
    """Structs, shapes and labels are small: nothing of the size of a pointer is left per use."""
    field, rounds = dl.ones((4,)), 1000
    # What leaks does so each time; threads that frameworks have in the background allocate now and then.
    times = range(3)
    assert min(growth(lambda: USES[name](field), malloc_bytes, rounds) for _ in times) < 8 * rounds
    assert min(growth(lambda: USES[name](field), python_blocks, rounds) for _ in times) < rounds // 2


@pytest.mark.parametrize("framework", ["torch", "jax.numpy", "tvm_ffi"])
def test_no_framework_leaks_a_tensor(framework: str) -> None:
    module = pytest.importorskip(framework)
    assert growth(lambda: module.from_dlpack(block())) < ALLOWED
    assert growth(lambda: dl.from_dlpack(module.from_dlpack(block()))) < ALLOWED


def test_frameworks_tensors_are_let_go(torch: Any) -> None:
    assert growth(lambda: dl.from_dlpack(torch.ones(BLOCK // 4))) < ALLOWED
    assert growth(lambda: dl.describe(torch.ones(BLOCK // 4))) < ALLOWED


def test_failed_allocations_leak_nothing() -> None:
    def attempt() -> None:
        with pytest.raises(MemoryError):
            dl.zeros((1 << 45,), dims=("a long label of this dimension",))
        with pytest.raises(dl.LayoutError):
            dl.full((BLOCK // 8,), 1, layout=(1,))
        with pytest.raises((TypeError, ValueError)):
            dl.full((BLOCK // 8,), "nonsense")

    assert growth(attempt) < ALLOWED


def test_large_zeros_take_no_memory_until_they_are_written() -> None:
    before = resident_bytes()
    field = dl.zeros((256 * BLOCK,), "u1")
    assert resident_bytes() - before < 4 * BLOCK
    assert field.ptr % (2 * BLOCK) == 0, "on a boundary of huge pages"
    field[...] = 1
    assert resident_bytes() - before > 255 * BLOCK


def test_large_blocks_are_given_back() -> None:
    """Blocks mapped on their own go back to the system at once."""

    def use() -> None:
        dl.ones((8 * BLOCK,), "u1")

    for _ in range(3):
        use()
    before = resident_bytes()
    use()
    assert resident_bytes() - before < 4 * BLOCK


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_imported_memory_is_released_once_after_its_last_user(version: tuple[int, int] | None) -> None:
    fake = FakeTensor(int_matrix(), version=version)
    field = dl.from_dlpack(Producer(fake))
    users = [field[1:], field.T, np.asarray(field), memoryview(field), field.__array__(), field.as_readonly()]
    users.append(field.copy())
    del field
    while users:
        assert fake.deleted == (1 if len(users) == 1 else 0)
        users.pop(0)
    assert fake.deleted == 1


def test_reexported_imports_keep_their_producer() -> None:
    fake = FakeTensor(int_matrix())
    managed = take(dl.from_dlpack(Producer(fake)).__dlpack__(max_version=(1, 3)))
    assert fake.deleted == 0
    release(managed)
    assert fake.deleted == 1


def test_numpy_owner_is_let_go_by_a_consumer_on_another_thread() -> None:
    """A Python owner is released with the GIL, also by a deleter that is called without it."""
    array = np.ones(1000)
    alive = weakref.ref(array)
    managed = take(dl.from_dlpack(array).__dlpack__(max_version=(1, 3)))
    del array
    assert alive() is not None
    thread = threading.Thread(target=release, args=(managed,))
    thread.start()
    thread.join()
    assert alive() is None


def test_many_threads_delete() -> None:
    barrier = threading.Barrier(8)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            barrier.wait(timeout=60)
            for _ in range(200):
                field = dl.full((256,), 3.0)
                array = np.from_dlpack(field[::2])
                managed = take(field.__dlpack__(max_version=(1, 3)))
                del field
                assert array.sum() == 384
                release(managed)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_exports_freed_by_other_threads_do_not_pile_up() -> None:
    def round_trip() -> None:
        managed = take(block().__dlpack__(max_version=(1, 3)))
        thread = threading.Thread(target=release, args=(managed,))
        thread.start()
        thread.join()

    assert growth(round_trip) < ALLOWED


def test_tensor_takes_no_references_it_does_not_give_back() -> None:
    shape, dims, dtype = (3, 4), ("Cell", "Level"), np.dtype("f4")
    before = [sys.getrefcount(value) for value in (shape, dims, dtype, dl.Tensor)]
    for _ in range(100):
        field = dl.zeros(shape, dtype, dims=dims)
        assert (field.shape, field.dims, field.dtype) == (shape, dims, dtype)
    del field
    after = [sys.getrefcount(value) for value in (shape, dims, dtype, dl.Tensor)]
    assert all(now - then < 10 for now, then in zip(after, before, strict=True))


ENDINGS = {
    "tensors alive": "kept = [dl.ones((1000,)) for _ in range(10)]",
    "capsules alive": "kept = [dl.ones(9).__dlpack__(), dl.ones(9).__dlpack__(max_version=(1, 3))]",
    "exports of imports": "kept = [dl.from_dlpack(np.ones(9)).__dlpack__(max_version=(1, 3))]",
    "arrays on our memory": "kept = [np.from_dlpack(dl.ones(9)), np.asarray(dl.ones(9)), memoryview(dl.ones(9))]",
    "a cycle": "kept = [dl.ones(9)]; kept.append(kept)",
    "a tensor in sys": "sys.kept = dl.ones(9), dl.ones(9).__dlpack__()",
    "a tensor in atexit": "import atexit; atexit.register(lambda field: field[...], dl.ones(9))",
    "a thread at work": """
def work():
    while True:
        np.from_dlpack(dl.ones(9))

threading.Thread(target=work, daemon=True).start()
""",
}


@pytest.mark.parametrize("name", ENDINGS)
def test_interpreter_ends_well_with(name: str) -> None:
    prelude = "import sys, threading\nimport numpy as np\nimport dlfield as dl\n"
    assert run_python(prelude + ENDINGS[name] + "\nprint('end')") == "end\n"


@pytest.mark.parametrize("framework", ["torch", "jax.numpy"])
def test_interpreter_ends_well_with_frameworks_on_our_memory(framework: str) -> None:
    pytest.importorskip(framework)
    output = run_python(f"""
        import {framework} as framework
        import dlfield as dl
        kept = [framework.from_dlpack(dl.ones(9, "f4")), dl.from_dlpack(framework.ones(9))]
        print("end")
    """)
    assert output == "end\n"


@pytest.mark.parametrize("owner", ["dl.ones((1000,))", "dl.from_dlpack(np.ones(1000))"])
def test_deleter_may_run_after_the_interpreter_has_ended(owner: str) -> None:
    """A C consumer may hold a tensor longer than Python lives: here, until an exit handler of the C library."""
    output = run_python(f"""
        import ctypes
        import sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import numpy as np
        import dlfield as dl
        from dlpack_structs import take

        managed = take({owner}.__dlpack__(max_version=(1, 3)))
        at_exit = ctypes.CDLL(None).__cxa_atexit
        at_exit.argtypes = [ctypes.c_void_p] * 3
        assert at_exit(managed.deleter, ctypes.addressof(managed), None) == 0
        print("end")
    """)
    assert output == "end\n"


def test_struct_is_freed_with_its_shape() -> None:
    """Addresses of structs come back once their deleters have run: nothing holds on to them."""
    seen = set()
    field = dl.ones((3, 4))
    for _ in range(200):
        managed = take(field.__dlpack__(max_version=(1, 3)))
        seen.add(ctypes.addressof(managed))
        release(managed)
    assert len(seen) < 100


def test_an_object_may_hold_its_own_description(torch: Any) -> None:
    """The pattern of a wrapper that describes each array once; the cycle is the collector's to break."""
    tensor = torch.zeros(3)
    tensor.described = dl.describe(tensor)
    gone = weakref.ref(tensor)
    del tensor
    gc.collect()
    assert gone() is None


BACK: dict[str, str] = {
    "numpy.asarray": "dl.from_dlpack(np.asarray(field))",
    "a view of numpy.asarray": "dl.from_dlpack(np.asarray(field)[:])",
    "numpy.from_dlpack": "dl.from_dlpack(np.from_dlpack(field))",
    "memoryview": "dl.from_dlpack(memoryview(field))",
    "capsule": "dl.from_dlpack(field.__dlpack__(max_version=(1, 3)))",
    "description": "dl.from_dlpack(dl.describe(memoryview(field)))",
}


@pytest.mark.parametrize("name", BACK)
def test_fields_go_there_and_back_without_end(name: str) -> None:
    """Whatever each field keeps of the one before, letting the last one go takes no more stack than there is."""
    output = run_python(f"""
        import numpy as np
        import dlfield as dl

        field = dl.ones(4)
        for _ in range(100_000):
            field = {BACK[name]}
        assert float(np.asarray(field).sum()) == 4.0
        del field
        print("end")
    """)
    assert output == "end\n"


@pytest.mark.parametrize("name", ["numpy.asarray", "a view of numpy.asarray", "memoryview"])
def test_views_of_a_tensor_bring_its_own_memory_back(name: str) -> None:
    """Nothing piles up on the way: what made the view may go."""

    field = dl.ones((3, 4))
    memory = memoryview(field)
    array = np.asarray(field)
    via = {"numpy.asarray": array, "a view of numpy.asarray": array[1:, ::2], "memoryview": memory}[name]
    back = dl.from_dlpack(via)
    gone = weakref.ref(field)
    wanted = (back.ptr, back.shape, back.strides)
    del field, memory, array, via
    gc.collect()
    assert gone() is None
    assert (back.ptr, back.shape, back.strides) == wanted
    assert (np.asarray(back) == 1.0).all()
