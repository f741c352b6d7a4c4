"""Support for GT4Py: allocation as in `gt4py.storage`, stencils that accept any array, fields of `gt4py.next`.

- `empty`, `zeros`, `ones`, `full` and `from_array` are drop-in replacements for `gt4py.storage`, with the layouts that
  the installed GT4Py has registered. They work without GT4Py too, with the layouts of `dlfield.presets()`.
- `register` and `from_name` set and return a preset. Everything else that `gt4py.storage` exports, such as `layout` and
  `layout_registry`, is GT4Py's own.
- `wrap` makes a compiled stencil accept any array.
- `allocator` allocates the fields of `gt4py.next` in dlfield's memory, and `as_field` makes one of any array.
- `prepare_build` lets GT4Py compile stencils on Python 3.14.
"""

from types import ModuleType
from typing import TYPE_CHECKING, Any

from dlfield.gt4py.allocator import Allocator, allocator
from dlfield.gt4py.build import prepare_build
from dlfield.gt4py.fields import as_field
from dlfield.gt4py.registry import UnknownPresetError, from_name, gt4py_storage, register
from dlfield.gt4py.storage import empty, from_array, full, ones, zeros
from dlfield.gt4py.wrap import WrappedStencil, wrap

__all__ = [
    "Allocator",
    "UnknownPresetError",
    "WrappedStencil",
    "allocator",
    "as_field",
    "empty",
    "from_array",
    "from_name",
    "full",
    "ones",
    "prepare_build",
    "register",
    "wrap",
    "zeros",
]

if TYPE_CHECKING:
    cartesian: ModuleType
    layout: ModuleType
    layout_registry: ModuleType
else:

    def __getattr__(name: str) -> Any:
        """Look up what `gt4py.storage` exports beyond the functions here, on first use."""
        message = f"module {__name__!r} has no attribute {name!r}"
        if name.startswith("__"):
            raise AttributeError(message)
        storage = gt4py_storage()
        if storage is None:
            raise AttributeError(f"{message}; GT4Py, which may have it, is not installed: pip install gt4py")
        if name not in storage.__all__:
            raise AttributeError(message)
        return getattr(storage, name)
