"""Support for GT4Py: allocation as in `gt4py.storage`, stencils that accept any array, fields of `gt4py.next`.

- `empty`, `zeros`, `ones`, `full` and `from_array` are drop-in replacements for `gt4py.storage` and don't import GT4Py.
- `wrap` makes a compiled stencil accept any array.
- `allocator` allocates the fields of `gt4py.next` in dlfield's memory.
"""

from dlfield.gt4py.allocator import Allocator, allocator
from dlfield.gt4py.storage import empty, from_array, full, ones, zeros
from dlfield.gt4py.wrap import WrappedStencil, wrap

__all__ = ["Allocator", "WrappedStencil", "allocator", "empty", "from_array", "full", "ones", "wrap", "zeros"]
