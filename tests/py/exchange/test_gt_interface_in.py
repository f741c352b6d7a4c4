"""`describe` and `from_dlpack` through `__gt_data_interface__` and `__gt_interface__`."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from catalog import READERS
from fakes import FakeTensor, Producer, int_matrix
from fakes_interfaces import MISSING, NOWHERE, Exposing, device_interface, double_matrix, interface_of
from oracle import values

NAMES = ["__gt_data_interface__", "__gt_interface__"]
ROWS = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]

MATRIX = double_matrix()


def buffer(**changes: Any) -> dict[str, Any]:
    """The host buffer, without the version, which is optional here."""
    return interface_of(MATRIX, **{"version": MISSING, **changes})


def offering(devices: Any, name: str = "__gt_data_interface__") -> Exposing:
    return Exposing(**{name: devices})


SPELLINGS: dict[str, Callable[[], Any]] = {
    "None": lambda: {None: buffer()},
    "cpu": lambda: {"cpu": buffer()},
    "with a version": lambda: {None: buffer(version=3)},
    "with every other key": lambda: {None: buffer(acquire=None, touch=None, release=None, halo=None, dims=None)},
    "a callable": lambda: {None: buffer},
    "a method": lambda: lambda: {None: buffer()},
    "a method with a callable": lambda: lambda: {"cpu": buffer},
    "other mappings": lambda: MappingProxyType({None: MappingProxyType(buffer())}),
    "another device as well": lambda: {"gpu": device_interface(), None: buffer()},
    "an unknown device as well": lambda: {"tpu": 5, 3: None, None: buffer()},
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("name", NAMES)
def test_every_spelling(read: Callable[..., Any], name: str, spelling: str) -> None:
    found = read(offering(SPELLINGS[spelling](), name))
    assert (found.ptr, values(found), found.device, found.readonly) == (MATRIX.ctypes.data, ROWS, "cpu", False)
    if isinstance(found, dl.Descriptor):
        assert found.protocol == "gt"


class Counting:
    """Records each access of its attribute and each call of its callables."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def buffer(self, device: str) -> Callable[[], dict[str, Any]]:
        def give() -> dict[str, Any]:
            self.asked.append(device)
            made = buffer() if device == "cpu" else device_interface(typestr="<f8")
            return {**made, "dims": ("K", "I"), "halo": ((0, 1), (1, 0))}

        return give

    @property
    def __gt_data_interface__(self) -> Mapping[Any, Any]:
        self.asked.append("property")
        return {"gpu": self.buffer("gpu"), "cpu": self.buffer("cpu")}


def test_attributes_are_read_once_and_other_devices_are_ignored() -> None:
    for read in READERS:
        producer = Counting()
        found = read(producer)
        assert (found.dims, found.halo, found.origin) == (("K", "I"), ((0, 1), (1, 0)), (0, 1))
        assert producer.asked == ["property", "cpu"]
    producer = Counting()
    found = dl.describe(producer, device="cuda:0")
    assert (found.ptr, str(found.device), found.dims) == (NOWHERE, "cuda:0", ("K", "I"))
    assert producer.asked == ["property", "gpu"]
    producer = Counting()
    assert (dl.get_dims(producer), dl.get_origin(producer)) == (("K", "I"), (0, 1))
    assert producer.asked == ["property", "cpu"] * 2


def gpu(n: int) -> dict[str, Any]:
    return device_interface(version=MISSING, data=(NOWHERE + n, False))


def test_the_device_is_the_one_wanted_else_the_first() -> None:
    many = offering({("gpu", 2): gpu(2), ("gpu", 1): gpu(1)})
    assert (str(dl.describe(many).device), dl.describe(many).ptr) == ("cuda:1", NOWHERE + 1)
    assert (str(dl.describe(many, device="cuda:2").device), dl.describe(many, device="cuda:2").ptr) == (
        "cuda:2",
        NOWHERE + 2,
    )
    managed = dl.describe(many, device="cuda_managed")
    assert (str(managed.device), managed.ptr) == ("cuda_managed", NOWHERE + 1)
    with pytest.raises(dl.DeviceError, match=r"cuda:1.*cuda:0"):
        dl.describe(many, device="cuda:0")
    with pytest.raises(dl.DeviceError, match=r"cuda:1.*cpu"):
        dl.from_dlpack(many, device="cpu")
    with pytest.raises(dl.DeviceError, match="cuda:1"):
        dl.from_dlpack(many)
    assert dl.describe(offering({"gpu": gpu(0)})).device == "cuda:0"


@pytest.mark.parametrize(
    ("devices", "named"),
    [
        ({}, "no keys"),
        ({"tpu": buffer()}, "'tpu'"),
        ({("gpu", -1): buffer()}, "-1"),
        ({("gpu", "x"): buffer()}, "'x'"),
        ({3: buffer()}, "3"),
        (5, "5"),
        ([buffer()], "mapping"),
        ("cpu", "'cpu'"),
        ({None: 5}, "5"),
        ({None: None}, "None"),
        ({None: lambda: 5}, "5"),
        (lambda: None, "None"),
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_interface_is_refused_by_name(name: str, devices: Any, named: str) -> None:
    for read in READERS:
        with pytest.raises(dl.ExchangeError, match=f"{name}.*{named}"):
            read(offering(devices, name))


@pytest.mark.parametrize("name", NAMES)
def test_keys_are_refused_under_the_attributes_name(name: str) -> None:
    for changes, key in (({"shape": MISSING}, "shape"), ({"version": 2}, "version"), ({"data": 7}, "data")):
        with pytest.raises(dl.ExchangeError, match=rf'{name}\["{key}"\]'):
            dl.describe(offering({None: buffer(**changes)}, name))


def test_memory_comes_from_the_first_attribute_and_labels_from_both() -> None:
    other = double_matrix()
    both = Exposing(
        __gt_data_interface__={None: buffer(dims=("K", "I"))},
        __gt_interface__={None: interface_of(other, halo=((0, 1), (0, 0)))},
    )
    found = dl.describe(both)
    assert (found.ptr, found.dims, found.halo) == (MATRIX.ctypes.data, ("K", "I"), ((0, 1), (0, 0)))
    for key, first, second, error in (
        ("dims", ("K", "I"), ("I", "K"), dl.DimsError),
        ("halo", ((0, 1), (0, 0)), ((1, 0), (0, 0)), dl.LayoutError),
    ):
        differing = Exposing(
            __gt_data_interface__={None: buffer(**{key: first})}, __gt_interface__={None: buffer(**{key: second})}
        )
        for read in READERS:
            with pytest.raises(error, match=r"__gt_data_interface__|__gt_interface__"):
                read(differing)


def test_labels_that_do_not_fit_are_refused() -> None:
    for changes, error in (
        ({"dims": ("I",)}, dl.DimsError),
        ({"dims": ("I", "I")}, dl.DimsError),
        ({"dims": 5}, dl.DimsError),
        ({"halo": ((1, 2), (0, 0))}, dl.LayoutError),
        ({"halo": (1,)}, dl.LayoutError),
        ({"halo": "x"}, dl.LayoutError),
    ):
        with pytest.raises(error):
            dl.describe(offering({None: buffer(**changes)}))


def test_labels_of_objects_with_another_protocol() -> None:
    fake = FakeTensor(int_matrix())
    producer = Producer(fake)
    vars(producer)["__gt_data_interface__"] = {None: {"dims": ("K", "I")}}
    found = dl.describe(producer)
    assert (found.protocol, found.dims) == ("dlpack", ("K", "I"))


def test_our_own_interface_is_read() -> None:
    field = dl.zeros((4, 5), dims="KI", halo=(1, 2), backend="gt:cpu_ifirst")
    proxy = offering(field.__gt_data_interface__)
    found = dl.describe(proxy)
    for name in ("ptr", "shape", "strides", "dtype", "dims", "origin", "halo", "layout"):
        assert getattr(found, name) == getattr(field, name), name


def test_a_buffer_may_be_bytes() -> None:
    data = bytearray(np.arange(6.0).tobytes())
    found = dl.describe(offering({None: buffer(data=data, strides=None)}))
    assert values(found) == ROWS
    with pytest.raises(BufferError):
        data.append(1)


def test_labels_move_no_data() -> None:
    """The requested buffer has no labels, and the callable of another one is not called for its labels."""

    def moves() -> Any:
        raise AssertionError("data would be moved")

    producer = offering({None: buffer(), "gpu": moves})
    assert dl.describe(producer).dims is None
    assert (dl.get_dims(producer), dl.get_origin(producer)) == (None, None)
