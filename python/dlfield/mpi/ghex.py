"""Exchange of halos by GHEX, for programs that use it already. Needs `mpi4py` and `ghex`.

`GhexExchange` makes GHEX's objects from fields: their dims, halos and the grid of processes say all that GHEX asks for.
"""

import hashlib
import itertools
from collections.abc import Sequence
from typing import Any

from mpi4py import MPI

from dlfield._native import DimsError, DTypeError, LayoutError, Tensor
from dlfield.mpi._agreement import agree, duplicate, gathered, raise_together
from dlfield.mpi._fields import Specification, described, specification, tensor
from dlfield.mpi._halo import check

try:
    from ghex.context import make_context
    from ghex.structured.cartesian_sets import ProductSet, UnitRange
    from ghex.structured.regular import (
        DomainDescriptor,
        HaloGenerator,
        make_communication_object,
        make_field_descriptor,
        make_pattern,
    )
except ModuleNotFoundError as missing:
    if str(missing.name).partition(".")[0] != "ghex":
        raise
    raise ModuleNotFoundError(
        f"dlfield.mpi.ghex needs GHEX 0.9 ({missing}); fix: pip install ghex, which compiles it and needs a C++ "
        "compiler, an MPI library, Boost and libnuma",
        name=missing.name,
    ) from missing

__all__ = ["GhexExchange"]

# GHEX's package is compiled for these.
_DTYPES = ("bool", "int32", "int64", "float32", "float64")


class GhexExchange:
    """Fills the halos of fields with the points of the neighbours, as `dlfield.mpi.HaloExchange` does, by GHEX.

    GHEX packs from and unpacks into the fields' own memory; padding and every layout that it is compiled for are fine.
    All fields of a call have the dims of `spec`, in any order, and are not staggered.

    Parameters
    ----------
    comm : mpi4py.MPI.Cartcomm
        The grid of processes, from `Create_cart`. The exchange works on a duplicate of it.
    spec : Tensor, array or sequence of int
        The field of one process, with its dims and halo, such as those to exchange; or its extents along `dims`.
    dims : str or sequence of str, optional
        The exchanged dimensions, one label for each dimension of `comm`.
    halo, periodic : optional
        As for `HaloExchange`.

    Attributes
    ----------
    pattern, communication
        GHEX's objects, for its own functions.

    Raises
    ------
    Error
        As for `HaloExchange`, on every process.

    Example
    -------
    >>> import dlfield as dl
    >>> from dlfield.mpi.ghex import GhexExchange
    >>> from mpi4py import MPI
    >>> comm = MPI.COMM_SELF.Create_cart((1, 1), periods=(True, False))
    >>> field = dl.zeros((6, 6, 2), dims="IJK", halo=(1, 1, 0))
    >>> field[1, 1, 0] = 3.0
    >>> exchange = GhexExchange(comm, field, dims="IJ")
    >>> exchange(field)
    >>> float(field[5, 1, 0])
    3.0
    >>> exchange.free()
    """

    def __init__(
        self, comm: Any, spec: Any, dims: Sequence[str] = "IJ", *, halo: Any = None, periodic: Any = None
    ) -> None:
        self._comm = duplicate(comm)
        processes, wraps, coordinates = self._comm.Get_topo()
        found, error = None, None
        try:
            mine = specification(spec, dims, halo, periodic, processes, [bool(wrapped) for wrapped in wraps])
            found = mine, _others(spec, mine.dims)
        except Exception as wrong:
            error = wrong
        try:
            everyone = gathered(self._comm, (found, tuple(coordinates)), error)
            assert found is not None
            self._spec, self._others = found
            check(self._comm, self._spec, [(each, place, False) for (each, _), place in everyone])
            if len({others for (_, others), _ in everyone}) > 1:
                raise_together(self._comm, None, f"dims that are not exchanged: {self._others}")
        except Exception:
            self._comm.Free()
            raise
        self._make([(each, place) for (each, _), place in everyone], everyone[self._comm.rank][1])

    def _make(self, everyone: Sequence[tuple[Specification, tuple[int, ...]]], place: tuple[int, ...]) -> None:
        """Make GHEX's objects: the global indices of this process come from the sizes of those below it in the grid."""
        ranges, whole = [], []
        for dim, here in enumerate(place):
            sizes = {at[dim]: each.sizes[dim] for each, at in everyone}
            ends = list(itertools.accumulate(size for _, size in sorted(sizes.items())))
            ranges.append(UnitRange(ends[here] - sizes[here], ends[here]))
            whole.append(UnitRange(0, ends[-1]))
        rest = [UnitRange(0, size) for _, size in self._others]
        # GHEX warns unless both libraries are for the same use of threads.
        self._context = make_context(self._comm, MPI.Query_thread() == MPI.THREAD_MULTIPLE)
        self._domain = DomainDescriptor(self._comm.rank, ProductSet(*ranges, *rest))
        halos = HaloGenerator(
            ProductSet(*whole, *rest),
            (*self._spec.widths, *[(0, 0)] * len(rest)),
            (*self._spec.periodic, *[False] * len(rest)),
        )
        self.pattern = make_pattern(self._context, halos, [self._domain])
        self.communication = make_communication_object(self._context)

    @property
    def dims(self) -> tuple[str, ...]:
        """The dims of the fields, in the order of GHEX's indices: first the exchanged ones."""
        return (*self._spec.dims, *[label for label, _ in self._others])

    def descriptor(self, field: Any) -> Any:
        """Return GHEX's descriptor of a field on the same memory, for GHEX's own functions.

        `exchange.communication.exchange([exchange.pattern(descriptor)])` starts an exchange that way. The descriptor
        keeps the field alive; keep the descriptor until the exchange is done. A wrong field is an error on this process
        alone.
        """
        return self._described(self._field(field, 0), 0)

    def __call__(self, *fields: Any) -> None:
        """Fill the halos of the fields.

        Before an exchange the processes compare what they have: each sends log2(processes) messages of 34 bytes. GHEX
        then sends one message to each neighbour for all fields with the same element type and layout, and so on.

        Parameters
        ----------
        *fields
            Tensors, or writable arrays in host memory, in the same order and with the same layouts on all processes:
            bool, int32, int64, float32 or float64, of the dims of `spec`. A halo may be wider than that of `spec`.

        Raises
        ------
        Error
            For a wrong field the same errors as for `HaloExchange`, on every process.
        """
        groups: dict[str, list[Any]] = {}
        text, error = "", None
        try:
            if not fields:
                raise LayoutError("fields: expected at least one, got none")
            for number, field in enumerate(fields):
                held = self._field(field, number)
                kind = f"{held.dtype.name} in the layout {held.layout}"
                text += f"{'; ' * bool(number)}field {number}: {kind}"
                groups.setdefault(kind, []).append(self._described(held, number))
        except Exception as wrong:
            error = wrong
        digest = None if error else hashlib.blake2b(text.encode(), digest_size=16).digest()
        if not agree(self._comm, digest, MPI.Request.Wait):
            raise_together(self._comm, error, text)
        # GHEX takes fields of one type at a time, and does not keep them until they are exchanged.
        for descriptors in groups.values():
            patterns = [self.pattern(each) for each in descriptors]
            self.communication.exchange(patterns).wait()

    def free(self) -> None:
        """Release GHEX's objects and the communicator. Collective; the exchange can't be used afterwards."""
        del self.communication, self.pattern, self._domain, self._context
        self._comm.Free()

    def _field(self, field: Any, number: int) -> Tensor:
        """Return a field of the right dims, in the order of GHEX's indices."""
        found = tensor(field, number)
        if sorted(found.dims) != sorted(self.dims):
            raise DimsError(f"field {number}: its dims are {found.dims}; GHEX exchanges {self.dims}, in any order")
        return found.transpose(*self.dims)

    def _described(self, field: Tensor, number: int) -> Any:
        """Check a field and make GHEX's descriptor of it, which keeps it alive."""
        if field.dtype.name not in _DTYPES:
            raise DTypeError(f"field {number}: {field.dtype.name}; GHEX exchanges {', '.join(_DTYPES)}")
        axes = [axis for axis in described(field, number, self._spec, self._spec.widths).shape.axes if axis is not None]
        for (label, size), extent in zip(self._others, field.shape[len(axes) :], strict=True):
            if extent != size:
                raise LayoutError(f"field {number}: {extent} points along {label}; this exchange is for {size}")
        for label, axis in zip(self._spec.dims, axes, strict=True):
            if axis.staggered:
                raise LayoutError(f"field {number}: staggered in {label}; GHEX exchanges fields of the same extents")
        if min(field.strides) <= 0:
            raise LayoutError(f"field {number}: strides {field.strides}; GHEX exchanges fields with positive strides")
        offsets = (*[axis.start for axis in axes], *[0] * len(self._others))
        try:
            return make_field_descriptor(self._domain, field, offsets, field.shape)
        except (AttributeError, TypeError) as refused:
            raise LayoutError(
                f"field {number}: GHEX refuses the shape {field.shape} with strides {field.strides} along {self.dims}; "
                "it is compiled for some layouts only, and takes no two dimensions of the same stride"
            ) from refused


def _others(spec: Any, dims: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Return the dims of a field that are not exchanged, with their extents."""
    labels = getattr(spec, "dims", None)
    extents = [] if labels is None else zip(labels, spec.shape, strict=True)
    return tuple((label, size) for label, size in extents if label not in dims)
