"""What the example extension in Rust says when an argument is refused, and that nothing is consumed or lost by it."""

import gc
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from childproc import run_cases, run_python
from dlpack_structs import IS_COPIED
from fakes import FakeTensor, OldProducer, Producer

rx = pytest.importorskip("rust_extension")
kinds = rx.kinds


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(TypeError) as caught:
        call()
    assert type(caught.value) is TypeError
    return str(caught.value)


def test_bools_are_checked_only_without_a_writer() -> None:
    flags = np.array([0, 1, 2], "u1").view("?")
    # Otherwise the error would be about the byte 2.
    assert kinds.writing_flags(flags[:2], lambda: refused(lambda: kinds.flags(flags))).startswith("overlap: ")
    capsule = FakeTensor(np.array([0, 1, 2], "u1"), dtype=(6, 8, 1)).capsule()
    assert "bool with the byte 2" in refused(lambda: kinds.flags(capsule))


def test_bools_of_a_copy_are_bools() -> None:
    table = np.array([[True, False], [True, True]])
    assert kinds.flags_or_copy(table) == (False, 3)
    assert kinds.flags_or_copy(table.T) == (True, 3)
    table.view("u1")[1, 1] = 2
    for flags in (table, table.T, FakeTensor(table.view("u1"), dtype=(6, 8, 1)).capsule()):
        assert "bool with the byte 2" in refused(lambda: kinds.flags_or_copy(flags))  # noqa: B023


# The elements, the flags, or None for a capsule of the old protocol, which has none; a call, and its error.
WRONG_CAPSULES: list[tuple[Any, int | None, Callable[[Any], Any], str]] = [
    (np.arange(3, dtype="f4"), None, rx.sum, "float32"),
    (np.arange(3, dtype="f4"), 0, rx.sum, "float32"),
    (np.ones((2, 2), "c16"), 0, kinds.or_copy, "ndim|dtype"),
    (np.ones(3), 0, kinds.or_copy, "ndim"),
    *((np.ones(3), IS_COPIED, call, "has made a copy") for call in (rx.sum, rx.ndim, lambda x: kinds.fill(x, 1.0))),
]


@pytest.mark.parametrize(("data", "flags", "call", "said"), WRONG_CAPSULES)
def test_a_capsule_that_is_refused_is_not_consumed(
    data: Any, flags: int | None, call: Callable[[Any], Any], said: str
) -> None:
    fake = FakeTensor(data, version=None) if flags is None else FakeTensor(data, flags=flags)
    capsule = fake.capsule()
    assert re.search(said, refused(lambda: call(capsule)))
    assert fake.deleted == 0
    assert dl.from_dlpack(capsule).to_numpy().tolist() == data.tolist()
    assert "consumed already" in refused(lambda: rx.ndim(capsule))
    gc.collect()
    assert fake.deleted == 1


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_a_capsule_that_overlaps_is_not_consumed(version: tuple[int, int] | None) -> None:
    array = np.zeros(4)
    fake = FakeTensor(array, version=version)
    capsule = fake.capsule()
    assert "overlap" in kinds.writing(array, lambda: refused(lambda: rx.sum(capsule)))
    if version is not None:
        assert "overlap" in kinds.reading(array, lambda: refused(lambda: kinds.fill(capsule, 1.0)))[1]
    assert fake.deleted == 0
    assert rx.sum(capsule) == 4.0
    assert fake.deleted == 1


@pytest.mark.parametrize(
    "refuse",
    [
        kinds.c_order,
        lambda source: kinds.fill(source, 1.0),
        lambda source: kinds.both_flags(np.array([True]), source),
        lambda source: kinds.several([np.ones(3), source, [1.0]], []),
    ],
)
@pytest.mark.parametrize("flags", [0, IS_COPIED, 1])
def test_exported_memory_is_released_when_refused(refuse: Callable[[Any], Any], flags: int) -> None:
    data = np.arange(3, dtype="f8")
    data.flags.writeable = False
    fake = FakeTensor(data, flags=flags, dtype=(2, 64, 1), strides=(0,))
    refused(lambda: refuse(Producer(fake)))
    gc.collect()
    assert fake.deleted == 1


def test_no_memory_for_a_copy_is_a_memory_error() -> None:
    with pytest.raises(MemoryError):
        kinds.or_copy(np.broadcast_to(np.float32(0), (2**42, 4)))


def test_writable_of_a_legacy_description_is_kept() -> None:
    fake = FakeTensor(np.zeros(3), version=None)
    seen = dl.describe(OldProducer(fake), writable=True)
    fresh = FakeTensor(fake.data, version=None)
    seen.owner.tensor = fresh
    kinds.fill(seen, 7.0)
    assert fake.data.tolist() == [7.0] * 3
    seen.owner.tensor = FakeTensor(fake.data, version=None)
    unsure = dl.describe(seen.owner)
    seen.owner.tensor = FakeTensor(fake.data, version=None)
    assert "read-only" in refused(lambda: kinds.fill(unsure, 7.0))


def test_a_description_of_a_capsule_says_why_it_is_refused() -> None:
    seen = dl.describe(dl.zeros(3).__dlpack__())
    assert re.search(r"from_dlpack .*got a dlfield.Descriptor of a DLPack capsule,", refused(lambda: rx.sum(seen)))


def test_a_process_without_dlfield_says_what_is_refused() -> None:
    prelude = """
        import sys
        import rust_extension as rx

        def raised(call, *arguments):
            try:
                call(*arguments)
            except Exception as error:
                return error
    """
    absent = """
        sys.modules["dlfield"] = sys.modules["dlfield._native"] = None
        error = raised(rx.sum, [1.0])
        assert type(error) is TypeError and "expected an array, got" in str(error), error
        error = raised(rx.kinds.fail)
        assert type(error).__name__ == "LayoutError" and isinstance(error, ValueError), error
        assert str(error) == "shape: expected extents of 0 or more, got -1", error
    """
    broken = """
        class Broken:
            def find_spec(self, name, path=None, target=None):
                if name == "dlfield._native":
                    raise ImportError("built for another Python")

        sys.meta_path.insert(0, Broken())
        for attempt in range(2):
            error = raised(rx.kinds.fail)
            assert str(error) == "built for another Python", error
            (note,) = error.__notes__
            assert note.startswith("while raising dlfield.LayoutError: shape: expected extents"), note
    """
    run_cases(prelude, {"dlfield is absent": absent, "its import fails": broken})


def test_arrays_are_read_without_numpy() -> None:
    pytest.importorskip("torch")
    run_python("""
        import array
        import sys
        import warnings

        class Blocked:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] == "numpy":
                    raise ModuleNotFoundError("No module named 'numpy'", name="numpy")

        sys.meta_path.insert(0, Blocked())
        import rust_extension as rx

        numbers = array.array("d", [1.0, 2.0])

        class Interface:
            data = (numbers.buffer_info()[0], False)
            __array_interface__ = {"shape": (2,), "typestr": "<f8", "data": data, "version": 3}

        class Array:
            def __array__(self, copy=None):
                return [1.0]

        class Void:
            dtype = "V2"
            __array_interface__ = Interface.__array_interface__ | {"typestr": "|V2"}

        with warnings.catch_warnings(action="ignore"):
            import torch
        tensor = torch.ones(3, dtype=torch.float64)
        for source in (numbers, memoryview(numbers), Interface(), tensor, tensor.__dlpack__()):
            assert rx.sum(source) == 3.0, source
        assert rx.ndim(b"bytes") == rx.ndim(bytearray(3)) == 1
        rx.kinds.fill(numbers, 4.0)
        assert list(numbers) == [4.0, 4.0]
        matrix = memoryview(array.array("f", [1.0, 2.0])).cast("B").cast("f", (1, 2))
        assert rx.kinds.or_copy(matrix) == (True, [1.0, 2.0])
        for source, said in (
            (Array(), "TypeError: __array__: expected a numpy.ndarray as the return value, got [1.0]"),
            ([1.0], "TypeError: obj: expected an array, got <class 'list'>"),
            (Void(), "ModuleNotFoundError: No module named 'numpy'"),
        ):
            try:
                rx.sum(source)
            except Exception as error:
                assert f"{type(error).__name__}: {error}".startswith(said), error
            else:
                raise AssertionError(said)
        assert "numpy" not in sys.modules
    """)
