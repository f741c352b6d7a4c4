"""`dl.trace_copies`: every copy has its bytes, its reason and the line of the program."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl

SHAPE, NBYTES = (4, 3), 96
OTHER_ORDER = np.dtype("float64").newbyteorder()
FORTRAN = dl.Signature(u=dl.FieldSpec("float64", "IJ", layout=(1, 0), access="rw"), on_mismatch="copy")


class OnlyArray:
    """An array that is made for each call."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.zeros(SHAPE)


def bound(field: dl.Tensor) -> None:
    with pytest.warns(dl.LayoutWarning), dl.Signature(on_mismatch="copy", **FORTRAN.fields).bind(u=field):
        pass


COPIES: dict[str, tuple[Callable[[dl.Tensor], Any], str]] = {
    "as_numpy": (lambda t: dl.as_numpy(t, copy=True), "as_numpy: copy=True"),
    "as_numpy of NumPy": (lambda t: dl.as_numpy(np.asarray(t), copy=True), "as_numpy: copy=True"),
    "as_torch": (lambda t: dl.as_torch(t.as_readonly()), "as_torch: the memory is read-only"),
    "as_torch of PyTorch": (lambda t: dl.as_torch(dl.as_torch(t), copy=True), "as_torch: copy=True"),
    "as_jax": (lambda t: dl.as_jax(t[:, ::-1]), "as_jax: JAX takes compact strides only"),
    "as_jax by address": (
        lambda _: dl.as_jax(np.zeros(13)[1:]),
        "as_jax: JAX takes addresses that are a multiple of 64",
    ),
    "from_dlpack": (lambda t: dl.from_dlpack(t, copy=True), "from_dlpack: copy=True"),
    "from_dlpack of __array__": (lambda _: dl.from_dlpack(OnlyArray()), "__array__ has made an array"),
    "asarray": (lambda t: dl.asarray(t, copy=True), "asarray: copy=True"),
    "asarray of a list": (lambda t: dl.asarray(t.tolist()), "asarray: list has no memory to share"),
    "asarray of the other byte order": (
        lambda t: dl.asarray(np.asarray(t).astype(OTHER_ORDER)),
        "asarray: dtype: expected native byte order",
    ),
    "index by positions": (lambda t: t[[0, 1, 2, 3]], "index: an array or a mask as key gives a copy"),
    "index by a mask": (lambda t: t[np.ones(SHAPE, bool)], "index: an array or a mask as key gives a copy"),
    "pad": (lambda t: dl.pad(t, 1), "pad: "),
    "copy in an order": (lambda t: t.copy(order="F"), "copy: in order 'F'"),
    "asarray of another dtype": (lambda t: dl.asarray(t, "int64"), "astype: from float64 to int64"),
    "from_array": (lambda t: dl.from_array(np.asarray(t)), "from_array always copies"),
    "from_array of a field": (lambda t: dl.from_array(t, backend="F"), "from_array always copies"),
    "copy": (lambda t: t.copy(), r"copy\(\)"),
    "astype": (lambda t: t.astype("int64"), "astype: from float64 to int64"),
    "export": (lambda t: np.from_dlpack(t, copy=True), r"__dlpack__\(copy=True\)"),
    "share": (lambda t: t.share(), "share"),
}


@pytest.mark.usefixtures("torch", "jax")
@pytest.mark.parametrize("case", COPIES)
def test_a_copy_is_listed_with_reason_and_place(case: str) -> None:
    copy, reason = COPIES[case]
    field = dl.zeros(SHAPE)
    with dl.trace_copies() as log:
        copy(field)
    [found] = log
    assert found.nbytes == log.nbytes == NBYTES
    assert re.match(reason, found.reason), found.reason
    assert found.place == f"{__file__}:{copy.__code__.co_firstlineno}"
    assert str(log).splitlines() == ["1 copy of together 96 bytes", f"{found.place}: 96 bytes: {found.reason}"]


@pytest.mark.usefixtures("torch")
def test_a_key_of_another_library_is_listed_too() -> None:
    mask = dl.as_torch(dl.ones(SHAPE, "bool"))
    with dl.trace_copies() as log:
        dl.zeros(SHAPE)[mask]
    assert [(copy.nbytes, copy.reason.partition(":")[0]) for copy in log] == [(12, "index"), (96, "index")]


def test_write_back_copies_are_listed_both_ways() -> None:
    with dl.trace_copies() as log:
        bound(dl.zeros(SHAPE))
    assert [copy.reason.partition(": ")[0] for copy in log] == ["bind, in", "bind, back"]
    assert "layout" in log[0].reason


@pytest.mark.usefixtures("torch", "jax")
def test_what_shares_and_what_was_not_asked_for_is_not_listed() -> None:
    field = dl.zeros(SHAPE)
    with dl.trace_copies() as outer:
        with dl.trace_copies() as inner:
            for share in (dl.as_numpy, dl.as_torch, dl.as_jax, dl.asarray, dl.from_dlpack, np.asarray, np.from_dlpack):
                share(field)
            field[...] = field + 1
        assert (len(inner), len(outer)) == (0, 0)
        field.copy()
    field.copy()
    assert (len(inner), len(outer)) == (0, 1)
    assert str(inner) == "0 copies of together 0 bytes"


def test_places_are_those_of_the_program() -> None:
    """Not of the package, whose functions call each other."""
    line = inspect.currentframe().f_lineno + 2  # type: ignore[union-attr]
    with dl.trace_copies() as log:
        dl.pad(np.ones(2), 1)
        dl.zeros(SHAPE).astype("f4", order="F")
    assert {copy.place for copy in log} <= {f"{__file__}:{line}", f"{__file__}:{line + 1}"}
