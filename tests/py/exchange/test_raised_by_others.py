"""What objects of others raise while dlfield reads or shows them."""

import contextlib
import inspect
import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl


class Interrupting(tuple):  # type: ignore[type-arg]
    """Labels that are interrupted while they are read."""

    def __iter__(self) -> Any:
        raise KeyboardInterrupt


class Endless(tuple):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        return itertools.repeat("I")


class Labelled:
    def __init__(self, dims: Any) -> None:
        self.dims = dims

    def __array__(self, *_: Any, **__: Any) -> Any:
        return np.ones((2, 3))


@pytest.mark.parametrize("read", [dl.from_dlpack, dl.from_array, dl.get_dims, dl.zeros_like])
def test_an_interrupt_while_the_dims_of_an_object_are_read_arrives(read: Callable[[Any], Any]) -> None:
    with pytest.raises(KeyboardInterrupt):
        read(Labelled(Interrupting(("I", "J"))))


class InterruptingIndex:
    def __index__(self) -> int:
        raise KeyboardInterrupt


@pytest.mark.parametrize("key", [lambda index: index, lambda index: (index, [0, 1]), lambda index: ([0, 1], index)])
def test_an_interrupt_in_an_index_arrives(key: Callable[[Any], Any]) -> None:
    with pytest.raises(KeyboardInterrupt):
        dl.ones((3, 4))[key(InterruptingIndex())]


class FailingIndex:
    """An `__index__` that fails at first, and is interrupted if it is asked again."""

    calls = 0

    def __index__(self) -> int:
        self.calls += 1
        if self.calls == 1:
            raise TypeError("not now")
        raise KeyboardInterrupt


def test_an_index_that_fails_is_not_asked_for_its_number_by_numpy_too() -> None:
    # Basic indexing, then the parts of an index with arrays.
    for key in (FailingIndex(), (FailingIndex(), [0, 1])):
        with pytest.raises(KeyboardInterrupt):
            dl.ones((3, 4))[key]


def test_an_index_that_always_fails_says_why() -> None:
    class Fails:
        def __index__(self) -> int:
            raise TypeError("metres")

        def __repr__(self) -> str:
            return "a length"

    with pytest.raises(IndexError, match="index: a length: metres") as caught:
        dl.ones((3, 4))[Fails()]
    assert isinstance(caught.value.__cause__, TypeError)


def test_a_sequence_with_dimensions_is_no_position() -> None:
    class Rows:
        ndim = 1

        def __index__(self) -> int:
            raise TypeError("several")

        def __len__(self) -> int:
            return 2

        def __getitem__(self, at: int) -> int:
            return [0, 2][at]

    assert dl.ones((3, 4))[Rows()].shape == (2, 4)


class Long(list[Any]):
    """A list that lies about its length."""

    length: Any = 2**34

    def __len__(self) -> int:
        if isinstance(self.length, int):
            return self.length
        raise self.length


@pytest.mark.parametrize("length", [2**34, 2**62, 0, MemoryError()])
def test_a_list_that_lies_about_its_length_describes_no_fields(length: Any) -> None:
    class Described:
        array = np.ones(3, "f4")

        @property
        def __array_interface__(self) -> dict[str, Any]:
            fields = Long([("", "<f4")])
            fields.length = length
            return {**self.array.__array_interface__, "descr": fields}

    assert dl.describe(Described()).dtype == "float32"


class Exiting:
    """An object whose attribute `dtype`, which NumPy reads, raises `SystemExit`."""

    @property
    def dtype(self) -> Any:
        raise SystemExit(3)


@pytest.mark.parametrize("call", [dl.zeros, dl.storage.zeros, dl.FieldSpec])
def test_an_interrupt_in_a_dtype_arrives(call: Callable[..., Any]) -> None:
    try:
        np.dtype(Exiting())
    except TypeError:
        pytest.skip("this NumPy drops what the attribute raises")
    except SystemExit:
        pass
    arguments: tuple[Any, ...] = (Exiting(),) if call is dl.FieldSpec else ((3,), Exiting())
    with pytest.raises(SystemExit):
        call(*arguments)


def test_an_interrupt_while_preflight_looks_for_a_copy_arrives() -> None:
    class Copies:
        calls = 0

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

        def __dlpack__(self, **keywords: Any) -> Any:
            self.calls += 1
            if self.calls > 1:
                raise KeyboardInterrupt
            raise dl.ExchangeError("only copies")

    with pytest.raises(KeyboardInterrupt):
        dl.preflight(Copies(), "numpy")


def test_dims_without_end_are_too_many() -> None:
    with pytest.raises(dl.DimsError):
        dl.from_array(Labelled(Endless(("I", "J"))))


def test_the_text_of_a_repr_is_not_converted_by_code() -> None:
    class Text(str):
        def __str__(self) -> str:
            raise AssertionError("__str__ is not called")

    class Shown:
        def __repr__(self) -> str:
            return Text("shown")

    with pytest.raises(dl.ExchangeError, match=r"^stream: .* got shown$"):
        dl.from_dlpack(np.ones(3), stream=Shown())


def test_a_list_that_contains_itself_is_shown() -> None:
    endless: list[Any] = []
    endless.extend([endless] * 1000)
    with pytest.raises(dl.ExchangeError, match=r"^stream: .* got \[\[\.\.\.\]"):
        dl.from_dlpack(np.ones(3), stream=endless)


def test_a_repr_that_makes_the_call_again_ends() -> None:
    class Recursive:
        calls = 0

        def __hash__(self) -> int:
            return self._again()

        def __repr__(self) -> str:
            return str(self._again())

        def _again(self) -> int:
            self.calls += 1
            dl.zeros(3, self)
            return 1

    found = Recursive()
    usual, left = sys.getrecursionlimit(), 150
    sys.setrecursionlimit(len(inspect.stack(0)) + left)
    try:
        with pytest.raises((RecursionError, dl.DTypeError)):
            dl.zeros(3, found)
    finally:
        sys.setrecursionlimit(usual)
    # Each level makes one message, whose `__repr__` goes down to the limit once: two for each would never end.
    assert found.calls < left**2


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, ZeroDivisionError])
@pytest.mark.parametrize(
    "call",
    [
        dl.zeros,
        lambda values: dl.zeros(3, layout=values),
        lambda values: dl.zeros(3, halo=values),
        lambda values: dl.zeros(3, halo=[values]),
        lambda values: dl.zeros(3, dims=values),
        lambda values: dl.FieldSpec("f8", shape=values),
    ],
)
def test_what_a_sequence_raises_reaches_the_caller(call: Callable[[Any], Any], error: type[BaseException]) -> None:
    class Entries:
        def __iter__(self) -> Any:
            raise error("in __iter__")

    with pytest.raises(error, match="in __iter__"):
        call(Entries())


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, ZeroDivisionError])
@pytest.mark.parametrize(
    "call",
    [
        lambda number: dl.Device((number, 0)),
        lambda number: dl.Device("cpu") == (number, 0),
        lambda number: dl.zeros(3, device=(number, 0)),
        lambda number: dl.describe(Exporting((1, number), np.ones(3).__dlpack__)),
        lambda number: dl.zeros(3).__dlpack__(max_version=(1, number)),
        lambda number: dl.zeros(3).__dlpack__(dl_device=(number, 0)),
        lambda number: dl.zeros(3, dims=[number]),
        lambda number: dl.zeros((3, 4)).sum(axis=number),
        lambda number: dl.zeros(()).sum(axis=number),
        lambda number: dl.zeros((3, 4)).transpose(number, 0),
        lambda number: dl.describe(InDictionary({("gpu", number): {}})),
    ],
)
def test_what_an_integer_raises_reaches_the_caller(call: Callable[[Any], Any], error: type[BaseException]) -> None:
    class Integer:
        def __index__(self) -> int:
            raise error("in __index__")

    with pytest.raises(error, match="in __index__"):
        call(Integer())


def test_an_interrupt_of_a_repr_for_a_message_is_raised_after_it() -> None:
    class Interrupting:
        def __repr__(self) -> str:
            raise KeyboardInterrupt("in __repr__")

    def call() -> None:
        with contextlib.suppress(dl.ExchangeError):
            dl.from_dlpack(np.ones(3), stream=Interrupting())
        # The interpreter looks for it between the steps of a loop.
        for _ in range(100):
            pass

    with pytest.raises(KeyboardInterrupt, match="in __repr__"):
        call()


class Exporting:
    def __init__(self, device: Any, export: Callable[..., Any]) -> None:
        self.device, self.export = device, export

    def __dlpack_device__(self) -> Any:
        return self.device

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.export(**keywords)


class InDictionary:
    def __init__(self, interface: Any) -> None:
        self.__gt_data_interface__ = interface


def test_a_recursion_without_end_is_an_error_at_once() -> None:
    """An import that calls the method again after an error would do that at each of a thousand levels."""
    dl.describe(Exporting((1, 0), np.ones(3).__dlpack__))
    looping = Exporting((1, 0), lambda **_: dl.from_dlpack(looping).__dlpack__())
    with pytest.raises(RecursionError):
        dl.from_dlpack(looping)
