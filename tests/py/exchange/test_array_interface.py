"""`__array_interface__`, the arguments of `__array__`, `__gt_dims__`, `__gt_origin__` and `__gt_data_interface__`."""

from typing import Any

import numpy as np
import pytest

import dlfield as dl
from catalog import ML_CODES, NUMPY_CODES, SUBBYTE_CODES, dtype_named


@pytest.mark.parametrize("readonly", [False, True])
def test_the_interface_is_that_of_numpy(readonly: bool) -> None:
    for name in NUMPY_CODES:
        field = dl.zeros((3, 4), name, alignment_size=64)
        field = field.as_readonly() if readonly else field
        interface, reference = field.__array_interface__, np.zeros((3, 4), name).__array_interface__
        assert (interface["version"], interface["typestr"]) == (3, reference["typestr"])
        assert (interface["shape"], interface["strides"]) == ((3, 4), field.strides)
        assert interface["data"] == (field.ptr, readonly)


@pytest.mark.parametrize("convert", [np.asarray, lambda field: field.__array__(), lambda field: field.to_numpy()])
def test_a_read_only_array_stays_so(convert: Any) -> None:
    array = convert(dl.ones(3).as_readonly())
    with pytest.raises(ValueError, match="WRITEABLE"):
        array.flags.writeable = True


def test_array_dtype_argument() -> None:
    field = dl.full((2, 3), 2.5)
    same = field.__array__(np.float64)
    assert same.ctypes.data == field.ptr
    assert field.__array__(np.dtype("f8"), copy=False).ctypes.data == field.ptr
    converted = field.__array__("i4")
    assert (converted.dtype.name, converted.tolist()) == ("int32", [[2] * 3] * 2)
    assert field.__array__(dtype="f4", copy=True).dtype == np.float32
    with pytest.raises(ValueError, match="copy"):
        field.__array__("f4", copy=False)
    with pytest.raises(TypeError):
        field.__array__(copy="yes")  # type: ignore[arg-type]


def test_numpys_own_functions_obey_copy() -> None:
    field = dl.ones((2, 3))
    assert np.array(field).ctypes.data != field.ptr
    assert np.array(field, copy=False).ctypes.data == field.ptr
    assert np.asarray(field, dtype="f4").dtype == np.float32
    with pytest.raises(ValueError, match="copy"):
        np.array(field, dtype="f4", copy=False)
    assert (field + 1).to_numpy().tolist() == [[2.0] * 3] * 2
    assert float(np.sum(field)) == 6.0


@pytest.mark.parametrize("name", [*ML_CODES, *SUBBYTE_CODES])
def test_interface_of_other_dtypes_gives_their_size(name: str) -> None:
    field = dl.zeros((2, 3), dtype_named(name))
    typestr = getattr(field, "__array_interface__", {"typestr": None})["typestr"]
    assert typestr in (None, dtype_named(name).str, f"|V{field.itemsize}")


def test_gt_dims_and_origin() -> None:
    field = dl.zeros((4, 5, 6), dims="KIJ", halo=(1, (2, 1), 0))
    assert field.__gt_dims__ == ("K", "I", "J") == field.dims
    assert field.__gt_origin__ == (2, 0, 1), "GT4Py takes it in the order I, J, K for all __gt_dims__"
    assert dl.get_dims(field) == ("K", "I", "J")
    assert dl.zeros((4, 5, 2), dims="JI0", halo=(1, 2, 0)).__gt_origin__ == (2, 1, 0)
    moved = dl.from_dlpack(dl.zeros((4, 5, 2), dims="JI0"), origin=(1, 2, 0))
    assert moved.__gt_origin__ == (2, 1, 0), "an origin counts without a halo"
    assert dl.get_origin(field) == (1, 2, 0)


def test_gt_data_interface() -> None:
    field = dl.zeros((4, 5), dims="KI", halo=(1, (2, 1)), backend="gt:cpu_ifirst").as_readonly()
    [(device, entry)] = field.__gt_data_interface__.items()
    assert device in (None, "cpu")
    assert entry["data"] == (field.ptr, True)
    assert (entry["shape"], entry["strides"], entry["typestr"]) == ((4, 5), field.strides, "<f8")
    assert tuple(entry["dims"]) == ("K", "I")
    assert [tuple(pair) for pair in entry["halo"]] == [(1, 1), (2, 1)]
