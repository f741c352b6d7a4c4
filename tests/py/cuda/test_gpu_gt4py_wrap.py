"""Wrapped stencils for a GPU take fields on the device, get CuPy arrays, and stay in order with CuPy's current stream.

GT4Py needs nvcc to compile such a stencil, so `Scaling` stands in for one: CuPy computes what its `run` is told to.
"""

from typing import Any, ClassVar

import numpy as np
import pytest

import dlfield as dl
from dlfield.gt4py import wrap
from driver import Driver

pytest.importorskip("gt4py")

from gt4py.cartesian.definitions import AccessKind, Boundary, DomainInfo, FieldInfo, ParameterInfo
from gt4py.cartesian.stencil_object import StencilObject

SHAPE = (6, 5, 4)
VALUES = np.arange(120.0).reshape(SHAPE)


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


def on_device(values: Any = VALUES, **keywords: Any) -> dl.Tensor:
    return dl.from_array(values, device="cuda:0", **keywords)


def on_host(field: Any) -> Any:
    return np.asarray(dl.from_dlpack(field).to_device("cpu"))


@pytest.mark.parametrize("producer", ["tensor", "read-only", "CuPy", "DLPack"])
def test_the_stencil_gets_cupy_arrays_in_place(cupy: Any, stencil: Any, producer: str) -> None:
    field, out = on_device(backend="gt:gpu"), dl.zeros(SHAPE, backend="gt:gpu")
    inp = {"tensor": field, "read-only": field.as_readonly(), "CuPy": dl.as_cupy(field), "DLPack": dl.describe(field)}
    wrap(stencil)(inp[producer], out, factor=3.0)
    (seen,) = stencil.seen
    for name, given in (("inp", field), ("out", out)):
        assert type(seen[name]) is cupy.ndarray
        assert (seen[name].data.ptr, seen[name].strides) == (given.ptr, given.strides)
    assert np.array_equal(on_host(out), 3.0 * VALUES)


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
def test_dims_origin_and_halo_count(cupy: Any, stencil: Any) -> None:  # noqa: ARG001 (the stencil needs it)
    inp = on_device(VALUES.transpose(2, 1, 0), dims="KJI", halo=((0, 0), (1, 1), (2, 1)))
    out = dl.zeros(SHAPE, device="cuda:0", halo=(2, 1, 0))
    info: dict[str, Any] = {}
    wrap(stencil)(inp, out, exec_info=info)
    assert info["domain"] == (2, 3, 4)
    assert info["origin"]["inp"] == info["origin"]["out"] == (2, 1, 0)
    expected = np.zeros(SHAPE)
    expected[2:4, 1:4] = 2.0 * VALUES[2:4, 1:4]
    assert np.array_equal(on_host(out), expected)


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
def test_temporaries_are_on_the_device(cupy: Any, stencil: Any) -> None:
    """Of host memory, another dtype and another layout, copied back on exit."""
    out = np.zeros(SHAPE, order="F")
    wrap(stencil, on_mismatch="copy")(VALUES.astype("f4"), out)
    assert all(type(stencil.seen[0][name]) is cupy.ndarray for name in ("inp", "out"))
    assert np.array_equal(out, 2.0 * VALUES)
    out_on_device = dl.zeros(SHAPE, device="cuda:0")
    wrap(stencil, on_mismatch="copy")(on_device(), out_on_device)
    assert np.array_equal(on_host(out_on_device), 2.0 * VALUES)


def test_host_memory_is_refused(cupy: Any, stencil: Any) -> None:  # noqa: ARG001
    with pytest.raises(dl.DeviceError, match=r'field "inp".*cpu.*cuda:0'):
        wrap(stencil)(VALUES, on_device())
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
        assert np.array_equal(on_host(out), 2.0 * VALUES)
        stencil.seen.clear()
        del inp, out


def test_a_field_that_is_not_accessed_is_passed_on(cupy: Any, stencil: Any) -> None:
    out, idle = dl.zeros(SHAPE, backend="gt:gpu"), on_device(VALUES.transpose(2, 1, 0), dims="KJI")
    wrapped = wrap(stencil)
    wrapped(on_device(backend="gt:gpu"), out, idle)
    seen = stencil.seen[0]["idle"]
    assert (type(seen), seen.shape, seen.data.ptr) == (cupy.ndarray, SHAPE, idle.ptr)
    wrapped(on_device(backend="gt:gpu"), out, VALUES)
    assert stencil.seen[1]["idle"] is VALUES


def test_cupy_is_named_if_it_is_missing(stencil: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    wrapped = wrap(stencil)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setattr(sys, "meta_path", [finder for finder in sys.meta_path if "cupy" not in repr(finder)])
    if __import__("importlib.util").util.find_spec("cupy") is not None:
        pytest.skip("CuPy is installed")
    with pytest.raises(ImportError, match="a stencil for a GPU needs cupy"):
        wrapped(on_device(), on_device())


def test_frozen_stencils_and_run(cupy: Any, stencil: Any) -> None:  # noqa: ARG001
    inp, out = on_device(backend="gt:gpu"), dl.zeros(SHAPE, backend="gt:gpu")
    origin = dict.fromkeys(("inp", "out", "idle"), (0, 0, 0))
    wrap(stencil).freeze(origin=origin, domain=SHAPE)(inp=inp, out=out, idle=None, factor=4.0)
    assert np.array_equal(on_host(out), 4.0 * VALUES)
    wrap(stencil).run(SHAPE, origin, None, inp=inp, out=out, idle=None, factor=5.0)
    assert np.array_equal(on_host(out), 5.0 * VALUES)
