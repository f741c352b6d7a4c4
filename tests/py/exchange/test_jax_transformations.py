"""JAX's transformations take fields after `import dlfield.jax`, which is not undone: hence another process."""

import subprocess
import sys

import pytest

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
