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
