"""`t.share()` and `dl.attach(name)` for device memory: one memory in several processes."""

import gc
import multiprocessing
import signal
from collections.abc import Iterator

import numpy as np
import pytest

import dlfield as dl
import shared_fields
from childproc import line, started
from children import CHILD, run_child
from driver import IS_FAKE, Driver
from shared_fields import KEPT, check_pools, no_files_left_open, on_host

PRESETS = ("gt:gpu", "gtcuda", "dace:gpu", "dace:gpu_IJK", "cupy")


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
                multiprocessing.reduction.ForkingPickler.dumps(shared)
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


ATTACHER = (
    CHILD
    + """
field = dl.attach(sys.argv[1])
print(float(field.to_device("cpu").to_numpy().sum()), flush=True)
sys.stdin.readline()
print(float(field.to_device("cpu").to_numpy().sum()), flush=True)
"""
)

CREATOR = (
    CHILD
    + """
field = dl.full((100, 100), 3.0, device="cuda:0").share()
print(dl.shared_name(field), flush=True)
sys.stdin.readline()
"""
)


def free_what_waits() -> None:
    """Drop memory of a device: then what could not be freed yet is tried again."""
    dl.empty(1, device="cuda:0")
    gc.collect()


def test_memory_that_others_have_is_freed_after_them(driver: Driver) -> None:
    before = driver.report()
    shared = dl.full((100, 100), 3.0, device="cuda:0").share()
    name = dl.shared_name(shared)
    attacher = started(ATTACHER, name)
    assert line(attacher) == "30000.0"
    del shared
    gc.collect()
    # Nobody finds it any more, and it is still there.
    for code in (f"dl.attach({name!r})", f"dl.attach({name!r}, readonly=True)"):
        with pytest.raises(dl.ExchangeError, match="no process has the memory"):
            eval(code)
    free_what_waits()
    if IS_FAKE:
        assert driver.report()["leaks"] == before["leaks"] + 1
    assert dl.memory_report().nbytes >= 80_000
    output, error = attacher.communicate("\n", timeout=60)
    assert (output.strip(), error, attacher.returncode) == ("30000.0", "", 0)
    free_what_waits()
    if IS_FAKE:
        assert driver.report()["leaks"] == before["leaks"]


def test_a_killed_attacher_keeps_nothing(driver: Driver) -> None:
    before = driver.report()
    shared = dl.full((100, 100), 3.0, device="cuda:0").share()
    attacher = started(ATTACHER, dl.shared_name(shared))
    assert line(attacher) == "30000.0"
    attacher.kill()
    _, error = attacher.communicate(timeout=60)
    assert (attacher.returncode, error) == (-signal.SIGKILL, "")
    assert on_host(shared) == [[3.0] * 100] * 100
    del shared
    gc.collect()
    if IS_FAKE:
        assert driver.report()["leaks"] == before["leaks"]


def test_a_killed_creator() -> None:
    creator = started(CREATOR)
    name = line(creator)
    attacher = started(ATTACHER, name)
    assert line(attacher) == "30000.0"
    creator.kill()
    _, error = creator.communicate(timeout=60)
    assert (creator.returncode, error) == (-signal.SIGKILL, "")
    with pytest.raises(dl.ExchangeError, match="no process has the memory"):
        dl.attach(name)
    output, error = attacher.communicate("\n", timeout=60)
    if IS_FAKE:
        # CUDA leaves open whether the others may still use it.
        assert (output.strip(), error, attacher.returncode) == ("30000.0", "", 0)


def test_what_waits_for_others_is_freed_where_memory_is_short(driver: Driver) -> None:
    if not IS_FAKE:
        pytest.skip("allocations fail on demand only on the test double")
    field = dl.ones((10,), device="cuda:0")
    shared = dl.ones((100, 100), device="cuda:0").share()
    attacher = started(ATTACHER, dl.shared_name(shared))
    assert line(attacher) == "10000.0"
    del shared
    gc.collect()
    attacher.communicate("\n", timeout=60)
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
        with pytest.raises(dl.DeviceError, match=f"device: {device}; allowed are cpu and cuda:N"):
            dl.zeros(3, device=device).share()
    with pytest.raises(dl.LayoutError, match="alignment_size: 512; allowed in shared memory is a divisor of 256"):
        dl.zeros((4, 5), alignment_size=512, device="cuda:0").share()
    with pytest.raises(dl.ExchangeError, match="its memory is not shared"):
        dl.shared_name(dl.ones(3, device="cuda:0"))
    field = dl.zeros(3, device="cuda:0")
    refused = pytest.raises(dl.DeviceError, match="is capturing a graph")
    with driver.stream() as stream, dl.cuda.stream(stream), driver.capturing(stream), refused:
        field.share()


@pytest.mark.parametrize("function", ["cuMemAlloc", "cuIpcGetMemHandle", "cuDeviceGetUuid"])
def test_a_driver_that_fails_while_memory_is_shared(driver: Driver, function: str) -> None:
    if not IS_FAKE:
        pytest.skip("functions fail on demand only on the test double")
    field = dl.zeros(3, device="cuda:0")
    driver.fail(function, 801)
    with pytest.raises(dl.DeviceError, match=f"{function} on cuda:0 failed"):
        field.share()


def test_a_driver_that_fails_while_memory_is_attached() -> None:
    if not IS_FAKE:
        pytest.skip("functions fail on demand only on the test double")
    shared = dl.full((3,), 2.0, device="cuda:0").share()
    output = run_child(f"""
for function in ("cuIpcOpenMemHandle", "cuMemGetAddressRange", "cuDeviceGetUuid"):
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
