"""Shared memory for tensors: anonymous files of Linux, which no directory lists and which need no cleaning up.

They do what `multiprocessing.shared_memory` does, whose resource tracker warns when it cleans up after a killed
process. An anonymous file is deleted when the last process that has it ends, and is not limited by the size of
`/dev/shm`. Its name is where the process that made it has it open. It is sealed: nobody can shrink it under another's
mapping.

Each file holds a header, and the tensor's state as JSON. A block on the host is in the file, from a page on. For a
block on a CUDA device the JSON holds the UUID of the device and CUDA's handle of the memory (`cuIpcGetMemHandle`), and
each process that has the memory open holds a lock on the file: the process that allocated it frees it after that.
"""

import errno
import fcntl
import mmap
import os
import secrets
import threading
import weakref
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dlfield._native import (
    DeviceError,
    Error,
    ExchangeError,
    LayoutError,
    Tensor,
    _allocate_shared,
    _block_state,
    _copy_state,
    _open_shared,
    _rebuild,
    _wait,
)
from dlfield.interop.copies import record_copy
from dlfield.shared_memory import sent as _sent
from dlfield.shared_memory.files import (
    State,
    gone,
    linked,
    name_of,
    not_a_tensor,
    open_file,
    parse_name,
    read_header,
    write_header,
)
from dlfield.shared_memory.sent import Receipt

# Bytes that divide the address of each block, in every process: CUDA promises 256.
_HOST_ALIGNMENT, _CUDA_ALIGNMENT = mmap.PAGESIZE, 256
# What keeps a block: the mapping of its file, or its bytes on a device.
_Memory: TypeAlias = mmap.mmap | Tensor


class _Segment(NamedTuple):
    """A block that this process has, as long as tensors and arrays on it live."""

    name: str
    # The file, which a child of `fork` has too; None for a block on a device.
    file: int | None
    memory: Callable[[], _Memory | None]
    # Where the block is in the file.
    start: int
    nbytes: int
    state: State


# The blocks of this process, by the link to their file and whether they are read-only, and by their address.
_by_link: dict[tuple[str, bool], _Segment] = {}
_by_address: dict[int, _Segment] = {}
# Held to enter segments and to remove them: the next block may have an address before the last one has left the list. A
# garbage collection may remove one in a thread that holds it.
_entries_lock = threading.RLock()


def _unlock_in_child() -> None:
    """Make a new lock in a child of `fork`, which does not have the thread that may have held the old one."""
    global _entries_lock
    _entries_lock = threading.RLock()
    _sent.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_in_child)


def share(tensor: Tensor) -> Tensor:
    """Return a copy of a tensor in shared memory: see `Tensor.share`."""
    if _segment_of(tensor) is not None:
        return tensor
    device = tensor.device
    if device != "cpu" and device.type != "cuda":
        raise DeviceError(f"device: expected cpu or cuda:N, got {device}; copy it with to_device('cpu')")
    if not hasattr(os, "memfd_create"):
        raise NotImplementedError("shared memory for tensors needs Linux")
    alignment = _HOST_ALIGNMENT if device == "cpu" else _CUDA_ALIGNMENT
    if alignment % tensor.alignment_size:
        found = f"alignment_size: {tensor.alignment_size}"
        raise LayoutError(f"{found}; allowed in shared memory is a divisor of {alignment}: copy it into another layout")
    nbytes, state = _copy_state(tensor)
    token = secrets.token_hex(16)
    try:
        file = os.memfd_create(f"dlfield-{token}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except OSError as error:
        raise _not_allocated(nbytes, error) from error
    if device == "cpu":
        made = _rebuild(_create_on_host(nbytes, state, file, token), state)
    else:
        made = _rebuild(_create_on_device(tensor, nbytes, state, file, token), state)
    made[...] = tensor
    record_copy(tensor.nbytes, "share() copies into shared memory")
    # Whoever is given the name reads at once.
    _wait(made)
    return made


def _create_on_host(nbytes: int, state: State, file: int, token: str) -> memoryview:
    """Make room for a block in a new file, which is closed with the block; return the block."""
    try:
        start = write_header(file, nbytes, state)
        mapping = mmap.mmap(file, start + nbytes)
        segment = _register_mapping(name_of(file, token), mapping, start, nbytes, state, False, file)
    except BaseException as error:
        os.close(file)
        if isinstance(error, OSError):
            raise _not_allocated(nbytes, error) from error
        raise
    return _block_on_host(mapping, segment)


def _not_allocated(nbytes: int, error: OSError) -> MemoryError:
    fix = "; drop fields that were shared, or raise the limit: ulimit -n" if error.errno == errno.EMFILE else ""
    return MemoryError(f"{nbytes} bytes of shared memory: {error}{fix}")


def _create_on_device(like: Tensor, nbytes: int, state: State, file: int, token: str) -> Tensor:
    """Allocate a block on a device, with a duplicate of the file, which is closed with it; return its bytes."""
    try:
        shared, block, uuid, handle, duplicate = _allocate_shared(like, file)
        write_header(file, nbytes, state, (uuid, handle))
    finally:
        os.close(file)
    _register_block(name_of(duplicate, token), shared.find, block, state)
    return block


def attach(name: str, *, readonly: bool = False) -> Tensor:
    """Return the tensor that another process has put into shared memory by `Tensor.share`, on the same memory.

    That process has to be alive, with a tensor or an array on the memory. Raises `ExchangeError` for a name that no
    process has, and for memory that does not hold a tensor; for memory on a GPU `DeviceError` if this process has no
    CUDA, does not see that GPU, or CUDA does not open the memory.

    On a GPU that process also has to stay alive as long as others have the memory: CUDA frees it with its process. It
    is closed here when the last tensor or array on it is gone, after the work on it in all recorded streams. What was
    written before the name was given out is there; the order of later work of two processes is up to them: synchronize
    (`dlfield.cuda.synchronize`) before you tell the other process.

    Parameters
    ----------
    name : str
        What `shared_name` returned in the other process.
    readonly : bool, optional
        True maps the memory without write access. CUDA has no such mappings: on a GPU only the tensor is read-only.

    Example
    -------
    >>> import dlfield as dl
    >>> field = dl.zeros((2, 3), dims="KI").share()
    >>> same = dl.attach(dl.shared_name(field), readonly=True)
    >>> field[1, 2] = 5.0
    >>> float(same[1, 2]), same.dims, same.readonly
    (5.0, ('K', 'I'), True)
    """
    memory, segment = _found(name, readonly)
    try:
        return _tensor(memory, segment, segment.state, readonly)
    except (Error, ValueError, TypeError, OverflowError) as error:
        raise not_a_tensor(name, error) from error


def shared_name(tensor: Tensor) -> str:
    """Return the name by which other processes of this machine attach the memory of a tensor in shared memory.

    On a GPU it first waits for the work on the memory in all recorded streams. Raises `ExchangeError` for a tensor in
    other memory.

    Example
    -------
    >>> import dlfield as dl
    >>> dl.shared_name(dl.zeros(3))
    Traceback (most recent call last):
        ...
    dlfield.ExchangeError: tensor: its memory is not shared; call Tensor.share(), and pass its result or a view of it
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"tensor: expected a Tensor that Tensor.share() returned, got {type(tensor).__name__}")
    segment = _segment_of(tensor)
    if segment is None:
        found = "its memory is not shared; call Tensor.share(), and pass its result or a view of it"
        raise ExchangeError(f"tensor: {found}")
    _wait(tensor)
    return segment.name


def _segment_of(tensor: Tensor) -> _Segment | None:
    """Return the segment that a tensor is in."""
    found = _block_state(tensor)
    segment = None if found is None else _by_address.get(found[0])
    # While it lives, no other memory has its address. Another field may be laid into the first part of it.
    if found is None or segment is None or segment.memory() is None or found[1][0][0] != segment.nbytes:
        return None
    return segment


def _found(name: str, readonly: bool) -> tuple[_Memory, _Segment]:
    """Return the memory of a name. One process has it once, so that overlap is found by address."""
    _, _, link = parse_name(name)
    for key in ((link, False), (link, True)) if readonly else ((link, False),):
        segment = _by_link.get(key)
        memory = None if segment is None else segment.memory()
        if segment is not None and memory is not None:
            if name != segment.name:
                # Another process's name of it.
                os.close(open_file(name, readonly))
            return memory, segment
    file = open_file(name, readonly)
    try:
        start, nbytes, state, device = read_header(name, file)
        if device is not None:
            found = _open_on_device(name, file, nbytes, state, *device)
            os.close(file)
            return found
        mapping = mmap.mmap(file, start + nbytes, access=mmap.ACCESS_READ if readonly else mmap.ACCESS_WRITE)
        return mapping, _register_mapping(name, mapping, start, nbytes, state, readonly, file)
    except BaseException as error:
        os.close(file)
        if isinstance(error, PermissionError):
            # Sealed against writing, which dlfield does not do.
            raise not_a_tensor(name, error) from error
        raise


def _open_on_device(
    name: str, file: int, nbytes: int, state: State, uuid: bytes, handle: bytes
) -> tuple[Tensor, _Segment]:
    """Open the block of another process on a device."""
    pid, path, link = parse_name(name)
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        # From here on it is not freed. Memory of this process that is not in the list is gone; CUDA would not open it.
        if pid == os.getpid() or linked(path) != link:
            raise gone(name)
    except OSError as error:
        raise gone(name) from error
    shared, block = _open_shared(uuid, handle, nbytes, file)
    return block, _register_block(name, shared.find, block, state)


def _register_mapping(
    name: str, mapping: mmap.mmap, start: int, nbytes: int, state: State, readonly: bool, file: int
) -> _Segment:
    """List a mapping as long as it lives; then close the file by which others find it."""

    def forget(_: object) -> None:
        with _entries_lock:
            if _by_link.get((link, readonly)) is segment:
                del _by_link[link, readonly]
            if _by_address.get(address) is segment:
                del _by_address[address]
        os.close(file)

    _, _, link = parse_name(name)
    segment = _Segment(name, file, weakref.ref(mapping, forget), start, nbytes, state)
    address = int(np.frombuffer(mapping, np.uint8).__array_interface__["data"][0]) + start
    with _entries_lock:
        _by_link[link, readonly] = segment
        _by_address[address] = segment
    return segment


def _register_block(name: str, find: Callable[[], Tensor | None], block: Tensor, state: State) -> _Segment:
    """List a block on a device, and remove those from the list that are gone: they do not call back."""
    for entry in [entry for entry, other in list(_by_link.items()) if other.memory() is None]:
        _by_link.pop(entry, None)
    for address in [address for address, other in list(_by_address.items()) if other.memory() is None]:
        _by_address.pop(address, None)
    # CUDA cannot open memory for reading only, so all tensors are on one block. Its allocator has the file.
    segment = _Segment(name, None, find, 0, block.nbytes, state)
    _by_link[parse_name(name)[2], False] = _by_address[block.ptr] = segment
    return segment


def _tensor(memory: _Memory, segment: _Segment, state: State, readonly: bool) -> Tensor:
    """Return the tensor with this state in a block."""
    if isinstance(memory, Tensor):
        block = memory.as_readonly() if readonly else memory
        # Another process may number the devices otherwise.
        sizes, numbers, dtype, metadata, _, use = state
        return _rebuild(block, (sizes, numbers, dtype, metadata, (str(memory.device), readonly), use))
    mapped = _block_on_host(memory, segment)
    return _rebuild(mapped.toreadonly() if readonly else mapped, state)


def _block_on_host(mapping: mmap.mmap, segment: _Segment) -> memoryview:
    """Return the memory of a block."""
    return memoryview(mapping)[segment.start : segment.start + segment.nbytes]


def _attached(name: str, state: State, receipt: Receipt) -> Tensor:
    """Return the tensor that another process has pickled by the name of its memory."""
    readonly = bool(state[4][1])
    memory, segment = _found(name, readonly)
    _sent.fetched(receipt)
    return _tensor(memory, segment, state, readonly)


def _reduce(tensor: Tensor) -> tuple[Any, ...]:
    """Return the pickle of a tensor for another process on this machine: the name of its memory, if that is shared.

    The memory is kept until that process has it: whoever sends a tensor may drop it at once.
    """
    segment = _segment_of(tensor)
    found = _block_state(tensor)
    if segment is None or found is None:
        return tensor.__reduce_ex__(4)
    # The other process reads at once.
    _wait(tensor)
    # By the file of this process, as the one that made the memory may have dropped it.
    name = segment.name if segment.file is None else name_of(segment.file, segment.name.rpartition("-")[2])
    return _attached, (name, found[1], _sent.keep(segment.memory()))


ForkingPickler.register(Tensor, _reduce)
