"""`Signature.bind` of every kind of argument, subclasses of NumPy's arrays among them."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlfield as dl
from calls import F8, W8, Array, cube, dataarray, next_field, numbers, spec
from fakes import FakeTensor, Producer
from fakes_interfaces import NOWHERE, Exposing, Hooked, cuda, device_interface, interface_of
from interleaved_threads import run_in_threads
from oracle import values


def test_plain_use_without_with() -> None:
    x, out = cube(), cube()
    bound = dl.Signature(x=F8, out=W8).bind(x=x, out=out)
    found = bound.x
    assert isinstance(found, dl.Descriptor)
    assert bound["x"] is found
    assert (found.ptr, found.strides, found.protocol) == (x.ctypes.data, x.strides, "numpy")
    assert (bound.domain, found.dims, found.origin) == ((2, 3, 4), ("I", "J", "K"), (0, 0, 0))
    assert repr(bound) == f"Bound(x={bound.x!r}, out={bound.out!r})"
    assert {name: bound[name].ptr for name in bound} == {"x": x.ctypes.data, "out": out.ctypes.data}
    assert len(bound) == 2
    assert "x" in bound
    assert "nothing" not in bound


def exposing(array: Array, **attributes: Any) -> Exposing:
    return Exposing(__array_interface__=interface_of(array), kept=array, **attributes)


def labelled_producer(array: Array, dims: tuple[str, ...]) -> Producer:
    producer = Producer(FakeTensor(array))
    vars(producer)["__gt_dims__"] = dims
    return producer


# Every way to state labels; each returns an object whose dims are `dims`.
LABELLED: dict[str, Callable[[Array, tuple[str, ...]], Any]] = {
    "tensor": lambda array, dims: dl.from_dlpack(array, dims=dims),
    "descriptor": lambda array, dims: dl.describe(array, dims=dims),
    "DataArray": dataarray,
    "field of gt4py.next": next_field,
    "__gt_dims__": lambda array, dims: exposing(array, __gt_dims__=dims),
    "__gt_dims__ method": lambda array, dims: exposing(array, __gt_dims__=lambda: list(dims)),
    "dims": lambda array, dims: exposing(array, dims=dims),
    "data interface": lambda array, dims: Hooked(array, [], dims=dims),
    "older data interface": lambda array, dims: Hooked(array, [], attribute="__gt_interface__", dims=dims),
    "DLPack with labels": labelled_producer,
}


@pytest.mark.parametrize("name", LABELLED)
def test_labels_from_every_source_are_permuted(name: str) -> None:
    array = cube()
    sig = dl.Signature(x=F8)
    for dims in itertools.permutations("IJK"):
        turned = array.transpose(["IJK".index(dim) for dim in dims])
        found = sig.bind(x=LABELLED[name](turned, dims)).x
        assert (found.dims, found.shape, found.strides) == (("I", "J", "K"), array.shape, array.strides)
        assert (found.ptr, values(found)) == (array.ctypes.data, array.tolist())


LABELS = ["I", "J", "K", "0", "1", "cell"]


@given(st.data(), st.integers(0, 6).flatmap(lambda ndim: st.permutations(LABELS).map(lambda labels: labels[:ndim])))
def test_any_order_gives_the_same_elements(data: st.DataObject, dims: list[str]) -> None:
    ndim = len(dims)
    shape = data.draw(st.tuples(*[st.integers(0, 4)] * ndim))
    lower = tuple(data.draw(st.integers(0, extent)) for extent in shape)
    halo = tuple((low, data.draw(st.integers(0, extent - low))) for low, extent in zip(lower, shape, strict=True))
    origin = tuple(data.draw(st.integers(0, extent)) for extent in shape)
    layout = data.draw(st.permutations(range(ndim)))
    field = dl.zeros(shape, dims=dims, layout=layout, halo=halo, origin=origin)
    field[...] = cube(*shape) if shape else 5.0
    expected = data.draw(st.permutations(dims))
    axes = [dims.index(dim) for dim in expected]
    found = dl.Signature(x=dl.FieldSpec("float64", expected)).bind(x=field).x
    assert values(found) == field.to_numpy().transpose(axes).tolist()
    assert found.origin == tuple(origin[axis] for axis in axes)
    assert found.halo == tuple(halo[axis] for axis in axes)
    assert found.dims == tuple(expected)
    assert found.ptr == field.ptr


def test_arrays_without_labels_are_in_the_order_of_the_spec() -> None:
    sig = dl.Signature(x=dl.FieldSpec("float64", "KJI"))
    found = sig.bind(x=cube()).x
    assert (found.dims, found.shape) == (("K", "J", "I"), (2, 3, 4))
    # A dlfield tensor has labels, by default I, J, K.
    turned = sig.bind(x=dl.from_array(cube())).x
    assert (turned.dims, turned.shape) == (("K", "J", "I"), (4, 3, 2))


def test_optional_fields_may_be_absent() -> None:
    sig = dl.Signature(x=F8, mask=dl.FieldSpec("bool", "IJ", optional=True, access="rw"))
    for bound in (sig.bind(x=cube()), sig.bind(x=cube(), mask=None)):
        assert bound.mask is None
        assert bound["mask"] is None
        assert bound.domain == (2, 3, 4)
        assert repr(bound).endswith("mask=None)")
        with bound as fields:
            assert fields.mask is None
    assert sig.bind(mask=np.ones((2, 3), bool), x=cube()).mask.dims == ("I", "J")


def gpu(address: int, **changes: Any) -> Exposing:
    return cuda(shape=(2, 3), typestr="<f8", data=(address, False), **changes)


def test_memory_of_a_gpu_is_bound_without_one() -> None:
    sig = dl.Signature(device="cuda:0", x=spec(), out=spec(access="w", alignment_size=32))
    x, out = gpu(NOWHERE), gpu(NOWHERE + 64)
    bound = sig.bind(x=x, out=out)
    assert (bound.x.ptr, bound.x.device, bound.domain) == (NOWHERE, "cuda:0", (2, 3))
    with pytest.raises(dl.LayoutError, match=r'"out": .*shares memory with field "x"'):
        sig.bind(x=x, out=gpu(NOWHERE + 32))
    with pytest.raises(dl.LayoutError, match=r'"out": .*multiple of 32'):
        sig.bind(x=x, out=gpu(NOWHERE + 72))
    with pytest.raises(dl.DeviceError, match=r'"x": .*cpu.*cuda:0'):
        sig.bind(x=np.zeros((2, 3)), out=x)
    turned = device_interface(typestr="<f8", dims=("J", "I"), shape=(3, 2))
    both = Exposing(__gt_data_interface__={None: interface_of(np.zeros((2, 3))), ("gpu", 0): turned})
    assert sig.bind(x=both, out=out).x.shape == (2, 3)
    assert dl.Signature(x=spec()).bind(x=both).x.device == "cpu"


def test_a_bound_keeps_its_arrays() -> None:
    bound = dl.Signature(x=spec()).bind(x=np.arange(12.0).reshape(3, 4))
    assert values(bound.x) == np.arange(12.0).reshape(3, 4).tolist()
    found = bound.x
    del bound
    assert values(found) == np.arange(12.0).reshape(3, 4).tolist()


def test_threads_bind_the_same_signature() -> None:
    sig = dl.Signature(x=dl.FieldSpec("float64", "IJK"), out=W8)

    def work(extent: int) -> None:
        array, out = np.zeros((extent, 2, 2)), np.zeros((2, 2, extent))
        for _ in range(300):
            with sig.bind(x=Exposing(__array_interface__=interface_of(array)), out=dataarray(out, "KJI")) as fields:
                assert fields.domain == (extent, 2, 2)
                assert (fields.x.ptr, fields.out.ptr) == (array.ctypes.data, out.ctypes.data)

    run_in_threads(work, range(1, 5))


# Subclasses of NumPy's arrays may have what exact arrays do not have: labels, a mask, another memory.


class Labelled(np.ndarray):
    __gt_dims__ = ("J", "I")
    __gt_origin__ = (1, 2)


class Elsewhere(np.ndarray):
    """Exports other memory than its own."""

    other: npt.NDArray[Any]

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.other.__dlpack__(**keywords)


def test_labels_and_memory_of_a_subclass_count() -> None:
    labelled = dl.Signature(x=spec("IJ")).bind(x=numbers().view(Labelled))
    assert (labelled.x.shape, labelled.x.strides, labelled.x.origin) == ((4, 3), (8, 32), (1, 2))
    elsewhere = cube().view(Elsewhere)
    elsewhere.other = cube()
    found = dl.Signature(x=F8).bind(x=elsewhere).x
    assert (found.ptr, found.protocol) == (elsewhere.other.ctypes.data, "dlpack")


def test_a_mask_is_not_lost() -> None:
    with pytest.raises(dl.ExchangeError, match=r'"x": .*mask'):
        dl.Signature(x=F8).bind(x=np.ma.masked_array(cube(), mask=cube() > 3))


def test_recycled_bounds_keep_no_field() -> None:
    two = dl.Signature(x=F8, y=dl.FieldSpec("float64", "IJK", optional=True))
    one, array = dl.Signature(z=F8), cube()
    for _ in range(100):
        both = two.bind(x=array, y=cube())
        del both
        alone = two.bind(x=array)
        assert alone.y is None
        assert alone.x.ptr == array.ctypes.data
        del alone
        assert len(one.bind(z=array)) == 1
