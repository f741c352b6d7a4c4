"""Libraries that a scientist hands a field to next: each writes it, or computes with it, as with NumPy's array."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

import dlfield as dl
from catalog import numbered
from untyped import np

FIELDS: dict[str, Callable[[], dl.Tensor]] = {
    "C": lambda: numbered((4, 6), "f8"),
    "F": lambda: numbered((4, 6), "f4", backend="F"),
    "padded": lambda: numbered((4, 6), "i4", alignment_size=64, halo=(1, 1), dims=("lat", "lon")),
    "read-only": lambda: numbered((4, 6), "f8").as_readonly(),
    "slice": lambda: numbered((8, 6), "f8")[::2, ::-1],
    "without elements": lambda: dl.zeros((0, 6)),
}


def netcdf4(array: Any) -> Any:
    netcdf4 = pytest.importorskip("netCDF4")
    with netcdf4.Dataset("unused.nc", "w", diskless=True) as file:
        file.createDimension("i", None)
        file.createDimension("j", array.shape[1])
        whole, rows, packed = (
            file.createVariable(name, kind, ("i", "j")) for name, kind in (("a", "f8"), ("b", "f8"), ("c", "i4"))
        )
        packed.scale_factor = 0.5
        whole[:], packed[: len(array)] = array, array
        for at in range(len(array)):
            rows[at] = array[at]
        return [np.ma.filled(variable[:]) for variable in (whole, rows, packed)]


def h5py(array: Any) -> Any:
    with pytest.importorskip("h5py").File("unused.h5", "w", driver="core", backing_store=False) as file:
        file["a"] = array
        file.create_dataset("b", data=array)
        file.create_dataset("c", array.shape, array.dtype)[...] = array
        file.attrs["d"] = array
        return [file[name][...] for name in "abc"] + [file.attrs["d"]]


def zarr(array: Any) -> Any:
    zarr = pytest.importorskip("zarr")
    made = zarr.create_array(store={}, shape=array.shape, dtype=array.dtype, chunks=(2, 3))
    made[...] = array
    return [made[...], zarr.array(array)[...]]


def scipy(array: Any) -> Any:
    file = io.BytesIO()
    pytest.importorskip("scipy.io").savemat(file, {"a": array})
    filtered = pytest.importorskip("scipy.ndimage").gaussian_filter(array, 1.0) if len(array) else array
    return [pytest.importorskip("scipy.io").loadmat(file)["a"], filtered]


def pandas(array: Any) -> Any:
    pandas = pytest.importorskip("pandas")
    if not len(array):
        # From an array that is not NumPy's it takes no number of columns.
        return []
    frame = pandas.DataFrame(array)
    frame["last"] = array[:, -1]
    return [frame.to_numpy(), pandas.Series(array[:, 0]).to_numpy()]


def pyarrow(array: Any) -> Any:
    return [pytest.importorskip("pyarrow").array(array[:, 0]).to_numpy()]


def matplotlib(array: Any) -> Any:
    axes = pytest.importorskip("matplotlib.figure").Figure().subplots()
    return [axes.imshow(array).get_array(), axes.plot(array[:, 0])[0].get_ydata()] if len(array) else []


@pytest.mark.parametrize("make", FIELDS.values(), ids=FIELDS)
@pytest.mark.parametrize("use", [netcdf4, h5py, zarr, scipy, pandas, pyarrow, matplotlib])
def test_a_field_is_taken_as_an_array(use: Callable[[Any], Any], make: Callable[[], dl.Tensor]) -> None:
    field = make()
    for found, expected in zip(use(field), use(field.to_numpy()), strict=True):
        np.testing.assert_array_equal(found, expected)
