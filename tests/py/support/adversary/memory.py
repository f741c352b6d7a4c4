"""Memory that is overwritten when it is released, so that a later use shows."""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from dlpack_structs import USED, capsule_name
from fakes import FakeTensor

if TYPE_CHECKING:
    from adversary.case import Case

# Bytes of freed memory: `pool` has glibc fill it so, and new memory with their complement.
FREED = 0xA5
NEW = FREED ^ 0xFF


def fill(values: Any) -> Any:
    """Fill with whole numbers from 1 to 9."""
    values[...] = _numbers(values.size).reshape(values.shape)
    return values


@functools.cache
def _numbers(size: int) -> np.ndarray[Any, Any]:
    return np.arange(size) % 9 + 1


def suspicious(values: np.ndarray[Any, Any]) -> str | None:
    """Why values cannot be those of an array of the adversary or computed from them, or None."""
    if values.dtype.kind == "b":
        raw = np.ascontiguousarray(values).view("u1")
        return "bool with a byte that is neither 0 nor 1" if bool((raw > 1).any()) else None
    if values.dtype.kind not in "fiu" or values.itemsize < 4:
        return None
    # Whole elements are compared at once, those of 16 bytes by halves.
    width = min(values.itemsize, 8)
    raw = np.ascontiguousarray(values).reshape(-1).view(f"u{width}")
    for byte, what in ((FREED, "freed"), (NEW, "uninitialized")):
        if bool((raw == int.from_bytes(bytes([byte]) * width)).any()):
            return f"{what} memory was read"
    return None


class Memory:
    """Memory of a producer, valid while a managed tensor on it lives."""

    def __init__(self, case: Case, data: Any) -> None:
        self.case = case
        self.data = data
        self.live = 0
        self.tensors: list[Exported] = []
        self.exported_before = False
        case.memories.append(self)

    def export(self, **fields: Any) -> Exported:
        """A new managed tensor on it."""
        if self.live == 0:
            fill(self.data)
        self.live += 1
        tensor = Exported(self, **fields)
        self.tensors.append(tensor)
        return tensor

    def release(self) -> None:
        """Overwrite it once nobody has a managed tensor."""
        self.live -= 1
        if self.live == 0:
            ctypes.memset(self.data.ctypes.data, FREED, self.data.nbytes)
        self.case.act("deleter", final=True)

    def findings(self) -> list[str]:
        """What is wrong with the use of the memory, at the end of the case."""
        found = []
        for tensor in self.tensors:
            # A capsule that was not consumed has no destructor here: it still owns its tensor.
            names = [capsule_name(capsule) for capsule in tensor.capsules]
            taken = sum(name == USED[tensor.name] for name in names) + tensor.handed_out
            if tensor.deleted != taken or taken > 1:
                found.append(f"a managed tensor was taken {taken} times and released {tensor.deleted} times")
        if self.tensors and self.live == 0 and bool((self.data.reshape(-1).view("u1") != FREED).any()):
            found.append("released memory was written")
        return found


class Exported(FakeTensor):
    """A managed tensor whose deleter acts."""

    def __init__(self, memory: Memory, **fields: Any) -> None:
        super().__init__(memory.data, **fields)
        self.memory = memory
        self.handed_out = 0

    def _count(self, address: int) -> None:
        super()._count(address)
        self.memory.release()
