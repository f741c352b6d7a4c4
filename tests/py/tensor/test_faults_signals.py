"""Signals during copies: one below 64 MB is whole, and the handler's exception arrives after it; a larger one ends.

Nothing leaks or hangs.

A copy runs without the GIL. The sender of the signal waits for the GIL, and takes it from nobody: so it sends it while
the copy runs, or not before the copy is over and the main thread waits. A free-threaded Python has nothing to wait for:
there the signal may come before the copy, and ends the call before it has begun.
"""

import contextlib
import itertools
import os
import pickle
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from childproc import run_cases
from leak_checks import live

# 8 MB of float64 are enough for several threads, and last some milliseconds. A busy machine may run the sender later:
# after some attempts the next size is taken.
SIZES = (64, 256, 480)
ATTEMPTS = 30


HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()


class HandlerError(Exception):
    """What a handler raises."""


class Copy:
    """A copy that a signal interrupts, and whether its result is whole. `target` gets the elements if there is one."""

    def __init__(self, run: Callable[[], Any], target: Any, expected: Any) -> None:
        self.run, self.target, self.expected = run, target, expected

    def clear(self) -> None:
        if self.target is not None:
            self.target[...] = -1

    def is_whole(self, result: Any) -> bool:
        result = self.target if result is None else result
        return result is None or self.is_early() or bool((np.asarray(result) == self.expected).all())

    def is_early(self) -> bool:
        """Whether the signal came before the copy."""
        return not HAS_GIL and self.target is not None and bool((np.asarray(self.target) == -1).all())


def numbers(size: int) -> Any:
    return np.arange(float(size * 128 * 128)).reshape(size, 128, 128)


def assignment(target: Any, value: Any, expected: Any) -> Copy:
    return Copy(lambda: target.__setitem__(..., value), target, expected)


def copies(size: int) -> dict[str, Callable[[], Copy]]:
    source = numbers(size)
    shape, single = source.shape, source.astype("float32")
    field: Any = dl.from_array(source)
    return {
        "assignment": lambda: assignment(dl.zeros(shape), source, source),
        "assignment to another layout": lambda: assignment(dl.zeros(shape, backend="F"), field, source),
        "assignment with a cast": lambda: assignment(dl.zeros(shape, "float32"), field, single),
        "assignment of a number": lambda: assignment(dl.zeros(shape), 2.5, np.float64(2.5)),
        "fill": lambda: fill(dl.zeros(shape)),
        "full": lambda: Copy(lambda: dl.full(shape, 2.5), None, np.float64(2.5)),
        "from_array": lambda: Copy(lambda: dl.from_array(source, backend="F"), None, source),
        "from_dlpack": lambda: Copy(lambda: dl.from_dlpack(source, copy=True), None, source),
        "copy": lambda: Copy(field.copy, None, source),
        "astype": lambda: Copy(lambda: field.astype("float32"), None, single),
        "__dlpack__": lambda: Copy(lambda: np.from_dlpack(field, copy=True), None, source),
        "pickle": lambda: Copy(lambda: pickle.loads(pickle.dumps(field[::2], 5)), None, source[::2]),
        "share": lambda: Copy(field.share, None, source),
    }


def fill(target: Any) -> Copy:
    return Copy(lambda: target.fill(2.5), target, np.float64(2.5))


def signalled(number: int, call: Callable[[], Any]) -> Any:
    """Run `call`, and send the signal to this thread as soon as the call releases the GIL."""
    gate = threading.Lock()
    gate.acquire()
    main = threading.get_ident()

    def send() -> None:
        with gate:
            signal.pthread_kill(main, number)

    sender = threading.Thread(target=send)
    sender.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)
    try:
        gate.release()
        return call()
    finally:
        sys.setswitchinterval(interval)
        sender.join()


def check(name: str, number: int, action: Callable[[], object]) -> None:
    """Interrupt a copy until a signal has hit it; `action` is what the handler does, and may raise."""
    assert any(check_size(copies(size)[name](), number, action) for size in SIZES), "no signal came while a copy ran"


def check_size(copy: Copy, number: int, action: Callable[[], object]) -> bool:
    """Return whether a signal has hit the copy in one of some attempts."""
    running, hit = False, 0

    def handler(_number: int, _frame: object) -> None:
        nonlocal hit
        if running and not copy.is_early():
            hit += 1
            # The handler runs after the copy, so it sees all of it.
            assert copy.is_whole(copy.target), "the handler sees a part of the copy"
        action()

    def call() -> Any:
        nonlocal running
        running = True
        result = copy.run()
        running = False
        return result

    signal.signal(number, handler)
    before, attempts, raised = live(), 0, 0
    while not hit and attempts < ATTEMPTS:
        attempts += 1
        copy.clear()
        result = None
        try:
            result = signalled(number, call)
        except (HandlerError, KeyboardInterrupt):
            raised += 1
        running = False
        assert copy.is_whole(result), "the copy is not whole"
        del result
    assert live() == before, "memory is left"
    assert raised == (attempts if action in (interrupt, fail) else 0)
    # Nothing is locked, and the threads of the pool are there.
    assert copy.is_whole(copy.run())
    assert not copy.is_early()
    return hit > 0


def interrupt() -> None:
    """Do what Python does on Ctrl+C."""
    signal.default_int_handler(signal.SIGINT, None)


def fail() -> None:
    raise HandlerError


def use_dlfield() -> None:
    """Copy with several threads, and import, view, export and drop."""
    source = numbers(SIZES[0])
    other: Any = dl.from_array(source, backend="F")
    other[...] = dl.from_array(source[::-1])
    assert (other.to_numpy() == source[::-1]).all()
    assert (np.from_dlpack(dl.from_dlpack(source)[1:]) == source[1:]).all()


# The pool of copies has threads, and Python 3.12 warns of that where a process forks. No child waits for one.
PRELUDE = """
import signal, warnings
warnings.filterwarnings("ignore", "This process", DeprecationWarning)
from test_faults_signals import *
"""


class Alarms:
    """Counts alarms. Their handler uses dlfield. It does not raise: Python's own `finally` blocks would be cut off."""

    def __init__(self) -> None:
        self.count = 0
        signal.signal(signal.SIGALRM, self.handle)

    def handle(self, _number: int, _frame: object) -> None:
        self.count += 1
        dl.ones((3, 4)).copy()


def use_files(folder: str) -> None:
    """Call what waits for the system: signals interrupt system calls."""
    path, field = Path(folder) / "field.dlf", dl.from_array(numbers(8), backend="F", dims="IJK")
    dl.save_field(path, field)
    shared = dl.open_field(path, mode="c").share()
    attached: Any = dl.attach(dl.shared_name(shared))
    attached[...] = field
    assert (attached.to_numpy() == numbers(8)).all()


def check_many_alarms() -> None:
    """Every call succeeds while alarms come all the time: in 60 rounds at least, until 30 alarms have come."""
    alarms, rounds = Alarms(), 0
    with tempfile.TemporaryDirectory() as folder:
        use_files(folder)
        before = live()
        signal.setitimer(signal.ITIMER_REAL, 1e-3, 3e-4)
        while rounds < 60 or alarms.count < 30:
            use_files(folder)
            rounds += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert live() == before, "memory is left"
        assert [path.name for path in Path(folder).iterdir()] == ["field.dlf"]


# Calls that run code of Python when they are the first ones, or make a message.
FIRST = {
    "an addition": "dl.ones(3) + np.ones(3)",
    "an array": "dl.from_array(np.ones(3))",
    "a message about a shape": "dl.ones(3).__setitem__(..., np.ones(5))",
    "a message that shows a value": "dl.set_num_threads(Shown())",
    "a number of another library": "dl.full(3, 2.5, 'float16')",
    "an element that NumPy compares": "dl.ones(3) == np.array('a')",
}
ENDED, RAISED, LOST = 10, 11, 12


class Shown:
    def __repr__(self) -> str:
        return "shown"


def interrupted(call: Callable[[], object], place: int) -> int:
    """Raise in the function of Python at this place among those that the call runs."""
    count = 0

    def trace(*_: object) -> None:
        nonlocal count
        count += 1
        if count == place:
            raise KeyboardInterrupt

    sys.settrace(trace)
    try:
        with contextlib.suppress(Exception):
            call()
        # While a message is made, an interrupt is put off until here.
        for _ in range(2):
            pass
    except KeyboardInterrupt:
        return RAISED
    finally:
        sys.settrace(None)
    return LOST if count >= place else ENDED


def check_first_call(call: Callable[[], object]) -> None:
    """Interrupt a call everywhere, each time as the first call of a process."""
    for place in itertools.count(1):
        child = os.fork()
        if child == 0:
            os._exit(interrupted(call, place))
        outcome = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if outcome == ENDED:
            return
        assert outcome == RAISED, place


def test_an_interrupt_in_a_first_call_arrives() -> None:
    run_cases(PRELUDE, {name: f"check_first_call(lambda: {call})" for name, call in FIRST.items()})


# What the handler of a signal does after a copy.
HANDLERS = {
    "interrupt": "signal.SIGINT, interrupt",
    "another error": "signal.SIGALRM, fail",
    "copies": "signal.SIGALRM, use_dlfield",
}


def cases(handlers: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    return {f"{how}: {name}": f"check({name!r}, {HANDLERS[how]})" for how in handlers for name in names}


SOME = ("assignment with a cast", "fill", "pickle")
OTHERS = [name for name in copies(1) if name not in SOME]


def test_signals_during_copies_and_during_calls_that_wait() -> None:
    """One handler for every kind of copy, every handler for some, and alarms while dlfield waits for the system."""
    run_cases(PRELUDE, {**cases(["interrupt"], OTHERS), **cases([*HANDLERS], SOME), "alarms": "check_many_alarms()"})


@pytest.mark.exhaustive
def test_large_copies_end_where_a_handler_raises() -> None:
    """The timer runs down at once, and the last elements are not written."""
    prelude = """
import signal
import numpy as np
import dlfield as dl
def end(*_):
    raise KeyboardInterrupt("now")
signal.signal(signal.SIGALRM, end)
target, source = dl.zeros((64, 1024, 1024)), np.ones((64, 1024, 1024))
def ended(call):
    signal.setitimer(signal.ITIMER_REAL, 0.005)
    try:
        call()
    except KeyboardInterrupt as error:
        assert str(error) == "now"
    else:
        raise AssertionError("it did not end")
"""
    last = "assert target[-1, -1, -1] == 0.0"
    cases = {
        "assignment": f"ended(lambda: target.__setitem__(..., source))\n{last}",
        "a number": f"ended(lambda: target.__setitem__(..., 2.5))\n{last}",
        "fill": f"ended(lambda: target.fill(2.5))\n{last}",
        "few long rows": "ended(lambda: dl.zeros((4, 1 << 24)).__setitem__(..., source.reshape(1 << 24, 4).T))",
        # Its pieces have many rows: this one has one piece.
        "another order": "ended(lambda: target.T.__setitem__(..., source.reshape(1024, 1024, 64)))",
        "copy": "ended(target.copy)",
        "share": "ended(target.share)",
        "from_array": "ended(lambda: dl.from_array(source, backend='F'))",
        "ones": "ended(lambda: dl.ones((64, 1024, 1024)))",
    }
    run_cases(prelude, cases)


def test_signals_with_every_handler_during_every_copy() -> None:
    run_cases(PRELUDE, cases(["another error", "copies"], OTHERS))
