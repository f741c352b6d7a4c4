"""NumPy without types, for tests of arithmetic: its stubs accept only its own arrays as operands and outputs."""

import importlib
from typing import Any

np: Any = importlib.import_module("numpy")
