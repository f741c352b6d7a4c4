"""Files that are truncated or forged are errors that name the file, and nothing outside them is read."""

import io
import json
import os
import random
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlfield as dl

START = struct.Struct("<8sHHI")


def parts(path: Path) -> tuple[dict[str, Any], bytes]:
    """Return the header of a file, and what follows it."""
    data = path.read_bytes()
    size = START.unpack(data[:16])[3]
    return json.loads(data[16 : 16 + size]), data[16 + size :]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "field.dlf"
    dl.save_field(path, dl.ones((4, 5), alignment_size=64, halo=(1, 1), dims="KJ"))
    return path


def write(
    path: Path, header: Any, block: bytes, *, version: int = 1, reserved: int = 0, size: int | None = None
) -> None:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    text = text.ljust(512 - 16) if len(text) <= 496 else text
    length = len(text) if size is None else size
    path.write_bytes(START.pack(b"\x93DLFIELD", version, reserved, length) + text + block)


def refused(path: Path) -> str:
    """Return the error of opening a file, in every mode the same and with the file's name."""
    texts = set()
    for mode in ("r", "r+", "c"):
        # Nothing but the errors that the documentation names.
        with pytest.raises(dl.Error) as raised:
            dl.open_field(path, mode)
        notes = " ".join(getattr(raised.value, "__notes__", []))
        assert path.name in notes
        # Without the addresses of objects that a message shows.
        texts.add(re.sub("0x[0-9a-f]+", "", str(raised.value)))
    assert len(texts) == 1
    return texts.pop()


def test_every_truncated_file_is_an_error(saved: Path) -> None:
    data = saved.read_bytes()
    # Of the last row only the elements must be there, not the padding.
    end = len(data) - 3 * 8
    for length in [*range(40), *range(40, len(data) - 64, 7), end - 1]:
        saved.write_bytes(data[:length])
        refused(saved)
    saved.write_bytes(data[:end])
    assert float(dl.open_field(saved).sum()) == 20.0


def test_the_start_is_checked(saved: Path, tmp_path: Path) -> None:
    header, block = parts(saved)
    for magic in (b"\x93DLFIELE", b"\x94DLFIELD", b"PK\x03\x04\x00\x00\x00\x00", b"\x93NUMPX\x01\x00"):
        saved.write_bytes(magic + saved.read_bytes()[8:])
        assert "starts with neither the magic of a .npy file nor that of a .dlf file" in refused(saved)
    write(saved, header, block, version=2)
    assert "expected version 1.0 of the format, got 2.0" in refused(saved)
    write(saved, header, block, reserved=1)
    assert "format, got 1.1" in refused(saved)
    write(saved, header, block, size=2**32 - 1)
    assert "expected a header of at most 65536 bytes, got 4294967295" in refused(saved)
    write(saved, header, b"", size=2000)
    assert "the file ends in its header, after 496 of 2000 bytes" in refused(saved)
    with pytest.raises(IsADirectoryError):
        dl.open_field(tmp_path)
    # Not waited for.
    os.mkfifo(tmp_path / "pipe.npy")
    for mode in ("r", "r+", "c"):
        with pytest.raises(OSError, match=r"not a regular file: .*pipe\.npy"):
            dl.open_field(tmp_path / "pipe.npy", mode)
    with pytest.raises(FileNotFoundError):
        dl.open_field("")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[" * 60_000,
        b'{"a":' * 10_000,
        b"[]",
        b"null",
        b"1" * 60_000,
        b"\xff\xfe\x00",
        b'{"shape": [1]}',
        b'"' + b"x" * 60_000 + b'"',
        b"\x00" * 1000,
    ],
    ids=lambda text: repr(text[:10]),
)
def test_headers_that_are_no_objects(saved: Path, text: bytes) -> None:
    write(saved, text, bytes(4096))
    assert "the header" in refused(saved)


def test_every_part_is_needed(saved: Path) -> None:
    header, block = parts(saved)
    for name in header:
        write(saved, {key: value for key, value in header.items() if key != name}, block)
        assert f"the header does not have {name}" in refused(saved)
    # What a later version may add does no harm.
    write(saved, header | {"more": 1, "offset": header["offset"] + 192}, block)
    assert dl.open_field(saved).shape == (4, 5)


BIG = 2**63

# Values of each part of the header that contradict the others.
VALUES: list[tuple[str, list[Any]]] = [
    ("shape", [[4], [4, -5], [4, 9], [5, 5], [4, BIG], [BIG - 1, BIG - 1], [4.0, 5], [True, 5], ["4", 5]]),
    ("shape", ["45", None]),
    ("strides", [[64, 8, 8], [-64, 8], [64, -8], [0, 8], [64, 0], [8, 8], [32, 8], [8, 64], [64, 4], [72, 8], None]),
    ("strides", [[BIG - 8, 8]]),
    ("offset", [-8, 0, 8, 64, 256, 10**6, BIG - 1, BIG, 1.5, None, 449]),
    ("dtype", ["float128", "object", "O", "f8", "(3,)f8", "f8,f8", ">f8", "M8[s]", "S8", "complex128"]),
    ("dtype", [8, None, {"names": ["a"]}]),
    ("byteorder", ["big", "native", []]),
    ("dims", [["K"], ["K", "K"], ["K", ""], ["K", 3], ["K", "\ud800"], "KJ", ["a"] * 10000]),
    ("halo", [[[1, 1]], [[3, 3], [0, 0]], [[-1, 0], [0, 0]], [1, 1], [[1, 1, 1], [0, 0]], [[1], [0, 0]]]),
    ("halo", [{"0": 1}]),
    ("halo_is_cut", [1]),
    ("origin", [[9, 0], [-1, 0], [0]]),
    ("layout", [[0, 0], [1, 0], [0], [0, 2], None]),
    ("padding", ["column", None, []]),
    ("alignment_size", [0, -64, 4096, BIG, "64"]),
    ("aligned_index", [[0, 0], [9, 9], [-1, 0], [1]]),
]

CHANGES: list[dict[str, Any]] = [
    *({name: value} for name, values in VALUES for value in values),
    {"shape": [1] * 65, "strides": [8] * 65, "layout": list(range(65)), "dims": None, "halo": None},
    {"offset": 0, "shape": [4000, 5]},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: repr(change)[:40])
def test_numbers_that_fit_neither_each_other_nor_the_file(saved: Path, change: dict[str, Any]) -> None:
    header, block = parts(saved)
    header["offset"] += 512 - (len(saved.read_bytes()) - len(block))
    write(saved, header, block)
    assert float(dl.open_field(saved).sum()) == 20.0
    write(saved, header | change, block)
    refused(saved)


def test_random_changes_are_errors_or_fields_inside_the_file(saved: Path) -> None:
    """All elements of an opened file can be read, with every header."""
    data, draw = saved.read_bytes(), random.Random(3)
    opened = 0
    for _ in range(1000):
        forged = bytearray(data)
        for _ in range(draw.randint(1, 3)):
            place = draw.randrange(len(data) if draw.random() < 0.1 else 420)
            forged[place] = draw.choice(b'0123456789-,[]"{}: e.' + bytes([draw.randrange(256)]))
        saved.write_bytes(forged)
        try:
            field = dl.open_field(saved)
        except (dl.Error, ValueError, TypeError):
            continue
        opened += 1
        assert field.nbytes <= len(forged)
        np.asarray(field).tobytes()
    assert opened > 10


def npy(shape: str, descr: str = "'<f8'", order: str = "False", version: tuple[int, int] = (1, 0)) -> bytes:
    """Return the header of a .npy file."""
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    length = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + length + text


@pytest.mark.parametrize(
    "start",
    [
        npy("(11,)"),
        npy("(-1,)"),
        npy("(9223372036854775808,)"),
        npy("(9223372036854775807, 4)"),
        npy("(9223372036854775807, 4)", order="True"),
        npy("(3, 4)", order="True"),
        npy("(2.5,)"),
        npy("(2,", order="True"),
        npy("(1,)" + " " * 20_000),
        npy("(1,)", version=(2, 0))[:11],
        npy("(1,)", version=(3, 0)),
        npy("(1,)", version=(9, 9)),
        npy("(1,)", descr="'|O'"),
        npy("(1,)", descr="'>f8'"),
        npy("(1,)", descr="'<V2'"),
        npy("(1,)", descr="'<U4'"),
        npy("(1,)", descr="[('a', '<f8')]"),
        npy("(1,)", descr="('<f8', (10**9,))"),
        npy("(1,)", descr="('<f8', (1000,))"),
        npy("(1,)", descr="__import__('os').abort()"),
        npy("(" * 5000),
        npy("(1,)", order="1"),
        npy("(1,) * 10**10"),
        b"\x93NUMPY",
        b"\x93NUMPY\x01\x00\xff\xff{",
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff{",
        b"\x93NUMPY\x01\x00\x00\x00",
    ],
    ids=lambda start: repr(start[6:60]),
)
def test_npy_files(tmp_path: Path, start: bytes) -> None:
    path = tmp_path / "array.npy"
    path.write_bytes(start + bytes(80))
    refused(path)


def test_truncated_npy_files(tmp_path: Path) -> None:
    path, buffer = tmp_path / "array.npy", io.BytesIO()
    np.save(buffer, np.ones((3, 4)))
    data = buffer.getvalue()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        refused(path)
    path.write_bytes(data)
    assert float(dl.open_field(path).sum()) == 12.0
