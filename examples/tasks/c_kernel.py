"""A C kernel behind a checked signature: arrays of any library in any order, and no read out of bounds."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import xarray

import dlfield as dl

source = Path(__file__).parent / "laplacian.c"
subprocess.run(["cc", "-O3", "-shared", "-fPIC", source, "-o", "c_kernel.so"], check=True)
signature = dl.Signature(
    inp=dl.FieldSpec("float64", "IJK", boundary={"I": 1, "J": 1}),
    out=dl.FieldSpec("float64", "IJK", access="w"),
)
laplacian = signature.wrap(ctypes.CDLL("./c_kernel.so").laplacian, "domain_ptr element_strides domain")

i, j, k = np.indices((6, 5, 3), dtype="float64")
inp = dl.from_array(i**2 + j**2 + k, backend="gt:cpu_ifirst", halo={"I": 1, "J": 1})
out = xarray.DataArray(np.zeros((3, 3, 4)), dims=("K", "J", "I"))
laplacian(inp, out)
assert (out == 4.0).all()

try:
    laplacian(inp.to_numpy(), np.zeros((6, 5, 3)))  # no halo
except dl.LayoutError as error:
    print(error)
