"""Hostile arrays of each protocol: every callback acts before it answers, and the answer may be a lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

import dlfield as dl
from adversary.classes import Descriptor, Hook, acting, acting_method, build, fresh, labels_of, made, numpy_array
from adversary.memory import Memory
from adversary.values import entries_of, integer, text, true_integer
from fakes import exchange_type
from fakes_interfaces import interface_of

if TYPE_CHECKING:
    from adversary.case import Case


def _managed(case: Case, memory: Memory, **fields: Any) -> Any:
    fields.setdefault("version", case.rng.choice(((1, 0), (1, 1), (1, 3), None)))
    if case.rng.random() < 0.05:
        fields["null_deleter"] = False
        fields["strides"] = [case.rng.choice((0, -1, 2**40))] * memory.data.ndim
        fields["shape"] = [0] * memory.data.ndim
    if fields["version"] is not None and case.rng.random() < 0.15:
        fields["flags"] = case.rng.choice((1, 2, 3, 4))
    return memory.export(**fields)


def dlpack(case: Case) -> Any:
    memory = Memory(case, fresh(case).copy())
    old = case.rng.random() < 0.2

    def export(self: Any, *_arguments: Any, **keywords: Any) -> Any:
        if old and keywords:
            raise TypeError("__dlpack__() got an unexpected keyword argument")
        capsule = _managed(case, self.memory).capsule()
        case.holders.append([capsule])
        return capsule

    protocol = {"__dlpack__": acting_method("__dlpack__", export)}
    if case.rng.random() < 0.9:
        protocol["__dlpack_device__"] = acting_method("__dlpack_device__", lambda _self: (1, integer(case, 0)))
    return made(case, build(case, (), protocol), memory=memory)


def dlpack_of_numpy(case: Case) -> Any:
    """A producer that exports a NumPy array."""
    protocol = {
        "__dlpack__": acting_method("__dlpack__", lambda self, **keywords: self.kept.__dlpack__(**keywords)),
        "__dlpack_device__": acting_method("__dlpack_device__", lambda _self: (1, 0)),
    }
    return made(case, build(case, (), protocol), kept=fresh(case))


def capsule(case: Case) -> Any:
    return case.rng.choice(
        (
            lambda: _managed(case, Memory(case, fresh(case).copy())).capsule(),
            lambda: dl.from_array(fresh(case)).__dlpack__(),
            lambda: torch.ones(case.shape, dtype=torch.float64).__dlpack__(),
        )
    )()


class _Handing:
    """Stands for the tensor of `fakes.exchange_type`: each access to its address acts and exports a new one."""

    def __init__(self, case: Case, memory: Memory) -> None:
        self.case, self.memory = case, memory
        # Borrowed tensors point into it.
        self.borrowed: Any = None

    @property
    def address(self) -> int:
        self.case.act("managed_tensor_from_py_object", final=True)
        tensor = self.memory.export()
        tensor.handed_out = 1
        return tensor.address

    @property
    def managed(self) -> Any:
        self.case.act("dltensor_from_py_object", final=True)
        if self.borrowed is None:
            self.borrowed = self.memory.export()
        return self.borrowed.managed


def exchange_api(case: Case) -> Any:
    handing: Any = _Handing(case, Memory(case, fresh(case).copy()))
    # By chance all functions of the table fail: without an exception, or with one.
    fails = case.rng.random()
    kind = exchange_type(handing)
    if fails < 0.1:
        kind = exchange_type(None, silent=True)
    elif fails < 0.2:
        kind = exchange_type(handing, error=ValueError("a table fails"))
    if case.rng.random() < 0.4:
        table = kind.__dlpack_c_exchange_api__
        kind.__dlpack_c_exchange_api__ = Descriptor(case, table)
    found = kind()
    found.case = case
    return found


def array_interface(case: Case) -> Any:
    data = fresh(case)
    interface = interface_of(data)
    # How large an array is that it names, dlfield sees; what is at an address, only the producer knows. NumPy itself,
    # which reads for GT4Py's functions, does not look.
    names_array = case.rng.random() < 0.2 and not case.entry.name.startswith("gt4py.")
    size = integer if names_array else true_integer
    if names_array:
        interface["data"] = case.keep(data.copy())
    elif case.rng.random() < 0.2:
        interface["data"] = (true_integer(case, data.ctypes.data), bool(case.rng.random() < 0.2))
    if case.rng.random() < 0.3:
        interface["shape"] = tuple(size(case, extent) for extent in data.shape)
    if case.rng.random() < 0.2:
        interface["strides"] = case.rng.choice((None, tuple(size(case, step) for step in data.strides)))
    if case.rng.random() < 0.2:
        interface["typestr"] = text(case, interface["typestr"])
    if case.rng.random() < 0.3:
        case.keep(interface)
    answer = (lambda _self: interface) if case.rng.random() < 0.5 else (lambda _self: dict(interface))
    protocol = {"__array_interface__": acting("__array_interface__", answer)}
    return made(case, build(case, (), protocol), kept=data)


def array_struct(case: Case) -> Any:
    data = fresh(case)
    protocol = {"__array_struct__": acting("__array_struct__", lambda self: self.kept.__array_struct__)}
    return made(case, build(case, (), protocol), kept=data)


def data_interface(case: Case) -> Any:
    data = fresh(case)
    entry = interface_of(data)
    entry.pop("version")
    if case.rng.random() < 0.5:
        entry["data"] = case.keep(data.copy()) if case.rng.random() < 0.5 else data
    for hook in ("acquire", "touch", "release"):
        if case.rng.random() < 0.6:
            entry[hook] = Hook(case, hook)
    if case.rng.random() < 0.3:
        entry["dims"] = labels_of(case)
    if case.rng.random() < 0.3:
        entry["halo"] = entries_of(case, [(0, 0)] * data.ndim)
    if case.rng.random() < 0.4:
        case.keep(entry)
    key = case.rng.choice((None, "cpu", text(case, "cpu")))
    interface: dict[Any, Any] = {key: Hook(case, "buffer", entry) if case.rng.random() < 0.3 else entry}
    if case.rng.random() < 0.2:
        case.keep(interface)
    name = case.rng.choice(("__gt_data_interface__", "__gt_interface__"))
    return made(case, build(case, (), {name: acting(name, lambda _self: interface)}), kept=data)


def array_method(case: Case) -> Any:
    protocol = {"__array__": acting_method("__array__", lambda _self, *_arguments, **_keywords: numpy_array(case))}
    return made(case, build(case, (), protocol))
