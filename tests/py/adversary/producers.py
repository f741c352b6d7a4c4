"""Hostile arrays of every protocol: each callback acts before it answers, and the answer may be a lie."""

from __future__ import annotations

import array
import mmap
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
import torch
import xarray

import dlfield as dl
from adversary.memory import Memory, fill
from adversary.values import Trap, entries_of, integer, number, text
from fakes import exchange_type
from fakes_interfaces import FakeBuffer, interface_of

if TYPE_CHECKING:
    from adversary.case import Case


def fresh(case: Case) -> Any:
    """A NumPy array of the case's shape and element type; now and then of others."""
    shape, dtype = case.shape, case.dtype
    if case.rng.random() < 0.05:
        shape = case.rng.choice(((), (0,), (4,), (2, 2), (1, 3000)))
    if case.rng.random() < 0.05:
        dtype = case.rng.choice(("f4", "i8", "c16", "?", "f2", "u1", ">f8"))
    made = np.empty(shape, dtype, order=case.rng.choice("CCCF"))
    return fill(made)


def numpy_array(case: Case) -> Any:
    return case.keep(fresh(case))


def read_only_array(case: Case) -> Any:
    made = numpy_array(case)
    made.setflags(write=False)
    return made


# What an object may state beside its memory; each is a property, a method or a value.
METADATA: dict[str, Callable[[Any], Any]] = {
    "__gt_dims__": lambda case: labels_of(case),
    "dims": lambda case: labels_of(case),
    "__gt_origin__": lambda case: entries_of(case, [0] * len(case.shape)),
    "default_origin": lambda case: entries_of(case, [0] * len(case.shape)),
    "halo": lambda case: entries_of(case, [(0, 0)] * len(case.shape)),
    "origin": lambda case: entries_of(case, [0] * len(case.shape)),
}


def labels_of(case: Case) -> Any:
    return entries_of(case, [text(case, label) for label in "IJK"[: len(case.shape)]])


def acting(name: str, answer: Callable[[Any], Any]) -> property:
    """A property that acts, then answers for `self`."""

    def get(self: Any) -> Any:
        self.case.act(name)
        return self.case.true(answer(self))

    return property(get)


def acting_method(name: str, answer: Callable[..., Any]) -> Callable[..., Any]:
    """A method that acts, then answers for `self` and its arguments."""

    def method(self: Any, *arguments: Any, **keywords: Any) -> Any:
        self.case.act(name)
        return self.case.true(answer(self, *arguments, **keywords))

    method.__name__ = name
    return method


class Descriptor:
    """A descriptor whose `__get__` acts: classes look it up themselves, and may remember what they found."""

    def __init__(self, case: Case, value: Any) -> None:
        self.case, self.value = case, value

    def __get__(self, instance: Any, owner: Any) -> Any:
        self.case.act("__get__")
        return self.case.true(self.value)


class Meta(type):
    """A metaclass whose attribute access acts."""

    def __getattribute__(cls, name: str) -> Any:
        case = type.__getattribute__(cls, "class_case")
        if not name.startswith("__") or name.startswith(("__dl", "__array", "__gt", "__cuda")):
            case.act(f"metaclass.{name}")
        return type.__getattribute__(cls, name)

    def __instancecheck__(cls, instance: Any) -> bool:
        type.__getattribute__(cls, "class_case").act("__instancecheck__")
        return type.__instancecheck__(cls, instance)


def build(case: Case, base: tuple[type, ...], protocol: dict[str, Any]) -> type[Any]:
    """A class with a protocol, and by chance metadata, a metaclass, a destructor, or attribute access that acts."""
    rng = case.rng
    namespace = dict(protocol)
    for name, answer in METADATA.items():
        if rng.random() < 0.15:
            form = rng.choice((acting, acting_method))
            namespace[name] = form(name, lambda self, *_, answer=answer: answer(self.case))
    if rng.random() < 0.3:
        namespace["__del__"] = lambda self: hasattr(self, "case") and self.case.act("__del__", final=True)
    if rng.random() < 0.1:

        def getattribute(self: Any, name: str) -> Any:
            if name not in ("case", "memory", "kept", "__dict__", "__class__"):
                object.__getattribute__(self, "case").act(f"__getattribute__ {name}")
            return base_of(self, name)

        base_of = base[0].__getattribute__ if base else object.__getattribute__
        namespace["__getattribute__"] = getattribute
    elif rng.random() < 0.1:

        def missing(self: Any, name: str) -> Any:
            if name != "case":
                vars(self)["case"].act(f"__getattr__ {name}") if "case" in vars(self) else None
            raise AttributeError(name)

        namespace["__getattr__"] = missing
    if rng.random() < 0.1:
        namespace["__class__"] = acting("__class__", lambda _self: rng.choice((np.ndarray, torch.Tensor, dl.Tensor)))
    if rng.random() < 0.1 and not base:
        return Meta("Hostile", base, {**namespace, "class_case": case})
    return type("Hostile", base, namespace)


def made(case: Case, kind: type[Any], **attributes: Any) -> Any:
    """An instance, a participant by chance."""
    found = kind()
    found.__dict__.update(attributes, case=case)
    return case.keep(found) if case.rng.random() < 0.3 else found


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
    kind = exchange_type(handing)
    if case.rng.random() < 0.4:
        table = kind.__dlpack_c_exchange_api__
        kind.__dlpack_c_exchange_api__ = Descriptor(case, table)
    found = kind()
    found.case = case
    return found


def array_interface(case: Case) -> Any:
    data = fresh(case)
    interface = interface_of(data)
    form = case.rng.random()
    if form < 0.2:
        interface["data"] = numpy_array(case)
    elif form < 0.3:
        interface["data"] = (integer(case, data.ctypes.data), bool(case.rng.random() < 0.2))
    if case.rng.random() < 0.3:
        interface["shape"] = tuple(integer(case, extent) for extent in data.shape)
    if case.rng.random() < 0.2:
        interface["strides"] = case.rng.choice((None, tuple(integer(case, step) for step in data.strides)))
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
        entry["data"] = numpy_array(case) if case.rng.random() < 0.5 else data
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


class Hook(Trap):
    """A callable that acts."""

    def __init__(self, case: Case, name: str, answer: Any = None) -> None:
        super().__init__(case)
        self.name, self.answer = name, answer

    def __call__(self, *_arguments: Any, **_keywords: Any) -> Any:
        self.case.act(self.name)
        return self.case.true(self.answer)


def array_method(case: Case) -> Any:
    protocol = {"__array__": acting_method("__array__", lambda _self, *_arguments, **_keywords: numpy_array(case))}
    return made(case, build(case, (), protocol))


def subclass_of_numpy(case: Case) -> Any:
    protocol: dict[str, Any] = {}
    if case.rng.random() < 0.3:
        protocol["__array_finalize__"] = lambda self, _other: getattr(self, "case", case).act("__array_finalize__")
    if case.rng.random() < 0.2:
        protocol["__dlpack__"] = acting_method("__dlpack__", lambda self, **k: np.ndarray.__dlpack__(self, **k))
    if case.rng.random() < 0.2:
        protocol["__array_ufunc__"] = acting_method("__array_ufunc__", lambda _self, *_a, **_k: NotImplemented)
    data = fresh(case)
    kind = build(case, (np.ndarray,), protocol)
    found = np.ndarray.__new__(kind, data.shape, data.dtype)
    found.__dict__["case"] = case
    np.copyto(found, data)
    return case.keep(found)


def torch_tensor(case: Case) -> Any:
    data = fresh(case)
    if data.dtype.byteorder == ">":
        data = data.astype("f8")
    found = torch.empty(data.shape, dtype=torch.from_numpy(data).dtype)
    found.copy_(torch.from_numpy(data))
    if case.rng.random() < 0.1 and found.is_floating_point():
        found.requires_grad_()
    return case.keep(found)


def subclass_of_torch(case: Case) -> Any:
    protocol: dict[str, Any] = {}
    if case.rng.random() < 0.5:
        protocol["__dlpack_c_exchange_api__"] = Descriptor(case, torch.Tensor.__dlpack_c_exchange_api__)
    if case.rng.random() < 0.5:

        def torch_function(cls: Any, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
            case.act("__torch_function__")
            return torch.Tensor.__torch_function__.__func__(cls, function, types, arguments, keywords or {})

        protocol["__torch_function__"] = classmethod(torch_function)
    protocol["__del__"] = lambda _self: case.act("__del__", final=True)
    found = torch_tensor(case).detach()
    return case.keep(found.as_subclass(type("Late", (torch.Tensor,), protocol)))


def jax_array(case: Case) -> Any:
    return case.keep(jnp.asarray(np.ones(case.shape, "f4")))


def buffer(case: Case) -> Any:
    """An object with the buffer protocol alone."""
    size = max(1, int(np.prod(case.shape)))
    data = np.ones(size, "f8")

    def mapped() -> Any:
        found = mmap.mmap(-1, data.nbytes)
        found.write(data.tobytes())
        return found

    def counting() -> Any:
        found = ActingBuffer(case, fresh(case).astype("f8").copy())
        case.exporters.append(found)
        return found

    kinds: list[Callable[[], Any]] = [
        lambda: case.keep(bytearray(data.tobytes())),
        lambda: case.keep(memoryview(bytearray(data.tobytes())).cast("d")),
        lambda: case.keep(array.array("d", data.tobytes())),
        lambda: data.tobytes(),
        lambda: case.keep(mapped()),
        counting,
    ]
    return case.rng.choice(kinds)()


class ActingBuffer(FakeBuffer):
    """A buffer that acts when it is requested and released."""

    def __init__(self, case: Case, data: Any) -> None:
        super().__init__(data)
        self.case = case

    @property
    def silent(self) -> bool:
        if "case" in vars(self):
            self.case.act("bf_getbuffer", final=True)
        return False

    @silent.setter
    def silent(self, _value: bool) -> None:
        pass

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if name == "released" and value and "case" in vars(self):
            self.case.act("bf_releasebuffer", final=True)


def data_array(case: Case) -> Any:
    return xarray.DataArray(numpy_array(case), dims=list("IJK"[: len(case.shape)]) if case.rng.random() < 0.9 else None)


def own_tensor(case: Case) -> Any:
    options = {"halo": ((0, 0),) * len(case.shape)} if case.rng.random() < 0.2 else {}
    return case.keep(dl.from_array(fresh(case), backend=case.rng.choice((None, "gtmc", "gt:cpu_ifirst")), **options))


def tensor_of(case: Case) -> Any:
    """A tensor on memory of another library."""
    return dl.from_dlpack(case.rng.choice((numpy_array, dlpack, torch_tensor, buffer, array_interface))(case))


def description(case: Case) -> Any:
    return dl.describe(
        case.rng.choice((numpy_array, torch_tensor, dlpack, own_tensor, array_interface, data_interface))(case)
    )


def nested(case: Case) -> Any:
    values: list[Any] = [number(case) for _ in range(3)]
    return case.keep(case.keep([values, values]) if case.rng.random() < 0.5 else values)


def scalar(case: Case) -> Any:
    return case.rng.choice((lambda: 2, lambda: 1.5, lambda: np.float64(2), lambda: True, lambda: number(case)))()


def junk(case: Case) -> Any:
    """Not an array, or one that is nothing but callbacks."""
    kind = build(case, (), {})
    return case.rng.choice(
        (lambda: None, lambda: "text", object, lambda: made(case, kind), lambda: type(made(case, kind)))
    )()


PRODUCERS: dict[Callable[[Any], Any], int] = {
    numpy_array: 14,
    read_only_array: 2,
    dlpack: 12,
    dlpack_of_numpy: 5,
    capsule: 3,
    exchange_api: 5,
    array_interface: 9,
    array_struct: 3,
    data_interface: 8,
    array_method: 5,
    subclass_of_numpy: 7,
    torch_tensor: 9,
    subclass_of_torch: 4,
    jax_array: 2,
    buffer: 5,
    data_array: 3,
    own_tensor: 7,
    tensor_of: 4,
    description: 6,
    nested: 3,
    scalar: 3,
    junk: 3,
}


def producer(case: Case) -> Any:
    """A hostile array, or an ordinary one that others change."""
    return case.rng.choices(list(PRODUCERS), list(PRODUCERS.values()))[0](case)


# Readers of their own: Rust functions write their argument, and NumPy's own objects have no metadata.
def writable(case: Case) -> Any:
    """An array to write to."""
    return case.rng.choice(
        (numpy_array, numpy_array, own_tensor, torch_tensor, dlpack, array_interface, data_interface)
    )(case)
