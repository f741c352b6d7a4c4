"""Imports of device memory: the producer's work comes first, then dlfield's, and then the release."""

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from driver import IS_FAKE, LEGACY, Driver
from fakes import exchange_type
from stream_producers import NBYTES, SHAPE, Forgetful, Interface, Memory, Producer

ONES = np.frombuffer(b"\1" * 8, "f8")[0]
READERS = (dl.describe, dl.from_dlpack)


def current(stream: int, read: Callable[..., Any], producer: Producer) -> Any:
    with dl.cuda.stream(stream):
        return read(producer)


# How the consumer states its stream, and the stream that the producer gets then.
STATED: dict[str, tuple[Callable[[int, Callable[..., Any], Producer], Any], Callable[[int], int]]] = {
    "current": (current, lambda stream: stream),
    "default": (lambda _, read, producer: read(producer), lambda _: LEGACY),
    "handle": (lambda stream, read, producer: read(producer, stream=stream), lambda stream: stream),
    "stream": (lambda stream, read, producer: read(producer, stream=dl.cuda.Stream(stream)), lambda stream: stream),
}


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("version", [(1, 0), None])
@pytest.mark.parametrize("name", STATED)
def test_the_producer_gets_the_stream(
    driver: Driver, name: str, version: tuple[int, int] | None, read: Callable[..., Any]
) -> None:
    state, expected = STATED[name]
    with driver.stream() as ours:
        producer, stream = Producer(Memory(driver), version), expected(ours)
        field = state(ours, read, producer)
        assert producer.streams == [stream]
        assert (field.device, field.shape, field.ptr) == ("cuda:0", SHAPE, producer.memory.address)
        assert driver.read(field.ptr, NBYTES, stream) == b"\1" * NBYTES
        driver.fill(field.ptr, 2, NBYTES, stream)
        del field
        assert producer.tensor.deleted == 1


@pytest.mark.parametrize("read", READERS)
def test_a_failing_current_work_stream_is_named(driver: Driver, read: Callable[..., Any]) -> None:
    producer = Producer(Memory(driver))
    with pytest.raises(dl.ExchangeError, match=r"^__dlpack_c_exchange_api__\.current_work_stream: .*Exporting"):
        read(exchange_type(producer.tensor, silent=True)())
    assert producer.tensor.deleted == 1


@pytest.mark.parametrize("read", READERS)
def test_stream_minus_1_is_passed_on(driver: Driver, read: Callable[..., Any]) -> None:
    producer = Producer(Memory(driver))
    field = read(producer, stream=-1)
    assert producer.streams == [-1]
    del field


@pytest.mark.parametrize("read", READERS)
def test_the_interface_names_the_stream_to_wait_for(driver: Driver, read: Callable[..., Any]) -> None:
    with driver.stream() as ours:
        for stated in (True, False):
            producer = Interface(Memory(driver))
            if stated:
                field = read(producer, stream=ours)
            else:
                with dl.cuda.stream(ours):
                    field = read(producer)
            assert field.device == "cuda:0"
            driver.fill(field.ptr, 2, NBYTES, ours)
            assert driver.read(field.ptr, NBYTES, ours) == b"\2" * NBYTES
            driver.fill(field.ptr, 3, NBYTES, ours)
            driver.synchronize(ours)
            del field, producer
            gc.collect()


@pytest.mark.parametrize("version", [2, 3])
def test_the_interface_without_a_stream(driver: Driver, version: int) -> None:
    """Such an interface states that no work is pending."""
    producer = Interface(Memory(driver), version=version, **({"stream": None} if version == 3 else {}))
    producer.memory.wait_for_work()
    field = dl.from_dlpack(producer)
    assert driver.read(field.ptr, NBYTES) == b"\1" * NBYTES
    del field, producer


def test_the_interface_with_an_invalid_stream(driver: Driver) -> None:
    producer = Interface(Memory(driver), stream=0)
    for read in READERS:
        with pytest.raises(dl.ExchangeError, match=r'\["stream"\]: expected .*, got 0'):
            read(producer)


def test_the_driver_knows_which_device(driver: Driver) -> None:
    """The driver knows the device, which the interface does not state."""
    last = driver.device_count - 1
    producer = Interface(Memory(driver, last))
    assert dl.describe(producer).device == dl.from_dlpack(producer).device == f"cuda:{last}"
    assert dl.from_dlpack(producer, device=f"cuda:{last}").device == f"cuda:{last}"


def test_a_requested_device_is_checked(driver: Driver) -> None:
    producer = Interface(Memory(driver))
    for read in READERS:
        assert read(producer, device="cuda:0").device == "cuda:0"
        with pytest.raises(dl.DeviceError, match="expected memory on cuda_managed, got memory on cuda:0"):
            read(producer, device="cuda_managed")
    host = np.ones(SHAPE)
    producer.entries["data"] = (host.ctypes.data, False)
    for read in READERS:
        with pytest.raises(dl.DeviceError, match="expected memory that CUDA allocated"):
            read(producer, device="cuda:0")


def test_padded(driver: Driver) -> None:
    producer = Interface(Memory(driver), shape=(4, 3), strides=(64, 8))
    field = dl.from_dlpack(producer, dims="KI")
    assert (field.shape, field.strides, field.dims) == ((4, 3), (64, 8), ("K", "I"))
    host = field.to_device("cpu")
    assert (np.asarray(host) == ONES).all()
    assert host.dims == ("K", "I")
    del field


def test_chained_consumers_release_in_order(driver: Driver) -> None:
    """The release also waits for the consumer of a consumer, on a blocking stream."""
    with driver.stream() as ours, driver.stream(blocking=True) as third:
        producer = Interface(Memory(driver))
        field = dl.from_dlpack(producer, stream=ours)
        capsule = field.__dlpack__(stream=third)
        del producer, field
        driver.fill(dl.describe(again := dl.from_dlpack(capsule)).ptr, 5, NBYTES, third)
        del capsule, again
        gc.collect()


@pytest.mark.parametrize("stated", [True, False])
def test_our_work_is_done_before_a_producer_frees(driver: Driver, stated: bool) -> None:
    """The release comes after dlfield's work even if the producer ignores the stream that it got."""
    with driver.stream() as ours:
        producer = Forgetful(Memory(driver))
        with dl.cuda.stream(ours):
            field = dl.from_dlpack(producer, stream=ours if stated else None)
            copy = field.copy()
            del field
            assert (producer.tensor.deleted, producer.streams) == (1, [ours])
            assert (np.asarray(copy.to_device("cpu")) == ONES).all()
        del copy


@pytest.mark.skipif(not IS_FAKE, reason="only the double counts")
def test_the_default_stream_needs_no_host_wait(driver: Driver) -> None:
    producer = Producer(Memory(driver))
    field = dl.from_dlpack(producer)
    before = driver.report()
    del field
    after = driver.report()
    assert (producer.tensor.deleted, producer.streams) == (1, [LEGACY])
    for name in ("stream_syncs", "event_syncs", "context_syncs"):
        assert after[name] == before[name]


@pytest.mark.parametrize("read", READERS)
def test_our_own_tensors(driver: Driver, read: Callable[..., Any]) -> None:
    with driver.stream() as one, driver.stream() as other:
        field = dl.zeros(SHAPE, device="cuda:0", stream=one)
        seen = read(field, stream=other)
        assert seen.ptr == field.ptr
        with dl.cuda.stream(one):
            seen = read(field, stream=other)
        driver.fill(seen.ptr, 1, NBYTES, other)
        driver.synchronize(other)
        del field, seen


def test_copies_of_foreign_memory(driver: Driver) -> None:
    producer = Producer(Memory(driver))
    copy = dl.from_dlpack(producer, copy=True)
    assert producer.tensor.deleted == 1
    assert driver.read(copy.ptr, NBYTES) == b"\1" * NBYTES
    producer = Producer(Memory(driver))
    host = dl.from_array(producer, device="cpu")
    assert (np.asarray(host) == ONES).all()
    like = dl.zeros_like(Interface(Memory(driver)))
    assert (str(like.device), like.shape) == ("cuda:0", SHAPE)


def test_copies_to_another_device(driver: Driver) -> None:
    """dlfield copies to another device if the producer cannot."""
    producer = Interface(Memory(driver))
    host = dl.from_dlpack(producer, device="cpu")
    assert (str(host.device), bool((np.asarray(host) == ONES).all())) == ("cpu", True)
    with pytest.raises(dl.ExchangeError, match="copy: False, but"):
        dl.from_dlpack(producer, device="cpu", copy=False)
    device = dl.from_dlpack(np.full(SHAPE, ONES), device="cuda:0")
    assert driver.read(device.ptr, NBYTES) == b"\1" * NBYTES


def test_graph_capture(driver: Driver) -> None:
    """During graph capture an import synchronizes nothing, and its release is deferred."""
    with driver.stream() as ours:
        producer = Producer(Memory(driver))
        producer.memory.wait_for_work()
        other = dl.zeros(3, device="cuda:0")
        with driver.capturing(ours), dl.cuda.stream(ours):
            field = dl.from_dlpack(producer, stream=-1)
            assert field.device == "cuda:0"
            del field
            assert producer.tensor.deleted == 0, "nothing can be put after recorded work"
        # The next release also performs the deferred one.
        del other
        assert producer.tensor.deleted == 1


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("wrong", [0, -2, "x", 1.5])
def test_invalid_streams(driver: Driver, read: Callable[..., Any], wrong: Any) -> None:
    refused = Producer(Memory(driver))
    for producer in (Interface(Memory(driver)), refused):
        with pytest.raises(dl.ExchangeError, match="stream: "):
            read(producer, stream=wrong)
    assert refused.streams == []
    refused.memory.free()
