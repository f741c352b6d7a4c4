"""Names and contents of shared memory that are not dlfield's, or lie."""

import fcntl
import os
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from forged_memory import forged, header, state

if not hasattr(os, "memfd_create"):
    pytest.skip("shared memory for tensors needs Linux", allow_module_level=True)

ZEROS = "0" * 32
FORGED_NAMES: list[Any] = [
    *("", "/etc/passwd", "../../etc/passwd"),
    *(f"dlfield-{where}-{ZEROS}" for where in ("1-0", "99999999-3", "-1-0", "1-../0")),
    *(f"dlfield-1-0-{token}" for token in (ZEROS[1:], ZEROS + "\n")),
    *(None, 3, b"dlfield", []),
]


@pytest.mark.parametrize("name", FORGED_NAMES)
def test_forged_names_are_refused(name: Any) -> None:
    with pytest.raises(dl.ExchangeError, match=r"name: "):
        dl.attach(name)


def test_names_of_other_open_files_are_refused(tmp_path: Path) -> None:
    """The file must be the one that the name says, in an anonymous file that cannot shrink."""
    os.mkfifo(tmp_path / "pipe")
    pipe = os.open(tmp_path / "pipe", os.O_RDWR)
    unsealed = os.memfd_create("dlfield-" + "1" * 32)
    os.ftruncate(unsealed, 8192)
    for file in (pipe, unsealed):
        with pytest.raises(dl.ExchangeError, match="no process has the memory"):
            dl.attach(f"dlfield-{os.getpid()}-{file}-{'1' * 32}")
        os.close(file)
    shared = dl.ones(3).share()
    pid, _, token = dl.shared_name(shared).split("-")[1:]
    with pytest.raises(dl.ExchangeError, match="no process has the memory"):
        dl.attach(f"dlfield-{pid}-0-{token}")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", "header"),
        (header(state(), magic=b"dlfielx\0"), "header"),
        (header(state(), version=2), "version 2"),
        (header(state(), start=4095), "from byte 4095"),
        (header(state(), start=2**63), "it has 8192 bytes"),
        (header(state(), nbytes=4097), "it has 8192 bytes"),
        (header(state(), nbytes=2**64 - 4096), "it has 8192 bytes"),
        (header(state(), length=2**32 - 1), "it has 8192 bytes"),
        (header(state(), start=0), "it has 8192 bytes"),
        (header(b"{"), "no tensor"),
        (header(b"\xff\xff"), "no tensor"),
        (header(b"[" * 3000), "no tensor"),
        (header([]), "no tensor"),
        (header(None), "no tensor"),
        (header(3), "no tensor"),
        (header([1] * 6), "no tensor"),
        (header(state(sizes=[4096, 0])), "no tensor.*expected 4096 bytes of data, got 96"),
        (header(state(sizes=[96, 8])), "no tensor.*bytes 0 to 96 of the buffer, got 8 to 104"),
        (header(state(numbers=[[3, 4], [2**40, 1]])), "no tensor.*of the buffer, got"),
        (header(state(numbers=[[2**70, 4], [4, 1]])), "no tensor"),
        (header(state(dtype="object")), "no tensor.*dtype"),
        (header(state(metadata=3)), "no tensor"),
        (header(state(metadata=[None, None, [[1]], False, None, "none", 1, None])), "no tensor"),
        (header(state(metadata=[None, None, None, False, None, "none", -1, None])), "no tensor.*alignment_size"),
        (header(state(device=["moon", False])), "no tensor"),
    ],
)
def test_forged_memory_is_refused(content: bytes, error: str) -> None:
    name, file = forged(content)
    try:
        with pytest.raises(dl.ExchangeError, match=rf"name: .*{error}"):
            dl.attach(name)
    finally:
        os.close(file)


def test_memory_that_is_too_short_is_refused() -> None:
    for size in (0, 1, 31):
        name, file = forged(b"dlfield\0", size)
        with pytest.raises(dl.ExchangeError, match=f"expected at least .* bytes, got {size} in"):
            dl.attach(name)
        os.close(file)


def test_memory_that_is_sealed_against_writing_is_refused() -> None:
    name, file = forged(header(state()))
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    with pytest.raises(dl.ExchangeError, match="holds no tensor"):
        dl.attach(name)
    os.close(file)


def test_a_field_that_is_too_large_for_shared_memory_is_a_memory_error() -> None:
    """A field of so many points, which are one in memory."""
    field = dl.from_dlpack(np.broadcast_to(np.ones(1), (2**55,)))
    with pytest.raises(MemoryError, match="bytes of shared memory"):
        field.share()


def test_too_many_open_files_are_a_memory_error_that_names_the_limit() -> None:
    def open_files() -> list[int]:
        return sorted(int(file.name) for file in Path("/proc/self/fd").iterdir())

    def share_until_it_fails(kept: list[dl.Tensor]) -> None:
        while True:
            kept.append(field.share())

    field, before = dl.zeros(3), open_files()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Room for the file alone, and for the file and one duplicate, but not for two fields.
    for more in (1, 2, 3):
        shared: list[dl.Tensor] = []
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(before) + more, hard))
            with pytest.raises(MemoryError, match=r"Too many open files; drop fields .* ulimit -n$"):
                share_until_it_fails(shared)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        shared.clear()
        assert open_files() == before
