"""What is peculiar to NumPy arrays and to tensors that come in; dims and origin that objects state."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from fakes import FakeTensor, Producer, int_matrix
from fakes_interfaces import Arrays, Exposing


def test_memory_mapped_files_are_arrays_like_others(tmp_path: Any) -> None:
    mapped = np.memmap(tmp_path / "field", ">f8", "w+", shape=(2, 3))
    mapped[...] = 1.5
    with pytest.raises(dl.DTypeError, match="byte order"):
        dl.describe(mapped)
    assert dl.from_array(mapped, "f8").to_numpy().tolist() == [[1.5] * 3] * 2
    field = dl.zeros((2, 3))
    field[...] = mapped
    assert field.to_numpy().tolist() == [[1.5] * 3] * 2


def assigned(value: Any, key: Any = ...) -> dl.Tensor:
    field = dl.zeros(np.shape(value))
    field[key] = value
    return field


@pytest.mark.parametrize("read", [dl.describe, dl.from_dlpack, dl.from_array, assigned, lambda x: dl.zeros(3) + x])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_masks_are_not_lost_silently(read: Any, dtype: str) -> None:
    masked: Any = np.ma.masked_array(np.arange(3).astype(dtype), [False, True, False])
    ordinary: Any = np.ma.masked_array(np.arange(3).astype(dtype), [False, False, False])
    for wrap in (lambda array: array, lambda array: Arrays(lambda: array)):
        with pytest.raises(dl.ExchangeError, match="expected an array without masked points, got one") as told:
            read(wrap(masked))
        [fix] = re.findall(r"; pass (\S+), or", str(told.value))
        names = dict.fromkeys(("obj", "data", "value", "operand"), masked)
        assert np.isnan(eval(fix, {**names, "np": np})).tolist() == [False, True, False]
        assert dl.as_numpy(read(wrap(ordinary))).tolist() == [0, 1, dtype == "bool" or 2]


@pytest.mark.filterwarnings("ignore:.*converting a masked element to nan")
@pytest.mark.parametrize(
    "read", [dl.from_array, assigned, lambda x: assigned(x, [0, 1]), lambda x: dl.zeros((2, 2)) + x]
)
def test_masks_inside_lists_are_not_lost(read: Any) -> None:
    masked = np.ma.masked_array([1.0, 2.0], [False, True])
    for value in ([masked, masked], (masked, [1.0, 2.0]), [[1.0, np.ma.masked], [1.0, 2.0]]):
        with pytest.raises(dl.ExchangeError, match=r"^\w+: expected arrays without masked points"):
            read(value)
    assert read([masked[:1], masked[:1]]).tolist()[0][0] == 1
    with pytest.raises(dl.ExchangeError, match=r"^fill_value: expected an array without masked points"):
        dl.full(2, np.ma.masked)


@pytest.mark.parametrize("wrap", [lambda key: key, lambda key: [key], lambda key: (key,), list, lambda key: ([key],)])
@pytest.mark.parametrize("points", [[0, 1], [False, True]])
def test_masks_of_keys_are_not_lost(points: list[Any], wrap: Callable[[Any], Any]) -> None:
    field, key = dl.ones((2, 3)), wrap(np.ma.masked_array(points, [False, True]))
    with pytest.raises(dl.ExchangeError, match=r"^key: expected positions or a mask without masked points, got 1"):
        field[key]
    with pytest.raises(dl.ExchangeError, match=r"^key: "):
        field[key] = 0
    assert field.sum().item() == 6
    assert field[np.ma.masked_array(points, [False, False])].shape in [(2, 3), (1, 3)]


def test_readonly_arrays_without_elements_stay_readonly(torch: Any) -> None:
    array = dl.from_dlpack(torch.empty(0, 3)).as_readonly().to_numpy()
    assert (array.shape, array.flags.writeable, array.flags.owndata) == ((0, 3), False, False)


def test_from_dlpack_of_a_tensor_keeps_its_labels() -> None:
    field = dl.zeros((4, 5), dims="KI", halo=(1, 2))
    made = dl.from_dlpack(field)
    assert (made.ptr, made.dims, made.origin, made.halo) == (field.ptr, field.dims, field.origin, field.halo)
    assert dl.from_dlpack(field, origin=(0, 0)).origin == (0, 0)


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
    assert dl.get_dims(Exposing(**attributes)) == dims
    annotation = tuple(reversed(dims or ("B", "A")))
    assert dl.get_dims(Exposing(**attributes), annotation) == (dims or ("A", "B"))


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
    assert dl.get_origin(Exposing(**attributes)) == origin
    assert dl.get_origin(Exposing(**attributes), (7, 8)) == (origin or (7, 8))


def test_labels_survive_a_wrapper_with_gt4pys_attributes_only() -> None:
    field = dl.zeros((4, 5, 6), dims="KIJ", halo=(1, 2, 3))
    proxy = Exposing(__gt_dims__=field.__gt_dims__, __gt_origin__=field.__gt_origin__)
    assert (dl.get_dims(proxy), dl.get_origin(proxy)) == (field.dims, field.origin)


def test_sources_that_disagree_are_an_error() -> None:
    with pytest.raises(dl.DimsError, match=r"__gt_dims__.*dims|dims.*__gt_dims__"):
        dl.get_dims(Exposing(__gt_dims__=("I", "J"), dims=("J", "I")))
    with pytest.raises(dl.Error, match="origin"):
        dl.get_origin(Exposing(__gt_origin__=(1, 2), default_origin=(2, 1)))


def test_get_dims_of_arrays(xarray: Any) -> None:
    assert dl.get_dims(np.zeros(3)) is None
    assert dl.get_dims(xarray.DataArray(np.zeros((2, 3)), dims=("x", "K"))) == ("x", "K")
    assert dl.get_dims(dl.zeros((2, 3), dims="KI")) == ("K", "I")


def labelled(data: Any, **labels: Any) -> Producer:
    """A producer with labels, right or wrong."""
    made = Producer(FakeTensor(data))
    vars(made).update(labels)
    return made


def test_given_labels_replace_the_objects_labels() -> None:
    wrong = labelled(int_matrix(), __gt_dims__=("K",))
    assert dl.from_dlpack(wrong, dims="IJ").dims == ("I", "J")
    wrong = labelled(int_matrix(), __gt_dims__=("K",))
    assert dl.describe(wrong, dims="IJ").dims == ("I", "J")
    with pytest.raises(dl.DimsError, match="dims"):
        dl.describe(labelled(int_matrix(), __gt_dims__=5))


def test_the_halo_is_the_origin_only_if_the_object_has_none() -> None:
    field = dl.zeros((6, 6), halo=(1, 1), origin=(2, 2))
    interface = field.__gt_data_interface__
    both = labelled(np.zeros((6, 6)), __gt_origin__=(2, 2), __gt_data_interface__=interface)
    made = dl.from_dlpack(both)
    assert (made.origin, made.halo) == ((2, 2), ((1, 1), (1, 1)))
    halo = labelled(np.zeros((6, 6)), __gt_data_interface__=interface)
    assert dl.get_origin(halo) == (1, 1)
    found = dl.describe(halo)
    assert (found.origin, found.halo, dl.get_origin(found)) == ((1, 1), ((1, 1), (1, 1)), (1, 1))
    differing = labelled(np.zeros((6, 6)), __gt_origin__=(2, 2), default_origin=(1, 1))
    with pytest.raises(dl.LayoutError, match="default_origin"):
        dl.describe(differing)


def test_wrong_labels_are_named() -> None:
    interface = {None: {"shape": (2, 3), "typestr": "<i4", "data": (1 << 20, False)}}
    for labels, error, named in (
        ({"__gt_dims__": 3}, dl.DimsError, "__gt_dims__: expected one string for each dimension, got 3"),
        ({"__gt_origin__": ("I", 1)}, dl.LayoutError, "__gt_origin__: expected an integer, got 'I'"),
        ({"default_origin": "no"}, dl.LayoutError, "default_origin: expected a sequence of integers, got 'no'"),
        (
            {"halo": "no"},
            dl.LayoutError,
            r'__gt_data_interface__\["halo"\]: .* a pair \(lower, upper\) .*, got \'no\'',
        ),
        ({"halo": ((5, 5), 1)}, dl.LayoutError, r"^halo: .* got \(5, 5\) at axis 0"),
        (
            {"dims": iter(int, 1)},
            dl.DimsError,
            "__gt_data_interface__: expected one string for each dimension, got more than 64",
        ),
    ):
        inside = {key: value for key, value in labels.items() if key in ("halo", "dims")}
        outside = {key: value for key, value in labels.items() if key not in inside}
        stated = {"__gt_data_interface__": {None: {**interface[None], **inside}}} if inside else outside
        with pytest.raises(error, match=named):
            dl.describe(labelled(int_matrix(), **stated))


def test_arguments_of_the_wrong_type() -> None:
    array = np.zeros((2, 3))
    calls: list[Callable[[], Any]] = [
        lambda: dl.describe(array, writable=1),  # type: ignore[arg-type]
        lambda: dl.describe(array, device=3),  # type: ignore[arg-type]
        lambda: dl.from_dlpack(array, copy="no"),  # type: ignore[arg-type]
        lambda: dl.from_dlpack(array, origin=1),  # type: ignore[arg-type]
        lambda: dl.from_dlpack(array, dims=1),  # type: ignore[arg-type]
    ]
    for call, named in zip(calls, ("writable", "device", "copy", "origin", "dims"), strict=True):
        with pytest.raises((TypeError, dl.DimsError), match=f"^{named}: "):
            call()
