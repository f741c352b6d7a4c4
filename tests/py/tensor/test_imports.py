"""With NumPy alone all works that needs no other library, none is imported unasked, and a missing one is named."""

import importlib.util
import sys

import pytest

from childproc import run_cases, run_python

# Each case imports dlfield in a process that has imported NumPy. `pydoc` imports no other library.
ALONE = """
import importlib.abc, inspect, pydoc, sys, sysconfig
from types import SimpleNamespace
import numpy
sysconfig.get_config_vars()

class NothingElse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {"numpy", "dlfield", *sys.stdlib_module_names}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NothingElse())
"""
CASES = {
    "arithmetic": "import dlfield as dl; assert (dl.ones((2, 3)) + 1).shape == (2, 3)",
    "storages": "from dlfield import storage; assert storage.zeros((2, 3)).halo == ((0, 0), (0, 0))",
    "modules": "import dlfield.cuda, dlfield.interop.frameworks",
    "gt4py": "from dlfield import gt4py; assert gt4py.zeros((2, 3), backend='numpy').shape == (2, 3)",
    "modules are imported on first use": """
import dlfield as dl
modules = {"dlfield.gt4py", "dlfield.storage", "dlfield.xarray"}
assert not modules & set(sys.modules)
assert {"gt4py", "storage", "xarray"} <= set(dir(dl))
assert not modules & set(sys.modules)
assert dl.storage.zeros((2, 3)).halo == ((0, 0), (0, 0))
assert modules & set(sys.modules) == {"dlfield.storage"}
assert dl.gt4py.zeros((2, 3), backend="numpy").shape == (2, 3)
assert dl.storage is sys.modules["dlfield.storage"] and dl.gt4py is sys.modules["dlfield.gt4py"]
""",
    "a module says which package it needs": """
import dlfield
sys.modules["xarray"] = None
for use, kind in (("dlfield.xarray", AttributeError), ("from dlfield import xarray", ImportError)):
    try:
        exec(use)
    except kind as error:
        assert "pip install xarray" in str(error)
    else:
        raise AssertionError(use)
""",
    "the package can be inspected": """
import dlfield as dl
assert not hasattr(dl, "xarray")
assert {"zeros", "storage"} <= {name for name, _ in inspect.getmembers(dl)}
assert "zeros" in pydoc.render_doc(dl)
""",
    "devices of frameworks": """
import dlfield as dl
assert str(dl.Device(SimpleNamespace(type="cuda", index=None))) == "cuda:0"
assert str(dl.Device(SimpleNamespace(platform="gpu", id=1))) == "cuda:1"
assert not {"torch", "jax", "cupy"} & set(sys.modules)
""",
    "values that need ml_dtypes are not shown": """
import dlfield as dl
field = dl.empty((2, 3), "bfloat16")
for text in (str(field), str(dl.empty((), "bfloat16"))):
    assert "not read: dtype: bfloat16 needs the package ml_dtypes" in text
assert "dtype=bfloat16, dims=('I', 'J')" in str(field)
html = field._repr_html_()
assert "<code>bfloat16</code>" in html and "not read: dtype" in html
assert "0,1" in dl.draw(dl.zeros((2, 2), "bfloat16")).svg
""",
}


def test_numpy_is_enough() -> None:
    run_cases(ALONE, CASES)


@pytest.mark.parametrize("shared", [True, False], ids=["shared GIL", "own GIL"])
def test_a_sub_interpreter_refuses_the_import(shared: bool) -> None:
    """The release of memory would hang there. From 3.12 on, Python refuses where an interpreter has its own GIL."""
    output = run_python(f"""
        import sys
        if sys.version_info >= (3, 13):
            import _interpreters as interpreters
            options = {{"config": "legacy" if {shared} else "isolated"}}
        else:
            import _xxsubinterpreters as interpreters
            options = {{"isolated": not {shared}}}
        code = "try: import dlfield\\nexcept ImportError as error: print(error, flush=True)"
        for _ in range(2):
            made = interpreters.create(**options)
            interpreters.run_string(made, code)
            # Python 3.14 warns at its end of those that are left.
            interpreters.destroy(made)
        import dlfield
    """)
    by_python = not shared and sys.version_info >= (3, 12)
    refusal = (
        "does not support loading in subinterpreters" if by_python else "dlfield: does not work in a sub-interpreter"
    )
    assert output.count(refusal) == 2


# The name of a library, and how it is installed.
LIBRARIES = {
    "xarray": "xarray",
    "dask": "'dask[array,distributed]'",
    "mpi4py": "mpi4py",
    **({"ghex": "ghex"} if importlib.util.find_spec("mpi4py") else {}),
}
MODULES = {"mpi4py": "dlfield.mpi", "ghex": "dlfield.mpi.ghex"}

PRELUDE = f"""
import importlib, sys
import dlfield
assert not [name for name in sys.modules if name.split(".")[0] in {list(LIBRARIES)}]
assert not [name for name in sys.modules if "mpi" in name.split(".")]

def check(module, library, package):
    sys.modules[library] = None
    try:
        importlib.import_module(module)
    except ImportError as error:
        assert f"pip install {{package}}" in str(error), error
    else:
        raise AssertionError(module)
"""


def test_a_missing_library_is_named() -> None:
    modules = {name: MODULES.get(name, f"dlfield.{name}") for name in LIBRARIES}
    run_cases(PRELUDE, {name: f"check({modules[name]!r}, {name!r}, {LIBRARIES[name]!r})" for name in LIBRARIES})
    assert "mpi4py.MPI" not in sys.modules, "importing it would start MPI, which other tests should not run under"
