"""NumPy for tests of arithmetic: its types know of no operands and outputs but its own arrays."""

import importlib
from typing import Any

np: Any = importlib.import_module("numpy")
