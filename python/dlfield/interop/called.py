"""The package's functions that the compiled module calls, by name. Each is imported with its first call."""

import importlib
from typing import Any

_MODULES = {
    "as_cupy": "interop.frameworks",
    "as_jax": "interop.frameworks",
    "as_torch": "_native",
    "from_dlpack": "_native",
    "copied_to_torch": "interop.frameworks",
    "imported": "interop.frameworks",
    "reaches": "interop.frameworks",
    "shares": "interop.frameworks",
    "in_order": "interop.astype",
    "prepared": "interop.astype",
    "viewed": "interop.astype",
    "flags_of": "interop.flags",
    "fill_halo": "interop.halo",
    "renamed": "interop.labels",
    "in_numpys_words": "interop.statistics",
    "mean": "interop.statistics",
    "std": "interop.statistics",
    "var": "interop.statistics",
    "record_allocation": "memory",
    "record_copy": "interop.copies",
    "warn": "interop.warn",
    "Ctypes": "kernels.c_functions",
    "Domain": "kernels.c_functions",
    "wrapped": "kernels.c_functions",
    "dims_of": "kernels.annotations",
    "signature_from_annotations": "kernels.annotations",
    "signature_from_stencil": "kernels.annotations",
    "plot": "show.plot",
    "repr_html": "show.html",
    "repr_text": "show.text",
    "str_text": "show.text",
    "share": "shared_memory",
    "to_xarray": "xarray",
}


def __getattr__(name: str) -> Any:
    """Import a function, and keep it for the next call."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, getattr(importlib.import_module(f"dlfield.{_MODULES[name]}"), name))
