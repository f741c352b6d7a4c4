"""Fields on a device: moved, copied, indexed, assigned, pickled, shown."""

import ctypes
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield import storage
from driver import IS_FAKE, Driver
from storages import CLEAN, DEVICE, HOST, copies, pair

DEVICES = ("cuda:0", "cuda_host", "cuda_managed")
KINDS = ("cpu", *DEVICES)


def numbers(*shape: int) -> Any:
    return np.arange(float(np.prod(shape))).reshape(shape)


def field_on(device: str, **keywords: Any) -> dl.Tensor:
    options: dict[str, Any] = {"dims": "KI", "halo": (1, 0), "alignment_size": 64, **keywords}
    return dl.from_array(numbers(5, 7), device=device, **options)


def held(field: dl.Tensor) -> Any:
    return np.array(field.to_device("cpu"))


# What to_device and pickles keep is in test_conformance.py.


@pytest.mark.parametrize("there", KINDS)
@pytest.mark.parametrize("here", KINDS)
def test_to_device_shares_memory_that_both_reach(here: str, there: str) -> None:
    field = field_on(here)
    moved = field.to_device(there)
    same = here == there or (here in ("cuda_host", "cuda_managed") and there in ("cpu", "cuda:0"))
    assert (str(moved.device), moved.ptr == field.ptr) == (there, same)


@pytest.mark.parametrize("device", DEVICES)
def test_pickles_with_buffers_of_their_own(device: str) -> None:
    padded = dl.from_array(numbers(3, 5), "f4", alignment_size=64, halo=((1, 0), (0, 2)), device=device)
    for field in (field_on(device).as_readonly(), field_on(device)[1:, ::2], dl.zeros(0, device=device), padded):
        buffers: list[pickle.PickleBuffer] = []
        made = pickle.loads(pickle.dumps(field, 5, buffer_callback=buffers.append), buffers=buffers)
        for name in ("device", "readonly", "shape", "dims", "halo", "origin", "dtype"):
            assert getattr(made, name) == getattr(field, name)
        assert (held(made) == held(field)).all()
    assert made.strides == padded.strides


def test_to_device_in_the_order_of_the_stream(driver: Driver) -> None:
    with driver.stream() as ours:
        field = dl.zeros(64, device="cuda:0", stream=ours)
        driver.fill(field.ptr, 1, 512, ours)
        moved = field.to_device("cpu", stream=ours)
        assert moved.to_numpy().tobytes() == b"\1" * 512
        back = moved.to_device("cuda:0", stream=dl.cuda.Stream(ours))
        assert driver.read(back.ptr, 512, ours) == b"\1" * 512
        del field, back


@pytest.mark.skipif(not IS_FAKE, reason="only the double fails on demand")
def test_assignment_raises_the_drivers_error(driver: Driver) -> None:
    on_device, on_host = dl.ones(64, device="cuda:0"), dl.zeros(64)
    driver.wait_for_work()
    for function, to, value in (
        ("cuMemcpyHtoDAsync", on_device, on_host),
        ("cuMemcpyDtoHAsync", on_host, on_device),
        ("cuStreamSynchronize", on_host, on_device),
    ):
        for index in (..., slice(None)):
            driver.fail(function, 719)
            with pytest.raises(dl.DeviceError, match=function):
                to[index] = value
            # If the wait failed, the copy may still be running.
            driver.wait_for_work()


def test_assignment_during_graph_capture_is_refused(driver: Driver) -> None:
    with driver.stream() as stream:
        on_device, on_host = dl.ones(64, device="cuda:0"), dl.zeros(64)
        refused = pytest.raises(dl.DeviceError, match="is capturing a graph")
        with driver.capturing(stream), dl.cuda.stream(stream), refused:
            on_host[...] = on_device
        # Freed before the stream is destroyed.
        del on_device


def test_shown() -> None:
    for device in DEVICES:
        field = field_on(device)
        assert device in field._repr_html_()
        picture = dl.draw(field).svg
        assert device in picture
        assert ">0,1</text>" in picture
        # The host cannot read a GPU's memory; pinned and managed memory it can.
        assert (": 1.0</title>" in picture) == (not device.startswith("cuda:"))


def test_overlapping_assignment() -> None:
    field = dl.from_array(np.arange(8.0), device="cuda:0")
    field[1:] = field[:-1]
    assert held(field).tolist() == [0, 0, 1, 2, 3, 4, 5, 6]


def test_preflight() -> None:
    field = dl.zeros((3, 4), device="cuda:0")
    assert dl.preflight(field, "numpy").verdict == "impossible"
    assert dl.preflight(field, "numpy").fix == "copy it to the host: from_dlpack(obj, device='cpu')"
    assert dl.preflight(field, "cupy")
    for device in ("cuda_host", "cuda_managed"):
        assert dl.preflight(dl.zeros((3, 4), device=device), "numpy", write=True)


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
def test_temporaries_on_a_device() -> None:
    """The device corrects layout and alignment; the host converts elements, so it must be able to read the argument."""
    spec = dl.FieldSpec("float64", "IJ", access="rw", layout=(0, 1), alignment_size=64)
    signature = dl.Signature(x=spec, device="cuda:0", on_mismatch="copy")
    values = numbers(4, 9)
    for field in (
        dl.from_array(values, backend="F", device="cuda:0"),
        dl.from_array(np.pad(values, ((0, 0), (1, 0))), device="cuda:0")[:, 1:],
        dl.from_array(values, "float32", device="cuda_host"),
        dl.from_array(values, "float32"),
    ):
        with signature.bind(x=field) as bound:
            assert (bound.x.device, bound.x.layout, bound.x.ptr % 64) == ("cuda:0", (0, 1), 0)
            assert bound.x.ptr != field.ptr
            dl.from_dlpack(bound.x)[...] = 2.0 * values
        assert (held(field) == 2.0 * values).all()
    with pytest.raises(dl.DTypeError, match='field "x": dtype: expected float64, got float32'):
        signature.bind(x=dl.from_array(values, "float32", device="cuda:0"))


def number_at(described: Any) -> float:
    return ctypes.c_double.from_address(described.ptr).value


READS: dict[str, Callable[[dl.Tensor], Any]] = {
    "item": lambda field: field[0],
    "to_numpy": lambda field: field.to_numpy()[0],
    "__array__": lambda field: np.asarray(field)[0],
    "memoryview": lambda field: memoryview(field)[0],
    "from_dlpack": lambda field: np.from_dlpack(field)[0],
    "dl_device": lambda field: np.from_dlpack(field, device="cpu")[0],
    "as_numpy": lambda field: dl.as_numpy(field)[0],
    "owned": lambda field: dl.from_dlpack(field)[0],
    "describe": lambda field: number_at(dl.describe(field)),
    "described twice": lambda field: number_at(dl.describe(dl.describe(field))),
    "bound": lambda field: number_at(dl.Signature(f=dl.FieldSpec("float64", "I"), device="cpu").bind(f=field).f),
    "interface": lambda field: ctypes.c_double.from_address(field.__array_interface__["data"][0]).value,
    "pickle": lambda field: pickle.loads(pickle.dumps(field))[0],
    "old pickle": lambda field: pickle.loads(pickle.dumps(field, 2))[0],
    "copy": lambda field: field.copy()[0],
    "view": lambda field: field[:3][0],
    "as_torch": lambda field: pytest.importorskip("torch") and float(dl.as_torch(field)[0]),
    "torch": lambda field: float(pytest.importorskip("torch").from_dlpack(field)[0]),
}


WRITES: dict[str, Callable[[dl.Tensor], Any]] = {
    "number": lambda field: field.__setitem__(..., 6.0),
    "array": lambda field: field.__setitem__(..., np.full(1000, 6.0)),
    "positions": lambda field: field.__setitem__([0, 1], 6.0),
    "to_numpy": lambda field: field.to_numpy().fill(6.0),
}


@pytest.mark.parametrize("device", ["cuda_host", "cuda_managed"])
@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_the_host_waits_for_work_of_a_device(driver: Driver, name: str, device: str) -> None:
    """It reads what the device writes, and writes after the device has read."""
    with driver.stream() as ours:
        both = dl.full(1000, 5.0, device=device)
        host, on_device, other = both.to_device("cpu"), both.to_device("cuda:0"), dl.ones(1000, device="cuda:0")
        with dl.cuda.stream(ours):
            if name in READS:
                on_device[...] = other
            else:
                other[...] = on_device
                WRITES[name](host)
                assert held(other)[0] == 5.0
        assert (READS[name](host) if name in READS else host[0]) == (1.0 if name in READS else 6.0)
        del both, host, on_device, other


@pytest.mark.usefixtures("driver")
def test_blocks_on_devices_are_in_the_report() -> None:
    field = dl.zeros((3, 5), "f4", alignment_size=64, dims="KI", device="cuda:0")
    [found] = [block for block in dl.memory_report().blocks if block.address == field.block.ptr]
    assert (found.nbytes, found.padding, found.device, found.dims, found.owners) == (192, 132, "cuda:0", ("K", "I"), 1)
    del field
    report = dl.memory_report()
    assert sum(block.nbytes for block in report.blocks) + report.small_nbytes == report.nbytes


DEVICES = ("cuda:0", "cuda_host", "cuda_managed")


def values_of(text: str) -> str:
    """The values in a repr."""
    found = re.match(r"(?s)\w+\((.*?),\s+shape=", text)
    assert found is not None, text
    return found[1]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(), (0, 4), (2, 3), (1000,), (1001,), (7, 200), (6, 200), (8, 9, 10, 11), (2000, 1)])
@pytest.mark.parametrize("dtype", ["f8", "i2", "bfloat16"])
def test_values_are_shown_as_on_the_host(device: str, shape: tuple[int, ...], dtype: str) -> None:
    array = np.random.default_rng(1).integers(0, 99, shape).astype(dl.zeros(0, dtype).dtype)
    field = dl.from_array(array, device=device)
    expected = dl.from_array(array)
    assert repr(field) == repr(expected).replace("device='cpu'", f"device='{device}'")
    assert (str(field), f"{field}") == ((str(expected),) * 2 if shape == () else (repr(field),) * 2)


def test_views_and_layouts_are_shown() -> None:
    for keywords in ({"backend": "F"}, {"alignment_size": 64}, {"dims": "KJ"}):
        field = dl.from_array(np.arange(4000.0).reshape(40, 100), device="cuda:0", **keywords)
        for view in (field, field[::-2, 3:], field.T, field.as_readonly()):
            assert values_of(repr(view)) == values_of(repr(view.to_device("cpu")))


def test_print_options_are_numpys() -> None:
    field = dl.from_array(np.arange(300.0).reshape(3, 100) / 7, device="cuda:0")
    for options in ({"threshold": 10}, {"threshold": 10, "edgeitems": 1}, {"precision": 2}):
        with np.printoptions(**options):  # type: ignore[arg-type]
            assert values_of(repr(field)) == values_of(repr(field.to_device("cpu")))

    with np.printoptions(edgeitems=0, threshold=0):
        assert "..." in repr(field)


def test_graph_capture(driver: Driver) -> None:
    """During graph capture `repr` works without the values; it does not wait, and captures nothing."""
    field, scalar = dl.ones((3, 4), device="cuda:0"), dl.ones((), device="cuda:0")
    with driver.stream() as stream, dl.cuda.stream(stream):
        with driver.capturing(stream):
            texts = repr(field), str(scalar), f"{field}"
        for text in texts:
            assert "<values on cuda:0, not read: " in text
            assert "dtype=float64" in text
        assert "[1., 1., 1., 1.]" in repr(field)
        del field, scalar


def test_repr_waits_for_the_stream(driver: Driver) -> None:
    with driver.stream() as stream, dl.cuda.stream(stream):
        field = dl.zeros((2, 3), "u1", device="cuda:0")
        driver.fill(field.ptr, 7, 6, stream)
        assert "[7, 7, 7]" in repr(field)
        del field


@pytest.mark.parametrize("state", [CLEAN, HOST, DEVICE])
def test_a_pair_shows_its_up_to_date_values(state: int) -> None:
    field = pair(state, np.full((4, 3), 6.0))
    with copies(to_host=3 if state == DEVICE else 0):
        text = repr(field)
        assert str(field) == f"{field}" == text
    assert values_of(text).count("6.") == 12
    assert text.splitlines()[1].startswith(" " * len("SoftwareManagedGPUStorage("))
    assert "device='cuda:0'" in text
    assert text.endswith(f"sync_state={field.sync_state!r})")
    assert field.sync_state.state == state, "nothing was brought up to date"


def test_a_pair_without_dimensions_is_a_number() -> None:
    field = storage.storage(np.array(2.5), device="gpu")
    assert str(field) == f"{field}" == "2.5"


def test_only_what_is_shown_is_copied(driver: Driver) -> None:
    field = dl.ones((512, 512, 16), device="cuda:0")
    driver.wait_for_work()
    before = driver.report()
    with pytest.raises(TypeError, match=r"Tensor\(shape=\(512, 512, 16\)"):
        dl.zeros(3, dims="I", device=field)  # type: ignore[arg-type]
    assert not IS_FAKE or driver.report()["bytes_to_host"] == before["bytes_to_host"]
    assert "..." in repr(field)
    assert not IS_FAKE or driver.report()["bytes_to_host"] - before["bytes_to_host"] == 6 * 6 * 6 * 8
