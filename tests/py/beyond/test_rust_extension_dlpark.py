"""Arrays that a Rust extension takes by dlpark, and those that dlfield passes on to it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl

rx = pytest.importorskip("rust_extension")
mixed = rx.__dict__.get("mixed")
pytestmark = pytest.mark.skipif(mixed is None, reason="built without the feature peers")


def test_dlpark_imports_a_tensor() -> None:
    assert mixed.by_dlpark(dl.zeros((3, 4))) == ([3, 4], False)


def test_dlpark_imports_the_capsule_of_a_read_only_tensor() -> None:
    field = dl.zeros((3, 4)).as_readonly()
    # dlpark asks the C exchange table, whose users may write to the memory; the error says what to pass.
    with pytest.raises(
        BufferError, match=r"pass obj.copy\(\), or, .* dlpark, the capsule obj.__dlpack__\(max_version=\(1, 0\)\)"
    ):
        mixed.by_dlpark(field)
    assert mixed.by_dlpark(field.__dlpack__(max_version=(1, 0))) == ([3, 4], True)
    assert mixed.by_dlpark(field.copy()) == ([3, 4], False)


def read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


ARRAYS: dict[str, tuple[Callable[[], Any], bool]] = {
    "tensor": (lambda: dl.zeros((3, 4)), False),
    "read-only tensor": (lambda: dl.zeros((3, 4)).as_readonly(), True),
    "ndarray": (lambda: np.zeros((3, 4)), False),
    "read-only ndarray": (lambda: read_only(np.zeros((3, 4))), True),
    "memoryview": (lambda: memoryview(bytes(12)).cast("B", (3, 4)), True),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_an_argument_becomes_a_struct_of_dlpark(name: str) -> None:
    make, is_readonly = ARRAYS[name]
    assert mixed.for_dlpark(make()) == ([3, 4], is_readonly)
