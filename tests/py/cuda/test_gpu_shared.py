"""`t.share()` and `dl.attach(name)` for device memory: one memory in several processes."""

import fcntl
import gc
import json
import multiprocessing
import os
import pickle
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dlfield as dl
import shared_fields
from childproc import run_python
from driver import IS_FAKE, MISUSE, Driver
from forged_memory import forged, header, state
from shared_fields import (
    KEPT,
    attached,
    check_killed_processes,
    check_pools,
    ended,
    killed,
    no_files_left_open,
    on_host,
    shared_threes,
)

double_only = pytest.mark.skipif(not IS_FAKE, reason="only the double fails on demand")
PRESETS = ("gt:gpu", "gtcuda", "dace:gpu", "dace:gpu_IJK", "cupy")


# Such a process prints at its end the misuse that its driver has counted: nothing.
CHILD = f"""
import sys
import numpy as np
import dlfield as dl
from driver import DRIVER as driver

def misuse():
    report = driver.report()
    return {{name: report[name] for name in {MISUSE!r} if report.get(name)}}
"""


def run_child(code: str) -> list[str]:
    return run_python(CHILD + code).splitlines()


@pytest.fixture(autouse=True)
def no_residue() -> Iterator[None]:
    with no_files_left_open("memfd:"):
        yield


def labelled(preset: str = "gt:gpu", device: str = "cuda:0") -> dl.Tensor:
    return shared_fields.labelled(preset, device)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_shared_copy_keeps_everything(driver: Driver, preset: str) -> None:
    for number in range(driver.device_count):
        field = labelled(preset, f"cuda:{number}")
        shared = field.share()
        assert [getattr(shared, name) for name in KEPT] == [getattr(field, name) for name in KEPT]
        assert (shared.device, shared.block.shape) == (field.device, field.block.shape)
        assert on_host(shared) == on_host(field)
        shared[...] = 0
        assert on_host(field)[2][3][4] == 59.0
        assert shared.share() is shared
        part = shared[1:]
        assert part.share() is part
        twin = dl.attach(dl.shared_name(part))
        assert (twin.ptr, twin.shape, twin.readonly) == (shared.ptr, shared.shape, False)
        assert dl.attach(dl.shared_name(part), readonly=True).readonly


def test_other_processes_attach_it_by_name() -> None:
    shared = labelled("gtcuda").share()
    output = run_child(f"""
field = dl.attach({dl.shared_name(shared)!r})
print([getattr(field, name) for name in {KEPT!r}])
print(field.to_device("cpu").to_numpy().ravel().tolist())
field[2, 3, 4] = -1.0
fixed = dl.attach({dl.shared_name(shared)!r}, readonly=True)
print(fixed.readonly, fixed.ptr == field.ptr, dl.shared_name(fixed) == {dl.shared_name(shared)!r})
print(driver.report().get("live_opened", 1), dl.memory_report().nbytes)
del field, fixed
print(driver.report().get("live_opened", 0), misuse())
fixed = dl.attach({dl.shared_name(shared)!r}, readonly=True)
print(fixed.readonly, fixed.block.readonly)
try:
    fixed[0, 0, 0] = 1.0
except ValueError as error:
    print("refused")
writable = dl.attach({dl.shared_name(shared)!r})
print(writable.readonly, writable.ptr == fixed.ptr)
""")
    assert output == [
        str([getattr(shared, name) for name in KEPT]),
        str([float(number) for number in range(60)]),
        "True True True",
        "1 0",
        "0 {}",
        "True True",
        "refused",
        "False True",
    ]
    assert float(shared.to_device("cpu")[2, 3, 4]) == -1.0


def test_others_see_nothing_but_the_field(driver: Driver) -> None:
    """Padding is zero, as it is on the host."""
    shared = dl.zeros((3, 5), alignment_size=64, device="cuda:0").share()
    assert shared.block.nbytes > shared.nbytes
    assert driver.read(shared.block.ptr, shared.block.nbytes) == bytes(shared.block.nbytes)


def test_scalars_and_empties() -> None:
    shapes: list[tuple[int, ...]] = [(), (0,), (2, 0, 3), (1, 1)]
    fields = [dl.full(shape, 2.5, device="cuda:0").share() for shape in shapes]
    expected = [np.full(shape, 2.5).tolist() for shape in shapes]
    assert list(map(on_host, fields)) == expected
    output = run_child(f"""
for name in {list(map(dl.shared_name, fields))!r}:
    print(dl.attach(name).to_device("cpu").to_numpy().tolist())
""")
    assert output == list(map(str, expected))


@pytest.mark.parametrize("pool", ["Pool", pytest.param("Executor", marks=pytest.mark.exhaustive)])
def test_pools_get_the_memory_and_views_of_it(pool: str) -> None:
    check_pools("spawn", (pool,), labelled().share(), lambda: labelled("dace:gpu"))


def test_the_content_is_there_before_the_name_is(driver: Driver) -> None:
    """Work that is queued in any stream is done when the name is given out, and when a tensor is pickled."""
    with driver.stream() as stream, dl.cuda.stream(stream):
        shared = labelled().share()
        for value in (7.0, 8.0):
            shared[...] = value
            if value == 7.0:
                name = dl.shared_name(shared)
            else:
                pickle.loads(multiprocessing.reduction.ForkingPickler.dumps(shared))
            output = run_child(f"print(float(dl.attach({name!r}).to_device('cpu').to_numpy().min()))")
            assert output == [str(value)]
        del shared


def test_it_is_closed_after_the_work_of_all_streams() -> None:
    shared = dl.zeros((1000,), device="cuda:0").share()
    output = run_child(f"""
with driver.stream() as first, driver.stream() as second:
    with dl.cuda.stream(first):
        field = dl.attach({dl.shared_name(shared)!r})
        field[:500] = 1.0
    with dl.cuda.stream(second):
        field[500:] = 2.0
    del field
print(misuse())
""")
    assert output == ["{}"]
    assert on_host(shared) == [1.0] * 500 + [2.0] * 500


def free_what_waits() -> None:
    """Drop memory of a device: then what could not be freed yet is tried again."""
    dl.empty(1, device="cuda:0")
    gc.collect()


def leaks(driver: Driver) -> int:
    """Blocks that were not freed, which only the test double counts."""
    return int(driver.report().get("leaks", 0))


def test_memory_that_others_have_is_freed_after_them(driver: Driver) -> None:
    before = leaks(driver)
    shared = shared_threes("cuda:0")
    name = dl.shared_name(shared)
    attacher = attached(name)
    del shared
    gc.collect()
    # Nobody finds it any more, and it is still there.
    for readonly in (False, True):
        with pytest.raises(dl.ExchangeError, match="no process has the memory"):
            dl.attach(name, readonly=readonly)
    free_what_waits()
    assert leaks(driver) == before + int(IS_FAKE)
    assert dl.memory_report().nbytes >= 80_000
    ended(attacher)
    free_what_waits()
    assert leaks(driver) == before


def test_a_killed_attacher_keeps_nothing(driver: Driver) -> None:
    before = leaks(driver)
    shared = shared_threes("cuda:0")
    killed(attached(dl.shared_name(shared)))
    assert on_host(shared) == [[3.0] * 100] * 100
    del shared
    gc.collect()
    assert leaks(driver) == before


def test_killed_processes() -> None:
    attacher = check_killed_processes("cuda:0")
    # CUDA leaves open whether the others may still use it.
    (ended if IS_FAKE else killed)(attacher)


@double_only
def test_what_waits_for_others_is_freed_where_memory_is_short(driver: Driver) -> None:
    field, shared = dl.ones((10,), device="cuda:0"), shared_threes("cuda:0")
    attacher = attached(dl.shared_name(shared))
    del shared
    gc.collect()
    ended(attacher)
    used = driver.report()["used"][0]
    driver.fail_allocations(0)
    again = field.share()
    assert driver.report()["used"][0] <= used
    assert on_host(again) == [1.0] * 10


def test_the_report_lists_what_this_process_allocated() -> None:
    before = dl.memory_report()
    shared = labelled().share()
    view = shared[1:]
    twin = dl.attach(dl.shared_name(shared))
    [found] = [block for block in dl.memory_report().blocks if block.address == shared.block.ptr]
    assert (found.nbytes, found.device, found.dims) == (shared.block.nbytes, "cuda:0", ("K", "I", "J"))
    assert (found.padding, found.owners, found.exported) == (shared.block.nbytes - shared.nbytes, 3, True)
    report = dl.memory_report()
    assert report.nbytes == before.nbytes + found.nbytes
    assert report.nbytes == report.small_nbytes + sum(block.nbytes for block in report.blocks)
    del shared, view, twin
    gc.collect()
    assert dl.memory_report().nbytes == before.nbytes


def test_what_cannot_be_shared(driver: Driver) -> None:
    for device in ("cuda_host", "cuda_managed"):
        with pytest.raises(dl.DeviceError, match=f"device: expected cpu or cuda:N, got {device}"):
            dl.zeros(3, device=device).share()
    with pytest.raises(dl.LayoutError, match="alignment_size: 512; allowed in shared memory is a divisor of 256"):
        dl.zeros((4, 5), alignment_size=512, device="cuda:0").share()
    with pytest.raises(dl.ExchangeError, match="its memory is not shared"):
        dl.shared_name(dl.ones(3, device="cuda:0"))
    field = dl.zeros(3, device="cuda:0")
    refused = pytest.raises(dl.DeviceError, match="is capturing a graph")
    with driver.stream() as stream, dl.cuda.stream(stream), driver.capturing(stream), refused:
        field.share()


@double_only
@pytest.mark.parametrize("function", ["cuMemAlloc", "cuIpcGetMemHandle", "cuDeviceGetUuid_v2"])
def test_a_driver_that_fails_while_memory_is_shared(driver: Driver, function: str) -> None:
    field = dl.zeros(3, device="cuda:0")
    driver.fail(function, 801)
    with pytest.raises(dl.DeviceError, match=f"{function} on cuda:0 failed"):
        field.share()


@double_only
def test_a_driver_that_fails_while_memory_is_attached() -> None:
    shared = dl.full((3,), 2.0, device="cuda:0").share()
    output = run_child(f"""
for function in ("cuIpcOpenMemHandle", "cuMemGetAddressRange", "cuDeviceGetUuid_v2"):
    driver.fail(function, 801)
    try:
        dl.attach({dl.shared_name(shared)!r})
    except dl.DeviceError as error:
        print(function in str(error), driver.report()["live_opened"])
    print(dl.attach({dl.shared_name(shared)!r}).tolist(), misuse())
""")
    assert output == ["True 0", "[2.0, 2.0, 2.0] {}"] * 3


def test_many_leave_nothing_behind(driver: Driver) -> None:
    used = driver.report().get("used")
    for _ in range(50):
        shared = dl.ones(10, device="cuda:0").share()
        assert dl.attach(dl.shared_name(shared)).ptr == shared.ptr
    del shared
    gc.collect()
    assert driver.report().get("used") == used


# Memory that lies about itself: whoever attaches it gets an error, and keeps nothing.
# Cases without a device are in test_shared_memory_forged.py.

CASES: dict[str, tuple[dict[str, Any], str]] = {
    "no such device": (
        {"uuid": "00" * 16},
        "DeviceError: name: .*got the GPU with UUID 0{32}; check CUDA_VISIBLE_DEVICES",
    ),
    "no such memory": ({"handle": "01" * 64}, "DeviceError: device: cuIpcOpenMemHandle on cuda:0 failed"),
    "a short handle": ({"handle": "01" * 63}, "ExchangeError: name: .* holds no tensor .*got 63"),
    "a short UUID": ({"uuid": "01" * 15}, "ExchangeError: name: .* holds no tensor"),
    "no hexadecimal number": ({"handle": "xy"}, "ExchangeError: name: .* holds no tensor"),
    "no text": ({"handle": 3}, "ExchangeError: name: .* holds no tensor"),
    "a longer block": ({"nbytes": 1 << 40}, "ExchangeError: name: .*a block of 1099511627776 bytes in memory"),
    "shared elements": ({"numbers": [[3, 4], [0, 1]]}, "ExchangeError: name: .* holds no tensor"),
    "no alignment": (
        {"metadata": [None, None, None, False, None, "none", 1 << 20, None]},
        "ExchangeError: name: .* not aligned as it is said to be",
    ),
    "read-only": ({"device": ["cuda:0", True]}, "ExchangeError: name: .* holds no tensor"),
    "another number of the device": ({"device": ["cuda:77", False]}, "cuda:0"),
}


def forge(shared: dl.Tensor, changes: dict[str, Any]) -> tuple[str, int]:
    """Make a file with the handle of a tensor's memory, but for the changes; return its name and number."""
    text = os.pread(int(dl.shared_name(shared).split("-")[2]), 4096, 0)[32:]
    uuid, handle = json.loads(text.rstrip(b"\0"))[6:]
    known = {"uuid": uuid, "handle": handle, "nbytes": 96, "device": ["cuda:0", False], **changes}
    uuid, handle, nbytes = known.pop("uuid"), known.pop("handle"), known.pop("nbytes")
    return forged(header([*state(**known), uuid, handle], nbytes=nbytes))


def test_forged_memory_is_refused() -> None:
    shared = dl.zeros((3, 4), device="cuda:0").share()
    made = [forge(shared, changes) for changes, _ in CASES.values()]
    output = run_child(f"""
for name in {[name for name, _ in made]!r}:
    try:
        print(dl.attach(name).device)
    except dl.Error as error:
        print(f"{{type(error).__name__}}: {{error}}")
print(driver.report().get("live_opened", 0), misuse())
""")
    for _, file in made:
        os.close(file)
    assert output[-1] == "0 {}"
    for case, (_, expected), found in zip(CASES, CASES.values(), output, strict=False):
        if IS_FAKE or case != "no alignment":
            assert re.match(expected, found), (case, found)


def test_memory_that_is_about_to_be_freed_is_not_found() -> None:
    """The process that allocated it has the lock then; before it closes the file, and afterwards."""
    shared = dl.zeros((3, 4), device="cuda:0").share()
    name, file = forge(shared, {})
    fcntl.flock(file, fcntl.LOCK_EX)
    output = run_child(f"""
try:
    dl.attach({name!r})
except dl.ExchangeError as error:
    print("no process has the memory" in str(error))
""")
    os.close(file)
    assert output == ["True"]


def test_memory_of_this_process_is_not_opened() -> None:
    """CUDA would refuse it."""
    shared = dl.zeros((3, 4), device="cuda:0").share()
    name, file = forge(shared, {})
    with pytest.raises(dl.ExchangeError, match="no process has the memory"):
        dl.attach(name)
    os.close(file)
