"""`Device`: its two spellings, and equality with both."""

from types import SimpleNamespace
from typing import Any

import pytest

import dlfield as dl
from static_types import static_type
from untyped import np

DEVICES = [
    ("cpu", (1, 0), "cpu", 0),
    ("cuda:0", (2, 0), "cuda", 0),
    ("cuda:3", (2, 3), "cuda", 3),
    ("cuda_host", (3, 0), "cuda_host", 0),
    ("cuda_managed", (13, 0), "cuda_managed", 0),
    ("rocm:0", (10, 0), "rocm", 0),
]


@pytest.mark.parametrize(("text", "pair", "kind", "number"), DEVICES)
def test_device_is_its_string_and_its_dlpack_tuple(text: str, pair: tuple[int, int], kind: str, number: int) -> None:
    for device in (dl.Device(text), dl.Device(pair), dl.Device(dl.Device(text))):
        assert device == text
        assert device == pair
        assert device == dl.Device(text)
        assert str(device) == text
        assert (device.type, device.id) == (kind, number)
        assert text in repr(device)


def test_equality_and_hashes() -> None:
    assert len({dl.Device(alias) for alias in ("gpu", "cuda", "cuda:0", (2, 0))}) == 1
    assert dl.Device("cuda:0") != dl.Device("cuda:1")
    for other in ("cuda:0", (2, 0), 1, "nonsense"):
        assert dl.Device("cpu") != other


def test_tensor_device() -> None:
    field = dl.zeros(3)
    assert field.device == "cpu" == str(field.device)
    assert field.to_device("cpu").ptr == field.ptr


def test_devices_of_pytorch(torch: Any) -> None:
    for given, expected in (("cpu", "cpu"), ("cpu:0", "cpu"), ("cuda:1", "cuda:1"), ("cuda", "cuda:0")):
        assert str(dl.Device(torch.device(given))) == expected
    here = torch.zeros(2).device
    assert dl.zeros((2, 3), device=here).device == "cpu"
    assert dl.from_array([1.0], device=here).to_device(here).device == "cpu"
    assert dl.describe(np.zeros(2), device=here).device == dl.from_dlpack(np.zeros(2), device=here).device == "cpu"
    assert dl.register_preset("test:of torch", device=torch.device("cuda:1")).device == "cuda:1"
    assert dl.Signature(x=dl.FieldSpec("f8", "I"), device=here).bind(x=np.zeros(2)).x.device == "cpu"
    with pytest.raises(dl.DeviceError, match="expected memory on cuda:1"):
        dl.describe(np.zeros(2), device=torch.device("cuda:1"))
    with pytest.raises(dl.DeviceError, match=r"got .meta:0.$"):
        dl.Device(torch.device("meta"))


def test_devices_of_jax(jax: Any) -> None:
    here = jax.devices("cpu")[0]
    assert dl.Device(here) == "cpu"
    assert dl.zeros(3, device=jax.numpy.zeros(3).device).device == "cpu"


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        (SimpleNamespace(platform="gpu", id=9, local_hardware_id=1), "cuda:1"),
        (SimpleNamespace(platform="cuda", id=2), "cuda:2"),
        (SimpleNamespace(platform="rocm", id=2, local_hardware_id=None), "rocm:2"),
        (SimpleNamespace(platform="cpu", id=3, local_hardware_id=-1), "cpu"),
        (SimpleNamespace(type="cuda", index=2), "cuda:2"),
        (type("Device", (), {"__module__": "cupy.cuda.device", "id": 1})(), "cuda:1"),
        (type("Device", (), {"__module__": "numba.cuda.cudadrv.driver", "id": 1})(), "cuda:1"),
        (type("Device", (), {"__module__": "cuda.core._device", "device_id": 1})(), "cuda:1"),
    ],
)
def test_devices_that_look_like_those_of_frameworks(device: Any, expected: str) -> None:
    assert str(dl.Device(device)) == expected


def test_a_device_of_cupy_is_compiled() -> None:
    """CuPy's class, and the first of a process, in C: its dictionary has no `__module__`."""
    compiled = static_type("cupy.cuda.device.Device", "id")
    assert "__module__" not in vars(compiled)
    assert str(dl.Device(compiled([3]))) == "cuda:3"
    with pytest.raises(TypeError, match="expected a Device"):
        dl.Device(static_type("other.cuda.device.Device", "id")([3]))


def test_devices_of_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real class needs no GPU."""
    monkeypatch.setenv("CUPY_CACHE_IN_MEMORY", "1")
    cupy = pytest.importorskip("cupy")
    assert str(dl.Device(cupy.cuda.Device(1))) == "cuda:1"


NO_DEVICES = [SimpleNamespace(id=1), SimpleNamespace(device_id=1), SimpleNamespace(type="cuda"), object(), True, None]


@pytest.mark.parametrize("device", [*NO_DEVICES, SimpleNamespace(platform="gpu")])
def test_what_is_no_device_is_refused(device: Any) -> None:
    expected = r"^device: expected a Device, .*, or a device of PyTorch, JAX, CuPy, cuda.core or Numba, got [^;]+$"
    with pytest.raises(TypeError, match=expected):
        dl.Device(device)


@pytest.mark.parametrize(("device", "fix"), [(1, "write 'cuda:1'"), (np.zeros(2), "pass .*: array.device")])
def test_what_to_write_for_a_device(device: Any, fix: str) -> None:
    with pytest.raises(TypeError, match=f"; {fix}$"):
        dl.Device(device)


def test_an_error_of_a_device_is_the_callers() -> None:
    class Failing:
        @property
        def type(self) -> str:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        dl.Device(Failing())  # type: ignore[arg-type]
