"""What memory dlfield has allocated, and for what."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dlfield._native import _memory_report, _trace_allocations
from dlfield.interop.warn import callers_line

__all__ = ["MemoryBlock", "MemoryReport", "memory_report", "record_allocation", "trace_lines"]

# The lines of `trace_lines`, by the address of the block; None while it is off.
_lines: dict[int, str] | None = None


class MemoryBlock(NamedTuple):
    """A block of memory that dlfield has allocated and not freed."""

    #: Address of the first byte.
    address: int
    #: Bytes of the block.
    nbytes: int
    #: Bytes of it that belong to no element; None if the allocation had no field.
    padding: int | None
    #: Device of the memory, as text.
    device: str
    #: The labels of the field that it was allocated for; None if that is not known.
    dims: tuple[str, ...] | None
    #: How many tensors, views and exports to other libraries share it.
    owners: int
    #: Whether another library had access to it by DLPack, or other processes by `Tensor.share`.
    exported: bool
    #: The extents of the field that it was allocated for; None if that is not known.
    shape: tuple[int, ...] | None
    #: The name of its element type; None if that is not known.
    dtype: str | None
    #: The line that allocated it, as "file.py:12", since `trace_lines`; else None.
    place: str | None


class MemoryReport(NamedTuple):
    """Live memory of dlfield, from `memory_report`; its text is a table."""

    #: Blocks of more than 64 KiB, those for their alignment included, and all blocks on devices, the largest first.
    blocks: tuple[MemoryBlock, ...]
    #: How many smaller blocks there are. They are not listed: to list them would take as long as to allocate them.
    small_blocks: int
    #: Their bytes.
    small_nbytes: int
    #: Bytes of all live blocks, by the counters of the allocator. More than is listed only while freed memory waits for
    #: the work of a device, or for other processes that have it open.
    nbytes: int
    #: Bytes of freed blocks that are kept for reuse.
    cached_nbytes: int

    @property
    def padding(self) -> int:
        """Bytes of the listed blocks that belong to no element, as far as it is known."""
        return sum(block.padding or 0 for block in self.blocks)

    def __str__(self) -> str:
        large = f"{len(self.blocks)} large block{'s' * (len(self.blocks) != 1)}"
        small = f"{self.small_blocks} small one{'s' * (self.small_blocks != 1)} of together {self.small_nbytes:,} bytes"
        free = f"{self.cached_nbytes:,} bytes are free for reuse"
        text = f"{self.nbytes:,} bytes are in use, in {large} and {small}; {free}."
        head = ("address", "bytes", "padding", "shape", "dtype", "dims", "device", "owners", "exported", "allocated by")
        rows: list[tuple[str, ...]] = [head, *map(_row, self.blocks)]
        if not any(block.place for block in self.blocks):
            rows = [row[:-1] for row in rows]
        return "\n".join([text, *(_aligned(rows) if self.blocks else ())])


def _row(block: MemoryBlock) -> tuple[str, ...]:
    return (
        hex(block.address),
        f"{block.nbytes:,}",
        "?" if block.padding is None else f"{block.padding:,}",
        "?" if block.shape is None else str(block.shape),
        block.dtype or "?",
        " ".join(block.dims or "?"),
        block.device,
        str(block.owners),
        "yes" if block.exported else "no",
        block.place or "",
    )


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterable[str]:
    """Return the rows of a table with columns of equal width."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def memory_report() -> MemoryReport:
    """Return the memory that dlfield has allocated and not freed, in this process.

    Memory of other libraries and processes is not dlfield's, nor is shared memory on the host; that on a device is a
    block of the process that called `Tensor.share`. Other threads may allocate meanwhile.

    Example
    -------
    >>> import dlfield as dl
    >>> field = dl.zeros((100, 100, 10), dims="KJI", alignment_size=64)
    >>> [found] = [block for block in dl.memory_report().blocks if block.address == field.block.ptr]
    >>> found.nbytes, found.padding, found.dims, found.owners
    (1280000, 480000, ('K', 'J', 'I'), 1)
    """
    found, (small_blocks, small_nbytes), (_, large_nbytes), cached_nbytes = _memory_report()
    blocks = [
        MemoryBlock(
            address,
            nbytes,
            None if field is None else nbytes - field[0],
            device,
            None if field is None else tuple(field[3]),
            owners,
            exported,
            None if field is None else tuple(field[1]),
            None if field is None else field[2],
            None if _lines is None else _lines.get(address),
        )
        for address, nbytes, device, owners, exported, field in found
    ]
    blocks.sort(key=lambda block: (-block.nbytes, block.address))
    return MemoryReport(tuple(blocks), small_blocks, small_nbytes, large_nbytes + small_nbytes, cached_nbytes)


def trace_lines(on: bool = True) -> None:
    """Have `memory_report` name the line that allocated each block, for later allocations; False ends it.

    Meanwhile each new field takes some microseconds longer.

    Example
    -------
    >>> import dlfield as dl
    >>> dl.memory.trace_lines()
    >>> field = dl.zeros((100, 100, 10))
    >>> [block.place is None for block in dl.memory_report().blocks if block.address == field.block.ptr]
    [False]
    >>> dl.memory.trace_lines(False)
    """
    global _lines
    _lines = {} if on else None
    _trace_allocations(on)


def record_allocation(address: int) -> None:
    """Keep the line that has allocated a block; the compiled module calls it since `trace_lines`."""
    if _lines is not None:
        _lines[address] = callers_line()
