"""Shared memory for tensors: anonymous files of Linux, which no directory lists and which need no cleaning up.

They do what `multiprocessing.shared_memory` does, whose resource tracker warns when it cleans up after a killed
process. An anonymous file goes with the last process that has it, whatever ends that, and is not limited by the size of
`/dev/shm`. Its name is where the process that made it has it open. It is sealed: nobody can shrink it under another's
mapping.

Each file holds a header, the tensor's state as JSON, and from a page on its block.
"""

import fcntl
import json
import mmap
import os
import re
import secrets
import struct
import weakref
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dlfield._native import (
    DeviceError,
    Error,
    ExchangeError,
    LayoutError,
    Tensor,
    _block_state,
    _copy_state,
    _rebuild,
)

_NAME = re.compile(r"dlfield-([0-9]{1,10})-([0-9]{1,10})-([0-9a-f]{32})")
# Magic number, version, bytes of the JSON after it, first byte and number of bytes of the block.
_HEADER = struct.Struct("<8sIIQQ")
_MAGIC = b"dlfield\0"
_VERSION = 1


class _Segment(NamedTuple):
    """A mapping of this process, which lives as long as tensors and arrays on it."""

    name: str
    mapping: weakref.ref[mmap.mmap]
    # Where the block is in the file.
    start: int
    nbytes: int


# The mappings of this process, by name and whether they are read-only, and by the address of the block.
_by_name: dict[tuple[str, bool], _Segment] = {}
_by_address: dict[int, _Segment] = {}


def share(tensor: Tensor) -> Tensor:
    """Return a copy of a tensor in shared memory: see `Tensor.share`."""
    if _segment_of(tensor) is not None:
        return tensor
    if tensor.device != "cpu":
        raise DeviceError(f"device: {tensor.device}; allowed is cpu: copy it with to_device('cpu')")
    if not hasattr(os, "memfd_create"):
        raise NotImplementedError("shared memory for tensors needs Linux")
    if mmap.PAGESIZE % tensor.alignment_size:
        found = f"alignment_size: {tensor.alignment_size}"
        raise LayoutError(
            f"{found}; allowed in shared memory is a divisor of {mmap.PAGESIZE}: copy it into another layout"
        )
    nbytes, state = _copy_state(tensor)
    token = secrets.token_hex(16)
    file = os.memfd_create(f"dlfield-{token}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        text = json.dumps(state).encode()
        start = -(-(_HEADER.size + len(text)) // mmap.PAGESIZE) * mmap.PAGESIZE
        os.ftruncate(file, start + nbytes)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        mapping = mmap.mmap(file, start + nbytes)
        header = _HEADER.pack(_MAGIC, _VERSION, len(text), start, nbytes) + text
        mapping[: len(header)] = header
        made = _rebuild(_register(f"dlfield-{os.getpid()}-{file}-{token}", mapping, start, nbytes, False, file), state)
    except BaseException:
        os.close(file)
        raise
    made[...] = tensor
    return made


def attach(name: str, *, readonly: bool = False) -> Tensor:
    """Return the tensor in another process's shared memory: see `dlfield.attach`."""
    mapping, segment = _mapped(name, readonly)
    try:
        length = _HEADER.unpack_from(mapping)[2]
        state = _state(json.loads(bytes(mapping[_HEADER.size : min(_HEADER.size + length, segment.start)])))
        return _rebuild(_block(mapping, segment, readonly), state)
    except (Error, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ExchangeError(f"name: {name!r} is of memory that holds no tensor of this version: {error}") from error


def shared_name(tensor: Tensor) -> str:
    """Return the name of a tensor's shared memory: see `dlfield.shared_name`."""
    segment = _segment_of(tensor)
    if segment is None:
        found = "its memory is not shared; allowed is what Tensor.share() returned, or a view of it"
        raise ExchangeError(f"tensor: {found}")
    return segment.name


def _segment_of(tensor: Tensor) -> _Segment | None:
    """Return the segment that a tensor is in."""
    found = _block_state(tensor)
    segment = None if found is None else _by_address.get(found[0])
    # While it lives, no other memory has its address. Another field may be laid into the first part of it.
    if found is None or segment is None or segment.mapping() is None or found[1][0][0] != segment.nbytes:
        return None
    return segment


def _mapped(name: str, readonly: bool) -> tuple[mmap.mmap, _Segment]:
    """Return the mapping of a segment. One process maps it once, so that overlap is found by address."""
    for key in ((name, False), (name, True)) if readonly else ((name, False),):
        segment = _by_name.get(key)
        mapping = None if segment is None else segment.mapping()
        if segment is not None and mapping is not None:
            return mapping, segment
    file = _open(name, readonly)
    try:
        size = os.fstat(file).st_size
        if size < _HEADER.size:
            raise ExchangeError(f"name: {name!r} is of {size} bytes; allowed are at least {_HEADER.size}")
        mapping = mmap.mmap(file, size, access=mmap.ACCESS_READ if readonly else mmap.ACCESS_WRITE)
    finally:
        os.close(file)
    magic, version, length, start, nbytes = _HEADER.unpack_from(mapping)
    if (magic, version) != (_MAGIC, _VERSION):
        raise ExchangeError(
            f"name: {name!r} is of memory with header {magic!r}, version {version}; allowed is {_VERSION}"
        )
    if start % mmap.PAGESIZE or _HEADER.size + length > start or start + nbytes > size:
        found = f"{length} bytes of text, and a block of {nbytes} bytes from byte {start} on"
        raise ExchangeError(f"name: {name!r} is of memory that says it has {found}; it has {size} bytes")
    _register(name, mapping, start, nbytes, readonly, None)
    return mapping, _by_name[name, readonly]


def _open(name: str, readonly: bool) -> int:
    """Open the file of a name, which may be anything."""
    parts = _NAME.fullmatch(name) if type(name) is str else None
    if parts is None:
        raise ExchangeError(f"name: {name!r}; allowed is what dlfield.shared_name returned")
    path, link = f"/proc/{parts[1]}/fd/{parts[2]}", f"/memfd:dlfield-{parts[3]} (deleted)"
    gone = f"name: no process has the memory {name!r}, or it is another user's; keep the tensor where it was shared"
    try:
        # Other files of the process are not opened: that alone has effects on some.
        if str(Path(path).readlink()) != link:
            raise ExchangeError(gone)
        flags = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
        file = os.open(path, flags | (os.O_RDONLY if readonly else os.O_RDWR))
    except OSError as error:
        raise ExchangeError(gone) from error
    try:
        # Fails for what is no anonymous file.
        sealed = fcntl.fcntl(file, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK
        if str(Path(f"/proc/self/fd/{file}").readlink()) != link or not sealed:
            raise ExchangeError(gone)
    except BaseException as error:
        os.close(file)
        if isinstance(error, OSError):
            raise ExchangeError(gone) from error
        raise
    return file


def _register(name: str, mapping: mmap.mmap, start: int, nbytes: int, readonly: bool, file: int | None) -> memoryview:
    """List a mapping as long as it lives; then close the file by which others find it. Return its block."""

    def forget(_: object) -> None:
        if _by_name.get((name, readonly)) is segment:
            del _by_name[name, readonly]
        if _by_address.get(address) is segment:
            del _by_address[address]
        if file is not None:
            os.close(file)

    segment = _Segment(name, weakref.ref(mapping, forget), start, nbytes)
    address = int(np.frombuffer(mapping, np.uint8).__array_interface__["data"][0]) + start
    _by_name[name, readonly] = segment
    _by_address[address] = segment
    return _block(mapping, segment, readonly)


def _block(mapping: mmap.mmap, segment: _Segment, readonly: bool) -> memoryview:
    """Return the memory of a block."""
    block = memoryview(mapping)[segment.start : segment.start + segment.nbytes]
    return block.toreadonly() if readonly else block


def _state(found: Any) -> tuple[Any, ...]:
    """Return a state that was written as JSON, which has lists for tuples. `_rebuild` checks it."""
    sizes, numbers, dtype, metadata, device, use = found
    if device != ["cpu", False]:
        raise ValueError(f"device: {device}; allowed is cpu")
    labels, origin, halo, *rest = metadata
    halo = None if halo is None else [tuple(widths) for widths in halo]
    return tuple(sizes), tuple(numbers), dtype, (labels, origin, halo, *rest), tuple(device), tuple(use)


def _attached(name: str, state: tuple[Any, ...]) -> Tensor:
    """Return the tensor that another process has pickled by the name of its memory."""
    readonly = bool(state[4][1])
    mapping, segment = _mapped(name, readonly)
    return _rebuild(_block(mapping, segment, readonly), state)


def _reduce(tensor: Tensor) -> tuple[Any, ...]:
    """Return the pickle of a tensor for another process on this machine: the name of its memory, if that is shared."""
    segment = _segment_of(tensor)
    found = _block_state(tensor)
    if segment is None or found is None:
        return tensor.__reduce_ex__(4)
    return _attached, (segment.name, found[1])


ForkingPickler.register(Tensor, _reduce)
