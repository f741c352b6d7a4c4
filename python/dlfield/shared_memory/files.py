"""The files of shared memory: their names, and what they say of the block."""

import fcntl
import json
import mmap
import os
import re
import struct
from typing import Any, NamedTuple, TypeAlias

from dlfield._native import ExchangeError

_NAME = re.compile(r"dlfield-([0-9]{1,10})-([0-9]{1,10})-([0-9a-f]{32})")
# Magic number, version, bytes of the JSON after it, first byte and number of bytes of the block.
_HEADER = struct.Struct("<8sIIQQ")
_MAGIC = b"dlfield\0"
_VERSION = 1
_UUID_BYTES, _HANDLE_BYTES = 16, 64

State: TypeAlias = tuple[Any, ...]


class Header(NamedTuple):
    """What a file says of its block."""

    start: int
    nbytes: int
    state: State
    # UUID of the device, and handle of the memory; None for a block on the host.
    device: tuple[bytes, bytes] | None


def name_of(file: int, token: str) -> str:
    """Return the name under which another process finds an open file of this one."""
    return f"dlfield-{os.getpid()}-{file}-{token}"


def write_header(file: int, nbytes: int, state: State, device: tuple[bytes, bytes] | None = None) -> int:
    """Write what a new file says of its block, make room for a block on the host, and return the first byte of that."""
    text = json.dumps([*state, *(() if device is None else map(bytes.hex, device))]).encode()
    start = -(-(_HEADER.size + len(text)) // mmap.PAGESIZE) * mmap.PAGESIZE
    os.ftruncate(file, start + (nbytes if device is None else 0))
    os.pwrite(file, _HEADER.pack(_MAGIC, _VERSION, len(text), start, nbytes) + text, 0)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return start


def read_header(name: str, file: int) -> Header:
    """Read what a file says of its block, and check it."""
    size = os.fstat(file).st_size
    if size < _HEADER.size:
        raise ExchangeError(f"name: expected at least {_HEADER.size} bytes, got {size} in {name!r}")
    magic, version, length, start, nbytes = _HEADER.unpack(os.pread(file, _HEADER.size, 0))
    if (magic, version) != (_MAGIC, _VERSION):
        raise ExchangeError(
            f"name: expected memory of version {_VERSION}, got header {magic!r}, version {version} in {name!r}"
        )
    false = ExchangeError(
        f"name: {name!r} is of memory that says it has {length} bytes of text, and a block of {nbytes} bytes from byte "
        f"{start} on; it has {size} bytes"
    )
    if _HEADER.size + length > min(start, size):
        raise false
    try:
        content = json.loads(os.pread(file, length, _HEADER.size))
        sizes, numbers, dtype, metadata, (where, readonly), use, *on_device = content
        labels, origin, halo, *rest = metadata
        halo = None if halo is None else [tuple(widths) for widths in halo]
        state = (tuple(sizes), tuple(numbers), dtype, (labels, origin, halo, *rest), (where, readonly), tuple(use))
        device = _device_of(where, readonly, on_device)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise not_a_tensor(name, error) from error
    if device is None and (start % mmap.PAGESIZE or start + nbytes > size):
        raise false
    return Header(start, nbytes, state, device)


def _device_of(where: Any, readonly: Any, on_device: list[Any]) -> tuple[bytes, bytes] | None:
    """Return UUID of the device and handle of the memory; None for a block on the host."""
    if readonly is not False or (where != "cpu" and not on_device):
        raise ValueError(f"device: expected cpu, got {where}")
    if not on_device:
        return None
    uuid, handle = map(bytes.fromhex, on_device)
    if (len(uuid), len(handle)) != (_UUID_BYTES, _HANDLE_BYTES):
        raise ValueError(f"expected a handle of {_HANDLE_BYTES} bytes, got {len(handle)}")
    return uuid, handle


def parse_name(name: Any) -> tuple[int, str, str]:
    """Return the process of a name, where it has the file open, and what that links to. The name may be anything."""
    parts = _NAME.fullmatch(name) if type(name) is str else None
    if parts is None:
        found = repr(name) if isinstance(name, str | bytes | int | None) else f"a {type(name).__name__}"
        raise ExchangeError(f"name: expected a name that dlfield.shared_name returned, got {found}")
    return int(parts[1]), f"/proc/{parts[1]}/fd/{parts[2]}", f"/memfd:dlfield-{parts[3]} (deleted)"


def linked(path: str) -> str:
    """Return what a file links to."""
    # A quarter of the time of `attach` would be pathlib's.
    return os.readlink(path)  # noqa: PTH115


def gone(name: str) -> ExchangeError:
    """Return the error for memory that no process has any more."""
    found = f"no process has the memory {name!r}, or it is another user's"
    return ExchangeError(f"name: {found}; the process that called share() must keep the field alive")


def not_a_tensor(name: str, error: Exception) -> ExchangeError:
    """Return the error for memory with something else."""
    return ExchangeError(f"name: {name!r} is of memory that holds no tensor of this version: {error}")


def open_file(name: str, readonly: bool) -> int:
    """Open the file of a name."""
    _, path, link = parse_name(name)
    try:
        # Other files of the process are not opened: that alone has effects on some.
        if linked(path) != link:
            raise gone(name)
        flags = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
        file = os.open(path, flags | (os.O_RDONLY if readonly else os.O_RDWR))
    except OSError as error:
        raise gone(name) from error
    try:
        # Fails for files that are not anonymous.
        sealed = fcntl.fcntl(file, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK
        if linked(f"/proc/self/fd/{file}") != link or not sealed:
            raise gone(name)
    except BaseException as error:
        os.close(file)
        if isinstance(error, OSError):
            raise gone(name) from error
        raise
    return file
