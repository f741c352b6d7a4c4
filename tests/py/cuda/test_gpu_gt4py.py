"""`dlfield.gt4py` returns CuPy arrays for GPU presets, as gt4py.storage does."""

from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield import gt4py

VALUES = np.arange(24.0).reshape(2, 3, 4)
GPU = [name for name, preset in dl.presets().items() if preset.device == "cuda:0"]


def on_host(array: Any) -> Any:
    return np.asarray(dl.from_dlpack(array).to_device("cpu"))


@pytest.mark.parametrize("backend", GPU)
def test_arrays_are_cupys(cupy: Any, backend: str) -> None:
    layout = dl.empty((2, 3, 4), backend=backend, device="cpu").layout
    for array, expected in (
        (gt4py.zeros((2, 3, 4), backend=backend), np.zeros((2, 3, 4))),
        (gt4py.ones((2, 3, 4), "int32", backend=backend), np.ones((2, 3, 4), "int32")),
        (gt4py.full((2, 3, 4), 2.7, int, backend=backend), np.full((2, 3, 4), 2)),
        (gt4py.from_array(VALUES, backend=backend), VALUES),
        (gt4py.from_array(VALUES, "int16", backend=backend), VALUES.astype("int16")),
        (gt4py.from_array(dl.as_cupy(dl.from_array(VALUES, device="cuda:0")), "float32", backend=backend), VALUES),
    ):
        assert type(array) is cupy.ndarray
        assert dl.describe(array).layout == layout
        assert np.array_equal(on_host(array), expected)
    assert type(gt4py.empty((2, 3, 4), backend=backend)) is cupy.ndarray


def test_values_of_a_device_go_to_the_host(cupy: Any) -> None:  # noqa: ARG001 (as_cupy needs it)
    field = dl.from_array(VALUES, device="cuda:0")
    for data in (field, dl.as_cupy(field)):
        array = gt4py.from_array(data, backend="gt:cpu_ifirst")
        assert type(array) is np.ndarray
        assert np.array_equal(array, VALUES)
