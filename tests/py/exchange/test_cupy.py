"""`as_cupy` and its preflight, with a test double of CuPy and fake CUDA memory; needs neither CuPy nor a GPU."""

import gc
import re
import sys
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dlfield as dl
from fake_cupy import FakeCuPy
from fakes import FakeTensor, Producer, int_matrix
from fakes_interfaces import Exposing, interface_of

READ_ONLY = 1


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch, fresh_answers: None) -> FakeCuPy:  # noqa: ARG001, asked for its effect
    fake = FakeCuPy()
    monkeypatch.setitem(sys.modules, "cupy", fake)
    return fake


def on_gpu(array: Any = None, device: tuple[int, int] = (2, 0), flags: int = 0) -> Producer:
    return Producer(FakeTensor(int_matrix() if array is None else array, device=device, flags=flags), device)


@pytest.mark.parametrize("device", [(2, 0), (13, 0)], ids=["cuda", "managed"])
@pytest.mark.parametrize("copy", [None, False])
def test_cuda_memory_is_shared(cupy: FakeCuPy, device: tuple[int, int], copy: bool | None) -> None:
    obj = on_gpu(device=device)
    assert dl.preflight(obj, "cupy", write=True)
    found = dl.as_cupy(obj, copy=copy)
    assert isinstance(found, cupy.ndarray)
    found.values[0, 0] = 7
    assert obj.tensor.data[0, 0] == 7
    assert (found.values.shape, found.values.strides) == ((2, 3), (12, 4))
    assert found.values.dtype == np.int32


@pytest.mark.parametrize(
    "view",
    [
        lambda array: array[::-1],
        lambda array: array[:, ::-2],
        lambda array: array.T[1:, ::-1],
        lambda array: array[1:, 1:],
        lambda array: array[:0],
    ],
    ids=["backwards", "steps", "transposed", "inner", "empty"],
)
@pytest.mark.usefixtures("cupy")
def test_any_strides(view: Any) -> None:
    array = view(np.arange(12, dtype=np.int32).reshape(3, 4))
    found = dl.as_cupy(on_gpu(array), copy=False)
    assert found.shape == array.shape if array.size == 0 else np.array_equal(found.values, array)
    if array.size:
        low, high = np.lib.array_utils.byte_bounds(array)
        memory = found.data.mem
        assert (memory.ptr, memory.ptr + memory.size) == (low, high)
        assert memory.ptr + found.data.offset == array.ctypes.data


@pytest.mark.usefixtures("cupy")
def test_the_array_keeps_the_memory() -> None:
    obj = on_gpu()
    alive, tensor = weakref.ref(obj), obj.tensor
    found = dl.as_cupy(obj)
    del obj
    gc.collect()
    assert alive() is not None
    assert tensor.deleted == 0
    del found
    gc.collect()
    assert alive() is None
    assert tensor.deleted == 1


@pytest.mark.parametrize(("number", "stream"), [(0, 1), (1, 0x1234)])
@pytest.mark.usefixtures("cupy")
def test_the_producer_gets_the_stream(number: int, stream: int) -> None:
    """The producer gets the current stream of the memory's device; CUDA's default stream is 1 in DLPack."""
    obj = on_gpu(device=(2, number))
    dl.as_cupy(obj)
    assert [call.get("stream") for call in obj.calls] == [stream]


def test_streams_of_the_cuda_interface(cupy: FakeCuPy) -> None:
    """CuPy must not read memory that another stream still writes, and no driver here can wait for that."""
    array = int_matrix()

    def written_on(stream: int | None) -> Any:
        interface = interface_of(array, stream=stream)
        return Exposing(__cuda_array_interface__=interface)

    for stream in (None, 1):
        assert dl.as_cupy(written_on(stream)).values.tolist() == array.tolist()
    with pytest.raises(dl.ExchangeError, match=r"stream: expected the producer's own stream, .* got 1$"):
        dl.as_cupy(written_on(7))
    cupy.streams[0] = 7
    assert dl.as_cupy(written_on(7)).values.tolist() == array.tolist()


def test_copies_on_the_gpu(cupy: FakeCuPy) -> None:
    obj = on_gpu()
    dl.as_cupy(obj, copy=True).values[...] = 9
    assert np.array_equal(obj.tensor.data, int_matrix())
    assert cupy.calls[-2:] == ["ndarray", "copy K"]


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("copy", [None, True])
def test_the_array_is_on_the_device_of_the_memory(copy: bool | None) -> None:
    assert dl.as_cupy(on_gpu(device=(2, 1)), copy=copy).device.id == 1


def test_read_only_memory_is_copied(cupy: FakeCuPy) -> None:
    obj = on_gpu(flags=READ_ONLY)
    found = dl.preflight(obj, "cupy")
    assert found.verdict == "copy"
    with pytest.raises(dl.ExchangeError, match=re.escape(f"as_cupy: copy=False, but {found.reason}; {found.fix}")):
        dl.as_cupy(obj, copy=False)
    dl.as_cupy(obj).values[...] = 9
    assert np.array_equal(obj.tensor.data, int_matrix())
    assert cupy.calls[-2:] == ["ndarray", "copy K"]


@pytest.mark.parametrize(
    "make", [lambda: np.ones((2, 3)), lambda: dl.ones((2, 3)), lambda: dl.ones((2, 3)).__dlpack__()]
)
def test_host_memory_is_copied(cupy: FakeCuPy, make: Any) -> None:
    with pytest.raises(dl.ExchangeError, match="as_cupy: copy=False, but the memory is on cpu"):
        dl.as_cupy(make(), copy=False)
    for copy in (None, True):
        assert dl.as_cupy(make(), copy=copy).values.tolist() == [[1, 1, 1]] * 2
        assert cupy.calls[-1] == "asarray"


def test_arrays_of_cupy_itself(cupy: FakeCuPy) -> None:
    array = cupy.ndarray.holding(np.ones(3))
    assert dl.preflight(array, "cupy", write=True)
    assert dl.as_cupy(array) is array
    assert dl.as_cupy(array, copy=False) is array
    assert dl.as_cupy(array, copy=True).values is not array.values


@pytest.mark.usefixtures("cupy")
def test_dtypes_are_tried() -> None:
    field = np.ones(3, ml_dtypes.bfloat16)
    found = dl.preflight(field, "cupy")
    assert (found.verdict, found.reason) == ("impossible", "the installed CuPy has no dtype bfloat16")
    with pytest.raises(dl.ExchangeError, match="as_cupy: the installed CuPy has no dtype bfloat16"):
        dl.as_cupy(field)


@pytest.mark.usefixtures("cupy")
def test_other_devices() -> None:
    with pytest.raises(dl.ExchangeError, match="rocm:0, which CuPy cannot read"):
        dl.as_cupy(on_gpu(device=(10, 0)))


@pytest.mark.usefixtures("fresh_answers")
@pytest.mark.parametrize("gpu", [False, None], ids=["no GPU", "no CuPy"])
def test_layout_alone_counts_without_cupy(monkeypatch: pytest.MonkeyPatch, gpu: bool | None) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None if gpu is None else FakeCuPy(gpu=gpu))
    assert dl.preflight(on_gpu(), "cupy")
    assert dl.preflight(np.ones(3), "cupy").verdict == "copy"


def test_without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ImportError, match="as_cupy needs cupy, which is not installed"):
        dl.as_cupy(np.ones(3))
