"""Shared memory that says of itself what it likes."""

import fcntl
import json
import os
import struct
from typing import Any


def forged(content: bytes, size: int = 8192) -> tuple[str, int]:
    """Memory that says of itself what it likes."""
    token = "2" * 32
    file = os.memfd_create("dlfield-" + token, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(file, size)
    os.pwrite(file, content[:size], 0)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    return f"dlfield-{os.getpid()}-{file}-{token}", file


def header(state: Any, start: int = 4096, nbytes: int = 96, length: int | None = None, **other: Any) -> bytes:
    text = state if isinstance(state, bytes) else json.dumps(state).encode()
    magic, version = other.get("magic", b"dlfield\0"), other.get("version", 1)
    return struct.pack("<8sIIQQ", magic, version, len(text) if length is None else length, start, nbytes) + text


def state(**changes: Any) -> list[Any]:
    parts: dict[str, Any] = {
        "sizes": [96, 0],
        "numbers": [[3, 4], [4, 1]],
        "dtype": "float64",
        "metadata": [None, None, None, False, None, "none", 1, None],
        "device": ["cpu", False],
        "use": [True, True],
    }
    return list({**parts, **changes}.values())
