"""Device memory exchanged with PyTorch, both ways: each side works after the other, on any streams.

The tests only copy from and to the host: on the test double PyTorch's copies run, and its kernels do not.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from driver import IS_FAKE, LEGACY, Driver

SIZE = 1000
double_only = pytest.mark.skipif(not IS_FAKE, reason="PyTorch's kernels run on a GPU")


@contextmanager
def working_on(torch: Any, ours: Any, theirs: Any) -> Iterator[None]:
    """Set the current streams of dlfield and PyTorch; None is the default stream."""
    with torch.cuda.stream(theirs), dl.cuda.stream(LEGACY if ours is None else ours):
        yield


@pytest.fixture(params=["one and another", "one and the default", "the default and one", "the same"])
def streams(request: pytest.FixtureRequest, torch: Any) -> tuple[Any, Any]:
    """dlfield's stream and PyTorch's."""
    one, other = torch.cuda.Stream(), torch.cuda.Stream()
    pairs: dict[str, tuple[Any, Any]] = {
        "one and another": (one, other),
        "one and the default": (one, None),
        "the default and one": (None, one),
        "the same": (one, one),
    }
    return pairs[request.param]


def test_devices_of_pytorch(torch: Any) -> None:
    """A device without an index is PyTorch's current device."""
    last = torch.cuda.device_count() - 1
    field = dl.zeros((2, 3), device=torch.device(f"cuda:{last}"))
    assert field.device == f"cuda:{last}"
    assert dl.as_torch(dl.zeros((2, 3), device=dl.as_torch(field).device)).device == torch.device(f"cuda:{last}")
    with torch.cuda.device(last):
        assert dl.Device(torch.device("cuda")) == f"cuda:{last}"
    assert dl.Device(torch.device("cuda")) == "cuda:0"


def ramp(torch: Any, device: str = "cuda") -> Any:
    """A device tensor that holds 0, 1, 2 and so on, without pending work."""
    tensor = torch.arange(float(SIZE)).to(device)
    torch.cuda.synchronize(device)
    return tensor


def room(torch: Any, device: str = "cuda") -> Any:
    """A device tensor without pending work, so that any stream may write it."""
    tensor = torch.empty(SIZE, device=device)
    torch.cuda.synchronize(device)
    return tensor


def on_host(field: Any) -> Any:
    return np.asarray(field.to_device("cpu")).tolist()


EXPECTED = list(map(float, range(SIZE)))
IMPORTS: dict[str, Callable[[Any, Any], Any]] = {
    "from_dlpack": lambda torch, field: torch.from_dlpack(field),
    "as_torch": lambda _, field: dl.as_torch(field),
    "utils": lambda torch, field: torch.utils.dlpack.from_dlpack(field),
}


EXPORTS: dict[str, Callable[[Any, Any], Any]] = {
    "from_dlpack": lambda tensor, _: dl.from_dlpack(tensor),
    "from_dlpack for a stream": lambda tensor, stream: dl.from_dlpack(tensor, stream=stream),
    "from_dlpack for a handle": lambda tensor, stream: dl.from_dlpack(tensor, stream=stream.handle),
    "capsule for a stream": lambda tensor, stream: dl.from_dlpack(tensor.__dlpack__(stream=stream.handle)),
    "describe": lambda tensor, _: dl.describe(tensor),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_we_work_after_pytorch(driver: Driver, torch: Any, streams: Any, name: str) -> None:
    source, target = ramp(torch), room(torch)
    with working_on(torch, *streams):
        target.copy_(source)
        field = EXPORTS[name](target, dl.cuda.current_stream())
        assert (field.ptr, field.shape, str(field.device)) == (target.data_ptr(), (SIZE,), "cuda:0")
        assert name != "describe" or field.protocol == "dlpack-c"
        held = driver.read(field.ptr, 4 * SIZE, dl.cuda.current_stream().handle)
        assert np.frombuffer(held, "f4").tolist() == EXPECTED


@pytest.mark.misuse("races")
@double_only
def test_the_double_sees_that_we_do_not_wait(torch: Any) -> None:
    """The test double reports the races that the tests above rule out."""
    source, target = ramp(torch), room(torch)
    with working_on(torch, torch.cuda.Stream(), torch.cuda.Stream()):
        target.copy_(source)
        assert on_host(dl.from_dlpack(target, stream=-1)) != EXPECTED


@pytest.mark.parametrize("name", IMPORTS)
def test_pytorch_works_after_us(torch: Any, streams: Any, name: str) -> None:
    with working_on(torch, *streams):
        field = dl.full((SIZE,), 2.5, "float32", device="cuda:0")
        tensor = IMPORTS[name](torch, field)
        assert (tensor.data_ptr(), str(tensor.device)) == (field.ptr, "cuda:0")
        assert tensor.cpu().tolist() == [2.5] * SIZE


def test_each_exchange_comes_after_the_work_so_far(torch: Any) -> None:
    """Each export waits for work on other streams than the field's own, even if PyTorch's stream got it before."""
    with working_on(torch, torch.cuda.Stream(), torch.cuda.Stream()):
        field = dl.zeros((SIZE,), "float32", device="cuda:0")
        for value in (1.5, 2.5):
            with dl.cuda.stream(torch.cuda.Stream()):
                dl.from_dlpack(field)[...] = value
                tensor = torch.from_dlpack(field)
                assert tensor.cpu().tolist() == [value] * SIZE


@pytest.mark.misuse("races")
@double_only
def test_the_double_sees_that_pytorch_does_not_wait(torch: Any) -> None:
    with working_on(torch, torch.cuda.Stream(), torch.cuda.Stream()):
        field = dl.full((SIZE,), 2.5, "float32", device="cuda:0")
        tensor = torch.from_dlpack(field.__dlpack__(stream=-1))
        assert tensor.cpu().tolist() != [2.5] * SIZE


@pytest.mark.parametrize("name", IMPORTS)
def test_our_memory_is_freed_after_the_work_of_pytorch(torch: Any, streams: Any, name: str) -> None:
    target = room(torch)
    with working_on(torch, *streams):
        tensor = IMPORTS[name](torch, dl.full((SIZE,), 2.5, "float32", device="cuda:0"))
        target.copy_(tensor)
        del tensor
        again = dl.full((SIZE,), 3.5, "float32", device="cuda:0")
        assert target.cpu().tolist() == [2.5] * SIZE
    del again


@pytest.mark.parametrize("is_stated", [False, True])
def test_memory_of_pytorch_is_freed_after_our_work(torch: Any, streams: Any, is_stated: bool) -> None:
    """PyTorch's allocator reuses the block at once, for the next work on its own stream.

    It forgets a consumer's stream as soon as that stream waits for the work before.
    """
    source, zeros = ramp(torch), torch.zeros(SIZE).to("cuda")
    torch.cuda.synchronize()
    with working_on(torch, *streams):
        tensor = source.clone()
        address = tensor.data_ptr()
        field = dl.from_dlpack(tensor, stream=dl.cuda.current_stream() if is_stated else None)
        copied = dl.from_array(field, device="cuda:0")
        del tensor, field
        other = torch.empty(SIZE, device="cuda")
        assert other.data_ptr() == address
        other.copy_(zeros)
        assert on_host(copied) == EXPECTED


@pytest.mark.parametrize("name", IMPORTS)
def test_padded_fields_in_pytorch(torch: Any, name: str) -> None:
    values = np.arange(35, dtype="f4").reshape(5, 7)
    field = dl.from_array(values, alignment_size=64, device="cuda:0")
    tensor = IMPORTS[name](torch, field)
    assert (tensor.shape, tensor.stride(), tensor.data_ptr()) == ((5, 7), (16, 1), field.ptr)
    assert [tensor[row].cpu().tolist() for row in range(5)] == values.tolist()
    tensor[2].copy_(torch.full((7,), -1.0))
    torch.cuda.synchronize()
    values[2] = -1
    assert on_host(field) == values.tolist()


def test_padded_tensors_of_pytorch(torch: Any) -> None:
    values = torch.arange(80.0).reshape(5, 16)
    tensor = values.to("cuda")[:, 2:9]
    for field in (dl.from_dlpack(tensor), dl.from_array(tensor, backend="F", device="cuda:0")):
        assert (field.shape, str(field.device)) == ((5, 7), "cuda:0")
        assert on_host(field) == values[:, 2:9].tolist()
    field = dl.from_dlpack(tensor.T)
    assert (field.strides, field.ptr) == ((4, 64), tensor.data_ptr())
    assert on_host(field) == values[:, 2:9].T.tolist()


@pytest.mark.two_devices
@pytest.mark.parametrize("name", IMPORTS)
def test_the_second_device(torch: Any, name: str) -> None:
    with torch.cuda.device(1):
        ours, theirs = torch.cuda.Stream(), torch.cuda.Stream()
        source, target = ramp(torch, "cuda:1"), room(torch, "cuda:1")
        with torch.cuda.stream(theirs), dl.cuda.stream(ours, 1):
            target.copy_(source)
            field = dl.from_dlpack(target)
            assert (str(field.device), field.ptr) == ("cuda:1", target.data_ptr())
            assert on_host(field) == EXPECTED
            copied = dl.from_array(field, device="cuda:1")
            tensor = IMPORTS[name](torch, copied)
            assert (str(tensor.device), tensor.data_ptr()) == ("cuda:1", copied.ptr)
            assert tensor.cpu().tolist() == EXPECTED


@pytest.mark.two_devices
def test_another_device_is_current_in_pytorch(torch: Any) -> None:
    field = dl.full((SIZE,), 2.5, "float32", device="cuda:1")
    for tensor in (torch.from_dlpack(field), dl.as_torch(field)):
        assert (str(tensor.device), tensor.data_ptr()) == ("cuda:1", field.ptr)
        assert tensor.cpu().tolist() == [2.5] * SIZE
    assert on_host(dl.from_dlpack(tensor)) == [2.5] * SIZE
    assert torch.cuda.current_device() == 0


def test_devices_that_do_not_fit(torch: Any) -> None:
    tensor = ramp(torch)
    for device in ("cuda:1", "cpu"):
        # The first is PyTorch's own error.
        with pytest.raises((ValueError, dl.ExchangeError), match=device):
            dl.from_dlpack(tensor, device=device, copy=False)
    with pytest.raises(dl.NoSuchBufferError, match="cuda:0"):
        dl.as_numpy(tensor, copy=False)
    with pytest.raises(dl.ExchangeError, match=r"stream: .*host"):
        dl.from_dlpack(torch.zeros(3), stream=torch.cuda.Stream())
    field = dl.zeros(3, device="cuda:0")
    with pytest.raises((BufferError, ValueError)):
        torch.from_dlpack(field, device="cpu", copy=False)


def test_copies_to_other_devices(torch: Any) -> None:
    tensor = ramp(torch)
    assert dl.from_dlpack(tensor, device="cpu").to_numpy().tolist() == EXPECTED
    assert torch.from_dlpack(dl.from_dlpack(tensor), device="cpu").tolist() == EXPECTED
    copied = dl.as_torch(dl.from_dlpack(tensor), copy=True)
    assert copied.data_ptr() != tensor.data_ptr()
    assert copied.cpu().tolist() == EXPECTED


@pytest.mark.usefixtures("torch")
def test_read_only_memory_is_copied() -> None:
    field = dl.full((SIZE,), 2.5, "float32", device="cuda:0").as_readonly()
    with pytest.raises(dl.ExchangeError, match="read-only"):
        dl.as_torch(field, copy=False)
    assert dl.as_torch(field).cpu().tolist() == [2.5] * SIZE


@pytest.mark.usefixtures("torch")
def test_pinned_and_managed_memory() -> None:
    pinned = dl.full((SIZE,), 2.5, "float32", device="cuda_host")
    tensor = dl.as_torch(pinned)
    assert (str(tensor.device), tensor.data_ptr()) == ("cpu", pinned.ptr)
    assert tensor.tolist() == [2.5] * SIZE
    managed = dl.full((SIZE,), 2.5, "float32", device="cuda_managed")
    tensor = dl.as_torch(managed)
    assert (str(tensor.device), tensor.data_ptr()) == ("cuda:0", managed.ptr)
    assert tensor.cpu().tolist() == [2.5] * SIZE


def test_preflight_knows_what_pytorch_reaches(torch: Any) -> None:
    field = dl.zeros(3, device="cuda:0")
    assert dl.preflight(field, "torch", write=True).verdict == "zero-copy"
    assert dl.preflight(ramp(torch), "torch").verdict == "zero-copy"


READS: dict[str, Callable[[Any], Any]] = {
    "describe": dl.describe,
    "from_dlpack": dl.from_dlpack,
    "bind": lambda tensor: dl.Signature(f=dl.FieldSpec("float32", "I"), device="cuda:0").bind(f=tensor),
}


@pytest.mark.parametrize("name", READS)
def test_graph_capture_by_pytorch(driver: Driver, torch: Any, name: str) -> None:
    tensor, theirs = ramp(torch), torch.cuda.Stream()
    with torch.cuda.stream(theirs), driver.capturing(theirs.cuda_stream):
        with pytest.raises(dl.DeviceError, match=r"capturing.*cuda\.stream\(torch\.cuda\.current_stream.*stream=-1"):
            READS[name](tensor)
        with dl.cuda.stream(torch.cuda.current_stream()):
            READS[name](tensor)
    # The next release also performs the deferred ones.
    dl.zeros(1, device="cuda:0")
