"""The messages of an exchange: which views of which fields are copied to which bytes of which message."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

from dlfield._native import Tensor, empty, from_dlpack
from dlfield.mpi._fields import Field, Specification
from dlfield.mpi._geometry import Neighbours, Slices, Widths
from dlfield.mpi._shared import Bytes, Pair

# Bytes before the elements of a message, so that these are aligned as the buffer is. Both sides compare them.
HEADER = 64
_MAGIC = b"dlfield1"
_FIELDS, _SHARED, _STOPPED = b"fields  ", b"shared  ", b"stopped "

View: TypeAlias = tuple[Tensor, int, Slices]


class Part(NamedTuple):
    """Points of one field in one message."""

    field: int
    key: Slices
    # Their bytes in the message.
    start: int
    nbytes: int


@dataclass
class Message:
    """What one neighbour gets and sends, and the views of the buffers for it."""

    rank: int
    sent: list[Part]
    received: list[Part]
    # The version of the buffers that the views are of, and the views for even and for odd exchanges.
    version: int = -1
    packs: tuple[list[View], list[View]] = ([], [])
    unpacks: tuple[list[View], list[View]] = ([], [])

    @cached_property
    def room(self) -> int:
        """Bytes that a buffer needs for either direction."""
        return HEADER + max(sum(part.nbytes for part in parts) for parts in (self.sent, self.received))

    @cached_property
    def nbytes(self) -> int:
        """Bytes of the elements to send."""
        return sum(part.nbytes for part in self.sent)


@dataclass
class Plan:
    """An exchange of fields with these properties."""

    # Of a message with the fields, and of one that says that they are in shared memory.
    header: bytes
    shared_header: bytes
    messages: list[Message]
    # From one part of a field into another, where the grid wraps to this process itself.
    copies: list[tuple[int, Slices, Slices]]
    # What all processes have to have in common, in words.
    text: str

    @cached_property
    def nbytes(self) -> int:
        """Bytes of the elements that this process sends."""
        return sum(message.nbytes for message in self.messages)


class Buffers:
    """The memory for the messages with one neighbour, reused by all exchanges; it grows to the largest message.

    With shared memory its pages are not used, apart from the first one.
    """

    def __init__(self) -> None:
        self.version = 0
        self.send = self.receive = _bytes(HEADER)
        self.outgoing: Pair = (self.send, self.send)
        self.incoming: Pair = (self.receive, self.receive)
        self.shared = False
        self.grow(2 * HEADER)

    def grow(self, nbytes: int) -> None:
        """Make room for messages of this size, in both directions."""
        if nbytes > len(self.send):
            self.send, self.receive = _bytes(nbytes), _bytes(nbytes)
            if not self.shared:
                self.use(None)

    def use(self, shared: tuple[Pair, Pair] | None) -> None:
        """Pack into and unpack from shared memory, or the messages."""
        self.version += 1
        self.shared = shared is not None
        self.outgoing, self.incoming = shared or ((self.send, self.send), (self.receive, self.receive))


def plan(fields: Sequence[Field], spec: Specification, widths: Widths, around: Neighbours) -> Plan:
    """Return the messages for these fields, with a halo of these widths.

    A field's points are in the message in the order of its memory, because that is the fastest to copy. Wider elements
    come first, so that no padding is needed for alignment.
    """
    order = sorted(range(len(fields)), key=lambda number: -fields[number].dtype.itemsize)
    messages = []
    for rank in around.ranks:
        sent, received = _Parts(), _Parts()
        for number in order:
            shape, itemsize = fields[number].shape, fields[number].dtype.itemsize
            for offset in around.sent(rank):
                if shape.sends(offset, widths):
                    sent.add(number, shape.sent(offset, widths), itemsize)
            for offset in around.received(rank):
                if shape.needs(offset, widths):
                    received.add(number, shape.received(offset, widths), itemsize)
        messages.append(Message(rank, sent.parts, received.parts))
    copies = [
        # What this process would send to itself at an offset, it receives from the opposite one.
        (number, into.shape.received(tuple(-step for step in offset), widths), into.shape.sent(offset, widths))
        for number, into in enumerate(fields)
        for offset in around.sent(around.rank)
        if into.shape.sends(offset, widths)
    ]
    text = "; ".join(f"field {number}: {each.describe(spec.dims)}" for number, each in enumerate(fields))
    text = f"{len(fields)} fields, halo {widths}; {text}"
    digest = blake2b(text.encode(), digest_size=16).digest()
    return Plan(_header(_FIELDS, digest), _header(_SHARED, digest), messages, copies, text)


def stopped(rank: int) -> bytes:
    """Return the message that tells a neighbour that this exchange has failed first on `rank`."""
    return _header(_STOPPED, rank.to_bytes(16, "little"))


def stopped_by(header: bytes) -> int | None:
    """Return the rank in a message of `stopped`, None for other messages."""
    return int.from_bytes(header[16:32], "little") if header[8:16] == _STOPPED else None


def digest_of(header: bytes) -> bytes:
    """Return the values that are equal on all processes if they exchange the same."""
    return header[16:32]


def make_views(message: Message, buffers: Buffers, fields: Sequence[Field]) -> None:
    """Make views of the buffers with the shapes of the parts, unless they are there already."""
    if message.version != buffers.version:
        even, odd = ([_view(each, part, fields[part.field]) for part in message.sent] for each in buffers.outgoing)
        message.packs = even, odd
        even, odd = ([_view(each, part, fields[part.field]) for part in message.received] for each in buffers.incoming)
        message.unpacks = even, odd
        message.version = buffers.version


class _Parts:
    """Parts one after the other."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.end = HEADER

    def add(self, number: int, key: Slices, itemsize: int) -> None:
        nbytes = itemsize * math.prod(part.stop - part.start for part in key)
        if nbytes:
            self.parts.append(Part(number, key, self.end, nbytes))
            self.end += nbytes


def _view(buffer: Bytes, part: Part, described: Field) -> View:
    extents = [each.stop - each.start for each in part.key]
    by_stride = [0] * len(extents)
    for axis, rank in enumerate(described.layout):
        by_stride[rank] = extents[axis]
    elements: Any = buffer[part.start : part.start + part.nbytes].view(described.dtype)
    view = from_dlpack(elements.reshape(by_stride).transpose(described.layout), dims=described.dims)
    return view, part.field, part.key


def _bytes(nbytes: int) -> Bytes:
    """Return uninitialized bytes on a boundary of 64."""
    return empty((nbytes,), "uint8").to_numpy()


def _header(kind: bytes, digest: bytes) -> bytes:
    return (_MAGIC + kind + digest).ljust(HEADER, b"\0")
