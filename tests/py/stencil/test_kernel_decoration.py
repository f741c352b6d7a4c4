"""What `@dl.kernel` takes as a function and as its own arguments, and what it refuses."""
# ruff: noqa: ARG001 (the functions use few of their arguments)

import asyncio
import functools
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, Protocol, TypedDict

import numpy as np
import pytest

import dlfield as dl

Inp = Annotated[Any, dl.FieldSpec("float64", "IJ")]
Out = Annotated[Any, dl.FieldSpec("float64", "IJ", access="w")]
X = np.ones((3, 4))


class Model: ...


@dl.kernel
def step(inp: Inp, out: Out) -> None: ...


def none(inp, dt: float) -> None: ...  # type: ignore[no-untyped-def]  # noqa: ANN001
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
    (none, r"none\(\): annotation of 'inp': it has none; allowed are dl\.Field"),
    (one, r"one\(\): annotation of 'dt': it has none"),
    (several, r"several\(\): \*inp.*; allowed are parameters for one argument each"),
    (keywords, r"keywords\(\): \*\*rest"),
    (scalars_only, r"scalars_only\(\) has no field; annotate fields with dl\.Field"),
    (wrong_default, r"wrong_default\(\): argument 'dt': 'no' is a str; wanted is float"),
    (reserved, r"reserved\(\): 'device' is an argument of Signature; rename the field"),
    (reserved_too, r"reserved_too\(\): 'allow_overlap' is an argument of Signature; rename the field"),
    (yields, r"yields\(\) yields or awaits; its fields are released when a call returns"),
    (awaits, r"awaits\(\) yields or awaits"),
    (both, r"both\(\) yields or awaits"),
    (awaits_wrapped, r"scalars_only\(\) yields or awaits"),
    (with_annotation(Shape), r"take\(\): annotation of 'inp': <class '.*Shape'>; allowed are"),
    (with_annotation(Entries), r"take\(\): annotation of 'inp': <class '.*Entries'>; allowed are"),
    (with_annotation(5), r"take\(\): annotation of 'inp': 5; allowed are"),
    (with_annotation(("I", "J")), r"take\(\): annotation of 'inp': \('I', 'J'\); allowed are"),
    (with_annotation("Missing"), r"take\(\): annotation of 'inp': 'Missing': name 'Missing' is not"),
    (with_annotation("dl.Field['nonsense']"), r"take\(\): annotation of 'inp': .*nonsense"),
    (with_annotation(Inp | int), r"take\(\): annotation of 'inp': .*int\]; allowed is one field, .* None$"),
    (5, r"kernel: 5; allowed is a function"),
    (Model, r"kernel: <class .*Model'>; allowed is a function"),
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
    with pytest.raises(ValueError, match="on_mismatch: 'cast'"):
        dl.kernel(on_mismatch="cast")(step)  # type: ignore[call-overload]
    with pytest.raises(dl.DeviceError, match="tpu"):
        dl.kernel(device="tpu")(step)
    with pytest.raises(TypeError, match="allow_overlap: 1; allowed is True or False"):
        dl.kernel(allow_overlap=1)(step)  # type: ignore[call-overload]
