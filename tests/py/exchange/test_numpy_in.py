"""`describe` and `from_dlpack` of NumPy arrays and of tensors; dims and origin that objects state."""

import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import dlfield as dl
from catalog import CODES, dtype_named
from dlpack_structs import READ_ONLY
from fakes import FakeTensor, Producer, int_matrix

READERS: list[Callable[..., Any]] = [dl.describe, dl.from_dlpack]


def misaligned_strides() -> npt.NDArray[Any]:
    """A column of int32 whose stride, 6 bytes, is no multiple of 4."""
    return np.zeros(3, dtype=[("a", "i4"), ("b", "i2")])["a"]


@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("read", READERS)
def test_every_dtype(read: Callable[..., Any], name: str) -> None:
    """NumPy has no export of bfloat16 and float8: they are read by the dtype's name."""
    array = np.zeros((2, 3), dtype_named(name))
    found = read(array)
    assert (found.dtype, found.ptr, found.strides) == (array.dtype, array.ctypes.data, array.strides)
    assert found.device == "cpu"
    assert not found.readonly


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24).reshape(2, 3, 4),
        np.arange(24).reshape(2, 3, 4, order="F"),
        np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1),
        np.arange(24).reshape(4, 6)[::-2, 1::2],
        np.broadcast_to(np.arange(3), (2, 3)),
        np.array(5),
        np.zeros((3, 0, 2)),
        np.zeros((1, 1)),
    ],
)
@pytest.mark.parametrize("read", READERS)
def test_any_strides(read: Callable[..., Any], array: npt.NDArray[Any]) -> None:
    found = read(array)
    assert (found.ptr, found.shape) == (array.ctypes.data, array.shape)
    steps = zip(found.strides, array.strides, array.shape, strict=True)
    assert all(ours == theirs for ours, theirs, extent in steps if extent > 1)
    assert (found.ndim, found.size, found.itemsize, found.nbytes) == (array.ndim, array.size, 8, array.nbytes)
    assert found.is_contiguous() == array.flags.c_contiguous
    assert found.is_contiguous("F") == array.flags.f_contiguous
    assert dl.from_dlpack(array).to_numpy().tolist() == array.tolist()


@pytest.mark.parametrize("read", READERS)
def test_readonly_is_kept_and_cannot_be_overridden(read: Callable[..., Any]) -> None:
    """JAX and tvm-ffi refuse read-only NumPy arrays; PyTorch writes into them."""
    array = np.arange(3.0)
    array.flags.writeable = False
    assert read(array).readonly
    assert read(np.broadcast_to(1.0, (3,))).readonly
    with pytest.raises(dl.ExchangeError, match=r"(?i)writable.*read.?only|read.?only.*writable"):
        dl.describe(array, writable=True)


def test_writable_overrides_legacy_capsules_only() -> None:
    legacy = FakeTensor(int_matrix(), version=None)
    assert dl.describe(Producer(legacy)).readonly
    assert not dl.describe(Producer(legacy), writable=True).readonly
    assert not dl.describe(np.zeros(3), writable=True).readonly
    with pytest.raises(dl.ExchangeError, match=r"(?i)read.?only"):
        dl.describe(Producer(FakeTensor(int_matrix(), flags=READ_ONLY)), writable=True)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("make", "error", "named"),
    [
        (lambda: np.zeros(3, ">f8"), dl.DTypeError, r">f8|big.endian"),
        (lambda: np.zeros(3, ">i2"), dl.DTypeError, r">i2|big.endian"),
        (lambda: np.zeros(3, object), dl.DTypeError, "object"),
        (lambda: np.zeros(3, "U4"), dl.DTypeError, "U4|str"),
        (lambda: np.zeros(3, "M8[s]"), dl.DTypeError, "M8|datetime"),
        (lambda: np.zeros(3, [("a", "i4")]), dl.DTypeError, "structured|fields"),
        (lambda: np.zeros(3, np.longdouble), dl.DTypeError, "longdouble|float128"),
        (misaligned_strides, dl.ExchangeError, "stride.*6"),
    ],
)
def test_arrays_that_dlpack_cannot_express_are_refused(
    read: Callable[..., Any], make: Callable[[], Any], error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=named):
        read(make())


@pytest.mark.parametrize("read", READERS)
def test_the_array_is_kept_alive_and_released(read: Callable[..., Any]) -> None:
    array = np.full(1000, 1.5)
    alive = weakref.ref(array)
    found = read(array)
    del array
    assert alive() is not None
    assert dl.from_dlpack(found.owner if isinstance(found, dl.Descriptor) else found).to_numpy()[999] == 1.5
    del found
    assert alive() is None


def test_reading_leaves_no_reference_behind() -> None:
    array = np.zeros(3)
    before = sys.getrefcount(array)
    for _ in range(100):
        dl.describe(array)
        dl.from_dlpack(array)
        dl.as_numpy(array)
    assert sys.getrefcount(array) == before


def test_owner_and_protocol() -> None:
    array, field = np.zeros(3), dl.zeros(3)
    assert dl.describe(array).owner is array
    assert dl.describe(array).protocol == "numpy"
    assert dl.describe(field).owner is field
    assert dl.describe(field).protocol == "dlfield"
    assert dl.describe(dl.describe(array)).protocol == "dlfield"


class Plain(np.ndarray[Any, np.dtype[Any]]):
    """Inherits its base's export."""


class Own(np.ndarray[Any, np.dtype[Any]]):
    """Defines its own export, and labels."""

    __gt_dims__ = ("K",)

    def __dlpack__(self, **keywords: Any) -> Any:
        return np.asarray(self).__dlpack__(**keywords)


@pytest.mark.parametrize(("kind", "protocol", "dims"), [(Plain, "numpy", None), (Own, "dlpack", ("K",))])
def test_subclasses_are_read_by_what_they_export(kind: Any, protocol: str, dims: Any) -> None:
    array = np.arange(3).view(kind)
    found = dl.describe(array)
    assert (found.ptr, found.protocol, found.dims) == (array.ctypes.data, protocol, dims)


def test_memory_mapped_files_are_arrays_like_others(tmp_path: Any) -> None:
    mapped = np.memmap(tmp_path / "field", ">f8", "w+", shape=(2, 3))
    mapped[...] = 1.5
    with pytest.raises(dl.DTypeError, match="byte order"):
        dl.describe(mapped)
    assert dl.from_array(mapped, "f8").to_numpy().tolist() == [[1.5] * 3] * 2
    field = dl.zeros((2, 3))
    field[...] = mapped
    assert field.to_numpy().tolist() == [[1.5] * 3] * 2


@pytest.mark.parametrize("read", [dl.describe, dl.from_dlpack, dl.from_array])
def test_masks_are_not_lost_silently(read: Any) -> None:
    with pytest.raises(dl.ExchangeError, match="mask"):
        read(np.ma.masked_equal(np.arange(3), 1))


def test_readonly_arrays_without_elements_stay_readonly(torch: Any) -> None:
    array = dl.from_dlpack(torch.empty(0, 3)).as_readonly().to_numpy()
    assert (array.shape, array.flags.writeable, array.flags.owndata) == ((0, 3), False, False)


def test_descriptor_has_the_given_labels() -> None:
    found = dl.describe(np.zeros((2, 3)))
    assert (found.dims, found.origin, found.halo) == (None, None, None)
    assert dl.describe(np.zeros((2, 3)), dims="JI").dims == ("J", "I")
    assert "float64" in repr(found)
    with pytest.raises(dl.DimsError, match="dims"):
        dl.describe(np.zeros((2, 3)), dims="I")
    with pytest.raises(dl.DimsError, match="dims"):
        dl.describe(np.zeros((2, 3)), dims="II")


def test_descriptor_of_a_tensor_carries_its_labels() -> None:
    field = dl.zeros((4, 5, 6), dims="KIJ", halo=(1, (2, 1), 0), backend="gt:cpu_ifirst")
    found = dl.describe(field)
    for name in ("shape", "strides", "dtype", "dims", "origin", "halo", "layout", "ptr", "readonly", "device"):
        assert getattr(found, name) == getattr(field, name), name
    assert found.alignment() == field.alignment()
    assert dl.describe(field.as_readonly()).readonly


def test_from_dlpack_takes_and_checks_labels() -> None:
    made = dl.from_dlpack(np.zeros((4, 5)), dims=("K", "I"), origin=(1, 2))
    assert (made.dims, made.origin) == (("K", "I"), (1, 2))
    assert dl.from_dlpack(np.zeros((4, 5))).dims == ("I", "J")
    assert dl.from_dlpack(np.zeros((4, 5))).origin == (0, 0)
    with pytest.raises(dl.DimsError, match="dims"):
        dl.from_dlpack(np.zeros((4, 5)), dims="IJK")
    with pytest.raises(dl.LayoutError, match="origin"):
        dl.from_dlpack(np.zeros((4, 5)), origin=(1,))
    with pytest.raises(dl.LayoutError, match="origin"):
        dl.from_dlpack(np.zeros((4, 5)), origin=(5, 0))


def test_from_dlpack_of_a_tensor_keeps_its_labels() -> None:
    field = dl.zeros((4, 5), dims="KI", halo=(1, 2))
    made = dl.from_dlpack(field)
    assert (made.ptr, made.dims, made.origin, made.halo) == (field.ptr, field.dims, field.origin, field.halo)
    assert dl.from_dlpack(field, origin=(0, 0)).origin == (0, 0)


@pytest.mark.parametrize("order", ["C", "F"])
def test_from_dlpack_copies_on_request(order: Any) -> None:
    array = np.asarray(np.arange(6.0).reshape(2, 3), order=order)
    array.flags.writeable = False
    shared, copied = dl.from_dlpack(array, copy=False), dl.from_dlpack(array, copy=True)
    assert shared.ptr == array.ctypes.data == dl.from_dlpack(array).ptr
    assert shared.readonly
    assert copied.ptr != array.ctypes.data
    assert not copied.readonly
    assert copied.to_numpy().tolist() == array.tolist()
    copied[0, 0] = 9
    assert array[0, 0] == 0


def test_from_dlpack_shares_writes() -> None:
    array = np.zeros((2, 3))
    made = dl.from_dlpack(array)
    made[1, 2] = 5
    array[0, 1] = 4
    assert made.to_numpy().tolist() == array.tolist() == [[0, 4, 0], [0, 0, 5]]


class Labelled:
    """An object with the labels that a test gives it."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


DATA_INTERFACE = {
    None: {"shape": (4, 5), "typestr": "<f8", "data": (0, False), "dims": ("J", "I"), "halo": ((1, 2), (3, 0))}
}


@pytest.mark.parametrize(
    ("attributes", "dims"),
    [
        ({"__gt_dims__": ("K", "I")}, ("K", "I")),
        ({"__gt_dims__": lambda: ["K", "I"]}, ("K", "I")),
        ({"dims": ("x", "y")}, ("x", "y")),
        ({"__gt_data_interface__": DATA_INTERFACE}, ("J", "I")),
        ({"__gt_dims__": ("J", "I"), "dims": ("J", "I")}, ("J", "I")),
        ({}, None),
    ],
)
def test_get_dims(attributes: dict[str, Any], dims: tuple[str, ...] | None) -> None:
    assert dl.get_dims(Labelled(**attributes)) == dims
    annotation = tuple(reversed(dims or ("B", "A")))
    assert dl.get_dims(Labelled(**attributes), annotation) == (dims or ("A", "B"))


@pytest.mark.parametrize(
    ("attributes", "origin"),
    [
        ({"__gt_origin__": (1, 2)}, (1, 2)),
        ({"__gt_origin__": (1, 2), "__gt_dims__": ("K", "I")}, (2, 1)),  # GT4Py reads it in its own order: I, K
        ({"default_origin": [3, 4]}, (3, 4)),
        ({"__gt_data_interface__": DATA_INTERFACE}, (1, 3)),
        ({"__gt_origin__": (1, 2), "default_origin": (1, 2)}, (1, 2)),
        ({}, None),
    ],
)
def test_get_origin(attributes: dict[str, Any], origin: tuple[int, ...] | None) -> None:
    assert dl.get_origin(Labelled(**attributes)) == origin
    assert dl.get_origin(Labelled(**attributes), (7, 8)) == (origin or (7, 8))


def test_labels_survive_a_wrapper_with_gt4pys_attributes_only() -> None:
    field = dl.zeros((4, 5, 6), dims="KIJ", halo=(1, 2, 3))
    proxy = Labelled(__gt_dims__=field.__gt_dims__, __gt_origin__=field.__gt_origin__)
    assert (dl.get_dims(proxy), dl.get_origin(proxy)) == (field.dims, field.origin)


def test_sources_that_disagree_are_an_error() -> None:
    with pytest.raises(dl.DimsError, match=r"__gt_dims__.*dims|dims.*__gt_dims__"):
        dl.get_dims(Labelled(__gt_dims__=("I", "J"), dims=("J", "I")))
    with pytest.raises(dl.Error, match="origin"):
        dl.get_origin(Labelled(__gt_origin__=(1, 2), default_origin=(2, 1)))


def test_get_dims_of_arrays(xarray: Any) -> None:
    assert dl.get_dims(np.zeros(3)) is None
    assert dl.get_dims(xarray.DataArray(np.zeros((2, 3)), dims=("x", "K"))) == ("x", "K")
    assert dl.get_dims(dl.zeros((2, 3), dims="KI")) == ("K", "I")
