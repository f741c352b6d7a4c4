"""With NumPy alone, everything works that does not need another library."""

import subprocess
import sys

import pytest

ALONE = """
import importlib.abc, sys

class NothingElse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {"numpy", "dlfield", *sys.stdlib_module_names}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NothingElse())
"""


@pytest.mark.parametrize(
    "use",
    [
        "import dlfield as dl; assert (dl.ones((2, 3)) + 1).shape == (2, 3)",
        "from dlfield import storage; assert storage.zeros((2, 3)).halo == ((0, 0), (0, 0))",
        "import dlfield.cuda, dlfield.frameworks",
        "from dlfield import gt4py; assert gt4py.zeros((2, 3), backend='numpy').shape == (2, 3)",
    ],
)
def test_numpy_is_enough(use: str) -> None:
    done = subprocess.run([sys.executable, "-c", ALONE + use], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_modules_are_imported_on_first_use() -> None:
    code = """
import sys
import dlfield as dl
modules = {"dlfield.gt4py", "dlfield.storage", "dlfield.xarray"}
assert not modules & set(sys.modules)
assert {"gt4py", "storage", "xarray"} <= set(dir(dl))
assert not modules & set(sys.modules)
assert dl.storage.zeros((2, 3)).halo == ((0, 0), (0, 0))
assert modules & set(sys.modules) == {"dlfield.storage"}
assert dl.gt4py.zeros((2, 3), backend="numpy").shape == (2, 3)
assert dl.storage is sys.modules["dlfield.storage"] and dl.gt4py is sys.modules["dlfield.gt4py"]
"""
    done = subprocess.run([sys.executable, "-c", ALONE + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("use", "error"), [("dlfield.xarray", "AttributeError"), ("from dlfield import xarray", "ImportError")]
)
def test_a_module_says_which_package_it_needs(use: str, error: str) -> None:
    code = f"import sys, dlfield; sys.modules['xarray'] = None; {use}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(error)
    assert "pip install xarray" in done.stderr.splitlines()[-1]


def test_the_package_can_be_inspected_without_the_other_libraries() -> None:
    code = """
import inspect, pydoc
import dlfield as dl
assert not hasattr(dl, "xarray")
assert {"zeros", "storage"} <= {name for name, _ in inspect.getmembers(dl)}
assert "zeros" in pydoc.render_doc(dl)
"""
    # What `pydoc` imports is no other library.
    done = subprocess.run(
        [sys.executable, "-c", "import pydoc, sysconfig; sysconfig.get_config_vars()" + ALONE + code],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
