"""Lifetimes around stencil calls: no call leaves references behind, whatever its outcome."""

import gc
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from calls import SIG, accessed, array, copying, numbers, view
from fakes import FakeTensor, Producer
from fakes_interfaces import Hooked, host
from leak_checks import Growth, grown


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dl.LayoutWarning)
        yield


def test_an_object_may_hold_its_own_bound() -> None:
    def cycles() -> Iterator[weakref.ref[Any]]:
        plain = host(array())
        vars(plain)["bound"] = SIG.bind(a=plain, b=array())
        yield weakref.ref(plain)
        # Not in the interface that gives the memory: its owner is opaque to the garbage collector.
        producer = Producer(FakeTensor(array()))
        hooks = {key: lambda: producer for key in ("acquire", "touch", "release")}
        vars(producer)["__gt_data_interface__"] = {None: hooks}
        vars(producer)["bound"] = SIG.bind(a=array(), b=producer)
        producer.bound.__enter__()  # type: ignore[attr-defined]
        yield weakref.ref(producer)

    for _ in range(3):
        references = list(cycles())
        gc.collect()
        assert [reference() for reference in references] == [None] * 2
    assert gc.is_tracked(SIG.bind(a=array(), b=array()))


def test_an_object_may_hold_a_bound_that_copies_it() -> None:
    def cycle() -> weakref.ref[Any]:
        foreign = host(numbers("float32"))
        vars(foreign)["bound"] = copying(x=accessed("w")).bind(x=foreign)
        foreign.bound.__enter__()
        return weakref.ref(foreign)

    for _ in range(3):
        reference = cycle()
        gc.collect()
        assert reference() is None


def test_entering_keeps_the_bound_object_alive() -> None:
    """The bound object survives `__enter__` although its own hook drops the last reference to it."""
    holder: list[Any] = []
    gone: list[weakref.ref[Any]] = []

    def acquire() -> None:
        holder.clear()

    hooked = Hooked(array(), [], acquire=acquire)
    gone.append(weakref.ref(hooked))
    holder.append(SIG.bind(a=hooked, b=array()))
    del hooked
    fields = holder[0].__enter__()
    assert fields.a.shape == (3, 4)
    fields.__exit__(None, None, None)
    del fields
    gc.collect()
    assert gone[0]() is None


def test_arguments_go_with_the_bound() -> None:
    a, b = array(), Hooked(array(), [])
    counts = [sys.getrefcount(a), sys.getrefcount(b), sys.getrefcount(SIG)]
    bound = SIG.bind(a=a, b=b)
    assert sys.getrefcount(a) > counts[0]
    with bound:
        pass
    del bound
    assert [sys.getrefcount(a), sys.getrefcount(b), sys.getrefcount(SIG)] == counts


def test_many_bound_at_once_and_again() -> None:
    """More bound objects than the freelist keeps."""
    references = []
    for _ in range(3):
        many = [SIG.bind(a=np.zeros((n, 4)), b=np.zeros((n, 4))) for n in range(100)]
        assert [bound.domain for bound in many] == [(n, 4) for n in range(100)]
        for bound in many[::2]:
            bound.__enter__()
        del many, bound
        gc.collect()
        references.append(sys.getrefcount(dl.Bound))
    assert references == references[:1] * 3
    # A recycled one is entered like a new one.
    with SIG.bind(a=array(), b=array()) as fields:
        assert fields.domain == (3, 4)


def uses() -> Iterator[tuple[str, Callable[[], object]]]:
    a, b = array(), array()
    log: list[str] = []

    def quiet(name: str, **changes: Any) -> Hooked:
        nothing = {key: (lambda: None) for key in ("acquire", "touch", "release")}
        return Hooked(array(), log, name, **{**nothing, **changes})

    hooked = quiet("a")
    failures = {key: quiet("b", **{key: lambda: 1 / 0}) for key in ("acquire", "touch", "release")}
    failures["touch and release"] = quiet("b", touch=lambda: 1 / 0, release=lambda: 1 / 0)

    def entered(**fields: Any) -> None:
        with SIG.bind(**fields):
            pass

    def raising() -> None:
        with SIG.bind(a=a, b=hooked):
            raise ValueError

    yield "bind", lambda: SIG.bind(a=a, b=b)
    yield "bind hooks", lambda: SIG.bind(a=a, b=hooked)
    yield "enter", lambda: entered(a=a, b=b)
    yield "enter hooks", lambda: entered(a=a, b=hooked, c=quiet("c"))
    yield "body raises", raising
    yield "not there", lambda: SIG.bind(a=a)
    yield "unknown", lambda: SIG.bind(a=a, b=b, d=a)
    yield "wrong dims", lambda: SIG.bind(a=a, b=np.zeros(3))
    yield "wrong dtype", lambda: SIG.bind(a=np.zeros((3, 4), "f4"), b=hooked)
    yield "overlap", lambda: SIG.bind(a=a, b=a)
    yield "attributes", lambda: (SIG.bind(a=a, b=b).a, SIG.bind(a=a, b=b)["b"], SIG.bind(a=a, b=b).domain)
    yield "no attribute", lambda: getattr(SIG.bind(a=a, b=b), "d", None)
    yield "repr", lambda: repr(SIG.bind(a=a, b=b))
    for key, failure in failures.items():
        yield f"{key} fails", lambda failure=failure: entered(a=hooked, b=failure)  # type: ignore[misc]


def uses_of_copies() -> Iterator[tuple[str, Callable[[], object]]]:
    array, hooked = numbers("float32"), Hooked(numbers("float32"), [], acquire=None, touch=None, release=lambda: None)
    failing = Hooked(numbers("float32"), [], acquire=lambda: 1 / 0)
    sig = copying(x=accessed("rw", alignment_size=64))

    def entered(x: Any) -> None:
        with sig.bind(x=x) as fields:
            view(fields.x)[...] += 1

    def raising() -> None:
        with sig.bind(x=array):
            raise ValueError

    def refused() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            copying(x=accessed()).bind(x=array)

    yield "bind", lambda: sig.bind(x=array)
    yield "enter", lambda: entered(array)
    yield "enter hooks", lambda: entered(hooked)
    yield "body raises", raising
    yield "acquire raises", lambda: entered(failing)
    yield "not entered", lambda: sig.bind(x=array).x
    yield "a warning that is an error", refused
    yield "no such cast", lambda: sig.bind(x=numbers("complex64"))


def all_uses() -> dict[str, Callable[[], object]]:
    """All uses without their exceptions, for `leak_checks`."""
    warnings.simplefilter("ignore", dl.LayoutWarning)
    errors = (TypeError, ValueError, RuntimeError, ZeroDivisionError, ExceptionGroup, dl.LayoutWarning)

    def suppressed(use: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            with suppress(*errors):
                use()

        return run

    return {name: suppressed(use) for name, use in USES.items()}


USES = {**dict(uses()), **{f"copies: {name}": use for name, use in uses_of_copies()}}
ROUNDS = 300


@cache
def growth() -> dict[str, Growth]:
    return grown("test_bind_lifetime", "all_uses", ROUNDS)


@pytest.mark.parametrize("name", USES)
def test_nothing_leaks(name: str) -> None:
    found = growth()[name]
    found.assert_none_in(ROUNDS)
