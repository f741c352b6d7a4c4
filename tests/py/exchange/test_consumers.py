"""What consumers get: `__array_interface__`, `__array__`, GT4Py's attributes, PyArrow, and read-only memory."""

import sys
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


@pytest.fixture
def pa() -> Any:
    return pytest.importorskip("pyarrow")


def test_contiguous_memory_is_shared(pa: Any) -> None:
    field = dl.from_array(np.arange(5.0))
    array = pa.array(field)
    assert array.buffers()[1].address == field.ptr
    assert array.to_pylist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_the_memory_outlives_the_field(pa: Any) -> None:
    array = pa.array(dl.from_array(np.arange(1000.0)))
    dl.zeros(1000)
    assert array[999].as_py() == 999.0


def test_gaps_and_other_types_are_copied(pa: Any) -> None:
    field = dl.from_array([[1, 2, 3], [4, 5, 6]])
    assert pa.array(field[:, 1]).to_pylist() == [2, 5]
    assert pa.array(field[0], pa.float32()).type == pa.float32()
    assert pa.array(field[0].as_readonly()).to_pylist() == [1, 2, 3]


def test_a_table_has_fields_as_columns(pa: Any) -> None:
    table = pa.table({"wind": dl.ones(2), "mask": dl.ones(2, bool)})
    assert table.to_pydict() == {"wind": [1.0, 1.0], "mask": [True, True]}


def test_several_dimensions_are_refused(pa: Any) -> None:
    with pytest.raises(pa.ArrowInvalid, match="1-dimensional"):
        pa.array(dl.ones((2, 3)))


@pytest.fixture
def readonly() -> dl.Tensor:
    return dl.ones((2, 3), backend="jax").as_readonly()


def test_cuda_core_respects_the_flag(readonly: dl.Tensor) -> None:
    views = pytest.importorskip("cuda.core.utils").StridedMemoryView
    for read in (views.from_dlpack, views.from_any_interface):
        view = read(readonly, stream_ptr=-1)
        assert (view.ptr, view.readonly) == (readonly.ptr, True)
        assert dl.describe(view).readonly


def test_tvm_ffi_drops_the_flag_so_it_is_refused(tvm_ffi: Any, readonly: dl.Tensor) -> None:
    dropped = tvm_ffi.from_dlpack(readonly.__dlpack__(max_version=(1, 0)))
    assert not dl.describe(dropped).readonly
    echo = tvm_ffi.get_global_func("testing.echo")
    for take in (tvm_ffi.from_dlpack, tvm_ffi.convert, echo):
        with pytest.raises(BufferError, match=r"read-only; .*obj\.copy\(\)"):
            take(readonly)
        assert dl.describe(take(readonly.copy())).ptr != readonly.ptr


def test_jax_shares_it(jax: Any, jnp: Any, readonly: dl.Tensor) -> None:
    assert dl.as_jax(readonly, copy=False).unsafe_buffer_pointer() == readonly.ptr
    if jax.__version_info__ >= (0, 12):
        # JAX turns float64 into float32 on import unless it is told not to.
        single = dl.ones((2, 3), "float32", backend="jax").as_readonly()
        assert jnp.from_dlpack(single).unsafe_buffer_pointer() == single.ptr
    else:
        # Requests a legacy capsule.
        with pytest.raises(dl.ExchangeError, match=r"read-only; .*dlfield\.as_jax\(obj\)"):
            jnp.from_dlpack(readonly)


def test_an_error_for_a_legacy_capsule_names_the_fix(readonly: dl.Tensor) -> None:
    with pytest.raises(dl.ExchangeError, match=r"read-only; .*dlfield\.as_jax\(obj\).*max_version=\(1, 0\)"):
        readonly.__dlpack__()
    with pytest.raises(dl.ExchangeError, match=r"max_version: .*int4; .*dlfield\.as_jax\(obj\)"):
        dl.ones(3, dtype_named("int4")).__dlpack__()


def test_other_extensions_with_this_crate_read_it() -> None:
    """They read the module's tensors through the exchange table as others do, and then call `__dlpack__`."""
    extension = pytest.importorskip("rust_extension")
    kinds = extension.kinds
    field = dl.from_array(np.random.default_rng(7).random((6, 5, 4)), dims=("x", "K", "0"), origin=(1, 2, 0))
    field = field.as_readonly()
    assert extension.ndim(field) == 3
    assert extension.sum(field[1:, ::2]) == pytest.approx(field.to_numpy()[1:, ::2].sum(), rel=1e-12)
    assert [kinds.or_copy(plane)[0] for plane in (field[0], field[0].transpose())] == [True, False]
    assert kinds.labels(field)[:2] == (["x", "K", "0"], [1, 2, 0])
    with pytest.raises(TypeError, match="read-only"):
        kinds.fill(field, 1.0)
    kept = sys.getrefcount(field)
    for _ in range(10):
        assert extension.ndim(field) == 3
    assert sys.getrefcount(field) == kept
