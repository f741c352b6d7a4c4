"""What memory dlfield has allocated, and for what."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dlfield._native import _memory_report

__all__ = ["MemoryBlock", "MemoryReport", "memory_report"]


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
    #: The labels that were stated when it was allocated.
    dims: tuple[str, ...] | None
    #: How many tensors, views and exports to other libraries share it.
    owners: int
    #: Whether another library had access to it by DLPack, or other processes by `Tensor.share`.
    exported: bool


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
        rows = [("address", "bytes", "padding", "device", "dims", "owners", "exported")]
        for block in self.blocks:
            padding = "?" if block.padding is None else f"{block.padding:,}"
            dims = "" if block.dims is None else ",".join(block.dims)
            exported = "yes" if block.exported else "no"
            rows.append(
                (hex(block.address), f"{block.nbytes:,}", padding, block.device, dims, str(block.owners), exported)
            )
        total = f"{self.nbytes:,} bytes: {self.small_nbytes:,} in small blocks ({self.small_blocks}), the rest in the"
        text = f"{total} blocks below ({len(self.blocks)}); {self.cached_nbytes:,} bytes kept for reuse"
        return "\n".join([text, *(_aligned(rows) if self.blocks else ())])


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
            None if elements is None else nbytes - elements,
            device,
            None if dims is None else tuple(dims),
            owners,
            exported,
        )
        for address, nbytes, elements, device, dims, owners, exported in found
    ]
    blocks.sort(key=lambda block: (-block.nbytes, block.address))
    return MemoryReport(tuple(blocks), small_blocks, small_nbytes, large_nbytes + small_nbytes, cached_nbytes)
