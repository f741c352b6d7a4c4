"""Objects with `__dlpack__` that are not imported by it, and what a short way to `__dlpack__` must not skip."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import dlfield as dl


class Exporter:
    """Exports an array by `__dlpack__` alone."""

    def __init__(self) -> None:
        self.array = np.arange(3.0)

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_classes_are_never_arrays() -> None:
    class Meta(type):
        __dlpack__ = Exporter.__dlpack__
        __dlpack_device__ = Exporter.__dlpack_device__

    class Made(metaclass=Meta):
        array = np.arange(3.0)

    for kind in (Exporter, Made):
        for _ in range(2):
            with pytest.raises(dl.NotAnArrayError):
                dl.describe(kind)


@pytest.mark.parametrize("base", [int, float, list, dict])
def test_subclasses_of_pythons_types_are_arrays(base: type) -> None:
    kind: Any = type("Array", (base,), {name: vars(Exporter)[name] for name in ("__dlpack__", "__dlpack_device__")})
    array = kind()
    array.array = np.arange(3.0)
    for _ in range(2):
        assert dl.describe(array).protocol == "dlpack"


def test_wrappers_are_peeled_first() -> None:
    xarray = pytest.importorskip("xarray")

    def refuse(_self: Any, **_keywords: Any) -> Any:
        raise AssertionError("the array inside is imported")

    labelled: Any = type("Labelled", (xarray.DataArray,), {"__slots__": (), "__dlpack__": refuse})
    for _ in range(2):
        found = dl.describe(labelled(np.zeros((2, 3)), dims=("J", "I")))
        assert (found.protocol, found.dims) == ("numpy", ("J", "I"))


def test_labels_and_hooks_of_the_object_count() -> None:
    class Labelled(Exporter):
        __gt_dims__ = ("K",)

    calls = []

    class Hooked(Exporter):
        @property
        def __gt_data_interface__(self) -> dict[Any, Any]:
            calls.append("interface")
            return {None: {"data": (self.array.ctypes.data, False), "shape": (3,), "typestr": "<f8", "dims": ("J",)}}

    for _ in range(2):
        assert dl.describe(Labelled()).dims == ("K",)
        assert dl.from_dlpack(Labelled()).dims == ("K",)
        plain: Any = Exporter()
        plain.dims = ("K",)
        assert dl.describe(plain).dims == ("K",)
        assert dl.describe(Hooked()).dims == ("J",)
    assert calls


def test_an_error_before_a_retry_is_freed_at_once() -> None:
    class RefusalError(TypeError):
        pass

    errors: list[weakref.ref[Any]] = []

    class Old(Exporter):
        def __dlpack__(self, **keywords: Any) -> Any:
            if keywords:
                error = RefusalError("no keywords")
                errors.append(weakref.ref(error))
                raise error
            return self.array.__dlpack__()

    for read in (dl.describe, dl.from_dlpack):
        assert read(Old()).shape == (3,)
        gc.collect()
        assert errors
        assert errors[-1]() is None
