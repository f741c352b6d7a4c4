"""The operations whose instructions `counts.py` counts: statements, and the names in them.

A program for valgrind: `operations.py GROUP MARKS`, where MARKS is the library made of `benches/marks.c`.
"""

import ctypes
import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import dlfield as dl

#: Calls before the first count: caches are filled, and Python has specialized the bytecode.
WARM_UP = 100
#: The calls of the two counts of a statement; their difference has nothing of what surrounds the loop.
CALLS = (10, 50)
#: The loop alone, counted first, which `counts.py` subtracts from the other statements.
LOOP = "pass"

#: The statements, by the group whose names they use. Each group has a process: imports take long under valgrind.
STATEMENTS = {
    "arrays": """
        describe(ndarray)
        describe(sliced_ndarray)
        describe(torch_Tensor)
        describe(jax_Array)
        describe(tvm_ffi_Tensor)
        describe(tensor)
        describe(DLPack_only)
        describe(array_interface_only)
        from_dlpack(ndarray)
        from_dlpack(sliced_ndarray)
        from_dlpack(torch_Tensor)
        from_dlpack(jax_Array)
        from_dlpack(tvm_ffi_Tensor)
        from_dlpack(tensor)
        from_dlpack(DLPack_only)
        from_dlpack(array_interface_only)
        as_numpy(tensor)
        as_torch(tensor)
        as_jax(aligned)
        memoryview(tensor)
        np.asarray(tensor)
        np.from_dlpack(tensor)
        torch.from_dlpack(tensor)
        jax.numpy.from_dlpack(aligned)
        tvm_ffi.from_dlpack(tensor)
        empty(shape)
        empty(shape, backend="gt:cpu_ifirst")
        empty(shape, backend="gt:cpu_ifirst", aligned_index=(1, 1, 1))
        empty(shape, halo=(1, 1, 1))
        empty(shape, dims="IJK")
        zeros(shape)
        zeros(shape, backend="gt:cpu_ifirst")
        ones(shape)
        full(shape, 2.5)
        from_array(array)
        bind_1.bind(a=array)
        bind_4.bind(a=array, b=array_2, c=array, d=array)
        bind_4.bind(a=torch_double, b=torch_double_2, c=torch_double, d=torch_double)
        bind_4.bind(a=field, b=field_2, c=field, d=field)
        bind_16.bind(a=array, b=array_2, **fourteen)
        kernel_4(array, array_2, array, array)
        field[1:-1, 1:-1, 1:-1]
        field[0]
        field[0, 0, 0]
        field[0, 0, 0] = 1.0
        field[...] = 1.0
        field.T
        field.domain_view
        field + field_2
        field + 2.0
        field += field_2
        -field
        field.sum()
        np.add(field, field_2)
        np.sqrt(field)
        plane + column
        rust_ndim(array)
        rust_ndim(field)
        rust_read(array)
        rust_read(field)
        rust_read(torch_double)
        rust_write(array)
        rust_write(field)
        rust_read_any(array)
        rust_read_by_type(array)
        rust_write_by_type(array)
        rust_read_labelled(field)
        rust_read_or_copy(array)
        rust_read_or_copy(ndarray)
        rust_empty(*three_NumPy)
        rust_empty(*three_PyTorch)
        rust_empty(*three_JAX)
        rust_empty(*three_dlfield)
        rust_count_to(8)
        rust_make_field(shape)
        cube_F[...] = cube
        cube[...] = cube_F
        cube_float32[...] = cube
        cube_padded[...] = cube
    """,
    "gt4py": """
        wrapped(array, array_2, origin=(1, 1, 0), domain=(4, 4, 4))
        wrapped(field, field_2, origin=(1, 1, 0), domain=(4, 4, 4))
    """,
}


def names(group: str) -> dict[str, Any]:
    """Return the values of the names in the statements of a group."""
    shape = (8, 8, 8)
    halo = (1, 1, 1)
    functions = {name: getattr(dl, name) for name in dl.__all__}
    common = {
        "np": np,
        "shape": shape,
        "array": np.zeros(shape),
        "array_2": np.zeros(shape),
        "field": dl.ones(shape, halo=halo),
        "field_2": dl.zeros(shape, halo=halo),
    }
    return {**functions, **common, **(_arrays(common) if group == "arrays" else _gt4py())}


def _arrays(common: dict[str, Any]) -> dict[str, Any]:
    import jax
    import torch
    import tvm_ffi

    import rust_extension as rust
    from producers import DTYPE, SHAPE, producers, threes

    cube = (32, 32, 32)

    def nothing(a: Any, b: Any, c: Any, d: Any) -> None: ...

    nothing.__annotations__ = _specs(4)
    return {
        "torch": torch,
        "jax": jax,
        "tvm_ffi": tvm_ffi,
        **{kind.replace(".", "_").replace(" ", "_"): array for kind, array in producers().items()},
        **{f"three_{kind}": arrays for kind, arrays in threes().items()},
        **{
            f"rust_{name}": function for name, function in (vars(rust.peers) | vars(rust)).items() if callable(function)
        },
        **{f"bind_{count}": dl.Signature(**_specs(count)) for count in (1, 4, 16)},
        "kernel_4": dl.kernel(nothing),
        "fourteen": dict.fromkeys(list(_specs(16))[2:], common["array"]),
        "aligned": dl.zeros(SHAPE, DTYPE, backend="jax"),
        "torch_double": torch.zeros(common["shape"], dtype=torch.float64),
        "torch_double_2": torch.zeros(common["shape"], dtype=torch.float64),
        "plane": dl.ones((8, 8), dims="IJ"),
        "column": dl.ones((8,), dims="K"),
        "cube": dl.ones(cube),
        "cube_F": dl.ones(cube, backend="F"),
        "cube_float32": dl.ones(cube, "float32"),
        "cube_padded": dl.ones(cube, alignment_size=512),
    }


def _specs(count: int) -> dict[str, Any]:
    """Return the specs of so many fields, the second of them written."""
    return {
        name: dl.FieldSpec("float64", "IJK", access="w" if name == "b" else "r") for name in "abcdefghijklmnop"[:count]
    }


def _gt4py() -> dict[str, Any]:
    from gt4py.cartesian import gtscript

    import dlfield.gt4py
    from laplacian import laplacian

    return {"wrapped": dlfield.gt4py.wrap(gtscript.stencil(backend="numpy")(laplacian))}


def loop(statement: str, values: dict[str, Any]) -> Callable[[int], None]:
    """Return a function that executes a statement so many times; its names are local variables."""
    used = [name for name in compile(statement, statement, "exec").co_names if name in values]
    namespace: dict[str, Any] = {}
    exec(f"def loop(calls, {', '.join(used)}):\n    for _ in range(calls):\n        {statement}", namespace)
    return lambda calls: namespace["loop"](calls, *(values[name] for name in used))


def main() -> None:
    group, library = sys.argv[1:]
    marks = ctypes.CDLL(library)
    dl.set_num_threads(1)
    values = names(group)
    # The last counts of the loop replace those before, in which Python specialized the code of this function, too.
    statements = [*[LOOP] * 10, *(line.strip() for line in STATEMENTS[group].strip().splitlines())]
    gc.disable()
    marks.start()
    for statement in statements:
        run = loop(statement, values)
        run(WARM_UP)
        marks.mark(b"warm-up")
        for calls in CALLS:
            name = f"{calls} {statement}".encode()
            run(calls)
            marks.mark(name)


if __name__ == "__main__":
    main()
