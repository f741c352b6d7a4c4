"""Every producer with every entrance: what arrives is the producer's memory, with all that it says of it."""

import gc
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from fakes import RaisingProducer, exchange_type, tensor_of
from fakes_interfaces import Arrays, Exposing, Raising
from matrix import ENTRANCES, PRODUCERS, Case, build, seen, skip_without_library

# With an address, a capsule's struct, or a number, which need no object.
WITHOUT_ATTRIBUTES = (
    *("dlfield", "dlfield description", "numpy", "dlpack capsule", "dlpack legacy capsule", "buffer"),
    *("xarray", "jax", "tvm-ffi"),
)
# Who gets another device as an argument and refuses it.
ASKED_FOR_A_DEVICE = ("numpy subclass with an export", "torch", "jax", "tvm-ffi")


@pytest.fixture(params=PRODUCERS)
def producer(request: pytest.FixtureRequest) -> str:
    skip_without_library(request.param)
    return str(request.param)


@pytest.fixture(params=ENTRANCES)
def entrance(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def cases(producer: str) -> Iterator[tuple[str, Case]]:
    """Every layout with one dtype, and every dtype in one layout, that the producer can show."""
    row = PRODUCERS[producer]
    for layout, dtype in [*((layout, "float64") for layout in row.layouts), *(("C", dtype) for dtype in row.dtypes)]:
        for readonly in (False, True):
            case = build(layout, dtype, readonly=readonly)
            if row.can_show(case.array):
                yield f"{layout}, {dtype}, readonly={readonly}", case


def matrix(*, readonly: bool = False, rows: int = 3) -> Any:
    """Rows of four float64."""
    return build("C", "float64", readonly=readonly).block[: 4 * rows].reshape(rows, 4)


def shown(producer: str) -> Any:
    return PRODUCERS[producer].show(matrix())


def test_the_result_is_the_memory_of_the_producer_or_a_copy(producer: str, entrance: str) -> None:
    row, (enter, shares) = PRODUCERS[producer], ENTRANCES[entrance]
    for name, case in cases(producer):
        array = case.array
        found = enter(row.show(array), array)
        what = seen(found)
        assert (what.shape, what.dtype) == (array.shape, array.dtype.name), name
        assert what.readonly == (shares and row.is_readonly(array)), name
        assert what.memory().tobytes() == array.tobytes(), name
        if not isinstance(found, np.ndarray):
            assert (found.device, found.ndim, found.size, found.nbytes) == ("cpu", array.ndim, array.size, array.nbytes)
            assert (found.itemsize, sorted(found.layout)) == (array.itemsize, list(range(array.ndim)))
        if not shares:
            assert not case.holds(what.ptr), name
        elif array.size:
            assert what.ptr == array.ctypes.data, name
            steps = zip(what.strides, array.strides, array.shape, strict=True)
            assert all(ours == theirs for ours, theirs, extent in steps if extent > 1), name
            if not isinstance(found, np.ndarray):
                assert found.is_contiguous() == array.flags.c_contiguous, name
                assert found.is_contiguous("F") == array.flags.f_contiguous, name


def test_a_description_says_where_the_memory_is_from(producer: str) -> None:
    row, obj = PRODUCERS[producer], shown(producer)
    found = dl.describe(obj)
    assert found.protocol == row.protocol
    assert (found.owner is obj) != (producer == "dlfield description")
    assert found.dims == (("I", "J") if row.has_labels else None)
    if producer != "dlfield":
        assert (found.origin, found.halo) == (None, None)
    assert "float64" in repr(found)
    field = dl.from_dlpack(shown(producer))
    assert (field.dims, field.origin, field.halo) == (("I", "J"), (0, 0), ((0, 0), (0, 0)))


def test_labels_of_the_object_arrive(producer: str) -> None:
    obj = shown(producer)
    try:
        # As everything of GT4Py, the origin is in the order I, J.
        obj.__gt_dims__, obj.default_origin = ("J", "I"), (1, 2)
    except (AttributeError, TypeError):
        assert producer in WITHOUT_ATTRIBUTES
        return
    for entrance in ("describe", "from_dlpack", "from_dlpack, copied", "from_array"):
        found = ENTRANCES[entrance].enter(obj, matrix())
        assert (found.dims, found.origin) == (("J", "I"), (2, 1)), entrance
    with dl.Signature(x=dl.FieldSpec("float64", "IJ")).bind(x=obj) as fields:
        assert (fields.x.shape, fields.x.dims, fields.x.origin) == ((4, 3), ("I", "J"), (1, 2))


# Arguments


def test_labels_of_the_caller_replace_all_others(producer: str, read: Callable[..., Any]) -> None:
    assert read(shown(producer), dims="JI").dims == ("J", "I")
    for dims in ("I", "IJK", "II"):
        with pytest.raises(dl.DimsError, match=r"^dims: "):
            read(shown(producer), dims=dims)
    assert dl.from_dlpack(shown(producer), origin=(1, 2)).origin == (1, 2)
    for origin in ((1,), (4, 0)):
        with pytest.raises(dl.LayoutError, match=r"^origin: "):
            dl.from_dlpack(shown(producer), origin=origin)


def test_other_devices_and_streams_are_refused_for_host_memory(producer: str, read: Callable[..., Any]) -> None:
    assert read(shown(producer), device="cpu", stream=None).device == "cpu"
    for device in ("cuda:0", "cuda:1", "cuda_managed", "cuda_host", "rocm:0", (2, 0), "gpu"):
        name, obj = str(dl.Device(device)), shown(producer)
        if producer in ASKED_FOR_A_DEVICE:
            with pytest.raises((BufferError, RuntimeError, ValueError)):
                read(obj, device=device)
            continue
        with pytest.raises(
            dl.DeviceError, match=f"expected memory on {name}|{name}.* (cannot be used|cannot allocate)"
        ):
            read(obj, device=device)
        tensor = tensor_of(obj)
        assert tensor is None or tensor.deleted == 1 or tensor.settled()
    for stream in (0, 1, -1, 77, "x"):
        with pytest.raises(
            dl.ExchangeError, match=rf"^stream: expected None on the host, which has no streams, got '?{stream}'?$"
        ):
            read(shown(producer), stream=stream)


def test_copy_is_obeyed(producer: str) -> None:
    array = matrix()
    obj = PRODUCERS[producer].show(array)
    if "capsule" not in producer and producer != "dlpack without keywords":
        assert dl.from_dlpack(obj, copy=False).ptr == dl.from_dlpack(obj).ptr == array.ctypes.data
    copied = dl.from_dlpack(obj, copy=True)
    copied[...] = -1
    assert array.min() == 0


def test_writing_is_refused_for_read_only_memory(producer: str) -> None:
    row = PRODUCERS[producer]
    for readonly in (False, True):
        array = matrix(readonly=readonly)
        if not row.can_show(array):
            continue
        if row.readonly == "assumed" or not row.is_readonly(array):
            assert not dl.describe(row.show(array), writable=True).readonly
        else:
            with pytest.raises(dl.ExchangeError, match=r"^writable: the memory is read-only"):
                dl.describe(row.show(array), writable=True)
        field = dl.from_dlpack(row.show(array))
        if row.is_readonly(array):
            with pytest.raises(dl.ExchangeError, match="read-only"):
                field[0, 0] = 9
        else:
            field[0, 0] = 9
            assert array[0, 0] == 9


# Lifetime


def is_gone(reference: weakref.ref[Any]) -> bool:
    return reference() is None or (gc.collect() >= 0 and reference() is None)


def test_the_memory_is_kept_and_released_once(producer: str, entrance: str) -> None:
    row, (enter, shares) = PRODUCERS[producer], ENTRANCES[entrance]
    block = build("C", "float64").block
    array, expected = block[:12], block[:12].tolist()
    gone = weakref.ref(array)
    obj = row.show(array)
    tensor = tensor_of(obj)
    found = enter(obj, array)
    del obj, array
    if tensor is None:
        assert is_gone(gone) != shares
    else:
        assert tensor.deleted <= 1 - shares
    assert seen(found).memory().tolist() == expected
    del found
    if tensor is None:
        assert is_gone(gone)
    else:
        assert tensor.deleted == 1


def test_reading_leaves_no_reference_behind(producer: str) -> None:
    if "capsule" in producer:
        pytest.skip("can be read once")
    array = matrix()
    obj = PRODUCERS[producer].show(array)
    attributes = getattr(obj, "__dict__", {}).values()
    parts = [array, obj, *(part for part in attributes if not isinstance(part, (bool, int, np.dtype)))]
    before = [sys.getrefcount(part) for part in parts]
    for enter, _ in ENTRANCES.values():
        for _ in range(20):
            enter(obj, array)
    if isinstance(obj, Arrays):
        obj.calls.clear()
    assert [sys.getrefcount(part) for part in parts] == before


# What is refused


NUMBERS_ONLY = {
    ">f8": "byte order",
    ">i2": "byte order",
    "O": "objects",
    "U4": "text|several values",
    "S3": "text|bytes|several values",
    "M8[s]": "date",
    "m8[s]": "date|time",
    "i4,f8": "structured",
    "longdouble": "float128|width",
    "clongdouble": "complex256|width",
}
OF_ANY_DTYPE = ("numpy", "array-interface", "array-struct", "gt", "array", "buffer", "xarray")


@pytest.mark.parametrize("dtype", NUMBERS_ONLY)
@pytest.mark.parametrize("name", OF_ANY_DTYPE)
def test_elements_that_are_no_numbers_are_refused_by_name(name: str, dtype: str, read: Callable[..., Any]) -> None:
    array = np.zeros(3, dtype)
    skip_without_library(name)
    if name == "buffer" and array.dtype.kind in "mM":
        pytest.skip("NumPy does not show dates as a buffer")
    with pytest.raises(dl.DTypeError, match=NUMBERS_ONLY[dtype]):
        read(PRODUCERS[name].show(array))


@pytest.mark.parametrize("name", OF_ANY_DTYPE)
def test_strides_of_part_of_an_element_are_refused(name: str, read: Callable[..., Any]) -> None:
    with pytest.raises(dl.ExchangeError, match=r"strides: .* got 12 bytes"):
        read(PRODUCERS[name].show(np.zeros(3, "i4,f8")["f1"]))


def failing(error: BaseException) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail


# Where a producer can raise: on access to an attribute, or when what it returned is called.
ATTRIBUTES = (
    *("__dlpack__", "__gt_data_interface__", "__gt_interface__", "__cuda_array_interface__", "__hip_array_interface__"),
    *("__array_interface__", "__array_struct__", "__array__"),
)
CALLS: dict[str, Callable[[BaseException], Any]] = {
    "__dlpack__()": RaisingProducer,
    "__dlpack_device__()": lambda error: RaisingProducer(error, "__dlpack_device__"),
    "exchange table": lambda error: exchange_type(None, error=error)(),
    "__array__()": lambda error: Arrays(failing(error)),
    "__gt_data_interface__()": lambda error: Exposing(__gt_data_interface__=failing(error)),
    "a buffer of __gt_data_interface__": lambda error: Exposing(__gt_data_interface__={None: failing(error)}),
    "__gt_interface__()": lambda error: Exposing(__gt_interface__=failing(error)),
    "a buffer of __gt_interface__": lambda error: Exposing(__gt_interface__={"cpu": failing(error)}),
}


@pytest.mark.parametrize("where", [*ATTRIBUTES, *CALLS])
def test_the_producers_exception_is_the_callers(where: str, read: Callable[..., Any]) -> None:
    for error in (KeyError, RuntimeError, ValueError, TypeError, BufferError, ZeroDivisionError, KeyboardInterrupt):
        raised = error("mine")
        producer = Raising(where, raised) if where in ATTRIBUTES else CALLS[where](raised)
        with pytest.raises(error) as caught:
            read(producer)
        assert caught.value is raised
        if isinstance(producer, RaisingProducer):
            # Again without keywords after a TypeError; not at all on an unknown device.
            assert producer.calls == (0 if "device" in where else 1 + (error is TypeError))


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_an_attribute_that_is_absent_is_skipped(name: str, read: Callable[..., Any]) -> None:
    with pytest.raises(dl.NotAnArrayError):
        read(Raising(name, AttributeError("not here")))
