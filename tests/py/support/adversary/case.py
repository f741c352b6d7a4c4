"""One call with hostile arguments, and what is wrong with how it ended."""

from __future__ import annotations

import random
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from adversary import actions, results
from adversary.arguments import SELVES, arguments
from adversary.entries import Entry
from adversary.memory import Memory
from adversary.settle import settle
from leak_checks import live

# Callbacks that act in one call, and calls within calls.
MOST_DEPTH = 3
# What no call may raise.
NEVER = (SystemError, ReferenceError, UnboundLocalError, NameError)


class Case:
    """A call of `entry`, made from a seed: everything that is drawn is drawn from `rng`."""

    def __init__(self, seed: int, entry: Entry, *, verbose: bool = False) -> None:
        self.seed = seed
        self.entry = entry
        self.verbose = verbose
        self.rng = random.Random(seed)
        self.findings: list[str] = []
        # Objects whose memory or state the callbacks change.
        self.participants: list[Any] = []
        # Lists that may have the last reference to objects which take part.
        self.holders: list[list[Any]] = []
        # Memory that was exported: who used it after its release?
        self.memories: list[Memory] = []
        # Interrupts that callbacks have raised, and nobody has seen yet.
        self.interrupts: list[BaseException] = []
        # Memory of bare addresses, which stays.
        self.promised: list[Any] = []
        # Producers of buffers, which count what they handed out.
        self.exporters: list[Any] = []
        self.budget = self.rng.choice((0, 1, 2, 4, 12, 40))
        self.honesty = self.rng.choice((0.85, 0.97, 1.0))
        self.hostility = self.rng.choice((0.2, 0.5, 0.9))
        self.depth = 0
        # Calls of destructors, which run after a function has checked its result.
        self.final = 0
        self.unending = self.reached_the_limit = False
        # The first array is NumPy's, whose address is read early, and the next ones run code that may move it.
        self.is_moved_later = self.rng.random() < 0.25
        # Arrays that are being changed: what NumPy or PyTorch calls meanwhile does nothing.
        self.moving = 0
        # Callbacks that NumPy calls while it may read a list.
        self.reading = 0
        # Calls in which NumPy reads a list and the memory of its entries.
        self.reading_entries = 0
        # All arrays of a case have one shape, so that calls get far.
        large = self.rng.random() < 0.6
        self.shape = self.rng.choice(
            ((6000,), (2, 3000), (5, 12, 100)) if large else ((3,), (2, 3), (2, 3, 4), (1,), ())
        )
        self.dtype = self.rng.choice(("f8", "f8", "f8", "f8", "f4", "i4", "?"))
        self.call: Callable[[], Any] = lambda: None
        # Calls of dlfield's functions with hostile arguments, those of callbacks included.
        self.calls = 0

    def note(self, text: str) -> None:
        if self.verbose:
            print(f"{'  ' * self.depth}{text}", flush=True)

    def found(self, text: str) -> None:
        self.findings.append(text)
        self.note(f"FOUND: {text}")

    def act(self, where: str, *, final: bool = False) -> None:
        """What every callback calls. A `final` one cannot raise, as a destructor."""
        self.final += final
        if self.unending:
            try:
                self.call()
            except BaseException:
                # Nobody tells the caller of the limit: it would be reached again and again.
                self.unending = not final
                raise
            return
        if self.moving or self.budget <= 0 or self.depth > MOST_DEPTH:
            return
        self.budget -= 1
        action = self.rng.choices(list(actions.ACTIONS), list(actions.ACTIONS.values()))[0]
        self.note(f"{where}: {action.__name__}")
        if not final:
            action(self)
            return
        try:
            action(self)
        except BaseException as error:
            self.judge(error)

    def true(self, value: Any) -> Any:
        """What a callback returns: `value`, or a lie."""
        if self.rng.random() < self.honesty:
            return value
        lies: list[Any] = [
            None,
            -1,
            2**70,
            "x",
            b"x",
            [],
            (),
            {},
            object(),
            1.5,
            (1, 2),
            NotImplemented,
            np.ones(2),
            0,
            True,
        ]
        return self.rng.choice(lies)

    def keep(self, *found: Any) -> Any:
        """Enter objects that callbacks change or drop; returns the first."""
        self.participants.extend(found)
        return found[0]

    @contextmanager
    def nested(self) -> Iterator[None]:
        """A call within a call. What it raises reaches the callback's caller, or does not."""
        self.depth += 1
        try:
            if self.rng.random() < 0.5:
                yield
            else:
                try:
                    yield
                except BaseException as error:
                    self.judge(error)
        finally:
            self.depth -= 1

    def judge(self, error: BaseException) -> None:
        """Enter an exception that nobody should have to read."""
        kind = type(error).__name__
        chain = self.see(error)
        self.note(f"-> {kind}: {str(error)[:200]}")
        if self.is_by_others(error):
            return
        if isinstance(error, NEVER) or any(is_panic(each) for each in chain):
            lines = traceback.format_exception(error)
            self.found(f"{kind}: {error}\n{''.join(lines[-4:])}")
        elif not isinstance(error, (Exception, BaseExceptionGroup, *actions.THROWN)):
            self.found(f"{kind} was not thrown by a callback: {error}")
        # Its producer may keep the exception, and with it the variables of every call that it went through.
        for seen in chain:
            seen.__traceback__ = None

    def is_by_others(self, error: BaseException) -> bool:
        """Whether an error that nobody should read has another reason than dlfield."""
        # `ActingBuffer` is released by Python code of ctypes, which loses the exception that is set meanwhile.
        is_lost = isinstance(error, SystemError) and ("returned NULL" in str(error) or "error return" in str(error))
        if is_lost and self.exporters:
            return True
        # NumPy goes on with an exception set where the class of an array cannot be read.
        if isinstance(error, SystemError) and "copyto> returned a result with an exception set" in str(error):
            return True
        # PyO3 converts a number after the array whose memory it moves: `array` returns no error.
        is_view = type(error).__name__ == "PanicException" and str(error).startswith("moved: converting an argument")
        return is_view and any(parameter.name == "value" for parameter in self.entry.parameters)

    def see(self, error: BaseException | None) -> list[BaseException]:
        """Enter that an exception has reached somebody; return it with all that led to it."""
        chain: list[BaseException] = []
        waiting = [error]
        while waiting:
            error = waiting.pop()
            if error is not None and not any(error is seen for seen in chain):
                chain.append(error)
                # The errors of several hooks are a group.
                waiting += [error.__cause__ or error.__context__, *getattr(error, "exceptions", ())]
        self.interrupts = [each for each in self.interrupts if not any(each is seen for seen in chain)]
        return chain

    def read(self, result: Any) -> None:
        """Use a result."""
        results.read(self, result)

    def run(self) -> list[str]:
        """Make the call; return what is wrong."""
        before = live()
        # Exceptions that cannot be raised are seen here. Those of finalizers are not dlfield's.
        sys.unraisablehook = lambda unraisable: self.see(unraisable.exc_value)
        with warnings.catch_warnings():
            warnings.simplefilter(self.rng.choice(("ignore", "ignore", "ignore", "error")))
            try:
                self._run()
            except BaseException as error:
                # Building the arguments, which may call dlfield, is part of the case.
                self.judge(error)
        self.budget = 0
        settle(self, before)
        return self.findings

    def _run(self) -> None:
        quiet, self.budget = self.budget, 0
        target = SELVES[self.entry.owner](self) if self.entry.owner else None
        positional, keywords = arguments(self)
        self.budget = quiet
        held = [target]
        self.holders.append(positional)
        self.holders.append(held)
        self.note(f"{self.entry.name} on {type(target).__name__}: {_shown(positional)} {_shown(keywords)}")

        def call() -> Any:
            self.calls += 1
            return invoke(self.entry, held[0] if held else None, list(positional), dict(keywords))

        self.call = call
        del target
        result = None
        try:
            final = self.final
            result = call()
            self.note(f"-> {type(result).__name__}")
            if self.final == final:
                results.check_in_place(self, result)
        except BaseException as error:
            self.judge(error)
        keywords = {}
        for use in (self._after, self._after):
            try:
                use(result)
            except BaseException as error:
                self.judge(error)

    def _after(self, result: Any) -> None:
        """Read the result, before and after everything that can be moved was moved."""
        if self.rng.random() < 0.7:
            actions.move_all(self)
        if self.rng.random() < 0.3:
            actions.drop_all(self)
        self.read(result)


def is_panic(error: BaseException) -> bool:
    """Whether Rust code has panicked: what PyO3 makes of that, and what dlfield does."""
    return type(error).__name__ == "PanicException" or str(error).startswith("dlfield: internal error")


def invoke(entry: Entry, target: Any, positional: list[Any], keywords: dict[str, Any]) -> Any:
    """Make the call."""
    if entry.function is not None:
        return entry.function(*positional, **keywords)
    name = entry.name.rpartition(".")[2]
    if not entry.is_property:
        return getattr(target, name)(*positional, **keywords)
    if entry.parameters:
        return setattr(target, name, *positional)
    return getattr(target, name)


def _shown(values: Any) -> str:
    names = values.items() if isinstance(values, dict) else enumerate(values)
    return ", ".join(f"{name}: {type(value).__name__}" for name, value in names)
