"""Arguments that were never dropped: forgotten ones, and those of threads that a forked child does not have."""

import sys

import pytest

from childproc import run_python

rx = pytest.importorskip("rust_extension")
has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
pytestmark = [
    pytest.mark.skipif(not hasattr(rx, "mixed"), reason="built without the feature peers"),
    pytest.mark.skipif(not has_gil, reason="nothing is reclaimed without the GIL"),
]

PRELUDE = """
import gc, os, threading, weakref
import numpy as np
import rust_extension as rx
mixed = rx.mixed

def is_borrowed(x):
    try:
        rx.sum(x)
    except TypeError:
        return True
    return False

def in_thread(call, *arguments):
    thread = threading.Thread(target=call, args=arguments)
    thread.start()
    thread.join()
"""


@pytest.mark.parametrize("forget", ["forget", "forget_readwrite"])
def test_a_forgotten_argument_is_borrowed_until_its_thread_ends(forget: str) -> None:
    run_python(
        PRELUDE
        + f"""
rx.sum(np.ones(1))
x = np.ones(4)
found = []
def forget():
    mixed.{forget}(x)
    found.append(is_borrowed(x))
in_thread(forget)
assert found == [True]
assert rx.sum(x) == 4.0
mixed.out_readwrite(x, np.zeros(1))
mixed.readwrite_out(x, np.zeros(1))
"""
    )


def test_an_argument_forgotten_in_a_thread_that_lives_stays_borrowed() -> None:
    run_python(
        PRELUDE
        + """
x = np.ones(4)
mixed.forget(x)
assert is_borrowed(x) and is_borrowed(x[1:2])
in_thread(lambda: None)
assert is_borrowed(x)
"""
    )


def test_the_array_of_a_reclaimed_argument_is_released() -> None:
    run_python(
        PRELUDE
        + """
class Array(np.ndarray):
    pass

x = np.ones(4).view(Array)
gone = weakref.ref(x)
in_thread(mixed.forget, x)
base = x.base
del x
gc.collect()
assert gone() is not None
assert rx.sum(base) == 4.0
assert gone() is None
"""
    )


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="no fork")
def test_a_forked_child_does_not_borrow_for_the_threads_of_its_parent() -> None:
    run_python(
        PRELUDE
        + """
import warnings
warnings.simplefilter("ignore")
x, y = np.ones(4), np.ones(4)
inside, end = threading.Event(), threading.Event()

def hold():
    inside.set()
    end.wait()

thread = threading.Thread(target=mixed.with_out, args=(x, hold))
thread.start()
inside.wait()

def child():
    # The thread that calls fork goes on in the child: its own argument stays borrowed.
    pid = os.fork()
    if pid == 0:
        ok = not is_borrowed(x) and is_borrowed(y)
        os._exit(0 if ok else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

assert mixed.with_out(y, child) == 0
assert is_borrowed(x) and not is_borrowed(y)
end.set()
thread.join()
assert not is_borrowed(x)
"""
    )


def test_an_array_that_two_threads_read_stays_borrowed_when_one_of_them_ends() -> None:
    run_python(
        PRELUDE
        + """
rx.sum(np.ones(1))
x = np.ones(4)
inside, end = threading.Event(), threading.Event()

def hold():
    inside.set()
    end.wait()

thread = threading.Thread(target=mixed.with_readonly, args=([x], hold))
thread.start()
inside.wait()

def writes():
    try:
        mixed.with_out(x, lambda: None)
    except TypeError:
        return False
    return True

def check():
    end.set()
    thread.join()
    return writes()

assert mixed.with_readonly([x], check) is False
assert writes()
"""
    )


def test_memory_that_moves_when_left_arguments_are_dropped_is_not_read() -> None:
    run_python(
        PRELUDE
        + """
class Resizing(np.ndarray):
    def __del__(self):
        x.resize(1 << 20, refcheck=False)

x = np.ones(1 << 16)
in_thread(lambda: mixed.forget(x.view(Resizing)))
try:
    rx.sum(x)
except TypeError as error:
    assert "changed" in str(error), error
else:
    raise AssertionError("the memory was read where it had been")
assert rx.sum(x) == 1 << 16
"""
    )
