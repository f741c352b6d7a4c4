"""Shared fields in processes of pools, for host and device memory: what they get is the memory itself."""

from __future__ import annotations

import gc
import multiprocessing
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from childproc import line, started

KEPT = ("shape", "strides", "dtype", "dims", "layout", "alignment_size", "aligned_index", "origin", "halo")


def labelled(preset: str, device: str, **keywords: Any) -> dl.Tensor:
    field = dl.zeros((3, 4, 5), "f4", backend=preset, dims="KIJ", halo=((1, 0), 1, (0, 2)), device=device, **keywords)
    field[...] = np.arange(60, dtype="f4").reshape(3, 4, 5)
    return field


def on_host(field: dl.Tensor) -> Any:
    return field.to_device("cpu").to_numpy().tolist()


def open_files(text: str) -> list[str]:
    """The open files whose names have a text."""
    links = []
    for path in Path("/proc/self/fd").iterdir():
        try:
            links.append(str(path.readlink()))
        except FileNotFoundError:
            continue
    return sorted(link for link in links if text in link)


@contextmanager
def no_files_left_open(text: str) -> Iterator[None]:
    opened = open_files(text)
    yield
    gc.collect()
    # What was sent is released once its receiver has said that it is fetched.
    for _ in range(200):
        if open_files(text) == opened:
            break
        time.sleep(0.01)
    assert open_files(text) == opened


def twice(field: dl.Tensor) -> float:
    """Double a shared tensor in place, in another process."""
    assert dl.shared_name(field)
    values = field.to_device("cpu").to_numpy() * 2
    field[...] = values
    if field.device != "cpu":
        dl.cuda.synchronize(field.device)
    return float(values.sum())


def same(field: dl.Tensor) -> dl.Tensor:
    return field


def made(number: int) -> dl.Tensor:
    """A field that nobody but its receiver keeps."""
    return dl.full((5,), float(number)).share()[1:]


def sent(queue: Any, number: int) -> None:
    field = made(number)
    queue.put(field)
    del field


def described(field: dl.Tensor) -> tuple[Any, ...]:
    return tuple(getattr(field, name) for name in (*KEPT, "readonly"))


def check_pools(method: str, pools: tuple[str, ...], shared: dl.Tensor, make_other: Callable[[], dl.Tensor]) -> None:
    """Check that processes get the memory and views of it, may write to it, and get a copy of other memory."""
    context = multiprocessing.get_context(method)
    makers: dict[str, Callable[[], Any]] = {
        "Pool": lambda: context.Pool(1),
        "Executor": lambda: ProcessPoolExecutor(1, mp_context=context),
    }
    for name in pools:
        with makers[name]() as pool:

            def call(work: Callable[[dl.Tensor], Any], field: dl.Tensor, pool: Any = pool) -> Any:
                return pool.submit(work, field).result(60) if hasattr(pool, "submit") else pool.apply(work, (field,))

            view = shared[1:, ::-2]
            expected = np.array(on_host(view)) * 2
            assert call(twice, view) == float(expected.sum())
            assert on_host(view) == expected.tolist()
            for field in (shared, view, shared.as_readonly(), shared.T, shared.domain_view):
                assert call(described, field) == described(field)
                back = call(same, field)
                assert (back.ptr, back.strides) == (field.ptr, field.strides)
            assert on_host(call(same, make_other())) == on_host(make_other())


ATTACHER = """
import sys
import dlfield as dl
field = dl.attach(sys.argv[1])
for _ in range(2):
    print(float(field.to_device("cpu").to_numpy().sum()), flush=True)
    sys.stdin.readline()
"""
CREATOR = """
import sys
import dlfield as dl
field = dl.full((100, 100), 3.0, device=sys.argv[1]).share()
print(dl.shared_name(field), flush=True)
sys.stdin.readline()
"""


def shared_threes(device: str) -> dl.Tensor:
    """Shared memory whose sum is 30000."""
    return dl.full((100, 100), 3.0, device=device).share()


def attached(name: str) -> subprocess.Popen[str]:
    """A process that has the memory of `shared_threes`; `ended` lets it read the memory again."""
    attacher = started(ATTACHER, name)
    assert line(attacher) == "30000.0"
    return attacher


def ended(attacher: subprocess.Popen[str]) -> None:
    output, error = attacher.communicate("\n\n", timeout=60)
    assert (output.strip(), error, attacher.returncode) == ("30000.0", "", 0)


def killed(process: subprocess.Popen[str]) -> None:
    process.kill()
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (-signal.SIGKILL, "")


def check_killed_processes(device: str) -> subprocess.Popen[str]:
    """One that has the memory leaves it to the others; after the creator they keep it, and nobody else finds it.

    Return a process that has it.
    """
    creator = started(CREATOR, device)
    name = line(creator)
    attacher = attached(name)
    killed(attached(name))
    assert float(np.sum(on_host(dl.attach(name)))) == 30000.0
    killed(creator)
    with pytest.raises(dl.ExchangeError, match="no process has the memory"):
        dl.attach(name)
    return attacher
