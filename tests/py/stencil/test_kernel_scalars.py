"""The scalars that `@dl.kernel` takes, converts and refuses."""
# ruff: noqa: ARG001 (the functions do not use their field)

from collections.abc import Sequence
from enum import IntEnum
from typing import Annotated, Any, Literal

import numpy as np
import pytest

import dlfield as dl

X = np.ones(3)


class Color(IntEnum):
    RED = 1


# An annotation, and what it takes, with the value that the kernel gets.
SCALARS: list[tuple[Any, list[tuple[Any, Any]]]] = [
    (float, [(2, 2.0), (np.float32(0.5), 0.5), (np.int8(2), 2.0)]),
    (int, [(np.int64(3), 3), (Color.RED, Color.RED)]),
    (bool, [(np.True_, True)]),
    (complex, [(2, 2 + 0j), (np.complex64(1j), 1j)]),
    (np.float32, [(2, np.float32(2)), (np.float16(2), np.float32(2)), (0.1, np.float32(0.1))]),
    (np.float32, [(float("inf"), np.float32("inf"))]),
    (np.complex64, [(complex(0, float("-inf")), np.complex64(complex(0, float("-inf"))))]),
    (np.int32, [(7, np.int32(7))]),
    (np.bool, [(True, np.True_)]),
    (Color, [(Color.RED, Color.RED)]),
    (str, [("a", "a")]),
    (int | None, [(None, None)]),
    (float | int, [(3, 3)]),
    (Literal["a", "b"], [("b", "b")]),
    (Sequence[int], [([1], [1])]),
    (tuple[int, int], [((1, 2), (1, 2))]),
    (Annotated[float, "seconds"], [(2, 2.0)]),
    (Any, [("anything", "anything")]),
    (object, [(None, None)]),
]


def kernel_of(annotation: Any) -> Any:
    def take(inp: Annotated[Any, dl.FieldSpec(None)], value: Any) -> Any:
        return value

    take.__annotations__["value"] = annotation
    return dl.kernel(take)


@pytest.mark.parametrize(("annotation", "values"), SCALARS)
def test_scalars_are_converted(annotation: Any, values: list[tuple[Any, Any]]) -> None:
    for given, found in values:
        value = kernel_of(annotation)(X, given)
        assert (value, type(value)) == (found, type(found))


WRONG: list[tuple[Any, list[Any]]] = [
    (float, [True, "1", None, 1j, np.ones(3), np.array(1.0)]),
    (int, [1.0, np.float64(1), np.True_]),
    (bool, [1]),
    (np.float32, [np.float64(2)]),
    (np.int32, [1.5]),
    (np.float64, [True]),
    (Color, [1]),
    (str, [5]),
    (int | None, [1.5]),
    (Literal["a"], ["b", np.ones(3)]),
    (Literal[1], [True, 1.0]),
    (Sequence[int], [5]),
]
OUT_OF_RANGE: list[tuple[Any, list[Any]]] = [
    (float, [10**400]),
    (np.int8, [300]),
    (np.uint8, [-1]),
    (np.float32, [1e300, -(2**200)]),
    (np.float64, [10**400]),
    (np.complex64, [1e300j]),
]


@pytest.mark.parametrize(
    ("annotation", "values", "reason"),
    [(*row, r".* is a \w+") for row in WRONG] + [(*row, ".*: .*(out of|too large).*") for row in OUT_OF_RANGE],
)
def test_other_scalars_are_refused(annotation: Any, values: list[Any], reason: str) -> None:
    for given in values:
        with pytest.raises(TypeError, match=rf"^take\(\): argument 'value': {reason}; "):
            kernel_of(annotation)(X, given)


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("mine")


@pytest.mark.parametrize("given", [Unprintable(), 10**5000], ids=["repr that raises", "too many digits"])
def test_scalars_that_cannot_be_printed_are_refused_by_name(given: Any) -> None:
    with pytest.raises(TypeError, match=r"take\(\): argument 'value': <\S+ object at \w+>.*; wanted is float"):
        kernel_of(float)(X, given)


def test_a_number_in_a_field_is_refused_with_what_to_write() -> None:
    largest, take = dl.ones(3).max(), kernel_of(float)
    with pytest.raises(TypeError, match=r"alignment_… is a Tensor; wanted is float; pass value=value\.item\(\)\n"):
        take(X, largest)
    take(X, largest.item())
    # `item()` would give nothing that is taken.
    for number, annotation in ((largest, int), (np.complex128(1), float), (dl.ones(3), float)):
        with pytest.raises(TypeError, match=r"; wanted is (int|float)\n"):
            kernel_of(annotation)(X, number)


def test_a_default_that_cannot_be_printed_leaves_errors_as_they_are() -> None:
    @dl.kernel
    def take(inp: Annotated[Any, dl.FieldSpec(None)], value: object = Unprintable()) -> None: ...

    with pytest.raises(TypeError, match=r"argument 'inp' is missing\n.*value: object = <.*Unprintable object at"):
        take()  # type: ignore[call-arg]
