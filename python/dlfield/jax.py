"""Fields as arguments of JAX's transformations, once this module is imported.

`jax.jit`, `jax.grad`, `jax.vmap`, `jax.lax.scan` and `jax.device_put` take a `Tensor` for what `dlfield.as_jax` makes
of it: an array on its memory, or on a copy. Inside of the function it is an array of JAX, and so are results and
gradients. A call returns before JAX has computed: wait with `block_until_ready` before you write to the field. To
`jax.tree` a tensor is a container of that array. Functions of `jax.numpy` still want `dlfield.as_jax(field)`: some take
a tensor then, and others do not.

Example
-------
>>> import jax
>>> import dlfield as dl
>>> import dlfield.jax
>>> field = dl.ones((2, 3), "float32", dims="IJ")
>>> float(jax.jit(lambda x: 2 * x.sum())(field))
12.0
>>> jax.grad(lambda x: (x**2).sum())(field).shape
(2, 3)
"""

from typing import Any

from dlfield._native import Tensor
from dlfield.interop.frameworks import as_jax, imported

__all__: list[str] = []


def _array_of(tensor: Tensor) -> tuple[tuple[Any], None]:
    return (as_jax(tensor),), None


def _itself(_: None, arrays: tuple[Any]) -> Any:
    """Return the array, which may be one that JAX traces: it becomes no tensor again."""
    return arrays[0]


imported("jax.tree_util", "dlfield.jax").register_pytree_node(Tensor, _array_of, _itself)
