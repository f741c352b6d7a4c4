"""`dlfield` imports no library of its optional modules, whose imports say what to install if one is missing."""

import importlib.util
import sys

from childproc import run_cases

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
