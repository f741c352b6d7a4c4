"""One call of a wrapped stencil: from any arrays to what the compiled stencil runs on."""

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

# Combinations of shapes, strides, origins and types whose domain and origins are remembered. A program has a few; one
# that comes with new ones all the time must not fill the memory.
_REMEMBERED = 256

_ACCESS: dict[int, Literal["r", "rw"]] = {
    1: "r",
    # The stencil leaves what is outside of the domain as it is, so a copy that stands in needs that too.
    2: "rw",
    3: "rw",
}


class Call:
    """Stands where a stencil's `__call__` expects the stencil, and runs it on the memory of whatever is passed.

    Fields that the stencil does not use are not looked at: it runs with None for those.
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
                    # Where nothing is copied, a slow layout is for `_resolve` to tell, once.
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
        """Take the place of `StencilObject._call_run`."""
        if exec_info is not None:
            exec_info["call_run_start_time"] = time.perf_counter()
        self._execute(field_args, parameter_args, domain, origin, validate_args, exec_info)
        if exec_info is not None:
            exec_info["call_run_end_time"] = time.perf_counter()

    @called_by_others
    def run(
        self, *, _domain_: Any, _origin_: Mapping[str, Any], exec_info: dict[str, Any] | None, **arguments: Any
    ) -> None:
        """Take the place of `StencilObject.run`, which frozen stencils call."""
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
                    # It is what the bound field describes: without labels, so in the stencil's order from index 0 on.
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
                if len(self._resolved) >= _REMEMBERED:
                    self._resolved.clear()
                self._resolved[key] = resolved
            sizes, origins, enums = resolved
            for name in enums:
                arrays[name] = self.parameter_info[name].dtype.type(arrays[name].value)
            self._run(_domain_=sizes, _origin_=origins, exec_info=exec_info, **arrays)

    def _resolve(
        self, bound: _native.Bound, parameters: dict[str, Any], domain: Any, origin: Any, validate: bool
    ) -> tuple[Ints, dict[str, Ints], list[str]]:
        """Return the domain and the origins of a call, checked if `validate`, and which scalars are enumerators."""
        shapes = {name: bound[name].shape for name in self._layouts}
        stated = {name: bound[name].origin for name in self._layouts}
        origins = field_origins(self.field_info, stated, origin)
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
    """Return the layout that is fast for the backend: what an allocation for it would have."""
    return _native.empty((2,) * info.ndim, backend=backend, dims=_dims(info)).layout


def _is_enum(value: Any, info: Any) -> bool:
    """Return whether `value` is an enumerator for a scalar that is an integer.

    The stencil gets the integer: GT4Py 1.2 replaces those of `gtscript.enum` in `_call_run`, whose place `Call` takes.
    """
    return isinstance(value, IntEnum) and info.access and info.dtype.kind in "iu"


def _hashable(value: Any) -> Hashable:
    """Return what a caller gave for origin or domain as a part of a key."""
    try:
        hash(value)
    except TypeError:
        if isinstance(value, Mapping):
            return tuple((str(name), _hashable(each)) for name, each in value.items())
        return tuple(_hashable(each) for each in value)
    found: Hashable = value
    return found


class _Lent:
    """Read-only memory that says it may be written: GT4Py's C++ asks for that, also of fields it only reads."""

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
    """Return an array on read-only memory for a stencil that does not write it."""
    return np.asarray(_Lent(field))
