"""The code for GPUs in docs/ runs as shown; the classes of storages.md, from the document of GDP 3, work as fields."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield import storage
from driver import Driver

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "gpu" / "storages.md"
_DEFINED: dict[str, Any] = {"np": np, "dl": dl, "storage": storage}
for _block in re.findall(r"^```python\n(class .*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL):
    exec(_block, _DEFINED)
SomeStorage, StorageWrapper = _DEFINED["SomeStorage"], _DEFINED["StorageWrapper"]


def test_the_examples_of_the_page_run() -> None:
    pytest.importorskip("xarray")
    examples = "\n".join(re.findall(r"^```python\n(>>>.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))
    assert examples.count(">>>") > 20
    page = doctest.DocTestParser().get_doctest(examples, dict(_DEFINED), PAGE.name, str(PAGE), 0)
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(page).failed == 0


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_a_class_with_two_buffers_is_a_field(device: str) -> None:
    field = SomeStorage((4, 3), "f8")
    field.host[...] = 5.0
    field.touch_host()
    with dl.Signature(x=dl.FieldSpec("f8", "IJ", access="w"), device=device).bind(x=field) as fields:
        assert fields.x.device == device
        assert (np.array(field.device.to_device("cpu")) == (0 if device == "cpu" else 5)).all()
    assert field.modified == (field.HOST_MODIFIED if device == "cpu" else field.DEVICE_MODIFIED)


def test_a_class_with_two_buffers_is_a_value() -> None:
    field, value = storage.zeros((4, 3), device="gpu"), SomeStorage((4, 3), "f8")
    value.host[...] = 5.0
    value.touch_host()
    field[...] = value
    # `value` has a device buffer, so the values are written on the device.
    assert value.modified == value.NONE_MODIFIED
    assert field.sync_state.state == storage.SyncState.SYNC_DEVICE_DIRTY  # type: ignore[union-attr]
    assert (np.asarray(field) == 5).all()
    on_the_host = storage.zeros((4, 3))
    value.device[...] = 6.0
    value.touch_device()
    on_the_host[...] = value
    assert (np.asarray(on_the_host) == 6).all()


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_a_storage_is_wrapped_to_add_labels(device: str) -> None:
    wrapper = StorageWrapper(np.arange(12.0).reshape(4, 3), dims="KI", device="gpu")
    assert dl.get_dims(wrapper) == ("K", "I")
    spec = dl.FieldSpec("f8", "IK", access="rw")
    with dl.Signature(x=spec, device=device).bind(x=wrapper) as fields:
        assert fields.x.shape == (3, 4)
    state = wrapper.storage.sync_state
    assert state.state == (state.SYNC_HOST_DIRTY if device == "cpu" else state.SYNC_DEVICE_DIRTY)


def test_a_data_array_has_the_interface() -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("dlfield.xarray")
    array = np.arange(12.0).reshape(4, 3)
    data_array = xarray.DataArray(array, dims=("J", "I"))
    with dl.Signature(x=dl.FieldSpec("f8", "IJ", access="rw")).bind(x=data_array) as fields:
        assert fields.x.shape == (3, 4)
    field = storage.zeros((3, 4), device="gpu")
    field[...] = data_array
    assert (np.asarray(field) == array.T).all()


def test_the_lines_of_the_page(torch: Any, cupy: Any, driver: Driver) -> None:  # noqa: ARG001 (as_cupy needs CuPy)
    blocks = re.findall(r"^```py\n(.*?)^```$", (DOCS / "gpu" / "fields.md").read_text(), re.MULTILINE | re.DOTALL)
    (block,) = (block for block in blocks if "cuda" in block)
    values = np.random.default_rng(1).random((64, 64, 80))
    theirs = dl.as_cupy(dl.from_array(values, device="cuda:0"))
    with driver.stream() as stream:
        shown: dict[str, Any] = {"dl": dl, "numpy_array": values, "cupy_array": theirs, "stream": stream}
        exec(block, shown)
        assert (shown["field"].device, shown["host"].device) == ("cuda:0", "cpu")
        assert isinstance(shown["tensor"], torch.Tensor)
        assert shown["tensor"].data_ptr() == shown["field"].ptr
        assert shown["other"].ptr == theirs.data.ptr
        assert (np.asarray(shown["host"]) == values).all()
        shown.clear()
