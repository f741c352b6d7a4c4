"""`describe` and `from_dlpack` of DLPack producers: the order of calls, and every defect of `fakes`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from catalog import CODES, SUBBYTE_CODES
from dlpack_structs import IS_COPIED, READ_ONLY, capsule_name
from fakes import (
    DevicelessProducer,
    FakeTensor,
    OldProducer,
    Producer,
    ReturningProducer,
    exchange_type,
    int_matrix,
)
from oracle import values

ROWS = [[0, 1, 2], [3, 4, 5]]
READERS: list[Callable[..., Any]] = [dl.describe, dl.from_dlpack]


def test_keywords_are_passed_only_when_needed() -> None:
    producer = Producer(FakeTensor(int_matrix()))
    dl.from_dlpack(producer)
    [call] = producer.calls
    assert call["max_version"] == (1, 3)
    assert call.get("stream") is None
    assert set(call) <= {"max_version", "stream"}


@pytest.mark.parametrize("read", READERS)
def test_producers_before_dlpack_1_are_called_again_without_keywords(read: Callable[..., Any]) -> None:
    producer = OldProducer(FakeTensor(int_matrix(), version=None))
    found = read(producer)
    assert values(found) == ROWS
    assert producer.calls == [None]
    assert found.readonly


@pytest.mark.parametrize("read", READERS)
def test_foreign_major_version_is_released_untouched(read: Callable[..., Any]) -> None:
    fake = FakeTensor(int_matrix(), version=(2, 0))
    with pytest.raises(dl.ExchangeError, match=r"version.*2"):
        read(Producer(fake))
    assert fake.deleted == 1


@pytest.mark.parametrize("read", READERS)
def test_null_deleter_is_legal(read: Callable[..., Any]) -> None:
    found = read(Producer(FakeTensor(int_matrix(), null_deleter=True)))
    assert values(found) == ROWS
    del found


@pytest.mark.parametrize("version", [None, (1, 0), (1, 1)])
@pytest.mark.parametrize("read", READERS)
def test_null_strides_mean_row_major_before_1_2(read: Callable[..., Any], version: tuple[int, int] | None) -> None:
    found = read(Producer(FakeTensor(int_matrix(), version=version, null_strides=True)))
    assert found.strides == (12, 4)
    assert values(found) == ROWS


@pytest.mark.parametrize("read", READERS)
def test_byte_offset_is_added(read: Callable[..., Any]) -> None:
    fake = FakeTensor(int_matrix(), byte_offset=64)
    assert read(Producer(fake)).ptr == fake.data.ctypes.data


@pytest.mark.parametrize("read", READERS)
def test_strides_of_single_and_missing_elements_are_ignored(read: Callable[..., Any]) -> None:
    single = read(Producer(FakeTensor(np.arange(3, dtype="i4"), shape=(1, 3), strides=(-(1 << 60), 1))))
    assert values(single) == [[0, 1, 2]]
    empty = read(Producer(FakeTensor(np.arange(3, dtype="i4"), shape=(0, 3), strides=(1 << 60, 7), null_data=True)))
    assert (empty.shape, empty.size) == ((0, 3), 0)
    assert values(empty) == []


@pytest.mark.parametrize("read", READERS)
def test_scalar_without_shape_and_strides(read: Callable[..., Any]) -> None:
    found = read(Producer(FakeTensor(np.array(7, "i4"), null_shape=True, null_strides=True)))
    assert (found.shape, found.strides, values(found)) == ((), (), 7)


@pytest.mark.parametrize("flags", [IS_COPIED, READ_ONLY | IS_COPIED])
def test_a_producers_copy_is_imported_but_never_described(flags: int) -> None:
    """A descriptor of a copy would not describe the object itself."""
    assert dl.from_dlpack(Producer(FakeTensor(int_matrix(), flags=flags))).readonly == bool(flags & READ_ONLY)
    for refuse in (dl.describe, lambda producer: dl.from_dlpack(producer, copy=False)):
        fake = FakeTensor(int_matrix(), flags=flags)
        with pytest.raises(dl.ExchangeError, match="copy"):
            refuse(Producer(fake))
        assert fake.settled()


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
}


@pytest.mark.parametrize("name", DEFECTS)
@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("raw", [False, True])
def test_defects_are_refused_by_name_and_released(read: Callable[..., Any], name: str, raw: bool) -> None:
    keywords, named = DEFECTS[name]
    fake = FakeTensor(int_matrix(), **keywords)
    with pytest.raises(dl.Error, match=named):
        read(fake.capsule() if raw else Producer(fake))
    assert fake.settled()


@pytest.mark.parametrize("offset", [1 << 63, (1 << 63) + 4096, (1 << 64) - 8, (1 << 63) - 1])
@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("through", ["capsule", "__dlpack__", "table"])
def test_a_byte_offset_out_of_the_address_space_is_refused(read: Callable[..., Any], offset: int, through: str) -> None:
    """The last offset is refused because of its sum with an address that is not 0."""
    fake = FakeTensor(int_matrix())
    fake.managed.dl_tensor.byte_offset = offset
    ways: dict[str, Callable[[], object]] = {"capsule": fake.capsule, "__dlpack__": lambda: Producer(fake)}
    wrapped = ways.get(through, exchange_type(fake))
    with pytest.raises(dl.ExchangeError, match=f"^byte_offset: {offset} "):
        read(wrapped())
    assert fake.settled() if through != "table" else fake.deleted == 1


def test_a_byte_offset_that_wraps_around_is_refused() -> None:
    fake = FakeTensor(int_matrix())
    fake.managed.dl_tensor.data = (1 << 64) - 4096
    fake.managed.dl_tensor.byte_offset = 1 << 20
    with pytest.raises(dl.ExchangeError, match=r"^byte_offset: "):
        dl.from_dlpack(Producer(fake))
    assert fake.settled()


@pytest.mark.parametrize("device", [(3, 0), (13, 0)])
def test_memory_that_the_host_can_read_is_owned(device: tuple[int, int]) -> None:
    """Pinned and managed memory is imported without a driver."""
    fake = FakeTensor(int_matrix(), device=device)
    field = dl.from_dlpack(Producer(fake, device))
    assert (field.__dlpack_device__(), field.to_numpy().tolist()) == (device, int_matrix().tolist())
    assert field.to_device("cpu").ptr == field.ptr
    del field
    assert fake.settled()


@pytest.mark.parametrize(
    ("name", "named"),
    [(b"used_dltensor", "consumed"), (b"used_dltensor_versioned", "consumed"), (b"something", "something|no protocol")],
)
@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("read", READERS)
def test_capsules_of_other_names_are_refused(read: Callable[..., Any], raw: bool, name: bytes, named: str) -> None:
    fake = FakeTensor(int_matrix())
    capsule = fake.capsule(name)
    with pytest.raises(dl.Error, match=named):
        read(capsule if raw else ReturningProducer(capsule))
    assert capsule_name(capsule) == name
    assert fake.deleted == 0


@pytest.mark.parametrize("value", [None, 3, "dltensor"])
def test_no_capsule_at_all(value: object) -> None:
    with pytest.raises((dl.ExchangeError, TypeError), match="__dlpack__"):
        dl.from_dlpack(ReturningProducer(value))


@pytest.mark.parametrize("read", READERS)
def test_producers_without_dlpack_device_are_read(read: Callable[..., Any]) -> None:
    """The device is taken from the struct."""
    assert values(read(DevicelessProducer(FakeTensor(int_matrix())))) == ROWS
    fake = FakeTensor(int_matrix(), device=(2, 0))
    with pytest.raises(dl.DeviceError, match="cuda"):
        read(DevicelessProducer(fake), device="cpu")
    assert fake.settled()


@pytest.mark.parametrize("name", SUBBYTE_CODES)
@pytest.mark.parametrize("version", [None, (1, 0)])
def test_packed_subbyte_is_not_taken_for_padded(name: str, version: tuple[int, int] | None) -> None:
    fake = FakeTensor(np.zeros(8, "u1"), version=version, dtype=(*CODES[name], 1), shape=(3,), strides=(1,))
    with pytest.raises(dl.Error, match=r"(?i)packed|padded|sub.?byte"):
        dl.from_dlpack(Producer(fake))
    assert fake.settled()


def test_copy_false_is_not_dropped_on_the_way() -> None:
    """A producer that does not take the keyword may copy."""
    with pytest.raises(TypeError):
        dl.from_dlpack(OldProducer(FakeTensor(int_matrix())), copy=False)


class Labelled(Producer):
    """A producer with labels, right or wrong."""

    def __init__(self, fake: FakeTensor, **labels: Any) -> None:
        super().__init__(fake)
        for name, value in labels.items():
            setattr(self, name, value)


def test_given_labels_replace_the_objects_labels() -> None:
    wrong = Labelled(FakeTensor(int_matrix()), __gt_dims__=("K",))
    assert dl.from_dlpack(wrong, dims="IJ").dims == ("I", "J")
    wrong = Labelled(FakeTensor(int_matrix()), __gt_dims__=("K",))
    assert dl.describe(wrong, dims="IJ").dims == ("I", "J")
    with pytest.raises(dl.DimsError, match="dims"):
        dl.describe(Labelled(FakeTensor(int_matrix()), __gt_dims__=5))


def test_the_halo_is_the_origin_only_if_the_object_has_none() -> None:
    field = dl.zeros((6, 6), halo=(1, 1), origin=(2, 2))
    interface = field.__gt_data_interface__
    both = Labelled(FakeTensor(np.zeros((6, 6))), __gt_origin__=(2, 2), __gt_data_interface__=interface)
    made = dl.from_dlpack(both)
    assert (made.origin, made.halo) == ((2, 2), ((1, 1), (1, 1)))
    halo = Labelled(FakeTensor(np.zeros((6, 6))), __gt_data_interface__=interface)
    assert dl.get_origin(halo) == (1, 1)
    found = dl.describe(halo)
    assert (found.origin, found.halo, dl.get_origin(found)) == ((1, 1), ((1, 1), (1, 1)), (1, 1))
    differing = Labelled(FakeTensor(np.zeros((6, 6))), __gt_origin__=(2, 2), default_origin=(1, 1))
    with pytest.raises(dl.LayoutError, match="default_origin"):
        dl.describe(differing)


def test_wrong_labels_are_named() -> None:
    interface = {None: {"shape": (2, 3), "typestr": "<i4", "data": (4096, False)}}
    for labels, error, named in (
        ({"__gt_dims__": 3}, dl.DimsError, "__gt_dims__: 3 is not a sequence of labels"),
        ({"__gt_origin__": ("I", 1)}, dl.LayoutError, "__gt_origin__: 'I' is not an integer"),
        ({"default_origin": "no"}, dl.LayoutError, "default_origin: 'no' is not a sequence of integers"),
        ({"halo": "no"}, dl.LayoutError, r'__gt_data_interface__\["halo"\]: \'no\' is not a sequence'),
        ({"halo": ((5, 5), 1)}, dl.LayoutError, r"^halo: \(5, 5\) at axis 0"),
        ({"dims": iter(int, 1)}, dl.DimsError, "__gt_data_interface__: more than 64 labels"),
    ):
        inside = {key: value for key, value in labels.items() if key in ("halo", "dims")}
        outside = {key: value for key, value in labels.items() if key not in inside}
        stated = {"__gt_data_interface__": {None: {**interface[None], **inside}}} if inside else outside
        with pytest.raises(error, match=named):
            dl.describe(Labelled(FakeTensor(int_matrix()), **stated))


@pytest.mark.parametrize("device", [None, 5, (1,), "cpu"])
def test_a_device_that_is_no_pair_is_named(device: Any) -> None:
    # A class of its own: one whose objects were all on the host is not asked for the device.
    producer = type("Stating", (Producer,), {})(FakeTensor(int_matrix()))
    producer.__dict__["__dlpack_device__"] = lambda: device
    with pytest.raises(dl.ExchangeError, match="__dlpack_device__"):
        dl.describe(producer)
