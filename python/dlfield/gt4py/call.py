"""One call of a wrapped stencil: imports the arguments, checks them, and runs the compiled stencil."""

import time
from collections.abc import Hashable, Mapping
from enum import IntEnum
from typing import Any

import numpy as np

from dlfield import _native
from dlfield._native import DTypeError
from dlfield.gt4py.domain import Ints, check, differing_origins, field_origins, given_domain, largest_domain
from dlfield.gt4py.export import Export, unaccessed, writable_array
from dlfield.gt4py.registry import registered_layout
from dlfield.gt4py.signatures import Options, StencilSignature
from dlfield.interop.warn import called_by_others, warn
from dlfield.kernels.annotations import gt4py_dims

__all__ = ["Call"]

# Largest number of combinations of shapes, strides, origins and types whose domain and origins are cached. A program
# has a few; the limit bounds the memory if a program keeps passing new ones.
_CACHE_SIZE = 256


class Call:
    """Replaces the stencil object in the stencil's `__call__`, and runs the stencil on the memory of any arrays."""

    # A stencil for the host gets NumPy arrays; `GpuCall` differs.
    _device = "cpu"
    _export: Export = staticmethod(_native.as_numpy)
    _export_readonly: Export = staticmethod(writable_array)

    def __init__(self, stencil: Any, options: Options) -> None:
        self.field_info: dict[str, Any] = stencil.field_info
        self.parameter_info: dict[str, Any] = stencil.parameter_info
        self._domain_info = stencil.domain_info
        self._name = stencil.options["name"]
        self._run = stencil.run
        # The layout of each field that is fast for the backend.
        self._layouts = {
            name: registered_layout(stencil.backend, gt4py_dims(info)).layout
            for name, info in self.field_info.items()
            if info.access
        }
        self._unaccessed = [name for name in self.field_info if name not in self._layouts]
        self._in_place = options.on_mismatch == "raise"
        self._takes = StencilSignature(self._name, self.field_info, self._layouts, self._device, options)
        self._signature = self._takes.signature
        self._has_labels = bool(options.labels)
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
        self, _domain_: Any, _origin_: Mapping[str, Any], exec_info: dict[str, Any] | None, **arguments: Any
    ) -> None:
        """Replace `StencilObject.run`, which frozen stencils and models call."""
        missing = [name for name in self.parameter_info if name not in arguments]
        if missing:
            raise TypeError(f'stencil "{self._name}": the scalar "{missing[0]}" of run() is missing')
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
        unused: dict[str, Any] = {}
        for name in self._unaccessed:
            value = self._takes.translated(name, fields.pop(name, None))
            unused[name] = unaccessed(value, self._takes.dims[name], self._device, self._export_readonly)
        if self._has_labels:
            fields = {name: self._takes.translated(name, value) for name, value in fields.items()}
        try:
            binding = self._signature.bind(**fields)
        except (TypeError, ValueError) as error:
            self._takes.explain(fields, error)
            raise
        with binding as bound:
            arrays, geometry = _native._stencil_arguments(bound, self._export, self._export_readonly)
            key: Hashable = (geometry, domain, origin, validate, *map(type, parameters.values()))
            try:
                resolved = self._resolved.get(key)
            except TypeError:
                key = (geometry, _hashable(domain), _hashable(origin), validate, *map(type, parameters.values()))
                resolved = self._resolved.get(key)
            if resolved is None:
                resolved = self._resolve(bound, parameters, domain, origin, validate)
                if len(self._resolved) >= _CACHE_SIZE:
                    self._resolved.clear()
                self._resolved[key] = resolved
            sizes, origins, enums = resolved
            for name in enums:
                parameters[name] = self.parameter_info[name].dtype.type(parameters[name].value)
            self._run(_domain_=sizes, _origin_=origins, exec_info=exec_info, **arrays, **parameters, **unused)

    def _resolve(
        self, bound: _native.BoundCall, parameters: dict[str, Any], domain: Any, origin: Any, validate: bool
    ) -> tuple[Ints, dict[str, Ints], list[str]]:
        """Return the domain and the origins of a call, checked if `validate`, and the scalars that are enumerators."""
        shapes = {name: bound[name].shape for name in self._layouts}
        array_origins = {name: bound[name].origin for name in self._layouts}
        origins = field_origins(self.field_info, array_origins, origin)
        if domain is None:
            halos = {name: bound[name].halo for name in self._layouts}
            sizes = largest_domain(self.field_info, shapes, origins, halos)
        else:
            sizes = given_domain(domain)
        if validate:
            check(self.field_info, self._domain_info, shapes, origins, sizes)
            self._check_parameters(parameters)
            if origin is None:
                self._warn_of_origins(shapes, origins)
            if self._in_place:
                self._warn_of_layouts(bound)
        enums = [name for name, info in self.parameter_info.items() if _is_enum(parameters[name], info)]
        return sizes, origins, enums

    def _check_parameters(self, parameters: dict[str, Any]) -> None:
        for name, info in self.parameter_info.items():
            found = type(parameters[name])
            if info.access and np.dtype(found) != info.dtype and not _is_enum(parameters[name], info):
                raise DTypeError(f'scalar "{name}": expected {info.dtype}, got {found.__name__}')

    def _warn_of_origins(self, shapes: Mapping[str, Ints], origins: Mapping[str, Ints]) -> None:
        found = differing_origins(self.field_info, shapes, origins)
        if found is not None:
            one, other, common = found
            warn(
                f'field "{other}": origin: {origins[other]}, and field "{one}" of the same extents has {origins[one]}; '
                f"the stencil pairs the points at the origins: give both one origin, as in origin={common}"
            )

    def _warn_of_layouts(self, bound: _native.BoundCall) -> None:
        for name, layout in self._layouts.items():
            field = bound[name]
            by_rank = sorted(zip(layout, field.shape, field.strides, strict=True))
            strides = [abs(stride) for _, size, stride in by_rank if size > 1]
            if strides != sorted(strides, reverse=True):
                warn(
                    f'field "{name}": layout: {field.layout} for dims {field.dims}; fast is {layout}: allocate with '
                    "backend=, or wrap with on_mismatch='copy'"
                )


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
        try:
            return tuple(_hashable(each) for each in value)
        except TypeError:
            # No sequence, and equal to no earlier value: `_resolve` raises the error.
            return object()
    found: Hashable = value
    return found
