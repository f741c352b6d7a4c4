"""One call of a wrapped stencil: imports the arguments, checks them, and runs the compiled stencil."""

import time
from collections.abc import Hashable, Mapping
from enum import IntEnum
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dlfield import _native
from dlfield._native import DTypeError
from dlfield._warn import called_by_others, warn
from dlfield.gt4py.domain import Ints, check, field_origins, given_domain, largest_domain

__all__ = ["Call"]

# Largest number of combinations of shapes, strides, origins and types whose domain and origins are cached. A program
# has a few; the limit bounds the memory if a program keeps passing new ones.
_CACHE_SIZE = 256

_ACCESS: dict[int, Literal["r", "rw"]] = {
    1: "r",
    # The stencil does not write outside of the domain, so a temporary needs the values there.
    2: "rw",
    3: "rw",
}


class Call:
    """Replaces the stencil object in the stencil's `__call__`, and runs the stencil on the memory of any arrays.

    Fields that the stencil does not use are not imported: the stencil gets None for them.
    """

    def __init__(self, stencil: Any, on_mismatch: Literal["raise", "copy"]) -> None:
        self.field_info: dict[str, Any] = stencil.field_info
        self.parameter_info: dict[str, Any] = stencil.parameter_info
        self._domain_info = stencil.domain_info
        self._run = stencil.run
        self._layouts = {name: _layout(info, stencil.backend) for name, info in self.field_info.items() if info.access}
        self._unused = dict.fromkeys(name for name in self.field_info if name not in self._layouts)
        self._in_place = on_mismatch == "raise"
        self._signature = _native.Signature(
            device="cpu",
            on_mismatch=on_mismatch,
            **{
                name: _native.FieldSpec(
                    self.field_info[name].dtype,
                    _dims(self.field_info[name]),
                    access=_ACCESS[int(self.field_info[name].access)],
                    # If nothing is copied, `_resolve` warns of a slow layout, once.
                    layout=None if self._in_place else layout,
                    shape=(*(None for _ in self.field_info[name].axes), *self.field_info[name].data_dims),
                )
                for name, layout in self._layouts.items()
            },
        )
        self._resolved: dict[Hashable, tuple[Ints, dict[str, Ints], list[str]]] = {}

    @called_by_others
    def _call_run(
        self,
        field_args: dict[str, Any],
        parameter_args: dict[str, Any],
        domain: Any,
        origin: Any,
        *,
        validate_args: bool = True,
        exec_info: dict[str, Any] | None = None,
    ) -> None:
        """Replace `StencilObject._call_run`."""
        if exec_info is not None:
            exec_info["call_run_start_time"] = time.perf_counter()
        self._execute(field_args, parameter_args, domain, origin, validate_args, exec_info)
        if exec_info is not None:
            exec_info["call_run_end_time"] = time.perf_counter()

    @called_by_others
    def run(
        self, *, _domain_: Any, _origin_: Mapping[str, Any], exec_info: dict[str, Any] | None, **arguments: Any
    ) -> None:
        """Replace `StencilObject.run`, which frozen stencils call."""
        parameters = {name: arguments.pop(name) for name in self.parameter_info}
        self._execute(arguments, parameters, _domain_, _origin_, True, exec_info)

    def _execute(
        self,
        fields: dict[str, Any],
        parameters: dict[str, Any],
        domain: Any,
        origin: Any,
        validate: bool,
        exec_info: dict[str, Any] | None,
    ) -> None:
        if self._unused:
            fields = {name: fields[name] for name in self._layouts}
        arrays: dict[str, Any] = {**self._unused, **parameters}
        found: list[Hashable] = []
        in_place = self._in_place
        with self._signature.bind(**fields) as bound:
            for name in self._layouts:
                value = fields[name]
                if in_place and type(value) is np.ndarray and value.flags.writeable:
                    # The bound field describes this array: it has no dims, so the stencil's order, and origin 0.
                    found.append((value.shape, value.strides))
                    arrays[name] = value
                    continue
                field = bound[name]
                found.append((field.shape, field.strides, field.origin))
                arrays[name] = _writable(field) if field.readonly else _native.as_numpy(field)
            key = (*found, _hashable(domain), _hashable(origin), validate, *map(type, parameters.values()))
            resolved = self._resolved.get(key)
            if resolved is None:
                resolved = self._resolve(bound, parameters, domain, origin, validate)
                if len(self._resolved) >= _CACHE_SIZE:
                    self._resolved.clear()
                self._resolved[key] = resolved
            sizes, origins, enums = resolved
            for name in enums:
                arrays[name] = self.parameter_info[name].dtype.type(arrays[name].value)
            self._run(_domain_=sizes, _origin_=origins, exec_info=exec_info, **arrays)

    def _resolve(
        self, bound: _native.Bound, parameters: dict[str, Any], domain: Any, origin: Any, validate: bool
    ) -> tuple[Ints, dict[str, Ints], list[str]]:
        """Return the domain and the origins of a call, checked if `validate`, and the scalars that are enumerators."""
        shapes = {name: bound[name].shape for name in self._layouts}
        array_origins = {name: bound[name].origin for name in self._layouts}
        origins = field_origins(self.field_info, array_origins, origin)
        sizes = largest_domain(self.field_info, shapes, origins) if domain is None else given_domain(domain)
        if validate:
            check(self.field_info, self._domain_info, shapes, origins, sizes)
            self._check_parameters(parameters)
            if self._in_place:
                self._warn_of_layouts(bound)
        enums = [name for name, info in self.parameter_info.items() if _is_enum(parameters[name], info)]
        return sizes, origins, enums

    def _check_parameters(self, parameters: dict[str, Any]) -> None:
        for name, info in self.parameter_info.items():
            found = type(parameters[name])
            if info.access and np.dtype(found) != info.dtype and not _is_enum(parameters[name], info):
                raise DTypeError(f'scalar "{name}": {found.__name__}; wanted is {info.dtype}')

    def _warn_of_layouts(self, bound: _native.Bound) -> None:
        for name, layout in self._layouts.items():
            field = bound[name]
            by_rank = sorted(zip(layout, field.shape, field.strides, strict=True))
            strides = [abs(stride) for _, size, stride in by_rank if size > 1]
            if strides != sorted(strides, reverse=True):
                warn(
                    f'field "{name}": layout: {field.layout} for dims {field.dims}; fast is {layout}: allocate with '
                    f"backend=, or wrap with on_mismatch='copy'"
                )


def _dims(info: Any) -> tuple[str, ...]:
    return (*info.axes, *(str(number) for number in range(len(info.data_dims))))


def _layout(info: Any, backend: str) -> Ints:
    """Return the layout that is fast for the backend: that of an allocation for it."""
    return _native.empty((2,) * info.ndim, backend=backend, dims=_dims(info)).layout


def _is_enum(value: Any, info: Any) -> bool:
    """Return whether `value` is an enumerator for an integer scalar.

    The stencil gets the integer. GT4Py 1.2 converts those of `gtscript.enum` in `_call_run`, which `Call` replaces.
    """
    return isinstance(value, IntEnum) and info.access and info.dtype.kind in "iu"


def _hashable(value: Any) -> Hashable:
    """Return the caller's origin or domain as a part of a cache key."""
    try:
        hash(value)
    except TypeError:
        if isinstance(value, Mapping):
            return tuple((str(name), _hashable(each)) for name, each in value.items())
        return tuple(_hashable(each) for each in value)
    found: Hashable = value
    return found


class _WritableExport:
    """Read-only memory exported as writable: GT4Py's C++ requires that, also of fields that it only reads."""

    def __init__(self, field: _native.Descriptor) -> None:
        self.field = field
        self.__array_interface__ = {
            "version": 3,
            "shape": field.shape,
            "strides": field.strides,
            "typestr": field.dtype.str,
            "data": (field.ptr, False),
        }


def _writable(field: _native.Descriptor) -> npt.NDArray[Any]:
    """Return a writable array on read-only memory, for a stencil that does not write it."""
    return np.asarray(_WritableExport(field))
