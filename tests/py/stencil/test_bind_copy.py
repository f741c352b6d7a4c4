"""`on_mismatch="copy"`: what is copied, cast and copied back."""

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlfield as dl
from calls import Array, accessed, copying, dataarray, misaligned, numbers, torch_of, view
from catalog import ML_CODES, dtype_named
from fakes import FakeTensor, Producer
from fakes_interfaces import Hooked, cuda
from oracle import values

pytestmark = pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
WRITABLE: dict[str, Callable[[Array], Any]] = {
    "numpy": lambda array: array,
    "torch": torch_of,
    "tensor": dl.from_dlpack,
    "DLPack only": lambda array: Producer(FakeTensor(array)),
    "data interface": lambda array: Hooked(array, []),
    "buffer": lambda array: array.data,
    "DataArray": lambda array: dataarray(array, "IJ"),
}
MISMATCHES: dict[str, Callable[[], Array]] = {
    "dtype": lambda: numbers("float32"),
    "layout": lambda: np.asfortranarray(numbers()),
    "alignment": misaligned,
    "dtype and layout": lambda: np.asfortranarray(numbers("float32")),
    "float32 with gaps": lambda: np.repeat(numbers("float32"), 2, axis=1)[:, ::2],
}


@pytest.mark.parametrize("mismatch", MISMATCHES)
@pytest.mark.parametrize("name", WRITABLE)
def test_copies_are_filled_and_copied_back(name: str, mismatch: str) -> None:
    array = MISMATCHES[mismatch]()
    before = array.copy()
    sig = copying(x=accessed("rw", layout=(0, 1), alignment_size=64))
    with sig.bind(x=WRITABLE[name](array)) as fields:
        found = fields.x
        assert (found.dtype, found.shape, found.layout, found.ptr % 64) == (np.dtype("float64"), (3, 4), (0, 1), 0)
        assert (found.dims, found.origin, found.readonly, found.protocol) == (("I", "J"), (0, 0), False, "dlfield")
        assert values(found) == before.tolist()
        view(found)[1:] += 0.5
        assert (array == before).all()
    before[1:] += 0.5
    assert (array == before).all()


def test_negative_strides_and_many_elements() -> None:
    array = np.arange(1 << 20, dtype="float32").reshape(128, 64, 128)[::-1, :, ::-1]
    before = array.copy()
    sig = copying(x=accessed("rw", dims="IJK", layout=(2, 1, 0), alignment_size=64))
    with sig.bind(x=array) as fields:
        assert (view(fields.x) == before).all()
        view(fields.x)[...] *= 2
    assert (array == before * 2).all()


def test_memory_that_is_only_read_may_be_read_only(jnp: Any) -> None:
    array = numbers("float32")
    array.flags.writeable = False
    wide = np.broadcast_to(np.float32(2), (3, 4))
    sig = copying(x=accessed(), again=accessed(dtype="float32"), y=accessed(), out=accessed("w"))
    for x in (array, jnp.asarray(array)):
        with sig.bind(x=x, again=x, y=wide, out=np.zeros((3, 4))) as fields:
            assert values(fields.x) == values(fields.again) == numbers().tolist()
            assert values(fields.y) == np.full((3, 4), 2.0).tolist()
        with pytest.raises(dl.ExchangeError, match=r'^field "out": access: .*read-only'):
            sig.bind(x=array, again=array, y=wide, out=x)


def test_matching_fields_are_not_copied() -> None:
    array = numbers()
    bound = copying(x=accessed("rw", layout=(0, 1)), y=accessed(dtype="float32")).bind(x=array, y=numbers("float32"))
    assert bound.x.ptr == array.ctypes.data
    # Without temporaries the bound object need not be entered.
    assert bound.y.dtype == np.dtype("float32")


def test_nothing_is_copied_back_when_the_body_fails() -> None:
    def spoil(found: dl.Descriptor) -> None:
        view(found)[...] = 7
        raise ValueError("body")

    array = numbers("float32")
    with pytest.raises(ValueError, match="body"), copying(x=accessed("w")).bind(x=array) as fields:
        spoil(fields.x)
    assert (array == numbers("float32")).all()


@pytest.mark.parametrize("access", ["w", "rw"])
def test_other_elements_and_the_memory_between_keep_their_values(access: str) -> None:
    block = np.full((6, 8), 3.0, "float32")
    block[2, 2] = np.nan
    expected = block.copy()
    with copying(x=accessed(access)).bind(x=block[::2, 1:-1]) as fields:
        view(fields.x)[1:, 2:] = 0
    expected[2::2, 3:-1] = 0
    np.testing.assert_array_equal(block, expected)


def test_labels_halo_and_origin_are_the_arguments() -> None:
    halo = ((0, 0), (1, 2), (3, 1))
    field = dl.zeros((4, 8, 9), "float32", dims="KJI", halo=halo)
    field[...] = np.arange(4 * 8 * 9).reshape(4, 8, 9)
    sig = copying(x=accessed("rw", dims="IJK", layout=(2, 1, 0), alignment_size=64))
    with sig.bind(x=field) as fields:
        found = fields.x
        assert (found.dims, found.shape, found.layout) == (("I", "J", "K"), (9, 8, 4), (2, 1, 0))
        assert (found.halo, found.origin) == (halo[::-1], (3, 1, 0))
        assert (found.ptr + sum(at * step for at, step in zip(found.origin, found.strides, strict=True))) % 64 == 0
        assert values(found) == field.to_numpy().transpose().tolist()
        inner = view(found)[3:-1, 1:-2]
        inner[...] = -1
        assert fields.domain == (5, 5, 4)
    seen = field.to_numpy()
    assert (seen[:, 1:-2, 3:-1] == -1).all()
    assert (seen == -1).sum() == 4 * 5 * 5


def test_an_origin_at_the_end_is_no_error() -> None:
    field = dl.ones((3, 4), "float32", dims="IJ", origin=(3, 4))
    with copying(x=accessed("rw", alignment_size=64)).bind(x=field) as fields:
        assert (values(fields.x), fields.domain) == (np.ones((3, 4)).tolist(), (0, 0))


@given(st.data())
def test_writes_to_any_temporary_are_copied_back(data: st.DataObject) -> None:
    ndim = data.draw(st.integers(0, 4))
    shape = data.draw(st.tuples(*[st.integers(0, 4)] * ndim))
    dims = data.draw(st.permutations("IJK0").map(lambda labels: labels[:ndim]))
    expected = data.draw(st.permutations(dims))
    field = dl.zeros(
        shape,
        data.draw(st.sampled_from(["float32", "float64"])),
        dims=dims,
        layout=data.draw(st.permutations(range(ndim))),
        alignment_size=data.draw(st.sampled_from([1, 8, 64])),
    )
    before = np.random.default_rng(1).integers(0, 100, shape).astype(field.dtype)
    field[...] = before
    layout = data.draw(st.none() | st.permutations(range(ndim)))
    access: Any = data.draw(st.sampled_from(["r", "w", "rw"]))
    alignment = data.draw(st.sampled_from([1, 32, 24]))
    sig = copying(x=dl.FieldSpec("float64", expected, access=access, layout=layout, alignment_size=alignment))
    axes = [dims.index(dim) for dim in expected]
    with warnings.catch_warnings(), sig.bind(x=field) as fields:
        seen = view(fields.x)
        assert seen.dtype == np.dtype("float64")
        assert seen.tolist() == before.transpose(axes).tolist()
        if access != "r" or fields.x.ptr != field.ptr:
            seen[...] += 1
    assert field.to_numpy().tolist() == (before if access == "r" else before + 1).tolist()


CASTS = [
    ("int32", "float64", "r"),
    ("float64", "float32", "r"),
    ("float64", "float32", "w"),
    ("float32", "complex64", "r"),
    ("bool", "uint8", "r"),
]
# The last column is the cast that is refused: of the argument, or back.
REFUSED_CASTS = [
    ("float64", "int32", "r", "got a cast of float64 to int32"),
    ("complex64", "float32", "r", "got a cast of complex64 to float32"),
    ("int32", "float64", "rw", "got a cast of float64 to int32"),
    ("int32", "float64", "w", "got a cast of float64 to int32"),
    ("float32", "complex64", "w", "got a cast of complex64 to float32"),
]


def test_casts_are_those_of_same_kind() -> None:
    for found, expected, access in CASTS:
        with copying(x=accessed(access, expected)).bind(x=numbers(found)) as fields:
            assert values(fields.x) == numbers(found).astype(expected).tolist()
    for found, expected, access, refused in REFUSED_CASTS:
        with pytest.raises(dl.DTypeError, match=rf'^field "x": dtype: .* {refused}$'):
            copying(x=accessed(access, expected)).bind(x=numbers(found))


@pytest.mark.parametrize("name", [*ML_CODES, "float4_e2m1fn", "int4"])
def test_narrow_types_are_rearranged_but_not_cast(name: str) -> None:
    """Except bfloat16, whose casts do not need NumPy."""
    dtype = dtype_named(name)
    array = np.asfortranarray(np.ones((3, 4)).astype(dtype))
    with copying(x=dl.FieldSpec(dtype, "IJ", access="rw", layout=(0, 1))).bind(x=array) as fields:
        assert (fields.x.dtype, fields.x.layout) == (dtype, (0, 1))
        assert dl.as_numpy(fields.x).astype("float32").tolist() == np.ones((3, 4)).tolist()
    if name != "bfloat16":
        with pytest.raises(dl.DTypeError, match=rf'^field "x": dtype: .* got a cast of {name} to float32$'):
            copying(x=accessed("r", "float32")).bind(x=array)


def test_errors_that_no_copy_corrects() -> None:
    readonly = numbers("float32")
    readonly.flags.writeable = False
    shared = np.lib.stride_tricks.as_strided(np.zeros(4, "float32"), (3, 4), (0, 4), writeable=True)
    array = numbers("float32")
    cases: list[tuple[dl.FieldSpec, Any, type[Exception], str]] = [
        (accessed("w"), readonly, dl.ExchangeError, "access: "),
        (accessed("w"), shared, dl.OverlapError, "strides: "),
        (accessed(), np.zeros(3, "float32"), dl.DimsError, "dims: "),
        (accessed(shape=(4, 3)), array, dl.LayoutError, "shape: "),
        (accessed(), cuda(shape=(3, 4), typestr="<f8"), dl.DeviceError, ".*cuda:0"),
    ]
    for expected, argument, error, message in cases:
        with pytest.raises(error, match=f'^field "x": {message}'):
            copying(x=expected).bind(x=argument)
    with pytest.raises(dl.OverlapError, match=r'^field "y": .*shares memory with field "x"'):
        copying(x=accessed(), y=accessed("w")).bind(x=array, y=array)
    on_gpu = dl.Signature(device="cuda:0", on_mismatch="copy", x=accessed())
    with pytest.raises(dl.DeviceError, match=r'^field "x": .*cpu.*cuda:0'):
        on_gpu.bind(x=array)
    with pytest.raises(dl.DTypeError, match=r'^field "x": dtype: expected float64, got float32'):
        on_gpu.bind(x=cuda(shape=(3, 4), typestr="<f4"))


def test_a_copy_too_large_is_a_memory_error() -> None:
    vast = np.broadcast_to(np.float32(2), (1 << 22, 1 << 23))
    sig = copying(x=accessed(), y=accessed("w"))
    other = numbers("float32")
    held = sys.getrefcount(other)
    for _ in range(3):
        with pytest.raises(MemoryError, match=r'^field "x": shape: 281474976710656 bytes'):
            sig.bind(y=other, x=vast)
    assert sys.getrefcount(other) == held
    with pytest.raises(dl.LayoutError, match=r'^field "x": shape: .* got \(3, 4\) with 8-byte elements'):
        copying(x=accessed(alignment_size=1 << 62)).bind(x=numbers())
