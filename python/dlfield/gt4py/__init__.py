"""What GT4Py's users need: allocation as in `gt4py.storage`, stencils that take any array, fields of `gt4py.next`.

- `empty`, `zeros`, `ones`, `full` and `from_array` are a drop-in for `gt4py.storage` and don't import GT4Py.
- `wrap` makes a compiled stencil take any array.
- `allocator` puts dlfield's memory under the fields of `gt4py.next`.
"""

from dlfield.gt4py.allocator import Allocator, allocator
from dlfield.gt4py.storage import empty, from_array, full, ones, zeros
from dlfield.gt4py.wrap import WrappedStencil, wrap

__all__ = ["Allocator", "WrappedStencil", "allocator", "empty", "from_array", "full", "ones", "wrap", "zeros"]
