"""`dlfield.gt4py.allocator`: fields of gt4py.next on dlfield's memory, compared with those on gt4py.next's own."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlfield as dl
from dlfield import gt4py as ours

pytest.importorskip("gt4py")

from gt4py import next as gtx
from gt4py._core import definitions as core
from gt4py.next import common, constructors
from gt4py.next import custom_layout_allocators as theirs

IDim, JDim = gtx.Dimension("I"), gtx.Dimension("J")
KDim = gtx.Dimension("K", kind=gtx.DimensionKind.VERTICAL)
E2V = gtx.Dimension("E2V", kind=gtx.DimensionKind.LOCAL)
DTYPES = [np.float64, np.float32, np.int8, np.int16, np.int32, np.int64, np.uint8, np.bool_]


@st.composite
def domains(draw: st.DrawFn) -> dict[Any, tuple[int, int]]:
    """Up to four dimensions of every kind in any order, with ranges that start anywhere."""
    dims = draw(st.permutations([IDim, JDim, KDim, E2V]))[: draw(st.integers(0, 4))]
    starts = {dim: draw(st.integers(-20, 20)) for dim in dims}
    return {dim: (start, start + draw(st.integers(1, 20))) for dim, start in starts.items()}


def aligned_address(field: Any, aligned_index: list[Any]) -> int:
    """Return the address of the element that `aligned_index` names."""
    index = {named.dim: int(named.value) for named in aligned_index}
    offset = sum(
        (index.get(dim, start) - start) * stride
        for dim, start, stride in zip(
            field.domain.dims, (each.start for each in field.domain.ranges), field.ndarray.strides, strict=True
        )
    )
    return int(field.ndarray.ctypes.data + offset)


@given(domain=domains(), dtype=st.sampled_from(DTYPES), data=st.data())
def test_layout_and_alignment_are_gt4pys(domain: dict[Any, tuple[int, int]], dtype: Any, data: st.DataObject) -> None:
    aligned_index = [
        common.NamedIndex(dim, data.draw(st.integers(start, stop - 1)))
        for dim, (start, stop) in domain.items()
        if data.draw(st.booleans())
    ]
    mine = gtx.zeros(domain, dtype, allocator=ours.allocator(), aligned_index=aligned_index)
    reference = gtx.zeros(domain, dtype, aligned_index=aligned_index)
    assert isinstance(mine.ndarray, np.ndarray)
    assert (mine.domain, mine.dtype) == (reference.domain, reference.dtype)
    for name in ("dtype", "shape", "strides"):
        assert getattr(mine.ndarray, name) == getattr(reference.ndarray, name), name
    assert aligned_address(mine, aligned_index) % 64 == aligned_address(reference, aligned_index) % 64 == 0
    assert not mine.ndarray.any()


def test_constructors() -> None:
    memory, domain = ours.allocator("cpu"), {IDim: (-1, 5), KDim: 4}
    data = np.arange(24.0).reshape(6, 4)
    assert gtx.empty(domain, np.int32, allocator=memory).ndarray.strides == (4, 64)
    field = gtx.as_field(domain, data, allocator=memory)
    assert np.array_equal(field.ndarray, data)
    assert not np.shares_memory(field.ndarray, data)
    assert field.ndarray.strides == (8, 64)
    shifted = gtx.as_field([IDim, KDim], data, origin={IDim: 1}, dtype=np.float32, allocator=memory)
    assert (shifted.domain, shifted.ndarray.dtype) == (common.domain(domain), np.dtype("f4"))


def test_memory_is_dlfields_and_a_reimport_has_its_labels() -> None:
    """The field's array keeps the memory alive, and a re-import has the same address."""
    field = gtx.full({KDim: 4, IDim: (-2, 5)}, 3.0, allocator=ours.allocator())
    field[KDim(1), IDim(0)] = 9.0
    tensor = dl.from_dlpack(field)
    assert (tensor.dims, tensor.origin) == (("K", "I"), (0, 2))
    assert tensor.ptr == field.ndarray.ctypes.data
    assert float(tensor[1, 2]) == 9.0
    tensor[...] = 1.0
    assert (field.ndarray == 1.0).all()
    del field
    assert float(tensor[3, 6]) == 1.0


def test_the_buffer_is_a_tensor() -> None:
    domain = common.domain({IDim: (-2, 5), KDim: 4})
    buffer = ours.allocator().__gt_allocate__(
        domain, core.dtype(np.float64), aligned_index=[common.NamedIndex(IDim, 0)]
    )
    assert isinstance(buffer.buffer, dl.Tensor)
    assert (buffer.buffer.dims, buffer.aligned_index, buffer.layout_map) == (("I", "K"), (2, 0), (1, 0))
    assert buffer.memory_address + buffer.byte_offset == buffer.ndarray.ctypes.data
    assert (buffer.shape, buffer.strides) == (buffer.ndarray.shape, buffer.ndarray.strides)
    assert np.from_dlpack(buffer).ctypes.data == buffer.buffer.ptr
    assert hash(buffer) == hash(buffer)


def test_gt4py_accepts_it_as_an_allocator() -> None:
    """Equal allocators share a constructor, because gt4py.next caches constructors."""
    memory = ours.allocator()
    assert theirs.is_field_allocator_for(memory, core.DeviceType.CPU)
    assert memory == ours.allocator(dl.Device("cpu"))
    assert constructors._field_constructor(memory) is constructors._field_constructor(ours.allocator((1, 0)))
    partial = gtx.zeros.partial(allocator=memory)
    assert partial({IDim: 3}).ndarray.shape == (3,)
    with pytest.raises(ValueError, match="device type"):
        gtx.zeros({IDim: 3}, allocator=memory, device=core.Device(core.DeviceType.CUDA, 0))


def test_sizes_that_gt4pys_own_allocator_refuses() -> None:
    assert gtx.zeros({IDim: 0, KDim: 4}, allocator=ours.allocator()).ndarray.shape == (0, 4)
    assert gtx.ones({}, allocator=ours.allocator()).ndarray.shape == ()


@pytest.mark.parametrize("device", ["cuda_host", "cuda_managed", "rocm:0", (13, 0)])
def test_other_devices_are_refused(device: Any) -> None:
    with pytest.raises(dl.DeviceError, match=r"expected 'cpu', 'gpu' or 'cuda:N', got (cuda|rocm)"):
        ours.allocator(device)


def test_an_allocator_for_a_gpu_can_be_had_without_one() -> None:
    memory = ours.allocator("gpu")
    assert theirs.is_field_allocator_for(memory, core.DeviceType.CUDA)
    assert memory == ours.allocator((2, 0)) != ours.allocator("cuda:1")
    with pytest.raises(dl.DeviceError):
        memory.__gt_allocate__(common.domain({IDim: 3}), core.dtype(np.float64))


def test_bad_arguments() -> None:
    memory, domain = ours.allocator(), {IDim: (-2, 5), KDim: 4}
    for index in (-3, 5):
        with pytest.raises(dl.LayoutError, match=rf"aligned_index: found {index} for I, must be in .*\[-2, 5\)"):
            gtx.zeros(domain, allocator=memory, aligned_index=[common.NamedIndex(IDim, index)])
    with pytest.raises(dl.DTypeError, match="must be a scalar type"):
        gtx.zeros(domain, core.Float64DType(tensor_shape=(3,)), allocator=memory)
    with pytest.raises(dl.DeviceError, match="device_id: found 1"):
        gtx.zeros(domain, allocator=memory, device=core.Device(core.DeviceType.CPU, 1))
    with pytest.raises(ValueError, match="open"):
        gtx.zeros({IDim: (None, 4)}, allocator=memory)


@pytest.mark.parametrize("halo", [(0, 0), (2, 1)])
@pytest.mark.parametrize("dims", [("I", "K"), ("K", "I")])
def test_any_array_with_labels_is_a_field_on_its_memory(dims: tuple[str, ...], halo: tuple[int, int]) -> None:
    tensor = dl.from_array(np.arange(24.0).reshape(6, 4), dims=dims, halo=(halo, halo), backend="gt4py.next")
    field = ours.as_field(tensor, {"I": IDim, "K": KDim, "J": JDim})
    assert field.ndarray.ctypes.data == tensor.ptr
    assert field.ndarray.strides == tensor.strides
    assert [dim.value for dim in field.domain.dims] == list(dims)
    assert [(each.start, each.stop) for each in field.domain.ranges] == [(-halo[0], n - halo[0]) for n in (6, 4)]
    again = dl.from_dlpack(field)
    assert (again.dims, again.origin, again.ptr) == (tensor.dims, tensor.origin, tensor.ptr)
    with pytest.raises(dl.DimsError, match="got none for 'K'"):
        ours.as_field(tensor, {"I": IDim})
    with pytest.raises(dl.DTypeError, match="complex128; convert"):
        ours.as_field(tensor.astype("complex128"), {"I": IDim, "K": KDim})


@pytest.mark.parametrize("allocator", [None, ours.allocator()])
@pytest.mark.parametrize("domain", [{IDim: (-1, 5), KDim: 4}, {KDim: 4, IDim: 7}, {IDim: 3}, {}])
def test_a_field_like_one_of_gt4py_next_has_its_rows_aligned(domain: Any, allocator: Any) -> None:
    field = gtx.zeros(domain, np.float32, allocator=allocator)
    like = dl.zeros_like(field)
    assert (like.strides, like.alignment_size) == (field.ndarray.strides, 64)
    compact = ours.as_field(dl.zeros((3, 5), dims="I K"), {"I": IDim, "K": KDim})
    assert dl.zeros_like(compact).strides == (40, 8)


def test_the_type_of_the_device_has_the_name_of_gt4pys_allocators() -> None:
    for device in ("cpu", "cuda:0"):
        mine = ours.allocator(device)
        assert mine.device_type is mine.__gt_device_type__
    assert ours.allocator().device_type is theirs.StandardCPUFieldBufferAllocator().device_type
