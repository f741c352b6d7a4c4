"""`describe` and `from_dlpack` of DLPack's structs, by every way in which they come: legal variants and defects."""

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import dlfield as dl
from catalog import CODES, SUBBYTE_CODES
from dlpack_structs import IS_COPIED, READ_ONLY, capsule_name
from exchange_api import SENTINEL, TO_OBJECT, adopt, api
from fakes import (
    DevicelessProducer,
    FakeTensor,
    OldProducer,
    Producer,
    ReturningProducer,
    exchange_type,
    int_matrix,
)
from fakes_interfaces import FakeBuffer
from oracle import values

ROWS = int_matrix().tolist()


# How a managed tensor comes to dlfield.
WAYS: dict[str, Callable[[FakeTensor], Any]] = {
    "__dlpack__": Producer,
    "__dlpack__ alone": DevicelessProducer,
    "capsule": lambda fake: fake.capsule(),
    "table": lambda fake: exchange_type(fake)(),
}


def is_released(fake: FakeTensor, way: str) -> bool:
    """Whether its deleter was called once; a capsule that nobody took may still have to call it."""
    return fake.deleted == 1 if way == "table" else fake.settled()


class Legal(NamedTuple):
    fields: dict[str, Any]
    data: Any = None
    expected: Any = ROWS


NUMBERS = np.arange(3, dtype="i4")
LEGAL: dict[str, Legal] = {
    "deleter NULL": Legal({"null_deleter": True}),
    "strides NULL": Legal({"null_strides": True}),
    "strides NULL in 1.1": Legal({"version": (1, 1), "null_strides": True}),
    "strides NULL in a legacy tensor": Legal({"version": None, "null_strides": True}),
    "byte_offset": Legal({"byte_offset": 64}),
    "strides of one element": Legal({"shape": (1, 3), "strides": (-(1 << 60), 1)}, NUMBERS, [[0, 1, 2]]),
    "no elements": Legal({"shape": (0, 3), "strides": (1 << 60, 7), "null_data": True}, NUMBERS, []),
    "no dimensions": Legal({"null_shape": True, "null_strides": True}, np.array(7, "i4"), 7),
    "a later minor version": Legal({"version": (1, 99)}),
}


@pytest.mark.parametrize("name", LEGAL)
@pytest.mark.parametrize("way", WAYS)
def test_legal_variants_are_read(read: Callable[..., Any], way: str, name: str) -> None:
    fields, data, expected = LEGAL[name]
    if way == "table" and fields.get("version", ()) is None:
        pytest.skip("a table has no legacy tensors")
    fake = FakeTensor(int_matrix() if data is None else data, **fields)
    found = read(WAYS[way](fake))
    assert values(found) == expected
    assert found.size == 0 or found.ptr == fake.data.ctypes.data
    assert found.size == 0 or found.is_contiguous()
    del found
    assert name == "deleter NULL" or is_released(fake, way)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "f8", "c16"])
@pytest.mark.parametrize("way", WAYS)
def test_negative_strides_that_cupy_has_divided_as_unsigned_numbers(
    read: Callable[..., Any], way: str, dtype: str
) -> None:
    rows = np.arange(12).reshape(4, 3).astype(dtype)
    found = read(WAYS[way](FakeTensor(rows[2:], strides=((2**64 - rows.strides[0]) // rows.itemsize, 1))))
    assert values(found) == rows[2:0:-1].tolist()


DEFECTS: dict[str, tuple[dict[str, Any], str]] = {
    "device code unknown": ({"device": (99, 0)}, "device"),
    "dtype code unknown": ({"dtype": (99, 32, 1)}, "dtype|code"),
    "dtype bits unknown": ({"dtype": (2, 33, 1)}, "dtype|bits"),
    "dtype opaque": ({"dtype": (3, 64, 1)}, "dtype|code"),
    "lanes": ({"dtype": (0, 32, 2)}, "lanes"),
    "lanes zero": ({"dtype": (0, 32, 0)}, "lanes"),
    "ndim negative": ({"ndim": -1}, "ndim"),
    "shape negative": ({"shape": (2, -3)}, "shape"),
    "shape overflows": ({"shape": (1 << 40, 1 << 40), "strides": (1, 1)}, "shape|size|overflow|span"),
    "strides overflow": ({"strides": (1 << 62, 1)}, "stride|overflow|span"),
    "shape NULL": ({"null_shape": True}, "shape"),
    "strides NULL in 1.2": ({"version": (1, 2), "null_strides": True}, "strides"),
    "data NULL": ({"null_data": True}, "data"),
    "major version": ({"version": (2, 0)}, r"version.*2\.0"),
    **{f"packed {name}": ({"dtype": (*CODES[name], 1)}, r"packed|padded") for name in SUBBYTE_CODES},
    **{
        f"byte_offset {offset:#x}": ({"byte_offset": offset}, f"^byte_offset: .* got {offset}$")
        # The last one is refused because of its sum with an address that is not 0.
        for offset in (1 << 63, (1 << 63) + 4096, (1 << 64) - 8, (1 << 63) - 1)
    },
}


def defective(name: str) -> FakeTensor:
    fields, _ = DEFECTS[name]
    fake = FakeTensor(int_matrix(), **{key: value for key, value in fields.items() if key != "byte_offset"})
    # Without the address that is less by it.
    fake.managed.dl_tensor.byte_offset = fields.get("byte_offset", 0)
    return fake


@pytest.mark.parametrize("name", DEFECTS)
@pytest.mark.parametrize("way", WAYS)
def test_defects_are_refused_by_name_and_released(read: Callable[..., Any], way: str, name: str) -> None:
    fake = defective(name)
    with pytest.raises(dl.Error, match=DEFECTS[name][1]):
        read(WAYS[way](fake))
    assert is_released(fake, way)


@pytest.mark.parametrize("name", DEFECTS)
def test_the_table_that_imports_releases_what_it_refuses(name: str) -> None:
    """A failed call also takes ownership of the tensor: its deleter has run once."""
    fake, out = defective(name), ctypes.c_void_p(SENTINEL)
    with pytest.raises(dl.Error, match=DEFECTS[name][1]):
        TO_OBJECT(api().managed_tensor_to_py_object_no_sync)(fake.address, ctypes.byref(out))
    assert (fake.deleted, out.value) == (1, None)


def test_the_table_that_imports_makes_tensors() -> None:
    fake = FakeTensor(int_matrix())
    made = adopt(fake.address)
    assert (made.tolist(), made.ptr, made.readonly) == (ROWS, fake.data.ctypes.data, False)
    view = made[1:]
    del made
    assert fake.deleted == 0
    del view
    assert fake.deleted == 1
    assert adopt(FakeTensor(int_matrix(), flags=READ_ONLY).address).readonly


def test_a_byte_offset_that_wraps_around_is_refused() -> None:
    fake = FakeTensor(int_matrix())
    fake.managed.dl_tensor.data = (1 << 64) - 4096
    fake.managed.dl_tensor.byte_offset = 1 << 20
    with pytest.raises(dl.ExchangeError, match=r"^byte_offset: "):
        dl.from_dlpack(Producer(fake))
    assert fake.settled()


@pytest.mark.parametrize("flags", [IS_COPIED, READ_ONLY | IS_COPIED])
@pytest.mark.parametrize("way", WAYS)
def test_a_producers_copy_is_imported_but_never_described(way: str, flags: int) -> None:
    """A descriptor of a copy would not describe the object itself."""
    assert dl.from_dlpack(WAYS[way](FakeTensor(int_matrix(), flags=flags))).readonly == bool(flags & READ_ONLY)
    for refuse, named in (
        (dl.describe, "^obj: .*from_dlpack"),
        (lambda obj: dl.from_dlpack(obj, copy=False), "^copy: False, but"),
    ):
        fake = FakeTensor(int_matrix(), flags=flags)
        with pytest.raises(dl.ExchangeError, match=named):
            refuse(WAYS[way](fake))
        assert is_released(fake, way)


@pytest.mark.parametrize(
    ("name", "named"),
    [
        (b"used_dltensor", "consumed"),
        (b"used_dltensor_versioned", "consumed"),
        (b"something", "something|expected an array, got"),
    ],
)
@pytest.mark.parametrize("wrap", [lambda capsule: capsule, ReturningProducer])
def test_capsules_of_other_names_are_refused(read: Callable[..., Any], wrap: Any, name: bytes, named: str) -> None:
    fake = FakeTensor(int_matrix())
    capsule = fake.capsule(name)
    with pytest.raises(dl.Error, match=named):
        read(wrap(capsule))
    assert capsule_name(capsule) == name
    assert fake.deleted == 0


# Calls of the producer


def test_producers_before_dlpack_1_are_called_again_without_keywords(read: Callable[..., Any]) -> None:
    producer = OldProducer(FakeTensor(int_matrix(), version=None))
    assert values(read(producer)) == ROWS
    assert producer.calls == [None]
    with pytest.raises(TypeError):
        dl.from_dlpack(producer, copy=False)


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize("second", ["interface", "buffer", "other memory"])
@pytest.mark.usefixtures("torch")
def test_a_second_protocol_says_what_a_capsule_before_version_1_cannot(second: str, readonly: bool) -> None:
    """As the arrays of Warp: with `__array_interface__` they are writable, and what is written reaches them."""
    array = int_matrix()
    array.flags.writeable = not readonly
    shown = int_matrix() if second == "other memory" else array
    base: Any = FakeBuffer if second == "buffer" else object

    class Old(OldProducer, base):  # type: ignore[misc]
        def __init__(self) -> None:
            OldProducer.__init__(self, FakeTensor(array, version=None))
            if second == "buffer":
                FakeBuffer.__init__(self, shown, readonly=readonly)
            else:
                self.__array_interface__ = shown.__array_interface__

    is_writable = not readonly and second != "other memory"
    assert [dl.describe(Old()).readonly, dl.from_dlpack(Old()).readonly] == [not is_writable] * 2
    if is_writable:
        dl.from_dlpack(Old())[0, 0] = 77
        assert array[0, 0] == 77
        dl.as_torch(Old())[0, 1] = 78
        assert array[0, 1] == 78
    elif readonly:
        with pytest.raises(dl.ExchangeError, match="read-only"):
            dl.from_dlpack(Old())[0, 0] = 77


@pytest.mark.parametrize("value", [None, 3, "dltensor"])
def test_no_capsule_at_all(read: Callable[..., Any], value: object) -> None:
    with pytest.raises(dl.ExchangeError, match=f"__dlpack__: .* got {value!r}"):
        read(ReturningProducer(value))


def test_a_device_that_is_not_in_the_struct_is_refused() -> None:
    fake = FakeTensor(int_matrix(), device=(2, 0))
    with pytest.raises(dl.DeviceError, match="cuda"):
        dl.from_dlpack(DevicelessProducer(fake), device="cpu")
    assert fake.settled()


@pytest.mark.parametrize("device", [None, 5, (1,), "cpu"])
def test_a_device_that_is_no_pair_is_named(device: Any) -> None:
    producer = Producer(FakeTensor(int_matrix()))
    producer.__dict__["__dlpack_device__"] = lambda: device
    with pytest.raises(dl.ExchangeError, match="__dlpack_device__"):
        dl.describe(producer)


# Devices


@pytest.mark.parametrize("device", [(3, 0), (13, 0)])
def test_memory_that_the_host_can_read_is_owned(device: tuple[int, int]) -> None:
    """Pinned and managed memory is imported without a driver."""
    fake = FakeTensor(int_matrix(), device=device)
    field = dl.from_dlpack(Producer(fake, device))
    assert (field.__dlpack_device__(), field.to_numpy().tolist()) == (device, ROWS)
    assert field.to_device("cpu").ptr == field.ptr
    del field
    assert fake.settled()


# OpenCL, Vulkan, Metal, VPI, ROCm, one of an extension, oneAPI, WebGPU, Hexagon, MAIA, Trainium.
FOREIGN = [(4, 0), (7, 0), (8, 0), (9, 0), (10, 1), (12, 0), (14, 0), (15, 0), (16, 0), (17, 0), (18, 0)]


@pytest.mark.parametrize("device", FOREIGN)
@pytest.mark.parametrize(
    "take", [dl.from_dlpack, lambda obj: dl.from_dlpack(obj, copy=True), dl.as_numpy, dl.from_array]
)
def test_memory_that_cannot_be_owned_is_refused_before_the_export(take: Any, device: tuple[int, int]) -> None:
    producer = Producer(FakeTensor(int_matrix(), device=device), device)
    name = str(dl.describe(producer).device)
    producer.calls.clear()
    with pytest.raises(dl.DeviceError, match=f"got memory on {name}; .* copy it to the host first"):
        take(producer)
    assert not producer.calls


def test_a_producer_gets_dl_device_for_a_copy_to_the_host() -> None:
    producer = Producer(FakeTensor(int_matrix()), (8, 0))
    assert values(dl.from_dlpack(producer, device="cpu")) == ROWS
    assert [call["dl_device"] for call in producer.calls] == [(1, 0)]


def test_no_producer_gets_dl_device_for_a_device_without_support() -> None:
    producer = Producer(FakeTensor(int_matrix()))
    with pytest.raises(dl.DeviceError, match="metal:0"):
        dl.from_dlpack(producer, device="metal:0")
    assert not producer.calls
