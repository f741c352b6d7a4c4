"""The header of dlfield's own files: what a `.npy` file cannot say of a field.

A file has 16 bytes (magic, version as an unsigned 16-bit number, two zero bytes, length of the header as an unsigned
32-bit number, little-endian), the header in JSON, padded with spaces, and the block. Nothing in a header is trusted:
`frombuffer` checks that all elements are inside the file, and `checked` that the rest fits them.
"""

import json
import math
import struct
import sys
from typing import Any, BinaryIO, NamedTuple

from dlfield._native import ExchangeError, Tensor

MAGIC = b"\x93DLFIELD"
VERSION = 1

_START = struct.Struct("<8sHHI")

# Bytes of the longest header that is read or written.
_LONGEST = 1 << 16

# The block starts at a multiple of this many bytes, unless an aligned index asks for another place.
_BOUNDARY = 64

# A mapping starts at a multiple of at least this many bytes: the largest alignment that a place in a file gives.
_PAGE = 4096


class Header(NamedTuple):
    """The parts of a header; `offset` is that of the element at index 0, in bytes from the start of the file."""

    dtype: str
    shape: list[int]
    strides: list[int]
    offset: int
    byteorder: str
    dims: list[str] | None
    origin: list[int] | None
    halo: list[list[int]] | None
    halo_is_cut: bool
    layout: list[int]
    padding: str
    alignment_size: int
    aligned_index: list[int] | None

    @property
    def state(self) -> tuple[Any, ...]:
        """The metadata as `_with_metadata` takes it."""
        halo = None if self.halo is None else [tuple(pair) for pair in self.halo]
        alignment = math.gcd(self.alignment_size, _PAGE)
        labels = (self.dims, self.origin, halo, self.halo_is_cut)
        return (*labels, self.layout, self.padding, alignment, self.aligned_index)


def made(field: Tensor, state: tuple[Any, ...], strides: list[int]) -> Header:
    """Return the header for a field whose block begins as soon as the header has ended; see `_copy_layout`."""
    alignment_size, aligned_index = state[-2:]
    header = Header(field.dtype.name, list(field.shape), strides, 0, sys.byteorder, *state)
    # With the largest number that the offset can become.
    start = _rounded(_START.size + len(_text(header._replace(offset=2**63))), _BOUNDARY)
    if start - _START.size > _LONGEST:
        raise ExchangeError(f"dims: expected labels that fit a header of {_LONGEST} bytes, got {start} bytes")
    unit = math.lcm(math.gcd(alignment_size, _PAGE), field.itemsize)
    aligned = sum(index * stride for index, stride in zip(aligned_index or [0] * field.ndim, strides, strict=True))
    return header._replace(offset=_rounded(start + aligned, unit) - aligned)


def encoded(header: Header) -> bytes:
    """Return the bytes in front of the block. There may be more bytes between them and the first element."""
    text = _text(header)
    size = _rounded(_START.size + len(text), _BOUNDARY) - _START.size
    # The offset was computed with a longer text.
    return _START.pack(MAGIC, VERSION, 0, size) + text.ljust(size)


def read(file: BinaryIO, path: str) -> Header:
    """Read a header from the start of a file; raises an error that names what is wrong."""
    start = file.read(_START.size)
    if len(start) < _START.size or start[: len(MAGIC)] != MAGIC:
        archive = "; of an archive of numpy.savez, take one array: numpy.load(path)[name]" if start[:2] == b"PK" else ""
        raise _wrong(path, f"the file starts with neither the magic of a .npy file nor that of a .dlf file{archive}")
    _, version, reserved, size = _START.unpack(start)
    if (version, reserved) != (VERSION, 0):
        raise _wrong(path, f"expected version {VERSION}.0 of the format, got {version}.{reserved}; use a newer dlfield")
    if size > _LONGEST:
        raise _wrong(path, f"expected a header of at most {_LONGEST} bytes, got {size}")
    text = file.read(size)
    if len(text) < size:
        raise _wrong(path, f"the file ends in its header, after {len(text)} of {size} bytes")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _wrong(path, f"the header is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise _wrong(path, "the header is not a JSON object")
    if missing := [name for name in Header._fields if name not in found]:
        raise _wrong(path, f"the header does not have {', '.join(missing)}")
    if wrong := [name for name, is_valid in _valid(found).items() if not is_valid]:
        raise _wrong(path, f"{wrong[0]} in the header is {str(found[wrong[0]])[:80]}")
    header = Header(*(found[name] for name in Header._fields))
    if header.offset < _START.size + size:
        raise _wrong(path, f"offset in the header is {header.offset}, and the header ends at byte {_START.size + size}")
    if header.byteorder != sys.byteorder:
        raise _wrong(path, f"its elements are {header.byteorder}-endian, and this machine is {sys.byteorder}-endian")
    return header


def checked(header: Header, field: Tensor, path: str) -> None:
    """Reject what `save_field` writes for no field: another element type, elements that share bytes, another order."""
    if field.dtype.name != header.dtype or len(field.shape) != len(header.shape):
        raise _wrong(path, f"dtype in the header is {header.dtype[:80]!r}")
    if field.size == 0:
        return
    step = field.itemsize
    for axis in sorted(range(field.ndim), key=lambda axis: -header.layout[axis]):
        if field.shape[axis] > 1:
            if field.strides[axis] < step:
                text = f"strides {header.strides} do not fit shape {header.shape} and layout {header.layout}"
                raise _wrong(path, f"{text} in the header")
            step = field.strides[axis] * field.shape[axis]


def _valid(found: dict[str, Any]) -> dict[str, bool]:
    """Say of each part whether it has the right type and length. Numbers are checked where they are used."""
    shape, layout, halo, dims = (found[name] for name in ("shape", "layout", "halo", "dims"))
    ndim = len(shape) if isinstance(shape, list) else 0

    def is_number(value: object) -> bool:
        # True is an int in Python.
        return type(value) is int and abs(value) < 2**63

    def are_numbers(value: Any) -> bool:
        return isinstance(value, list) and all(map(is_number, value))

    def is_per_axis(value: Any) -> bool:
        return are_numbers(value) and len(value) == ndim

    def is_text(value: object) -> bool:
        # JSON can name half a character.
        return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)

    return {
        "shape": is_per_axis(shape) and ndim <= 64,
        "strides": is_per_axis(found["strides"]),
        "offset": is_number(found["offset"]) and found["offset"] >= 0,
        "alignment_size": is_number(found["alignment_size"]) and found["alignment_size"] > 0,
        "dtype": is_text(found["dtype"]),
        "byteorder": found["byteorder"] in ("little", "big"),
        "dims": dims is None or (isinstance(dims, list) and all(map(is_text, dims))),
        "origin": found["origin"] is None or is_per_axis(found["origin"]),
        "halo": halo is None or (isinstance(halo, list) and all(are_numbers(pair) and len(pair) == 2 for pair in halo)),
        "halo_is_cut": isinstance(found["halo_is_cut"], bool),
        "layout": is_per_axis(layout) and sorted(layout) == list(range(ndim)),
        "padding": found["padding"] in ("none", "row"),
        "aligned_index": found["aligned_index"] is None or is_per_axis(found["aligned_index"]),
    }


def _text(header: Header) -> bytes:
    return json.dumps(header._asdict()).encode()


def _rounded(number: int, unit: int) -> int:
    """Return the first multiple of a unit that is not below a number."""
    return -(-number // unit) * unit


def _wrong(path: str, what: str) -> ExchangeError:
    return ExchangeError(f"path: {path!r}: {what}")
