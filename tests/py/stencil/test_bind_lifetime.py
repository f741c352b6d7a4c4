"""Lifetimes around stencil calls: no call leaves references behind."""

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

pytestmark = pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")


def holding_its_bound() -> Any:
    plain = host(array())
    vars(plain)["bound"] = SIG.bind(a=plain, b=array())
    return plain


def holding_its_hooks() -> Any:
    """Not in the interface that gives the memory: its owner is opaque to the garbage collector."""
    producer: Any = Producer(FakeTensor(array()))
    hooks = {key: lambda: producer for key in ("acquire", "touch", "release")}
    producer.__gt_data_interface__ = {None: hooks}
    producer.bound = SIG.bind(a=array(), b=producer).__enter__()
    return producer


def holding_its_copy() -> Any:
    array = host(numbers("float32"))
    vars(array)["bound"] = copying(x=accessed("w")).bind(x=array).__enter__()
    return array


@pytest.mark.parametrize("make", [holding_its_bound, holding_its_hooks, holding_its_copy])
def test_an_object_may_hold_its_own_bound(make: Callable[[], Any]) -> None:
    for _ in range(3):
        reference = weakref.ref(make())
        gc.collect()
        assert reference() is None
    assert gc.is_tracked(SIG.bind(a=array(), b=array()))


def test_entering_keeps_the_bound_object_alive() -> None:
    """The bound object survives `__enter__` although its own hook drops the last reference to it."""
    holder: list[Any] = []
    hooked = Hooked(array(), [], acquire=holder.clear)
    gone = weakref.ref(hooked)
    holder.append(SIG.bind(a=hooked, b=array()))
    del hooked
    fields = holder[0].__enter__()
    assert fields.a.shape == (3, 4)
    fields.__exit__(None, None, None)
    del fields
    gc.collect()
    assert gone() is None


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
        references.append(sys.getrefcount(dl.BoundCall))
    assert references == references[:1] * 3
    # A recycled one is entered like a new one.
    with SIG.bind(a=array(), b=array()) as fields:
        assert fields.domain == (3, 4)


def entered(sig: dl.Signature, **fields: Any) -> None:
    with sig.bind(**fields):
        pass


def raising(sig: dl.Signature, **fields: Any) -> None:
    with sig.bind(**fields):
        raise ValueError


def written(sig: dl.Signature, x: Any) -> None:
    with sig.bind(x=x) as fields:
        view(fields.x)[...] += 1


def refused(x: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        copying(x=accessed()).bind(x=x)


def uses() -> Iterator[tuple[str, Callable[[], object]]]:
    a, b = array(), array()

    def hooked(*failing: str) -> Hooked:
        hooks: dict[str, Any] = dict.fromkeys(("acquire", "touch", "release"), lambda: None)
        return Hooked(array(), [], **{**hooks, **dict.fromkeys(failing, lambda: 1 / 0)})

    quiet = hooked()
    yield "bind", lambda: SIG.bind(a=a, b=b)
    yield "bind hooks", lambda: SIG.bind(a=a, b=quiet)
    yield "enter", lambda: entered(SIG, a=a, b=b)
    yield "enter hooks", lambda: entered(SIG, a=a, b=quiet, c=hooked())
    yield "body raises", lambda: raising(SIG, a=a, b=quiet)
    yield "not there", lambda: SIG.bind(a=a)
    yield "unknown", lambda: SIG.bind(a=a, b=b, d=a)
    yield "wrong dims", lambda: SIG.bind(a=a, b=np.zeros(3))
    yield "wrong dtype", lambda: SIG.bind(a=np.zeros((3, 4), "f4"), b=quiet)
    yield "overlap", lambda: SIG.bind(a=a, b=a)
    yield "attributes", lambda: (SIG.bind(a=a, b=b).a, SIG.bind(a=a, b=b)["b"], SIG.bind(a=a, b=b).domain)
    yield "no attribute", lambda: getattr(SIG.bind(a=a, b=b), "d", None)
    yield "repr", lambda: repr(SIG.bind(a=a, b=b))
    for failing in (["acquire"], ["touch"], ["release"], ["touch", "release"]):
        b_failing = hooked(*failing)
        yield f"{failing} fails", lambda b=b_failing: entered(SIG, a=quiet, b=b)  # type: ignore[misc]
    narrow, sig = numbers("float32"), copying(x=accessed("rw", alignment_size=64))
    narrow_hooked = Hooked(narrow, [], acquire=None, touch=None, release=lambda: None)
    acquire_raises = Hooked(narrow, [], acquire=lambda: 1 / 0)
    yield "copies: bind", lambda: sig.bind(x=narrow)
    yield "copies: enter", lambda: written(sig, narrow)
    yield "copies: enter hooks", lambda: written(sig, narrow_hooked)
    yield "copies: body raises", lambda: raising(sig, x=narrow)
    yield "copies: acquire raises", lambda: written(sig, acquire_raises)
    yield "copies: not entered", lambda: sig.bind(x=narrow).x
    yield "copies: a warning that is an error", lambda: refused(narrow)
    yield "copies: no such cast", lambda: sig.bind(x=numbers("complex64"))


def all_uses() -> dict[str, Callable[[], object]]:
    """All uses without their exceptions, for `leak_checks`."""
    warnings.simplefilter("ignore", dl.LayoutWarning)

    def suppressed(use: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            with suppress(Exception):
                use()

        return run

    return {name: suppressed(use) for name, use in uses()}


ROUNDS = 300


@cache
def growth() -> dict[str, Growth]:
    return grown(__name__, "all_uses", ROUNDS)


@pytest.mark.parametrize("name", dict(uses()))
def test_nothing_leaks(name: str) -> None:
    growth()[name].assert_none_in(ROUNDS)
