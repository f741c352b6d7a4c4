"""`frombuffer`: memory of any object with the buffer protocol, which it holds."""

import array
import ctypes
import gc
import mmap
import sys
from collections.abc import Callable
from multiprocessing import shared_memory
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from fakes import Meddling


def held(size: int, tmp_path: Path) -> list[Any]:
    """Return writable memory of many kinds, all zero."""
    file = tmp_path / "memory"
    file.write_bytes(bytes(size))
    with file.open("r+b") as opened:
        mapped = mmap.mmap(opened.fileno(), 0)
    return [
        bytearray(size),
        memoryview(bytearray(size)),
        array.array("d", bytes(size)),
        (ctypes.c_char * size)(),
        mapped,
        np.zeros(size // 4, "int32"),
        np.zeros((2, size // 2), "uint8", order="F"),
        memoryview(np.zeros(size // 2, "S2")),  # type: ignore[arg-type]
        dl.zeros((size // 16, 2), "float64", layout=(1, 0)),
        memoryview(dl.zeros((size,), "int8")),
    ]


def test_every_kind_of_memory_is_shared(tmp_path: Path) -> None:
    for memory in held(96, tmp_path):
        field = dl.frombuffer(memory, (2, 3), "float32", offset=8, dims="KI", halo=(0, 1), origin=(0, 2))
        field[...] = 1.0
        again = dl.frombuffer(memory, (24,), "float32")
        assert again.tolist() == [0.0] * 2 + [1.0] * 6 + [0.0] * 16, type(memory)
        assert (field.dims, field.halo, field.origin) == (("K", "I"), ((0, 0), (1, 1)), (0, 2))
        assert not field.readonly


def test_shared_memory_is_held_open() -> None:
    shared = shared_memory.SharedMemory(create=True, size=64)
    try:
        field = dl.frombuffer(shared.buf, (8,), "float64")
        field[...] = 2.0
        with pytest.raises(BufferError):
            shared.close()
        del field
        assert bytes(shared.buf or b"")[7] == 64
    finally:
        shared.close()
        shared.unlink()


def test_read_only_memory_makes_read_only_tensors() -> None:
    for memory in (bytes(16), memoryview(bytearray(16)).toreadonly(), dl.zeros((2,)).as_readonly()):
        field = dl.frombuffer(memory, (2,), "float64")
        assert field.readonly
        assert field.tolist() == [0.0, 0.0]
        with pytest.raises(dl.ExchangeError, match="read-only"):
            field[0] = 1.0


def test_strides_may_be_negative_or_leave_gaps() -> None:
    memory = bytearray(np.arange(12.0).tobytes())
    field = dl.frombuffer(memory, (3, 2), "float64", strides=(-32, 8), offset=64)
    assert field.tolist() == [[8.0, 9.0], [4.0, 5.0], [0.0, 1.0]]
    repeated = dl.frombuffer(memory, (2, 3), "float64", strides=(0, 8))
    assert repeated.tolist() == [[0.0, 1.0, 2.0]] * 2


def test_the_buffer_is_held_until_the_last_export_is_gone() -> None:
    memory, window, array = bytearray(16), memoryview(bytearray(16)), np.zeros(2)
    uses: list[tuple[Any, Callable[[], object]]] = [
        (memory, lambda: memory.extend(b"x")),
        (window, window.release),
        (array, lambda: array.resize(1000, refcheck=False)),
    ]
    for buffer, change in uses:
        field = dl.frombuffer(buffer, (2,), "float64")
        view = np.asarray(field[1:])
        del field
        with pytest.raises((BufferError, ValueError)):
            change()
        assert view.tolist() == [0.0]
        del view
        change()


OUTSIDE: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    (((2,), "float64"), {"strides": (-8,)}, "got -8 to 8"),
    (((2,), "float32"), {"strides": (20,)}, "got 0 to 24"),
    (((2, 3), "int8"), {"strides": (-1, 2**62), "offset": 20}, "address space|got 19 to"),
    (((), "int16"), {"offset": 19}, "got 19 to 21"),
]


@pytest.mark.parametrize(("args", "keywords", "message"), OUTSIDE)
def test_elements_outside_are_refused(args: tuple[Any, ...], keywords: dict[str, Any], message: str) -> None:
    memory = bytearray(20)
    with pytest.raises(dl.ExchangeError, match=message):
        dl.frombuffer(memory, *args, **keywords)
    # Nothing holds it.
    memory.append(1)


def test_other_wrong_arguments_are_refused_by_name() -> None:
    memory = bytearray(16)
    for offset in (-1, 17, 2**63 - 1):
        with pytest.raises(dl.LayoutError, match=f"offset: expected 0 to 16, the bytes of the buffer, got {offset}"):
            dl.frombuffer(memory, (0,), "float64", offset=offset)
    with pytest.raises(dl.LayoutError, match=r"offset: .* 64 bits"):
        dl.frombuffer(memory, (0,), "float64", offset=2**63)
    for gaps in (memoryview(memory)[::2], memoryview(memory)[::-1], np.zeros((4, 4))[:, 1], dl.zeros((4,))[::-1]):
        with pytest.raises(dl.LayoutError, match="buf: expected contiguous memory, got elements with gaps"):
            dl.frombuffer(gaps, (1,), "int8")
    with pytest.raises(TypeError, match="buf"):
        dl.frombuffer(shape=(1,), dtype="int8")  # type: ignore[call-arg]
    assert dl.frombuffer(memory, (3, 0), "float64", offset=16).size == 0
    assert dl.frombuffer(b"", (0,), "float64").size == 0


@pytest.mark.parametrize("place", ["shape", "strides", "offset", "halo", "origin"])
def test_memory_that_goes_while_arguments_are_read_is_not_used(place: str) -> None:
    """The buffer is taken last: what the conversion of the others does to it is seen."""
    for grown in (False, True):
        memory = bytearray(64) if grown else memoryview(bytearray(64))
        action = (lambda m=memory: m.clear()) if grown else memory.release  # type: ignore[union-attr]
        arguments: dict[str, Any] = {"shape": (8,), "strides": (8,), "offset": 0, "halo": (0,), "origin": (0,)}
        number = Meddling(action, arguments[place][0] if place != "offset" else 0)
        arguments[place] = number if place == "offset" else (number,)
        with pytest.raises(ValueError, match="released" if not grown else "bytes 0 to 0 of the buffer"):
            dl.frombuffer(memory, dtype="float64", **arguments)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="PEP 688")
def test_buffers_of_python_classes() -> None:
    released: list[str] = []

    class Exporter:
        def __init__(self) -> None:
            self.memory = bytearray(16)

        def __buffer__(self, flags: int) -> memoryview:
            return memoryview(self.memory)

        def __release_buffer__(self, view: memoryview) -> None:
            released.append("released")

    exporter = Exporter()
    field = dl.frombuffer(exporter, (2,), "float64")
    assert released == []
    del field
    gc.collect()
    assert released == ["released"]
