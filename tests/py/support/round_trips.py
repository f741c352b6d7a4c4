"""Ways by which memory goes to an extension in Rust, or into DLPack structs, and comes back."""

from collections.abc import Callable

import pytest

import dlfield as dl

views = pytest.importorskip("rust_extension").kinds_views

# What gives a tensor on the same memory.
TRIPS: dict[str, Callable[[dl.Tensor], dl.Tensor]] = {
    "a versioned capsule": lambda field: dl.from_dlpack(field.__dlpack__(max_version=(1, 0))),
    "an argument that is returned": views.kept,
    "an argument that is returned twice": lambda field: views.kept_twice(field)[1],
    "both": lambda field: views.kept(dl.from_dlpack(field.__dlpack__(max_version=(1, 3)))),
}


def repeated(trip: Callable[[dl.Tensor], dl.Tensor], field: dl.Tensor) -> Callable[[], None]:
    """A function that sends `field` on one more trip at each call."""

    def use() -> None:
        nonlocal field
        field = trip(field)

    return use
