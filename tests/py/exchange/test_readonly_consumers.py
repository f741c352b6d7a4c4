"""What the installed libraries do with dlfield's read-only memory, as docs/reference/protocols.md states it."""

import sys
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from catalog import dtype_named


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
