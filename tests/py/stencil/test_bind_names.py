"""The names of fields: required, unknown and unusual ones."""

from typing import Any

import numpy as np
import pytest

import dlfield as dl
from calls import F8, W8, cube, signature, spec


def test_names_are_checked() -> None:
    sig = dl.Signature(x=F8, out=W8)
    bind: Any = sig.bind
    for call, message in (
        (lambda: bind(x=cube()), r'^field "out": missing; a field may be left out if its FieldSpec says optional'),
        (lambda: bind(x=cube(), out=None), r'^field "out": missing'),
        (lambda: bind(x=cube(), out=cube(), inp=cube()), r'^field "inp": unexpected; allowed are x, out'),
        (lambda: bind(cube(), cube()), r"bind\(\) takes keyword arguments only, but 2 positional arguments were given"),
        (lambda: dl.Signature().bind(x=5), r'"x": unexpected; allowed are none'),
        (lambda: dl.Signature.bind(5), r"'bind' for 'dlfield.Signature' objects doesn't apply to a 'int' object"),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match=message):
            call()


class Odd(str):
    """A str subclass whose equal texts are different keys, so that a name can be passed twice."""

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


def test_a_name_given_twice_is_refused() -> None:
    sig = dl.Signature(a=spec(), b=spec())
    array = np.zeros((2, 2))
    mappings: Any = [{Odd("a"): array, Odd("a"): array}, {"b": array, Odd("a"): array, Odd("a"): array}]
    for twice in mappings:
        with pytest.raises(TypeError, match=r'field "a": named twice'):
            sig.bind(**twice)
    assert sig.bind(**{Odd("a"): array, "b": array}).a.ptr == array.ctypes.data


def test_names_of_every_kind() -> None:
    names = ["a b", "", "ä", "self", "fields", "domain", "__enter__", "name", "py", "0", "a" * 1000]
    sig = signature({name: spec("I") for name in names})
    arrays = {name: np.zeros(n + 1) for n, name in enumerate(names)}
    bound = sig.bind(**arrays)
    assert {name: bound[name].ptr for name in names} == {name: array.ctypes.data for name, array in arrays.items()}
    assert bound.domain == (1,)
    assert getattr(bound, "a b").shape == (1,)
    assert bound.self.shape == (4,)
    with bound as fields:
        assert fields is bound
    with pytest.raises(dl.DTypeError, match=r'field "a b": dtype'):
        sig.bind(**{**arrays, "a b": np.zeros(3, "f4")})
    with pytest.raises((TypeError, UnicodeEncodeError)):
        sig.bind(**{"\ud800": np.zeros(3)})
    with pytest.raises((TypeError, UnicodeEncodeError)):
        signature({"\ud800": spec()})


def test_unknown_names() -> None:
    bound = dl.Signature(x=F8, out=W8).bind(x=cube(), out=cube())
    with pytest.raises(AttributeError, match=r"no field 'y'; the fields are x, out"):
        bound.y  # noqa: B018
    assert not hasattr(bound, "y")
    wrong: list[Any] = ["y", 0, None, ("x",), b"x", "\ud800"]
    for key in wrong:
        with pytest.raises(KeyError, match=r"the fields are x, out"):
            bound[key]


def test_names_need_not_be_interned() -> None:
    sig = signature({"".join(["na", "me"]): F8, "other": F8})
    array = cube()
    for order in (["name", "other"], ["other", "name"]):
        assert sig.bind(**{"".join(list(name)): array for name in order}).name.ptr == array.ctypes.data


def test_a_thousand_fields() -> None:
    names = [f"field{n}" for n in range(1000)]
    sig = signature({name: spec("I", access="rw" if n % 10 == 0 else "r") for n, name in enumerate(names)})
    block = np.zeros((1000, 4))
    arrays = {name: block[n] for n, name in enumerate(names)}
    bound = sig.bind(**dict(reversed(arrays.items())))
    assert [bound[name].ptr for name in names] == [array.ctypes.data for array in arrays.values()]
    with pytest.raises(dl.LayoutError, match=r'field "field10": .* with field "field999"'):
        sig.bind(**{**arrays, "field999": block[10]})
