"""Lifetimes of memory: drop counters for each owner, and threads."""

import gc
import sys
import sysconfig
import threading
import weakref

import numpy as np
import pytest

import chains
import dlfield as dl
from dlpack_structs import release, take
from fakes import FakeTensor, Producer, int_matrix
from leak_checks import Growth


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


def test_exports_are_released_by_other_threads() -> None:
    """A deleter that is called without the GIL still releases a Python owner with it."""
    fakes = [FakeTensor(int_matrix()) for _ in range(20)]
    array = np.ones(1000)
    alive = weakref.ref(array)
    exports = [take(dl.from_dlpack(owner).__dlpack__(max_version=(1, 3))) for owner in (*map(Producer, fakes), array)]
    del array
    assert alive() is not None
    for managed in exports:
        thread = threading.Thread(target=release, args=(managed,))
        thread.start()
        thread.join()
    assert [fake.deleted for fake in fakes] == [1] * len(fakes)
    assert alive() is None


@pytest.mark.parametrize("framework", ["torch", "jax.numpy", "tvm_ffi"])
def test_a_framework_releases_what_it_took_once(framework: str) -> None:
    """After a round trip through the framework, the last user releases the producer's memory exactly once."""
    module = pytest.importorskip(framework)
    for use in (dl.from_dlpack, dl.describe, lambda array: (dl.from_dlpack(array), dl.describe(array))):
        # Aligned, and of a dtype that JAX has, so that JAX does not copy.
        fake = FakeTensor(dl.ones((4, 4), "float32").to_numpy())
        theirs = module.from_dlpack(dl.from_dlpack(Producer(fake)))
        ours = use(theirs)
        del theirs
        assert fake.deleted == 0
        del ours
        gc.collect()
        assert fake.deleted == 1


def test_tensors_leak_no_references() -> None:
    shape, dims, dtype = (3, 4), ("Cell", "Level"), np.dtype("f4")
    # Without the GIL each thread counts its references to a class by itself.
    counted = (shape, dims, dtype, *([] if sysconfig.get_config_var("Py_GIL_DISABLED") else [dl.Tensor]))
    before = [sys.getrefcount(value) for value in counted]
    for _ in range(100):
        field = dl.zeros(shape, dtype, dims=dims)
        assert (field.shape, field.dims, field.dtype) == (shape, dims, dtype)
    del field
    after = [sys.getrefcount(value) for value in counted]
    assert after == before


@pytest.mark.parametrize("name", chains.SHARING)
def test_a_field_that_comes_back_shares_the_owner_behind_it(name: str) -> None:
    """Else each field would own the one before: a chain, whose links all cost memory, and time to look behind."""
    Growth(*chains.results()["growth"][name]).assert_none_in(chains.ROUNDS)


@pytest.mark.parametrize("name", chains.KEEPING)
def test_long_chains_of_owners_are_released(name: str) -> None:
    """Each field owns an object that owns the field before; the release of the last one must not overflow the stack."""
    assert chains.results()["sums"][name] == 16.0


@pytest.mark.parametrize("name", ["numpy.asarray", "a view of numpy.asarray", "memoryview"])
def test_a_reimported_view_owns_the_memory_directly(name: str) -> None:
    """The re-imported view owns the memory directly, so the tensor that made the view may be freed."""

    field = dl.ones((3, 4))
    memory = memoryview(field)
    array = np.asarray(field)
    via = {"numpy.asarray": array, "a view of numpy.asarray": array[1:, ::2], "memoryview": memory}[name]
    back = dl.from_dlpack(via)
    gone = weakref.ref(field)
    expected = (back.ptr, back.shape, back.strides)
    del field, memory, array, via
    gc.collect()
    assert gone() is None
    assert (back.ptr, back.shape, back.strides) == expected
    assert (np.asarray(back) == 1.0).all()
