"""dlfield's arguments beside those of rust-numpy: neither borrows memory that the other has, if one of them writes."""

from typing import Any

import numpy as np
import pytest

from childproc import run_python

rx = pytest.importorskip("rust_extension")
mixed = pytest.importorskip("rust_extension", reason="built without the feature peers").__dict__.get("mixed")
pytestmark = pytest.mark.skipif(mixed is None, reason="built without the feature peers")

# Which of the two crates borrows an array first: its list of borrows is the one that both use.
FIRST = {
    "dlfield": "rx.sum(np.ones(1))",
    "rust-numpy": "rx.peers.ndim(np.ones(1))",
    "neither": "",
}

PRELUDE = r"""
import numpy as np
import dlfield as dl
import rust_extension as rx
mixed = rx.mixed
{first}

def refused(call, *arrays):
    try:
        call(*arrays)
    except (TypeError, RuntimeError) as error:
        # rust-numpy's error is a RuntimeError and names no argument.
        return "\n".join([str(error), *getattr(error, "__notes__", ())])
    raise AssertionError(f"{{call}} was not refused")
"""


def in_process(first: str, code: str) -> None:
    run_python(PRELUDE.format(first=FIRST[first]) + code)


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("out_readwrite", "_array"),
        ("out_readonly", "_array"),
        ("in_readwrite", "_array"),
        ("readwrite_out", "_out"),
        ("readonly_out", "_out"),
        ("readwrite_in", "_inp"),
    ],
)
def test_one_array_is_not_borrowed_by_both_if_one_writes(first: str, name: str, argument: str) -> None:
    in_process(
        first,
        f"""
x = np.zeros(8)
for arrays in [(x, x), (x[2:6], x), (x[::2], x[::-1]), (x, x[7:])]:
    message = refused(mixed.{name}, *arrays)
    assert "borrow" in message, message
    if {argument!r} != "_array":
        assert "PyReadonlyArray or PyReadwriteArray of rust-numpy" in message and {argument!r} in message, message
# Nothing is left borrowed, and arrays that do not overlap are taken.
for arrays in [(x, x.copy()), (x[:4], x[4:]), (x[::2], x[1::2]), (x[:0], x)]:
    mixed.{name}(*arrays)
""",
    )


@pytest.mark.parametrize("first", FIRST)
def test_both_may_read_one_array(first: str) -> None:
    in_process(
        first,
        """
x = np.zeros(8)
mixed.in_readonly(x, x)
mixed.in_readonly(x[1:], x)
mixed.out_readwrite(x, x.copy())
""",
    )


@pytest.mark.parametrize("first", FIRST)
def test_arrays_are_borrowed_for_as_long_as_the_argument_lives(first: str) -> None:
    in_process(
        first,
        """
x = np.zeros(8)
y = np.zeros((2, 4))
def by_numpy():
    refused(mixed.readonly_out, x, np.zeros(1))
    refused(mixed.readwrite_out, x[:1], np.zeros(1))
    return 5
assert mixed.with_out(x, by_numpy) == 5
assert mixed.with_in(x, lambda: refused(mixed.readwrite_out, x, np.zeros(1)))
assert mixed.with_in(x, lambda: mixed.in_readonly(x, x)) is None
assert mixed.with_readwrite(y, lambda: refused(rx.sum, y[0]))
assert mixed.with_readonly([y, y, y[:, 1:], y], lambda: rx.sum(y)) == 0.0
assert mixed.with_readonly([y, y[1:], y], lambda: refused(mixed.forget, y[1]))
mixed.out_readwrite(x, y[0])
mixed.out_readwrite(y[0], x)
""",
    )


@pytest.mark.parametrize("first", FIRST)
def test_arguments_that_interleave_do_not_overlap(first: str) -> None:
    in_process(
        first,
        """
x = np.zeros((8, 8, 8))
low, high = x[..., :4], x[..., 4:]
for _ in range(2):
    rx.add_scaled(1.0, low, high)
    rx.laplacian(low, high)
flat = np.zeros((4, 4))
def inside():
    # What this extension writes is refused to rust-numpy, and nothing of another array.
    refused(mixed.with_readonly, [flat[:, 2:]], lambda: None)
    mixed.with_readonly([x], lambda: None)
mixed.with_views(flat[:, :2], flat[:, 2:], inside)
mixed.with_readwrite(flat, lambda: None)
# rust-numpy has a part: the rest is entered as before.
mixed.with_readonly([flat[:1]], lambda: mixed.with_views(flat[1:, :2], flat[1:, 2:], lambda: None))
mixed.with_readonly([flat[1:2, 3:]], lambda: refused(mixed.with_views, flat[:, :2], flat[:, 2:], lambda: None))
mixed.with_readwrite(flat, lambda: None)
""",
    )


@pytest.mark.parametrize("first", FIRST)
def test_a_copied_argument_borrows_its_array_only_during_the_copy(first: str) -> None:
    in_process(
        first,
        """
x = np.zeros(8)
assert mixed.copy_readwrite(x, x) is True
refused(mixed.copy_readwrite, np.zeros(8, "float32"), np.zeros(8, "float32"))
""",
    )


@pytest.mark.parametrize("first", FIRST)
def test_an_array_whose_shape_is_set_while_it_is_borrowed_ends_no_process(first: str) -> None:
    in_process(
        first,
        """
import warnings
warnings.simplefilter("ignore")
x, y = np.zeros(8), np.zeros(8)
def set_shape():
    x.shape = (2, 4)
    x.strides = (8, 16)
def set_dtype():
    y.dtype = np.dtype("int32")
mixed.with_out(x, set_shape)
mixed.with_in(y, set_dtype)
mixed.out_readwrite(np.zeros(8), np.zeros(8))
assert rx.sum(x) == 0.0
""",
    )


def test_rust_numpy_borrows_arrays_of_any_dimensions_from_the_ledger() -> None:
    in_process(
        "dlfield",
        """
empty, scalar, deep = np.zeros((3, 0)), np.zeros(()), np.zeros((1,) * 63 + (2,))
broadcast = np.broadcast_to(np.zeros(1), (4, 4))
for array in (empty, scalar, deep, broadcast, deep[..., ::-1]):
    mixed.with_readonly([array, array], lambda: None)
for array in (scalar, deep):
    mixed.with_readwrite(array, lambda: refused(rx.sum, array))
    assert rx.sum(array) == 0.0
mixed.with_readwrite(empty, lambda: rx.sum(empty))
refused(mixed.with_readwrite, broadcast, lambda: None)
""",
    )


def test_rust_numpy_sees_borrows_of_tensors_through_the_ledger() -> None:
    in_process(
        "dlfield",
        """
t = dl.zeros(8)
x = np.asarray(t)
assert "borrow" in mixed.with_out(t, lambda: refused(mixed.readonly_out, x, np.zeros(1)))
assert "rust-numpy" in mixed.with_readwrite(x, lambda: refused(rx.sum, t))
mixed.out_readwrite(t, np.zeros(8))
""",
    )


@pytest.mark.parametrize("planted", ["1", "object()", "np.core"])
def test_an_attribute_of_that_name_that_is_no_table_is_ignored(planted: str) -> None:
    planted = planted.replace("np.core", "__import__('datetime').datetime_CAPI")
    run_python(
        f"""
import numpy as np
import numpy._core.multiarray as m
m._RUST_NUMPY_BORROW_CHECKING_API = {planted}
import rust_extension as rx
x = np.ones(3)
assert rx.sum(x) == 3.0
"""
    )


def test_arguments_of_other_libraries_need_no_numpy() -> None:
    run_python(
        """
import sys
import rust_extension as rx
import array
assert rx.ndim(array.array("d", [1.0])) == 1
"""
    )


def test_many_arrays_of_rust_numpy_are_found_again() -> None:
    x: Any = np.zeros(2000)
    arrays = [x[i : i + 1] for i in range(2000)]
    assert mixed is not None
    assert mixed.with_readonly(arrays, lambda: rx.sum(x)) == 0.0
    mixed.out_readwrite(x, np.zeros(1))


def test_an_array_that_changed_while_a_second_extension_had_it_is_released() -> None:
    in_process(
        "dlfield",
        """
import importlib.util, shutil, sys, tempfile
# In an installed extension the library is inside a package.
library = sys.modules.get("rust_extension.rust_extension", rx).__file__
with tempfile.TemporaryDirectory() as folder:
    path = shutil.copy(library, folder)
    spec = importlib.util.spec_from_file_location("rust_extension", path)
    other = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(other)

x = np.zeros(8)

def change():
    x.resize((2, 4), refcheck=False)

other.mixed.with_out(x, change)
x.resize(8, refcheck=False)
mixed.with_out(x, lambda: None)
other.mixed.with_out(x, lambda: None)
""",
    )
