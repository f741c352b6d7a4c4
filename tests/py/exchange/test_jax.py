"""Memory exchanged with JAX, both ways: same pointer, kept alive, and workarounds for JAX's behaviour."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from catalog import ML_CODES, NUMPY_CODES, SUBBYTE_CODES, dtype_named
from dlfield import _native
from dlfield.interop import frameworks


@pytest.mark.parametrize("shape", [(3,), (5, 7), (1, 1), (16, 16, 3)])
@pytest.mark.parametrize("dtype", ["float32", "int32", "bfloat16", "bool"])
@pytest.mark.parametrize("backend", [None, "jax", "gt:cpu_kfirst"])
def test_ordinary_fields_are_zero_copy_in_jax(jnp: Any, shape: Any, dtype: str, backend: str | None) -> None:
    """JAX silently copies NumPy arrays unless the address is a multiple of 64."""
    for _ in range(4):
        field = dl.ones(shape, dtype_named(dtype), backend=backend, halo=((1, 0),) + ((0, 0),) * (len(shape) - 1))
        array = jnp.from_dlpack(field)
        assert array.unsafe_buffer_pointer() == field.ptr
        assert array.tolist() == field.to_numpy().tolist()
        assert dl.as_jax(field, copy=False).unsafe_buffer_pointer() == field.ptr


@pytest.mark.usefixtures("torch")
def test_jax_memory_is_never_written_by_torch(jnp: Any) -> None:
    array = jnp.ones(3)
    dl.as_torch(array)[...] = 5
    assert array.tolist() == [1, 1, 1]
    with pytest.raises(dl.ExchangeError, match=r"(?i)read.?only"):
        dl.as_torch(array, copy=False)


TAKEN_AT_ONCE = [
    name
    for name in sorted({*NUMPY_CODES, *ML_CODES, *SUBBYTE_CODES})
    if _native._jax_takes(dl.zeros((16, 3), dtype_named(name), backend="jax"))
]


@pytest.mark.parametrize("name", TAKEN_AT_ONCE)
@pytest.mark.parametrize("x64", [False, True])
def test_what_jax_takes_at_once_keeps_dtype_and_memory(jax: Any, name: str, x64: bool) -> None:
    field = dl.zeros((16, 3), dtype_named(name), backend="jax")
    assert frameworks.shares("jax", name)
    with jax.enable_x64(x64):
        array = dl.as_jax(field)
    assert (array.dtype, array.shape) == (field.dtype, (16, 3))
    assert array.unsafe_buffer_pointer() == field.ptr


NOT_AT_ONCE: dict[str, Callable[[], Any]] = {
    "read-only": lambda: dl.ones((3, 4), "f4").as_readonly(),
    "padded": lambda: dl.ones((3, 4), "f4", alignment_size=64),
    "at another address": lambda: dl.ones((5, 4), "f4")[1:],
    "stepped": lambda: dl.ones((8, 4), "f4")[::2],
    "backwards": lambda: dl.ones(8, "f4")[::-1],
    "64 bits": lambda: dl.ones((3, 4), "f8"),
    "64-bit integers": lambda: dl.ones((3, 4), "i8"),
    "array": lambda: dl.ones((3, 4), "f4").to_numpy(),
    "description": lambda: dl.describe(dl.ones((3, 4), "f4")),
}


@pytest.mark.parametrize("name", NOT_AT_ONCE)
@pytest.mark.usefixtures("jax")
def test_as_jax_decides_about_all_other_arrays(name: str) -> None:
    """None of these may be passed to JAX as it is: dtype, elements or the flag would be lost, or JAX would raise."""
    given = NOT_AT_ONCE[name]()
    assert not _native._jax_takes(given)
    array = dl.as_jax(given)
    assert (array.dtype, array.shape) == (given.dtype, given.shape)
    assert (np.asarray(array) == 1).all()


def test_as_jax_gives_memory_also_while_jax_traces(jax: Any) -> None:
    field = dl.ones((3, 4), "f4")

    def look(array: Any) -> Any:
        assert dl.as_jax(field).unsafe_buffer_pointer() == field.ptr
        return array

    jax.jit(look)(1.0)


def test_no_array_of_jax_may_be_written_however_many_were_read(jnp: Any) -> None:
    """JAX exports this element type by `__dlpack__` alone, in a capsule without a read-only flag."""
    array = jnp.ones((3, 4), "bfloat16")
    for _ in range(3):
        assert dl.describe(array).readonly
        with pytest.raises(dl.ExchangeError, match="read-only"):
            dl.describe(array, writable=True)


def test_arrays_without_memory_are_named(jax: Any, jnp: Any) -> None:
    deleted, donated = jnp.ones(3), jnp.ones(3)
    deleted.delete()
    jax.jit(lambda array: array + 1, donate_argnums=0)(donated).block_until_ready()
    for array in (deleted, donated):
        for refuse in (dl.describe, dl.from_dlpack, dl.as_numpy):
            with pytest.raises(dl.ExchangeError, match=r"obj: .*still has memory, got a JAX array that was deleted"):
                refuse(array)
        assert dl.preflight(array, "numpy").verdict == "impossible"


def test_traced_arrays_are_refused_by_jax(jax: Any, jnp: Any) -> None:
    caught = []

    def look(array: Any) -> Any:
        for read in (dl.describe, dl.from_dlpack):
            with pytest.raises(jax.errors.ConcretizationTypeError) as error:
                read(array)
            caught.append(error)
        assert dl.as_jax(array) is array
        return array

    jax.jit(look)(jnp.ones(3))
    assert len(caught) == 2


def test_a_field_that_meets_a_traced_value_is_refused_with_what_to_write(jax: Any, jnp: Any) -> None:
    field = dl.ones((3,), "float32")
    for f in (lambda x: x + field, lambda x: field * x):
        with pytest.raises(jax.errors.ConcretizationTypeError) as caught:
            jax.jit(f)(jnp.ones(3))
        assert any("write dl.as_jax(field)" in note for note in caught.value.__notes__)


def test_other_classes_of_that_name_are_not_jaxs() -> None:
    class Tracer:
        def __array__(self, *_: Any, **__: Any) -> Any:
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as caught:
        dl.ones(3) + Tracer()
    assert not hasattr(caught.value, "__notes__")


pytest.importorskip("jax")

USE = """
import jax, numpy as np
import dlfield as dl
field = dl.from_array(np.arange(6, dtype="f4").reshape(2, 3), backend="F", dims="IJ")

try:
    jax.jit(lambda x: x)(field)
except TypeError as error:
    assert "dlfield.Tensor" in str(error)
else:
    raise AssertionError("JAX takes a field without the import")

import dlfield.jax

DOUBLED = [[0, 2, 4], [6, 8, 10]]
assert float(jax.jit(lambda x: x.sum())(field)) == 15.0
assert jax.jit(lambda tree: tree["u"] * 2)({"u": field}).tolist() == DOUBLED
assert jax.grad(lambda x: (x**2).sum())(field).tolist() == DOUBLED
assert jax.vmap(lambda x: x.sum())(field).tolist() == [3, 12]
assert isinstance(jax.device_put(field), jax.Array)
assert jax.lax.scan(lambda total, x: (total + x.sum(), None), 0.0, field)[0] == 15.0
# Tensors still compute with JAX's arrays.
assert type(field + jax.numpy.ones((2, 3))) is dl.Tensor

# Fields of one shape compile once, and each is read.
traced = []
@jax.jit
def doubled(x):
    traced.append(x)
    return 2 * x
assert doubled(field).tolist() == DOUBLED
assert doubled(dl.ones_like(field)).tolist() == [[2, 2, 2], [2, 2, 2]]
assert len(traced) == 1
"""


def test_fields_are_arguments() -> None:
    done = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
