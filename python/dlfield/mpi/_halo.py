"""`HaloExchange`."""

from collections.abc import Sequence
from typing import Any, NoReturn, Self

from mpi4py import MPI

from dlfield._native import Error, LayoutError, Tensor
from dlfield.mpi._agreement import duplicate, gathered, raise_together
from dlfield.mpi._channel import Channel
from dlfield.mpi._fields import Field, Specification, described, narrower, specification, tensor, yes_or_no
from dlfield.mpi._geometry import Widths, neighbours
from dlfield.mpi._lifetime import check_running
from dlfield.mpi._plan import Plan, make_views, plan

# Plans that are kept; a program has about as many as places that exchange.
_PLANS = 256


class HaloExchange:
    """Fills the halos of fields with the points of the neighbours in a Cartesian grid of processes.

    A call sends one message to each neighbour, with the points of all its fields, and fills edges and corners of their
    halos. All processes call it with corresponding fields. Halo points outside of the grid are left as they are.

    Parameters
    ----------
    comm : mpi4py.MPI.Cartcomm
        The grid of processes, from `Create_cart`. The exchange works on a duplicate of it.
    spec : Tensor, array or sequence of int
        The field of one process, with its halo: a field with dims and halo, such as those to exchange, or its extents
        along `dims`. The extents may differ between processes, the same along each row of the grid.
    dims : str or sequence of str, optional
        The exchanged dimensions, one label for each dimension of `comm`: "IJ", "lat lon", or a sequence.
    halo : int, sequence of int or pairs, or mapping, optional
        Widths of the halo: one number, or for each of `dims` a number or (lower, upper), also as a mapping by label. By
        default that of `spec`. One of them is above 0.
    periodic : bool, sequence of bool or mapping, optional
        Whether the first and the last process along a dimension are neighbours: one bool, or one for each of `dims`, or
        a mapping by label. By default as in `comm`.
    shared_memory : bool, optional
        Whether neighbours on the same machine pass the fields through memory that MPI lets them share, if it has enough
        of it. The message then says only that they are there.

    Raises
    ------
    TypeError
        `comm` has no Cartesian grid.
    Error
        On this process `DimsError` or `LayoutError` for a wrong argument, such as a halo wider than the domain; on all
        others, and if the processes disagree, `RankError`.

    Example
    -------
    >>> import dlfield as dl
    >>> from dlfield import mpi
    >>> from mpi4py import MPI
    >>> comm = MPI.COMM_SELF.Create_cart((1, 1), periods=(True, False))
    >>> field = dl.zeros((6, 6, 2), dims="IJK", halo=(1, 1, 0))
    >>> field[1, 1, 0] = 3.0
    >>> exchange = mpi.HaloExchange(comm, field, dims="IJ")
    >>> exchange(field)
    >>> float(field[5, 1, 0])
    3.0
    """

    __module__ = "dlfield.mpi"

    def __init__(
        self,
        comm: Any,
        spec: Any,
        dims: Sequence[str] = "IJ",
        *,
        halo: Any = None,
        periodic: Any = None,
        shared_memory: bool = True,
    ) -> None:
        check_running("HaloExchange")
        try:
            own, mine = _built(comm, spec, dims, halo, periodic, shared_memory)
            processes, _, coordinates = own.Get_topo()
            self._around = neighbours(processes, coordinates, mine.periodic, own.Get_cart_rank)
            self._channel = Channel(own, self._around.ranks, bool(shared_memory))
        except MPI.Exception as failed:
            raise Error(
                f"comm: MPI can't make others from it: {failed}; fix, if there are too many: free() of exchanges that "
                "are not used any more"
            ) from failed
        self._spec = mine
        # By the properties of the fields.
        self._plans: dict[Any, tuple[Plan, list[Field]]] = {}
        self._pending: tuple[Plan, list[Tensor]] | None = None
        self._messages = self._bytes = 0

    @property
    def dims(self) -> tuple[str, ...]:
        """The exchanged dimensions."""
        return self._spec.dims

    @property
    def halo(self) -> Widths:
        """The widths (lower, upper) of the halo along each of `dims`."""
        return self._spec.widths

    @property
    def periodic(self) -> tuple[bool, ...]:
        """Whether the grid wraps along each of `dims`."""
        return self._spec.periodic

    @property
    def neighbours(self) -> tuple[int, ...]:
        """The ranks that get a message in every exchange."""
        return self._around.ranks

    @property
    def messages(self) -> int:
        """The number of messages with fields that this process has sent."""
        return self._messages

    @property
    def bytes(self) -> int:
        """The bytes of the elements in these messages. A message has a header of 64 bytes in addition."""
        return self._bytes

    def cost(self, *fields: Any, halo: Any = None) -> tuple[int, int]:
        """Return the number of messages and bytes that an exchange of these fields sends from this process.

        Nothing is sent.
        """
        _, _, found = self._plan(fields, halo)
        return len(found.messages), found.nbytes

    def __call__(self, *fields: Any, halo: Any = None) -> None:
        """Fill the halos of the fields.

        Parameters
        ----------
        *fields
            Tensors, or writable arrays in host memory, in the same order on all processes. Layouts, element types,
            halos and other dimensions may differ between the fields, not between the processes. A field may be
            staggered: one with an extent more along a dimension has in its last point the first one of the process
            above, and that point is not exchanged. A halo of 0 counts as that of the specification.
        halo : int, sequence of int or pairs, or mapping, optional
            Widths for this call, as for `HaloExchange`; at most those.

        Raises
        ------
        Error
            For a wrong argument the same errors as for `HaloExchange`, on every process. After an error of an exchange
            on which the processes had agreed before, this object can no longer be used.
        """
        self.start(*fields, halo=halo)
        self.finish()

    def start(self, *fields: Any, halo: Any = None) -> Self:
        """Send the points of the fields, and return while the messages travel; `finish` fills the halos.

        Until then the halos must not be used. The other points may change: they were copied. The arguments are those
        of a call.
        """
        tensors: list[Tensor] = []
        known: list[Field] = []
        found: Plan | None = None
        error: Exception | None = None
        if self._pending is not None:
            self._channel.stop()
            raise Error("start: the last exchange is not finished; call finish first")
        try:
            tensors, known, found = self._plan(fields, halo)
            for message in found.messages:
                self._channel.buffers[message.rank].grow(message.room)
        except Exception as wrong:
            error, found = wrong, None
        self._channel.open(found, error)
        assert found is not None
        try:
            for message in found.messages:
                make_views(message, self._channel.buffers[message.rank], known)
            self._send(found, tensors)
        except BaseException:
            self._channel.stop()
            raise
        self._pending = found, tensors
        return self

    def finish(self) -> None:
        """Wait for the messages of the neighbours and fill the halos."""
        if self._pending is None:
            raise Error("finish: no exchange was started")
        (found, tensors), self._pending = self._pending, None
        turn = self._channel.turn
        try:
            for index in self._channel.received(found):
                for view, number, key in found.messages[index].unpacks[turn]:
                    tensors[number][key] = view
        except BaseException:
            self._channel.stop()
            raise

    def free(self) -> None:
        """Release the communicator and the buffers. Collective; the exchange can't be used afterwards.

        Finishes an exchange that was started before.
        """
        if self._pending is not None:
            self.finish()
        self._channel.free()
        self._plans = {}

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied or pickled: two objects would send over one communicator at a time."""
        raise TypeError("HaloExchange: can't be copied or pickled; build another one on all processes")

    def __repr__(self) -> str:
        return (
            f"HaloExchange(dims={self.dims}, halo={self.halo}, periodic={self.periodic}, neighbours={self.neighbours})"
        )

    def _plan(self, fields: Sequence[Any], halo: Any) -> tuple[list[Tensor], list[Field], Plan]:
        if not fields:
            raise LayoutError("fields: expected at least one, got none")
        tensors = [tensor(field, number) for number, field in enumerate(fields)]
        widths = self._spec.widths if halo is None else narrower(halo, self._spec)
        key = (widths, *[(each.shape, each.dims, each.halo, each.layout, each.dtype) for each in tensors])
        if key not in self._plans:
            found = [described(each, number, self._spec, widths) for number, each in enumerate(tensors)]
            if len(self._plans) >= _PLANS:
                self._plans.clear()
            self._plans[key] = plan(found, self._spec, widths, self._around), found
        made, found = self._plans[key]
        return tensors, found, made

    def _send(self, found: Plan, tensors: Sequence[Tensor]) -> None:
        for message in found.messages:
            for view, number, key in message.packs[self._channel.turn]:
                view[...] = tensors[number][key]
            self._channel.send(message.rank, found, message.nbytes)
        self._messages += len(found.messages)
        self._bytes += found.nbytes
        # While the messages travel.
        for number, into, source in found.copies:
            tensors[number][into] = tensors[number][source]


def _built(
    comm: Any, spec: Any, dims: Sequence[str], halo: Any, periodic: Any, shared_memory: Any
) -> tuple[MPI.Cartcomm, Specification]:
    """Return a communicator for an exchange, and its checked arguments. Collective, also in its errors."""
    own = duplicate(comm)
    processes, wraps, coordinates = own.Get_topo()
    mine, error = None, None
    try:
        yes_or_no(shared_memory, "shared_memory")
        mine = specification(spec, dims, halo, periodic, processes, [bool(wrapped) for wrapped in wraps])
    except Exception as wrong:
        error = wrong
    try:
        everyone = gathered(own, (mine, tuple(coordinates), shared_memory), error)
        assert mine is not None
        check(own, mine, everyone)
    except Exception:
        own.Free()
        raise
    return own, mine


def check(
    comm: MPI.Intracomm, mine: Specification, everyone: Sequence[tuple[Specification, tuple[int, ...], bool]]
) -> None:
    """Raise on all processes unless all specifications fit together."""
    texts = [
        f"dims {' '.join(each.dims)}, halo {each.widths}, periodic {each.periodic}, shared_memory {shared}"
        for each, _, shared in everyone
    ]
    if len(set(texts)) > 1:
        raise_together(comm, None, texts[comm.rank])
    for dim, label in enumerate(mine.dims):
        rows: dict[int, set[int]] = {}
        for each, place, _ in everyone:
            rows.setdefault(place[dim], set()).add(each.sizes[dim])
        if any(len(sizes) > 1 for sizes in rows.values()):
            place = everyone[comm.rank][1]
            raise_together(comm, None, f"{mine.sizes[dim]} points along {label}, at {place} of the grid")
