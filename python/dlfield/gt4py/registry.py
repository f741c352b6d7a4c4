"""The layouts of backends: those that the installed GT4Py has registered, then dlfield's own presets."""

import difflib
import functools
import importlib
import operator
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Literal, NamedTuple, TypedDict

from dlfield import _native
from dlfield._native import LayoutError

__all__ = ["LayoutInfo", "RegisteredLayout", "UnknownPresetError", "from_name", "register", "registered_layout"]

_CARTESIAN = ("I", "J", "K")


class LayoutInfo(TypedDict):
    """What `register` records for a preset, with the keys of GT4Py's `LayoutInfo`.

    `alignment` is in elements. `layout_map` maps dimensions, in the order I, J, K, data, to a layout.
    `is_optimal_layout` returns whether an array with these dimensions has it.
    """

    alignment: int
    device: Literal["cpu", "gpu"]
    layout_map: Callable[[tuple[str, ...]], tuple[int, ...]]
    is_optimal_layout: Callable[[Any, tuple[str, ...]], bool]


class RegisteredLayout(NamedTuple):
    """What a backend wants of a field: `layout`, `alignment` in elements, and `device`, "cpu" or "gpu"."""

    layout: tuple[int, ...]
    alignment: int
    device: Literal["cpu", "gpu"]


class UnknownPresetError(LayoutError, RuntimeError):
    """No preset has this name. `gt4py.storage` raises a RuntimeError."""

    __module__ = "dlfield.gt4py"


# The presets that were registered in a process without GT4Py.
_WITHOUT_GT4PY: dict[str, LayoutInfo] = {}


def register(name: str, info: LayoutInfo | None) -> None:
    """Register a preset for `dlfield.gt4py` and `gt4py.storage`; with None, remove it.

    Parameters
    ----------
    name : str
        What `backend` may name from now on. A preset of the same name is replaced.
    info : dict or None
        A dictionary with the keys of `LayoutInfo`.

    Raises
    ------
    TypeError
        `name` is not a string, or `info` is not a dictionary.

    Example
    -------
    >>> from dlfield import gt4py
    >>> gt4py.register("transposed", {**gt4py.from_name("numpy"), "layout_map": lambda dims: (1, 0)})
    >>> gt4py.zeros((2, 3), backend="transposed").strides
    (8, 16)
    >>> gt4py.register("transposed", None)
    """
    if not isinstance(name, str):
        raise TypeError(f"name: found {name!r}, must be a string")
    if info is None:
        _entries().pop(name, None)
    elif isinstance(info, dict):
        _entries()[name] = info
    else:
        raise TypeError(
            f"info: found {info!r}, must be a dictionary with the keys {sorted(LayoutInfo.__annotations__)}"
        )


def from_name(name: str) -> LayoutInfo:
    """Return the registered layout of a preset: GT4Py's own dictionary, or one for a preset of dlfield.

    Alignments are in elements, so that "gt4py.next", which aligns rows in bytes, has its layout and compact rows here.

    Raises
    ------
    UnknownPresetError
        No preset has this name.

    Example
    -------
    >>> from dlfield import gt4py
    >>> gt4py.from_name("gt:gpu")["alignment"]
    32
    """
    info = _entries().get(name)
    if info is not None:
        return info
    presets = _native.presets()
    if name not in presets:
        known = sorted({*_entries(), *presets})
        near = difflib.get_close_matches(str(name), known, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        names = ", ".join(known)
        raise UnknownPresetError(f"backend: no preset {name!r}; expected one of {names}, or register it{hint}")
    preset = presets[name]
    layout_map = functools.partial(_preset_layout, name)
    return LayoutInfo(
        alignment=preset.alignment,
        device="cpu" if preset.device == "cpu" else "gpu",
        layout_map=layout_map,
        is_optimal_layout=lambda array, dimensions: _has_layout(array.strides, layout_map(dimensions)),
    )


def registered_layout(backend: str, dimensions: Sequence[str]) -> RegisteredLayout:
    """Return the layout, alignment and device that are registered for a backend.

    Parameters
    ----------
    backend
        Name of a preset of GT4Py or of dlfield.
    dimensions
        Names of the dimensions in the order I, J, K, data, by position as in GT4Py.

    Raises
    ------
    UnknownPresetError
        No preset has this name.
    LayoutError
        A key is missing in the dictionary that was registered.

    Example
    -------
    >>> from dlfield.gt4py.registry import registered_layout
    >>> registered_layout("gt:cpu_ifirst", ("I", "J", "K", "0"))
    RegisteredLayout(layout=(3, 2, 1, 0), alignment=1, device='cpu')
    """
    info = from_name(backend)
    missing = {"alignment", "device", "layout_map"} - info.keys()
    if missing:
        raise LayoutError(f"backend: the preset {backend!r} was registered without {', '.join(sorted(missing))}")
    layout = tuple(operator.index(rank) for rank in info["layout_map"](tuple(dimensions)))
    return RegisteredLayout(layout, info["alignment"], "gpu" if info["device"] == "gpu" else "cpu")


@functools.cache
def gt4py_storage() -> ModuleType | None:
    """Return the module `gt4py.storage`, or None if GT4Py is not installed."""
    try:
        return importlib.import_module("gt4py.storage")
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] != "gt4py":
            raise
        return None


def _entries() -> dict[str, LayoutInfo]:
    """Return GT4Py's own registry, or without GT4Py the presets that were registered here."""
    storage = gt4py_storage()
    entries: dict[str, LayoutInfo] = _WITHOUT_GT4PY if storage is None else storage.layout_registry.REGISTRY
    return entries


def _preset_layout(name: str, dimensions: tuple[str, ...]) -> tuple[int, ...]:
    """Return the layout of a preset of dlfield, by position as in GT4Py: I, J, K as far as present, then data."""
    present = [label for label in _CARTESIAN if label in dimensions]
    dims = (*present, *(str(number) for number in range(len(dimensions) - len(present))))
    # An array of one element has the layout of all arrays with these dims.
    return _native.empty((1,) * len(dims), "uint8", backend=name, dims=dims, device="cpu").layout


def _has_layout(strides: tuple[int, ...], layout: tuple[int, ...]) -> bool:
    """Return whether the strides decrease in the order of the layout."""
    ordered = [stride for _, stride in sorted(zip(layout, strides, strict=False))]
    return len(strides) == len(layout) and ordered == sorted(ordered, reverse=True)
