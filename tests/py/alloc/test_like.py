"""`*_like` and `from_array`: what they take from the data, from keywords, and from arrays of other libraries."""

from contextlib import suppress
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import dlfield as dl
import oracle
from fakes import Meddling


@pytest.fixture
def field() -> dl.Tensor:
    """A field without any default property."""
    metadata: dict[str, Any] = {"dims": "KIJ", "halo": ((1, 0), (0, 1), (1, 1)), "origin": (2, 2, 2)}
    made = dl.zeros((4, 5, 6), "f4", backend="gtmc", alignment_size=128, aligned_index=(0, 1, 2), **metadata)
    made[...] = np.arange(120, dtype="f4").reshape(4, 5, 6)
    return made


def test_each_keyword_of_like_overrides_one_thing(field: dl.Tensor) -> None:
    assert dl.zeros_like(field, "i2").dtype == np.int16
    assert dl.zeros_like(field, dims="JKI").dims == ("J", "K", "I")
    assert dl.zeros_like(field, layout=(0, 1, 2)).layout == (0, 1, 2)
    assert dl.zeros_like(field, padding="none").strides == oracle.compact_strides((4, 5, 6), field.layout, 4)
    assert dl.zeros_like(field, alignment_size=256).alignment_size == 256
    assert dl.zeros_like(field, aligned_index=(0, 0, 0)).aligned_index == (0, 0, 0)
    assert dl.zeros_like(field, origin=(0, 0, 0)).origin == (0, 0, 0)
    assert dl.zeros_like(field, halo=(1, 1, 1)).halo == ((1, 1),) * 3
    assert dl.zeros_like(field, halo=(1, 1, 1)).origin == (2, 2, 2)
    assert dl.zeros_like(field, backend="gt:cpu_kfirst").layout == (2, 0, 1)
    with pytest.raises(dl.DeviceError):
        dl.zeros_like(field, device="gpu")


def test_like_of_a_readonly_tensor_is_writable(field: dl.Tensor) -> None:
    assert not dl.zeros_like(field.as_readonly()).readonly


@pytest.mark.parametrize(
    ("array", "layout"),
    [
        (np.zeros((2, 3, 4), "i2"), (0, 1, 2)),
        (np.zeros((2, 3, 4), "i2", order="F"), (2, 1, 0)),
        (np.zeros((2, 3, 4), "i2").transpose(1, 2, 0), (1, 2, 0)),
        (np.zeros((4, 6, 8), "i2")[::2, ::-2, 1:5], (0, 1, 2)),
    ],
)
def test_like_reads_the_layout_of_a_foreign_array_off_its_strides(
    array: npt.NDArray[Any], layout: tuple[int, ...]
) -> None:
    twin = dl.ones_like(array)
    assert twin.layout == layout
    assert twin.strides == oracle.compact_strides(array.shape, layout, 2)
    assert (twin.dtype.name, twin.dims, twin.halo) == ("int16", ("I", "J", "K"), ((0, 0),) * 3)
    assert (twin.to_numpy() == 1).all()


def test_like_of_a_broadcast_array_has_memory_for_every_element() -> None:
    twin = dl.zeros_like(np.broadcast_to(np.float32(1), (3, 4)))
    assert len(set(oracle.addresses(twin))) == 12
    assert sorted(twin.layout) == [0, 1]


@pytest.mark.parametrize("make", [dl.zeros_like, dl.from_array])
def test_properties_that_foreign_data_lacks_have_defaults(make: Any) -> None:
    """A NumPy array has neither origin nor aligned index: both are the lower halo, as in `zeros`."""
    made = make(np.zeros((4, 5)), halo=(1, 2))
    assert (made.origin, made.aligned_index) == ((1, 2), (1, 2))


def test_from_array_labels_and_origin(field: dl.Tensor) -> None:
    made = dl.from_array(np.zeros((4, 5)), dims="KI", halo=(1, 2))
    assert (made.dims, made.origin, made.halo) == (("K", "I"), (1, 2), ((1, 1), (2, 2)))
    again = dl.from_array(field)
    assert again.dims == field.dims
    assert (again.to_numpy() == field.to_numpy()).all()
    assert again.ptr != field.ptr


def test_from_array_keeps_nan_payloads() -> None:
    data = np.array([0x7FA00001, 0x80000000], "u4").view("f4")
    assert dl.from_array(data).to_numpy().tobytes() == data.tobytes()


def test_data_of_pytorch(torch: Any) -> None:
    twin = dl.zeros_like(torch.zeros((2, 3), dtype=torch.bfloat16).T)
    assert (twin.shape, twin.layout, twin.dtype.name) == ((3, 2), (1, 0), "bfloat16")
    made = dl.from_array(torch.arange(6, dtype=torch.int16).reshape(2, 3), backend="gt:cpu_ifirst")
    assert (made.tolist(), made.layout) == ([[0, 1, 2], [3, 4, 5]], (1, 0))


def test_labels_of_data_arrays(xarray: Any) -> None:
    data = xarray.DataArray(np.zeros((2, 3, 4)), dims=("K", "J", "I"))
    made = dl.from_array(data, backend="gt:cpu_kfirst")
    assert (made.dims, made.layout) == (("K", "J", "I"), (2, 1, 0))
    assert dl.zeros_like(data).dims == ("K", "J", "I")


def test_sub_arrays_add_dimensions() -> None:
    data = dl.zeros((4, 5), dims="KI", layout=(1, 0), alignment_size=64, halo=(1, 0))
    made = dl.zeros_like(data, np.dtype((np.float64, (3,))))
    assert (made.shape, made.dims, made.layout) == ((4, 5, 3), ("K", "I", "0"), (2, 1, 0))
    assert (made.alignment_size, made.halo) == (64, ((1, 1), (0, 0), (0, 0)))
    field = dl.zeros((2, 3, 4, 3), dims="KJI0")
    assert dl.from_array(field, np.dtype((np.float64, (3,)))).dims == ("K", "J", "I", "0")


def arrays() -> dict[str, Any]:
    """Small arrays that are copied at once, and their counterparts that need more than that."""
    plain = np.arange(24, dtype="f4").reshape(4, 6)
    frozen = plain.copy()
    frozen.flags.writeable = False
    return {
        "its own memory": plain.copy(),
        "in F order": np.asfortranarray(plain),
        "read-only": frozen,
        "a view": plain[::-1, ::2],
        "a broadcast view": np.broadcast_to(plain[0], (4, 6)),
        "a view of a tensor": np.asarray(dl.full((4, 6), 2.5, backend="F")),
        "of the other byte order": plain.astype(">f4"),
        "of a subclass": plain.view(np.matrix),
        "of an added type": plain.astype(ml_dtypes.bfloat16),
        "without elements": np.zeros((0, 3)),
        "without dimensions": np.array(2.5),
        "large": np.arange(100_000.0).reshape(1000, 100),
        "a tensor": dl.ones((4, 6), halo=(1, 2), dims="KI"),
        "a list": plain.tolist(),
    }


@pytest.mark.parametrize("backend", [None, "gtmc", "F"])
@pytest.mark.parametrize("dtype", [None, "float64", "complex64"])
@pytest.mark.parametrize("name", arrays())
def test_from_array_copies_every_kind_of_array(name: str, dtype: str | None, backend: str | None) -> None:
    data = arrays()[name]
    values = np.asarray(data)
    made = dl.from_array(data, dtype, backend=backend)
    assert made.dtype == (dtype or values.dtype.newbyteorder("="))
    assert (np.asarray(made) == values).all()
    assert (made.shape, made.readonly) == (values.shape, False)
    if backend is not None:
        assert made.layout == dl.empty(values.shape, backend=backend, dims=made.dims).layout
    assert getattr(data, "halo", None) in (None, made.halo)
    assert not np.shares_memory(np.asarray(made), values)


def test_keywords_that_change_the_array_are_read_first() -> None:
    """Reading a keyword may run any code: the array is described again, or cannot be resized meanwhile."""
    data = np.ones((4, 6))

    def shrink() -> None:
        with suppress(ValueError):
            data.resize((1,), refcheck=False)

    made = dl.from_array(data, origin=(Meddling(shrink), 0))
    assert made.shape == (4, 6)
    assert (np.asarray(made) == 1).all()
