"""A compiled JAX function on a field, and its result with the field's labels and halo."""

import jax

import dlfield as dl
import dlfield.jax

field = dl.ones((6, 5), "float32", dims="IJ", halo=(1, 0), backend="jax")


@jax.jit
def step(u):
    return u.at[1:-1].set((u[:-2] + u[2:]) / 4)


result = dl.asarray(step(field), like=field)
print(result.dims, result.halo, float(result.domain_view.max()))
gradient = jax.grad(lambda u: (step(u) ** 2).sum())(field)
assert gradient.shape == field.shape
