"""`dlfield.cuda`: available devices, and the current stream."""

import re
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import dlfield as dl
from dlfield.cli import info as _info
from driver import HOST_FUNCTION, LEGACY, PER_THREAD, Driver
from stream_producers import Forgetful, Memory


class OfMethod:
    """A stream whose `__cuda_stream__` is a method, as in cuda.core."""

    def __init__(self, handle: int, version: int = 0) -> None:
        self.pair = (version, handle)

    def __cuda_stream__(self) -> tuple[int, int]:
        return self.pair


class OfAttribute:
    """A stream whose `__cuda_stream__` is an attribute, as in older versions of the protocol."""

    def __init__(self, handle: int) -> None:
        self.__cuda_stream__ = (0, handle)


def test_availability(driver: Driver) -> None:
    assert dl.cuda.is_available()
    assert dl.cuda.unavailable_reason() is None
    assert dl.cuda.device_count() == driver.device_count
    for device in range(driver.device_count):
        assert dl.cuda.memory_info(device)[1] == driver.memory_info(device)[1]
        assert dl.cuda.memory_info(f"cuda:{device}")[1] == driver.memory_info(device)[1]


def test_info_names_the_devices(
    driver: Driver, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_info, "frameworks", list)
    _info.print_info(as_json=False)
    found = dict(re.findall(r"(?m)^cuda +yes: cuda:(\d+) is (.+)$", capsys.readouterr().out))
    assert found == {str(number): driver.device_name(number) for number in range(driver.device_count)}


def test_a_thread_without_a_context_uses_a_device(driver: Driver) -> None:
    found: list[Any] = []

    def work() -> None:
        field = dl.ones((3, 4), device=f"cuda:{driver.device_count - 1}")
        field[1] = 2.0
        taken = dl.from_dlpack(field.__dlpack__(max_version=(1, 3)))
        found.append(taken.copy().to_device("cpu").tolist())
        dl.cuda.synchronize(field.device)
        del field, taken
        found.append(driver.context())

    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()
    assert found == [[[1.0] * 4, [2.0] * 4, [1.0] * 4], None]


def test_current_stream(driver: Driver) -> None:
    assert dl.cuda.current_stream() == dl.cuda.Stream(LEGACY, 0)
    with driver.stream() as first, driver.stream() as second:
        with dl.cuda.stream(first) as outer:
            assert outer == dl.cuda.current_stream() == dl.cuda.Stream(first, 0)
            with dl.cuda.stream(second):
                assert dl.cuda.current_stream().handle == second
            assert dl.cuda.current_stream().handle == first
            with pytest.raises(RuntimeError, match="on the way"), dl.cuda.stream(second):
                raise RuntimeError("on the way")
            assert dl.cuda.current_stream().handle == first
        # Not nested: each pops its own stream.
        one, other = dl.cuda.stream(first), dl.cuda.stream(second)
        one.__enter__()
        other.__enter__()
        one.__exit__(None, None, None)
        assert dl.cuda.current_stream().handle == second
        other.__exit__(None, None, None)
    assert dl.cuda.current_stream().handle == LEGACY


def test_each_thread_has_its_own_current_stream() -> None:
    with dl.cuda.stream(PER_THREAD), ThreadPoolExecutor(1) as pool:
        assert pool.submit(dl.cuda.current_stream).result().handle == LEGACY
        assert dl.cuda.current_stream().handle == PER_THREAD


def test_each_device_has_its_own_current_stream(driver: Driver) -> None:
    last = driver.device_count - 1
    with driver.stream(last) as handle, dl.cuda.stream(handle) as stream:
        assert stream == dl.cuda.Stream(handle, last), "the driver knows whose it is"
        assert dl.cuda.current_stream(last).handle == handle
        for device in range(last):
            assert dl.cuda.current_stream(device).handle == LEGACY
    with dl.cuda.stream(PER_THREAD, device=last):
        assert dl.cuda.current_stream(last).handle == PER_THREAD


def test_stream_objects(driver: Driver) -> None:
    with driver.stream() as handle:
        for thing in (handle, OfMethod(handle), OfAttribute(handle), dl.cuda.Stream(handle, 0)):
            with dl.cuda.stream(thing) as stream:
                assert stream.handle == handle
                assert (stream.__cuda_stream__(), int(stream)) == ((0, handle), handle)
            dl.cuda.synchronize(0, thing)
    with dl.cuda.stream(OfMethod(0)) as stream:
        assert stream.handle == LEGACY, "the driver's own number of the legacy default stream"


@pytest.mark.parametrize("pair", [(1, 1), (0,), "x", (0, "x")])
def test_malformed_stream_objects(pair: Any) -> None:
    class Odd:
        __cuda_stream__ = pair

    with pytest.raises(dl.ExchangeError, match=r"__cuda_stream__: expected a pair"), dl.cuda.stream(Odd()):
        pass


def test_a_stream_that_raises() -> None:
    class Broken:
        def __cuda_stream__(self) -> tuple[int, int]:
            raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"), dl.cuda.stream(Broken()):
        pass


def test_synchronize_lets_other_threads_run(driver: Driver) -> None:
    """`synchronize` releases the GIL for a host function, which on a GPU runs in the driver's thread."""
    called = []
    function = HOST_FUNCTION(lambda _data: called.append(True))
    with driver.stream() as handle:
        driver.launch_host_function(function, handle)
        dl.cuda.synchronize(0, handle)
    assert called == [True]


def test_synchronize_is_refused_during_graph_capture(driver: Driver) -> None:
    recorded = "stream .* of cuda:0 is capturing a graph"
    with driver.stream() as stream, driver.capturing(stream), pytest.raises(dl.DeviceError, match=recorded):
        dl.cuda.synchronize(0, stream)


class Owned:
    """A stream that is destroyed with this object."""

    def __init__(self, driver: Driver) -> None:
        self._living = driver.stream()
        self.handle = self._living.__enter__()

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

    def __del__(self) -> None:
        # Calls into dlfield while a stream is dropped; which stream is current then is unspecified.
        dl.cuda.current_stream()
        self._living.__exit__(None, None, None)


def written_within(field: dl.Tensor, stream: Owned) -> None:
    with dl.cuda.stream(stream):
        field[...] = 1.0


def made_within(_field: dl.Tensor, stream: Owned) -> dl.Tensor:
    with dl.cuda.stream(stream):
        return dl.ones(10, device="cuda:0")


STREAM_USES: dict[str, Callable[[dl.Tensor, Owned], Any]] = {
    "written": written_within,
    "made": made_within,
    "made on": lambda _, stream: dl.zeros(10, device="cuda:0", stream=stream),
    "exported": lambda field, stream: field.__dlpack__(stream=stream),
    "imported": lambda field, stream: dl.from_dlpack(field, stream=stream),
    "moved": lambda field, stream: field.to_device("cpu", stream=stream),
}


@pytest.mark.parametrize("name", STREAM_USES)
def test_memory_outlives_the_streams_that_used_it(driver: Driver, name: str) -> None:
    field = dl.zeros(10, device="cuda:0")
    stream = Owned(driver)
    seen = weakref.ref(stream)
    used = [STREAM_USES[name](field, stream)]
    del stream
    assert seen() is None
    field[...] = 2.0
    assert field.to_device("cpu").tolist() == [2.0] * 10
    used.clear()


def test_imported_memory_outlives_its_streams(driver: Driver) -> None:
    stream = Owned(driver)
    seen = weakref.ref(stream)
    producer = Forgetful(Memory(driver))
    field = dl.from_dlpack(producer, stream=stream)
    del stream
    assert seen() is None
    del field
    assert producer.tensor.deleted == 1


@pytest.mark.parametrize("reference", [None, object()], ids=["made", "from outside"])
def test_a_stream_that_cupy_has_made_is_kept(driver: Driver, reference: object) -> None:
    kind = type("Stream", (Owned,), {"__module__": "cupy.cuda.stream", "_foreign_stream_ref": reference})
    stream = kind(driver)
    seen = weakref.ref(stream)
    field = dl.zeros(10, device="cuda:0", stream=stream)
    del stream
    assert (seen() is None) == (reference is not None)
    del field
    assert seen() is None


def test_a_stream_of_another_thread_is_not_popped() -> None:
    entered = []

    def enter() -> None:
        entered.append(dl.cuda.stream(PER_THREAD))
        entered[0].__enter__()

    def leave() -> None:
        with dl.cuda.stream(PER_THREAD):
            entered.pop().__exit__(None, None, None)
            seen.append(dl.cuda.current_stream().handle)

    seen: list[int] = []
    for work in (enter, leave):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(work).result()
    assert seen == [PER_THREAD]
