"""A stencil on a field in blocks, with Dask; the same function computes the whole field in one process."""

import numpy as np

import dlfield as dl
import dlfield.dask


def laplacian(u):
    out = dl.zeros_like(u)
    out.domain_view[...] = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
    return out


whole = dl.pad(np.random.default_rng(0).random((16, 12)), 1, "wrap", dims="IJ")
blocks = dlfield.dask.from_tensor(whole, (9, 7))
result = dlfield.dask.map_overlap(laplacian, blocks).compute()
print(type(result).__name__, result.dims, result.shape)
assert (result.to_numpy() == laplacian(whole).to_numpy()).all()
