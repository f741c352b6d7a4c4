"""What `@dl.kernel` takes: functions, its own arguments, and the scalars of a call; and what it refuses."""
# ruff: noqa: ARG001 (the functions use few of their arguments)

import asyncio
import functools
from collections.abc import AsyncIterator, Iterator, Sequence
from enum import IntEnum
from typing import Annotated, Any, Literal, Protocol, TypedDict

import numpy as np
import pytest

import dlfield as dl

Inp = Annotated[Any, dl.FieldSpec("float64", "IJ")]
Out = Annotated[Any, dl.FieldSpec("float64", "IJ", access="w")]
X = np.ones((3, 4))


class Model: ...


@dl.kernel
def step(inp: Inp, out: Out) -> None: ...


def one(inp: Inp, dt) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001
def several(*inp: Inp) -> None: ...
def keywords(inp: Inp, **rest: float) -> None: ...
def scalars_only(dt: float) -> None: ...
def wrong_default(inp: Inp, dt: float = "no") -> None: ...  # type: ignore[assignment]
def reserved(device: Inp) -> None: ...
def reserved_too(allow_overlap: Inp) -> None: ...


def yields(inp: Inp) -> Iterator[int]:
    yield 1


async def awaits(inp: Inp) -> None:
    await asyncio.sleep(0)


async def both(inp: Inp) -> AsyncIterator[int]:
    yield 1


@functools.wraps(scalars_only)
async def awaits_wrapped(dt: float) -> None:
    scalars_only(dt)


class Shape(Protocol):
    size: int


class Entries(TypedDict):
    size: int


def with_annotation(annotation: Any) -> Any:
    def take(inp: Any) -> None: ...

    take.__annotations__["inp"] = annotation
    return take


DECORATED: list[tuple[Any, str]] = [
    (one, r"one\(\): annotation of 'dt': .*, got none"),
    (several, r"several\(\): expected parameters for one argument each, got \*inp"),
    (keywords, r"keywords\(\): expected .*, got \*\*rest"),
    (scalars_only, r"scalars_only\(\) has no field; annotate fields with dl\.Field"),
    (wrong_default, r"wrong_default\(\): argument 'dt': expected float, got 'no' "),
    (reserved, r"reserved\(\): 'device' is an argument of Signature; rename the field"),
    (reserved_too, r"reserved_too\(\): 'allow_overlap' is an argument of Signature; rename the field"),
    (yields, r"yields\(\) yields or awaits; its fields are released when a call returns"),
    (awaits, r"awaits\(\) yields or awaits"),
    (both, r"both\(\) yields or awaits"),
    (awaits_wrapped, r"scalars_only\(\) yields or awaits"),
    (with_annotation(Shape), r"take\(\): annotation of 'inp': expected .*, got <class '.*Shape'>"),
    (with_annotation(Entries), r"take\(\): annotation of 'inp': expected .*, got <class '.*Entries'>"),
    (with_annotation(5), r"take\(\): annotation of 'inp': expected .*, got 5"),
    (with_annotation(("I", "J")), r"take\(\): annotation of 'inp': expected .*, got \('I', 'J'\)"),
    (with_annotation("Missing"), r"take\(\): annotation of 'inp': expected .*, got 'Missing': name 'Missing' is not"),
    (with_annotation("dl.Field['nonsense']"), r"take\(\): annotation of 'inp': .*nonsense"),
    (with_annotation(Inp | int), r"take\(\): annotation of 'inp': expected one field, .* None, got .*int\]?$"),
    (Model, r"kernel: expected a function, got <class .*Model'>"),
]


@pytest.mark.parametrize(("function", "message"), DECORATED)
def test_functions_that_cannot_be_kernels_are_refused(function: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        dl.kernel(function)


def test_annotations_may_be_type_aliases() -> None:
    alias = pytest.importorskip("typing_extensions").TypeAliasType
    field, number = alias("Grid", Inp), alias("Number", float)

    def take(inp: Any, other: Any, factor: Any) -> Any:
        return inp.shape, other, factor

    take.__annotations__ = {"inp": field, "other": field | None, "factor": number}
    assert dl.kernel(take)(X, None, 2) == ((3, 4), None, 2.0)
    assert list(dl.Signature.from_annotations(take).fields) == ["inp", "other"]


def test_written_fields_may_share_memory_if_the_decorator_says_so() -> None:
    @dl.kernel(allow_overlap=True)
    def shift(inp: Inp, out: Out) -> Any:
        return inp.ptr == out.ptr

    assert shift(X, X)


def test_arguments_of_the_decorator_are_checked() -> None:
    with pytest.raises(ValueError, match=r"on_mismatch: .* got 'cast'"):
        dl.kernel(on_mismatch="cast")(step)  # type: ignore[call-overload]
    with pytest.raises(dl.DeviceError, match="tpu"):
        dl.kernel(device="tpu")(step)
    with pytest.raises(TypeError, match="allow_overlap: expected True or False, got 1"):
        dl.kernel(allow_overlap=1)(step)  # type: ignore[call-overload]


# Scalars.


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
    [(*row, r"got .* \(\w+\)") for row in WRONG] + [(*row, "got .*(out of|too large)") for row in OUT_OF_RANGE],
)
def test_other_scalars_are_refused(annotation: Any, values: list[Any], reason: str) -> None:
    for given in values:
        with pytest.raises(TypeError, match=rf"^take\(\): argument 'value': expected .*, {reason}"):
            kernel_of(annotation)(X, given)


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("mine")


@pytest.mark.parametrize("given", [Unprintable(), 10**5000], ids=["repr that raises", "too many digits"])
def test_scalars_that_cannot_be_printed_are_refused_by_name(given: Any) -> None:
    with pytest.raises(TypeError, match=r"take\(\): argument 'value': expected float, got <\S+ object at \w+>"):
        kernel_of(float)(X, given)


def test_a_number_in_a_field_is_refused_with_what_to_write() -> None:
    largest, take = dl.ones(3).max(), kernel_of(float)
    with pytest.raises(TypeError, match=r"expected float, got .*alignment_… \(Tensor\); pass value=value\.item\(\)\n"):
        take(X, largest)
    take(X, largest.item())
    # `item()` would give nothing that is taken.
    for number, annotation in ((largest, int), (np.complex128(1), float), (dl.ones(3), float)):
        with pytest.raises(TypeError, match=r"expected (int|float), got "):
            kernel_of(annotation)(X, number)


def test_a_default_that_cannot_be_printed_leaves_errors_as_they_are() -> None:
    @dl.kernel
    def take(inp: Annotated[Any, dl.FieldSpec(None)], value: object = Unprintable()) -> None: ...

    with pytest.raises(TypeError, match=r"argument 'inp' is missing\n.*value: object = <.*Unprintable object at"):
        take()  # type: ignore[call-arg]
