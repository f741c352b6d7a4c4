"""`dlfield.gt4py` on a GPU: CuPy arrays for presets, as of gt4py.storage, fields of gt4py.next, and wrapped stencils.

A wrapped stencil takes fields on the device, gets CuPy arrays, and stays in order with CuPy's current stream.
GT4Py needs nvcc to compile one, so `Scaling` stands in for it: CuPy computes what its `run` is told to.
"""

import importlib.util
import sys
from typing import Any, ClassVar

import numpy as np
import pytest

import dlfield as dl
from dlfield import gt4py
from dlfield.gt4py import wrap
from driver import Driver

# Before any test replaces CuPy: GT4Py looks for it when it is imported.
pytest.importorskip("gt4py.next")

from gt4py import next as gtx
from gt4py._core import definitions as core
from gt4py.cartesian.definitions import AccessKind, Boundary, DomainInfo, FieldInfo, ParameterInfo
from gt4py.cartesian.stencil_object import StencilObject
from gt4py.next import common
from gt4py.storage.allocators import TensorBuffer

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


def test_a_registered_preset_for_a_gpu(cupy: Any) -> None:
    gt4py.register("gpu in rows", {**gt4py.from_name("gt:gpu"), "alignment": 16, "layout_map": lambda _dims: (1, 0)})
    try:
        array: Any = gt4py.ones((5, 3), "float32", backend="gpu in rows", aligned_index=(2, 0))
    finally:
        gt4py.register("gpu in rows", None)
    assert type(array) is cupy.ndarray
    assert (array.strides, (array.data.ptr + 2 * 4) % 64) == ((4, 64), 0)
    assert np.array_equal(on_host(array), np.ones((5, 3)))


def test_the_other_byte_order_to_a_gpu(cupy: Any) -> None:
    array = gt4py.from_array(VALUES.astype(">f4"), None, backend="gt:gpu")
    assert (type(array), array.dtype) == (cupy.ndarray, np.dtype("f4"))
    assert np.array_equal(on_host(array), VALUES)
    with pytest.raises(dl.DTypeError, match="float128"):
        gt4py.zeros((2, 3), "longdouble", backend="gt:gpu")


def test_arrays_are_on_cupys_current_device(cupy: Any, driver: Driver) -> None:
    for number in range(driver.device_count):
        with cupy.cuda.Device(number):
            for array in (gt4py.zeros((2, 3), backend="gt:gpu"), gt4py.from_array(VALUES, backend="dace:gpu")):
                assert dl.describe(array).device == f"cuda:{number}"


def allocate(memory: gt4py.Allocator, **keywords: Any) -> TensorBuffer[Any, Any]:
    horizontal, vertical = gtx.Dimension("I"), gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
    domain = common.domain({horizontal: (-2, 5), vertical: 4})
    buffer: TensorBuffer[Any, Any] = memory.__gt_allocate__(
        domain, core.dtype(np.float64), aligned_index=[common.NamedIndex(horizontal, 0)], **keywords
    )
    return buffer


def test_allocator_gives_cupy_arrays_on_its_device(cupy: Any, driver: Driver) -> None:
    for number in range(driver.device_count):
        memory = gt4py.allocator(f"cuda:{number}")
        assert memory.__gt_device_type__ is core.DeviceType.CUDA
        with cupy.cuda.Device(number):
            # gt4py.next passes 0 if its caller names no device.
            for buffer in (allocate(memory), allocate(memory, device_id=number)):
                assert type(buffer.ndarray) is cupy.ndarray
                assert buffer.device == core.Device(core.DeviceType.CUDA, number)
                assert dl.describe(buffer.ndarray).device == buffer.buffer.device == f"cuda:{number}"
                assert buffer.memory_address == buffer.ndarray.data.ptr == buffer.buffer.ptr
                assert (buffer.ndarray.strides, buffer.layout_map) == ((8, 128), (1, 0))
                assert (buffer.memory_address + 2 * 8) % 128 == 0
                buffer.ndarray[...] = 2.5
                assert np.array_equal(on_host(buffer.ndarray), np.full((7, 4), 2.5))
                assert (buffer.buffer.dims, buffer.buffer.aligned_index) == (("I", "K"), (2, 0))


def test_allocator_of_another_or_no_device(cupy: Any, driver: Driver) -> None:  # noqa: ARG001 (the arrays are CuPy's)
    assert gt4py.allocator("gpu") == gt4py.allocator("cuda:0")
    with pytest.raises(dl.DeviceError, match="device_id: found 1, must be 0, this allocator is for cuda:0"):
        allocate(gt4py.allocator("gpu"), device_id=1)
    with pytest.raises(dl.DeviceError):
        allocate(gt4py.allocator(f"cuda:{driver.device_count}"))


# Wrapped stencils.

SHAPE = (6, 5, 4)
GRID = np.arange(120.0).reshape(SHAPE)


def info_of(access: AccessKind, boundary: Any = ((0, 0), (0, 0), (0, 0))) -> FieldInfo:
    return FieldInfo(access, Boundary(boundary), ("I", "J", "K"), (), np.dtype("f8"))


class Scaling(StencilObject):  # type: ignore[misc]
    """`out = factor * inp` on the domain, with the members of a class that GT4Py generates."""

    _gt_id_ = "scaling"
    backend, source = "gt:gpu", ""
    constants: ClassVar[dict[str, Any]] = {}
    options: ClassVar = {"name": "scaling", "module": __name__}
    domain_info = DomainInfo(("I", "J"), "K", 1, 3)
    field_info: ClassVar = {
        "inp": info_of(AccessKind.READ),
        "out": info_of(AccessKind.WRITE),
        "idle": info_of(AccessKind.NONE),
    }
    parameter_info: ClassVar = {"factor": ParameterInfo(AccessKind.READ, np.dtype("f8"))}
    seen: ClassVar[list[dict[str, Any]]] = []

    def __call__(
        self,
        inp: Any,
        out: Any,
        idle: Any = None,
        factor: float = 2.0,
        domain: Any = None,
        origin: Any = None,
        validate_args: bool = True,
        exec_info: Any = None,
    ) -> None:
        self._call_run(
            field_args={"inp": inp, "out": out, "idle": idle},
            parameter_args={"factor": factor},
            domain=domain,
            origin=origin,
            validate_args=validate_args,
            exec_info=exec_info,
        )

    def run(
        self, _domain_: Any, _origin_: Any, exec_info: Any, *, inp: Any, out: Any, idle: Any, factor: float
    ) -> None:
        self.seen.append({"inp": inp, "out": out, "idle": idle})
        if exec_info is not None:
            exec_info["domain"], exec_info["origin"] = _domain_, _origin_

        def box(name: str) -> tuple[slice, ...]:
            return tuple(slice(low, low + size) for low, size in zip(_origin_[name], _domain_, strict=True))

        target = out[box("out")]
        target[...] = inp[box("inp")]
        target *= factor


@pytest.fixture
def stencil() -> Any:
    Scaling.seen.clear()
    yield Scaling()
    Scaling.seen.clear()


def on_device(values: Any = GRID, **keywords: Any) -> dl.Tensor:
    return dl.from_array(values, device="cuda:0", **keywords)


@pytest.mark.parametrize("producer", ["tensor", "read-only", "CuPy", "DLPack"])
def test_the_stencil_gets_cupy_arrays_in_place(cupy: Any, stencil: Any, producer: str) -> None:
    field, out = on_device(backend="gt:gpu"), dl.zeros(SHAPE, backend="gt:gpu")
    inp = {"tensor": field, "read-only": field.as_readonly(), "CuPy": dl.as_cupy(field), "DLPack": dl.describe(field)}
    wrap(stencil)(inp[producer], out, factor=3.0)
    (seen,) = stencil.seen
    for name, given in (("inp", field), ("out", out)):
        assert type(seen[name]) is cupy.ndarray
        assert (seen[name].data.ptr, seen[name].strides) == (given.ptr, given.strides)
    assert np.array_equal(on_host(out), 3.0 * GRID)


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
def test_dims_origin_and_halo_count(cupy: Any, stencil: Any) -> None:  # noqa: ARG001 (the stencil needs it)
    inp = on_device(GRID.transpose(2, 1, 0), dims="KJI", halo=((0, 0), (1, 1), (2, 1)))
    out = dl.zeros(SHAPE, device="cuda:0", halo=(2, 1, 0))
    info: dict[str, Any] = {}
    wrap(stencil)(inp, out, exec_info=info)
    assert info["domain"] == (2, 3, 4)
    assert info["origin"]["inp"] == info["origin"]["out"] == (2, 1, 0)
    expected = np.zeros(SHAPE)
    expected[2:4, 1:4] = 2.0 * GRID[2:4, 1:4]
    assert np.array_equal(on_host(out), expected)


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
def test_temporaries_are_on_the_device(cupy: Any, stencil: Any) -> None:
    """Of host memory, another dtype and another layout, copied back on exit."""
    out = np.zeros(SHAPE, order="F")
    wrap(stencil, on_mismatch="copy")(GRID.astype("f4"), out)
    assert all(type(stencil.seen[0][name]) is cupy.ndarray for name in ("inp", "out"))
    assert np.array_equal(out, 2.0 * GRID)
    out_on_device = dl.zeros(SHAPE, device="cuda:0")
    wrap(stencil, on_mismatch="copy")(on_device(), out_on_device)
    assert np.array_equal(on_host(out_on_device), 2.0 * GRID)


def test_host_memory_is_refused(cupy: Any, stencil: Any) -> None:  # noqa: ARG001
    with pytest.raises(dl.DeviceError, match=r'field "inp".*cpu.*cuda:0'):
        wrap(stencil)(GRID, on_device())
    assert stencil.seen == []


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
def test_work_is_in_order_with_cupys_current_stream(cupy: Any, stencil: Any, driver: Driver) -> None:
    """The producer's stream, CuPy's, and that of the later copy differ; the test double reports races."""
    with driver.stream() as producer, cupy.cuda.Stream(non_blocking=True) as stream:
        with dl.cuda.stream(producer, 0):
            inp, out = on_device(), dl.zeros(SHAPE, device="cuda:0")
        for on_mismatch in ("raise", "copy"):
            wrap(stencil, on_mismatch=on_mismatch)(inp, out)
        stream.synchronize()
        assert dl.cuda.current_stream().handle == 1
        assert np.array_equal(on_host(out), 2.0 * GRID)
        stencil.seen.clear()
        del inp, out


def test_a_field_that_is_not_accessed_is_passed_on(cupy: Any, stencil: Any) -> None:
    out, idle = dl.zeros(SHAPE, backend="gt:gpu"), on_device(GRID.transpose(2, 1, 0), dims="KJI")
    wrapped = wrap(stencil)
    wrapped(on_device(backend="gt:gpu"), out, idle)
    seen = stencil.seen[0]["idle"]
    assert (type(seen), seen.shape, seen.data.ptr) == (cupy.ndarray, SHAPE, idle.ptr)
    wrapped(on_device(backend="gt:gpu"), out, GRID)
    assert stencil.seen[1]["idle"] is GRID


def test_cupy_is_named_if_it_is_missing(stencil: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped = wrap(stencil)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setattr(sys, "meta_path", [finder for finder in sys.meta_path if "cupy" not in repr(finder)])
    if importlib.util.find_spec("cupy") is not None:
        pytest.skip("CuPy is installed")
    with pytest.raises(ImportError, match="a stencil for a GPU needs cupy"):
        wrapped(on_device(), on_device())


def test_frozen_stencils_and_run(cupy: Any, stencil: Any) -> None:  # noqa: ARG001
    inp, out = on_device(backend="gt:gpu"), dl.zeros(SHAPE, backend="gt:gpu")
    origin = dict.fromkeys(("inp", "out", "idle"), (0, 0, 0))
    wrap(stencil).freeze(origin=origin, domain=SHAPE)(inp=inp, out=out, idle=None, factor=4.0)
    assert np.array_equal(on_host(out), 4.0 * GRID)
    wrap(stencil).run(SHAPE, origin, None, inp=inp, out=out, idle=None, factor=5.0)
    assert np.array_equal(on_host(out), 5.0 * GRID)
