"""Use an installed dlfield as the README does, with NumPy alone: run by the release on every wheel."""

import pickle
import sys

import numpy as np

import dlfield as dl


def main() -> int:
    """Allocate, exchange, compute and copy; return 0 if all values are right."""
    field = dl.zeros((6, 5, 4), dims="IJK", halo=(1, 1, 0), backend="gt:cpu_ifirst")
    assert field.layout == (2, 1, 0), field.layout
    array = np.asarray(field)
    assert array.ctypes.data == field.ptr
    array[...] = np.arange(120.0).reshape(6, 5, 4)
    assert float(field[5, 4, 3]) == 119.0
    assert dl.describe(array).strides == field.strides == array.strides
    assert dl.from_dlpack(array, dims="IJK").ptr == field.ptr
    swapped = dl.from_array(array, backend="gt:cpu_kfirst", dtype="float32")
    assert swapped.layout == (0, 1, 2)
    assert np.array_equal(np.asarray(swapped), array)
    assert np.array_equal(np.asarray(np.sqrt(field + field)), np.sqrt(2 * array))
    assert np.array_equal(np.asarray(pickle.loads(pickle.dumps(field))), array)
    signature = dl.Signature(inp=dl.FieldSpec("float64", "IJK"), out=dl.FieldSpec("float64", "IJK", access="w"))
    with signature.bind(inp=field, out=np.zeros((4, 3, 4))) as bound:
        assert bound.domain == (4, 3, 4), bound.domain
    try:
        dl.describe("text")
    except dl.NotAnArrayError:
        pass
    else:
        raise AssertionError("a string was taken for an array")
    print(f"dlfield {dl.__version__} works on Python {sys.version.split()[0]} with NumPy {np.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
