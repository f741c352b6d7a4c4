"""Recycled tensors and descriptions: nothing of the former object shows."""

import ctypes
import gc
import itertools
import subprocess
import sys
import sysconfig
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from fakes import FakeTensor, ProducerWithoutKeywords, int_matrix
from fakes_interfaces import Exposing, double_matrix, interface_of
from interleaved_threads import run_in_threads

# More than the freelists keep.
MANY = 1_100

MAKE: dict[str, Callable[[Any], Any]] = {"describe": dl.describe, "from_dlpack": dl.from_dlpack}
both = pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)


class Probe:
    """Runs `asked` when it exports its array, and `gone` when it is freed."""

    def __init__(self, asked: Callable[[], object] = int, gone: Callable[[], object] = int) -> None:
        self.array = double_matrix()
        self.asked, self.gone = asked, gone

    def __dlpack__(self, **keywords: Any) -> Any:
        self.asked()
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        self.asked()
        return (1, 0)

    @property
    def dims(self) -> tuple[str, ...]:
        self.asked()
        return ("K", "J")

    def __del__(self) -> None:
        self.gone()


def at_every(count: int, action: Callable[[], object]) -> Callable[[], object]:
    """Run the action in every `count`-th call."""
    calls = itertools.count(1)
    return lambda: next(calls) % count == 0 and action()


def look_at_everything() -> None:
    """Inspect all objects, as a debugger does: objects under construction must not be among them."""
    for obj in gc.get_objects():
        if type(obj) in (dl.Descriptor, dl.Tensor):
            assert obj.ptr
            assert len(obj.shape) == obj.ndim
            assert weakref.ref(obj)() is obj
            repr(obj)


def states(obj: Any) -> tuple[Any, ...]:
    common = (obj.shape, obj.strides, obj.dtype, obj.dims, obj.origin, obj.halo, obj.layout, obj.readonly, obj.ptr)
    if isinstance(obj, dl.Tensor):
        return (*common, obj.alignment_size, obj.aligned_index)
    return (*common, obj.protocol, id(obj.owner))


def test_recycled_objects_keep_nothing() -> None:
    rich = dl.zeros((4, 5, 6), "float32", dims="KJI", halo=(1, 1, 0), origin=(2, 1, 0), backend="gtmc")
    readonly = rich.as_readonly()
    deep = np.zeros((1,) * 12, "int16")
    plain = np.arange(6, dtype="u2").reshape(2, 3)
    empty, scalar = np.zeros((0, 3)), np.array(1.5)
    arrays = [rich, readonly, deep, plain, empty, scalar, memoryview(b"abc")]
    for make in MAKE.values():
        alone = []
        for array in arrays:
            kept = [make(array) for _ in range(MANY)]
            alone.append(states(kept[-1]))
        for first, second in itertools.permutations(range(len(arrays)), 2):
            make(arrays[first])
            assert states(make(arrays[second])) == alone[second]


@both
def test_failed_imports_leave_nothing_in_recycled_objects(make: Callable[..., Any]) -> None:
    array = np.arange(6.0).reshape(2, 3)
    expected = states(make(array))
    failures: list[Callable[[], object]] = [
        lambda: make(array, dims="IJK"),
        lambda: make(dl.ones((2, 2), dims="KJ", halo=(1, 1)), dims="XX"),
        lambda: make(array, device="cuda:0"),
        lambda: make(np.zeros((1,) * 20), dims="I"),
        lambda: make(np.zeros(3, ">f8")),
        lambda: make(Exposing(__array_interface__=interface_of(array, shape=(1 << 60, 1 << 60)))),
        lambda: make(Probe(lambda: 1 / 0)),
    ]
    for fail in failures * 2:
        with pytest.raises((dl.Error, ZeroDivisionError)):
            fail()
        assert states(make(array)) == expected


@both
def test_weak_references_die_with_their_object(make: Callable[..., Any]) -> None:
    called = []
    for _ in range(3):
        objects = [make(np.arange(3.0)) for _ in range(MANY)]
        assert [weakref.getweakrefcount(obj) for obj in objects] == [0] * MANY
        references = [weakref.ref(obj) for obj in objects]
        with_callback = [weakref.ref(obj, lambda gone: called.append(gone())) for obj in objects]
        proxies = [weakref.proxy(obj) for obj in objects]
        del objects
        again = [make(np.arange(4.0)) for _ in range(MANY)]
        assert all(reference() is None for reference in (*references, *with_callback))
        for proxy in proxies:
            with pytest.raises(ReferenceError):
                _ = proxy.shape
        del again
    assert called == [None] * (3 * MANY)


@both
def test_the_callback_of_a_weak_reference_may_make_objects(make: Callable[..., Any]) -> None:
    made: list[Any] = []
    for _ in range(MANY):
        obj = make(np.arange(3.0))
        reference = weakref.ref(obj, lambda _gone: made.append(make(np.arange(5.0))))
        del obj
        assert reference() is None
    assert [found.shape for found in made] == [(5,)] * MANY
    assert len({id(found) for found in made}) == MANY


@both
def test_producers_run_any_code(make: Callable[..., Any]) -> None:
    def busy() -> None:
        look_at_everything()
        others = [make(np.arange(float(size))) for size in range(40)]
        assert [other.shape for other in others] == [(size,) for size in range(40)]
        make(Probe())
        gc.collect()

    def late() -> None:
        assert make(np.arange(2.0)).shape == (2,)

    for _ in range(2):
        obj = make(Probe(busy, late))
        assert (obj.shape, obj.dims) == ((2, 3), ("K", "J"))


@both
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, dl.DimsError, SystemExit])
def test_producers_raise(make: Callable[..., Any], error: type[BaseException]) -> None:
    def fail() -> None:
        look_at_everything()
        raise error("now")

    for count in range(1, 4):
        for _ in range(3):
            with suppress(error):
                make(Probe(at_every(count, fail)))
            assert make(np.arange(3.0)).shape == (3,)


def test_an_object_under_construction_is_not_tracked() -> None:
    """The garbage collector must neither see nor free it."""
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(4):
            kept = [make(Probe(look_at_everything)) for make in MAKE.values()]
            assert [obj.shape for obj in kept] == [(2, 3)] * 2
    finally:
        gc.set_threshold(*threshold)


@both
def test_a_deleter_does_not_report_a_pending_exception(make: Callable[..., Any], monkeypatch: Any) -> None:
    fake = FakeTensor(np.ones(3))

    def made() -> Iterator[Any]:
        yield make(fake.capsule())
        raise LookupError("later")

    unraisable: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    # The tuple and its items are freed while the exception propagates.
    with pytest.raises(LookupError, match="later"):
        tuple(made())
    assert fake.deleted == 1
    assert not unraisable


def test_cycles_are_collected() -> None:
    def cycle() -> list[weakref.ref[Any]]:
        producer: Any = Exposing(__array_interface__=interface_of(double_matrix()))
        producer.described = dl.describe(producer)
        return [weakref.ref(producer), weakref.ref(producer.described)]

    for _ in range(3):
        references = [reference for _ in range(MANY) for reference in cycle()]
        assert any(reference() is not None for reference in references)
        gc.collect()
        assert all(reference() is None for reference in references)
    assert gc.is_tracked(dl.describe(double_matrix()))


def test_objects_are_frozen_and_counted() -> None:
    """`gc.freeze`, `sys.getsizeof` and `tracemalloc` work, and the types' reference counts do not change."""
    # Garbage that was frozen, as conftest.py does for each module, would be collected in between.
    gc.unfreeze()
    gc.collect()
    counts = [sys.getrefcount(dl.Descriptor), sys.getrefcount(dl.Tensor)]
    sizes = {sys.getsizeof(make(np.arange(3.0))) for make in MAKE.values() for _ in range(3)}
    assert len(sizes) == 2
    tracemalloc.start()
    try:
        for _ in range(2):
            objects = [make(np.arange(3.0)) for _ in range(MANY) for make in MAKE.values()]
            gc.freeze()
            del objects[::2]
            gc.unfreeze()
            gc.collect()
            assert [obj.shape for obj in objects] == [(3,)] * MANY
            del objects
    finally:
        tracemalloc.stop()
        # Restore the state that conftest.py sets up for each module.
        gc.freeze()
    assert [sys.getrefcount(dl.Descriptor), sys.getrefcount(dl.Tensor)] == counts


def test_a_pending_exception_survives() -> None:
    """Objects are freed while an exception propagates, and what they own may run code."""

    def quarrel() -> None:
        with suppress(dl.NotAnArrayError):
            dl.describe(5)

    for make in MAKE.values():
        with pytest.raises(ZeroDivisionError):
            _ = [make(Probe(gone=quarrel)), 1 / 0]
    rename = ctypes.pythonapi.PyCapsule_SetName
    rename.argtypes = [ctypes.py_object, ctypes.c_char_p]

    def nameless() -> object:
        capsule = dl.zeros(3).__dlpack__(max_version=(1, 3))
        rename(capsule, None)
        return capsule

    with pytest.raises(ZeroDivisionError):
        _ = [nameless(), 1 / 0]


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python always has the GIL")
def test_the_gil_stays_off() -> None:
    """A free-threaded interpreter does not enable the GIL for this module."""
    program = "import sys, dlfield; sys.exit(sys._is_gil_enabled())"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_threads_share_the_freelists() -> None:
    """Threads switch in the middle of a call: when a producer runs, and when a copy releases the GIL."""

    def work(size: int) -> None:
        array, kept = np.arange(float(size)), []
        old = ProducerWithoutKeywords(array)
        for turn in range(400):
            owned = [dl.from_dlpack(array), dl.from_dlpack(array, copy=True)]
            found: list[Any] = [dl.describe(array), *owned, dl.describe(old)]
            assert [obj.shape for obj in found] == [(size,)] * 4
            assert (found[0].owner is array, found[3].owner is old) == (True, True)
            assert [obj.protocol for obj in found[::3]] == ["numpy", "dlpack"]
            kept.append(found)
            if turn % 30 == 0:
                assert all(obj.shape == (size,) for found in kept for obj in found)
                kept.clear()

    run_in_threads(work, range(1, 5))


@both
def test_a_refused_call_keeps_no_frames(make: Callable[..., Any]) -> None:
    """The exception of a producer that does not take the keywords would keep that producer's frames alive."""
    frames: list[weakref.ref[Any]] = []

    class Local:
        pass

    class Picky(ProducerWithoutKeywords):
        def __dlpack__(self, **keywords: Any) -> object:
            local = Local()
            frames.append(weakref.ref(local))
            if keywords:
                raise TypeError("no keywords")
            return super().__dlpack__()

    obj = make(Picky(int_matrix()))
    assert len(frames) == 2
    assert [frame() for frame in frames] == [None, None]
    assert obj.shape == (2, 3)
