"""The GIL is released while the host waits for a device: what it waits for may need another Python thread."""

import ctypes
import faulthandler
import functools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield import storage
from driver import PER_THREAD, Driver
from gates import Gate
from stream_producers import Exporter, Forgetful, Memory


@pytest.fixture
def gate(driver: Driver) -> Iterator[Gate]:
    yield Gate(driver)
    driver.wait_for_work()


def tensor_of_another_thread() -> dl.Tensor:
    """A tensor on another thread's per-thread default stream, which has no handle here: only a host wait orders it."""

    def make() -> dl.Tensor:
        with dl.cuda.stream(PER_THREAD):
            return dl.zeros(10, device="cuda:0")

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(make).result()


WAITS: dict[str, Callable[[dl.Tensor, dl.Tensor], Any]] = {
    "to the host": lambda host, device: host.__setitem__(..., device),
    "to a part of the host": lambda host, device: host.__setitem__(slice(3), device[:3]),
    "to_device": lambda _, device: device.to_device("cpu"),
}


@pytest.mark.parametrize("name", WAITS)
def test_small_copies(gate: Gate, name: str) -> None:
    host, device = dl.zeros(10), dl.ones(10, device="cuda:0")
    gate.stop()
    gate.opened_during(lambda: WAITS[name](host, device))
    assert device.shape == host.shape


@pytest.mark.parametrize("kind", ["cuda_host", "cuda_managed"])
@pytest.mark.parametrize("name", ["written", "capsule", "dropped"])
def test_pinned_and_managed_memory(gate: Gate, name: str, kind: str) -> None:
    held: list[Any] = [dl.zeros(10, device=kind)]
    value = dl.ones(10)
    if name == "capsule":
        held[0] = held[0].__dlpack__()
    gate.stop()
    gate.opened_during(held.clear if name != "written" else lambda: held[0].__setitem__(..., value))


@pytest.mark.parametrize("kind", ["cuda_host", "cuda_managed"])
def test_a_copy_of_numpys_view_of_pinned_or_managed_memory(gate: Gate, kind: str) -> None:
    """NumPy's array does not say that a device is still writing to its memory; the tensor that owns it knows."""
    host, device = dl.zeros(10, device=kind), dl.ones(10, device="cuda:0")
    view, copies = np.asarray(host), list[dl.Tensor]()
    gate.stop()
    host[...] = device
    gate.opened_during(lambda: copies.append(dl.from_array(view)))
    assert (np.asarray(copies[0]) == 1).all()


@functools.cache
def data_arrays() -> Any:
    """A class of DataArrays around the object itself: xarray would make an array of NumPy, which waits."""
    xarray = pytest.importorskip("xarray")

    class DataArray(xarray.DataArray):  # type: ignore[misc, name-defined]
        __slots__ = ("wrapped",)
        data = property(lambda self: self.wrapped)

    return DataArray


def data_array(array: Any) -> Any:
    made = data_arrays()(np.zeros(array.shape), dims=("I",))
    made.wrapped = array
    return made


def pair(tensor: dl.Tensor) -> Any:
    return storage.as_storage(tensor, dl.zeros(tensor.shape, device="cuda:0"))


WRAPPERS: dict[str, Callable[[dl.Tensor], Any]] = {
    "nothing": lambda tensor: tensor,
    # Memory of the host, as NumPy says, whose owner knows that a device writes to it.
    "owned view of NumPy": lambda tensor: dl.from_dlpack(np.asarray(tensor)),
    "DataArray": data_array,
    "Descriptor": dl.describe,
    "DLPack": Exporter,
    "Descriptor of a DataArray": lambda tensor: dl.describe(data_array(tensor)),
    "pair": pair,
    "DataArray of a pair": lambda tensor: data_array(pair(tensor)),
}


def numbers_at(address: int) -> list[float]:
    return list((ctypes.c_double * 10).from_address(address))


def bound(field: Any) -> list[float]:
    with dl.Signature(field=dl.FieldSpec("float64", "I"), device="cpu").bind(field=field) as fields:
        return numbers_at(fields.field.ptr)


CALLS: dict[str, Callable[[Any], Any]] = {
    "total": lambda field: extension().total(field) == 10,
    "sum": lambda field: extension().sum(field) == 10,
    "add_scaled": lambda field: extension().add_scaled(1.0, dl.zeros(10), field) is None,
    "bind": lambda field: bound(field) == [1.0] * 10,
    "describe for the host": lambda field: numbers_at(dl.describe(field, device="cpu").ptr) == [1.0] * 10,
    "as_numpy": lambda field: (dl.as_numpy(field) == 1).all(),
    "from_dlpack": lambda field: (np.asarray(dl.from_dlpack(field)) == 1).all(),
    "from_dlpack for the host": lambda field: (np.asarray(dl.from_dlpack(field, device="cpu")) == 1).all(),
}


def extension() -> Any:
    return pytest.importorskip("rust_extension")


@pytest.mark.parametrize("kind", ["cuda_host", "cuda_managed"])
@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("name", CALLS)
def test_an_argument_is_viewed_after_the_work_of_all_streams(
    driver: Driver, gate: Gate, name: str, wrapper: str, kind: str
) -> None:
    held, results = [dl.zeros(10, device=kind), dl.ones(10, device="cuda:0")], list[Any]()
    held.append(WRAPPERS[wrapper](held[0]))
    # The first call finds the module.
    CALLS[name](held[2])
    with driver.stream() as stream:
        gate.stop(stream)
        with dl.cuda.stream(stream):
            held[0][...] = held[1]
        gate.opened_during(lambda: results.append(CALLS[name](held[2])))
        assert results == [True]
        assert (np.asarray(held[0]) == 1).all()
        # Freed before the stream is destroyed.
        held.clear()


def test_an_argument_in_device_memory_is_not_waited_for(gate: Gate) -> None:
    rx = pytest.importorskip("rust_extension")
    device = dl.ones(10, device="cuda:0")
    gate.stop()
    # Waiting would not end.
    faulthandler.dump_traceback_later(30, exit=True)
    assert rx.ndim(device) == 1
    faulthandler.cancel_dump_traceback_later()
    gate.libc.sem_post(gate.semaphore)


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
def test_temporaries(gate: Gate) -> None:
    field = dl.ones(10, device="cuda:0")
    spec = dl.FieldSpec("float64", "I")
    bound = dl.Signature(field=spec, device="cpu", on_mismatch="copy").bind(field=field)
    gate.stop()
    gate.opened_during(bound.__enter__)
    assert dl.from_dlpack(bound.field)[9] == 1
    bound.__exit__(None, None, None)


ORDERED: dict[str, Callable[[dl.Tensor, int], Any]] = {
    "export": lambda field, stream: field.__dlpack__(stream=stream),
    "interface": lambda field, _: field.__cuda_array_interface__,
    "import": lambda field, stream: dl.from_dlpack(field, stream=stream),
    "describe": lambda field, _: dl.describe(field),
    "write": lambda field, _: field.__setitem__(..., field),
}


@pytest.mark.parametrize("name", ORDERED)
def test_per_thread_streams_of_other_threads(driver: Driver, gate: Gate, name: str) -> None:
    with driver.stream() as stream:
        held = [tensor_of_another_thread()]
        gate.stop()
        gate.opened_during(lambda: ORDERED[name](held[0], stream))
        # Freed before the stream is destroyed.
        held.clear()


@pytest.mark.parametrize("read", [dl.describe, dl.from_dlpack])
def test_releases_of_imported_memory(driver: Driver, gate: Gate, read: Callable[..., Any]) -> None:
    with driver.stream() as stream:
        producer = Forgetful(Memory(driver))
        held = [read(producer, stream=stream)]
        gate.stop(stream)
        gate.opened_during(held.clear)
        assert producer.tensor.deleted == 1


def test_a_rust_tensor_returned_during_graph_capture(driver: Driver, gate: Gate) -> None:
    kinds = pytest.importorskip("rust_extension").kinds
    with driver.stream() as stream:
        held: list[Any] = [kinds.Shared("cuda:0")]
        with driver.capturing(stream), dl.cuda.stream(stream):
            gate.stop()
            gate.opened_during(lambda: held.append(held[0].given()))
        # Freed before the stream is destroyed.
        held.clear()
