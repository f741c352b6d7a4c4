"""Memory that was sent to another process by its name: it is kept until that process has fetched it.

The process that fetches it writes the number of the message into a pipe of the process that sent it. It finds the pipe
as it finds the memory, in `/proc`. What nobody fetches goes with the process.
"""

import contextlib
import itertools
import os
import struct
import threading
import time
from multiprocessing import parent_process, util
from typing import TypeAlias

from dlfield.shared_memory.files import linked

# The process that sent a message, its pipe by file and inode, and the number of the message.
Receipt: TypeAlias = tuple[int, int, int, int]

_NUMBER = struct.Struct("<Q")
_numbers = itertools.count()
_kept: dict[int, object] = {}
_lock = threading.Lock()
_pipe: tuple[int, int] | None = None
# How long a worker that ends, as one with a limit of tasks, waits for the process that gets its results.
_PATIENCE_S = 5.0


def keep(memory: object) -> Receipt:
    """Keep memory that is sent, and return what `fetched` takes in the process that gets it."""
    global _pipe
    with _lock:
        if _pipe is None:
            reader, writer = os.pipe()
            threading.Thread(target=_release, args=(reader,), name="dlfield-sent", daemon=True).start()
            _pipe = writer, os.fstat(writer).st_ino
    number = next(_numbers)
    _kept[number] = memory
    return os.getpid(), *_pipe, number


def fetched(receipt: Receipt) -> None:
    """Let the process that sent memory release it, as this one has it now."""
    pid, writer, inode, number = receipt
    if pid == os.getpid():
        _kept.pop(number, None)
        return
    path = f"/proc/{pid}/fd/{writer}"
    # That process may have ended meanwhile. Nothing else of it is opened.
    with contextlib.suppress(OSError):
        if linked(path) == f"pipe:[{inode}]":
            file = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                os.write(file, _NUMBER.pack(number))
            finally:
                os.close(file)


def forget() -> None:
    """Keep nothing in a child of `fork`: its parent does."""
    global _lock, _pipe
    _lock, _pipe = threading.Lock(), None
    _kept.clear()


def _wait() -> None:
    """Wait until all is fetched, but not for ever: nobody may want it."""
    end = time.monotonic() + _PATIENCE_S
    while _kept and time.monotonic() < end:
        time.sleep(0.001)


def _wait_at_the_end(_: object = None) -> None:
    # After the threads that send the contents of queues.
    util.Finalize(None, _wait, exitpriority=-20)


if parent_process() is not None:
    _wait_at_the_end()
util.register_after_fork(_wait, _wait_at_the_end)


def _release(reader: int) -> None:
    """Release what was fetched; runs in a thread of its own."""
    # Each number is written at once, so it is read whole.
    while text := os.read(reader, _NUMBER.size):
        if len(text) == _NUMBER.size:
            _kept.pop(_NUMBER.unpack(text)[0], None)
