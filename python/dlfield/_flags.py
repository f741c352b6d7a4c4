"""`Tensor.flags`: memory order and access of a tensor, with the names of `numpy.ndarray.flags`."""

import dataclasses

from dlfield._native import Tensor

_SHORT = {
    "C": "c_contiguous",
    "CONTIGUOUS": "c_contiguous",
    "F": "f_contiguous",
    "FORTRAN": "f_contiguous",
    "O": "owndata",
    "W": "writeable",
    "A": "aligned",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Flags:
    """What `Tensor.flags` returns; each flag is an attribute, and an item under NumPy's names.

    Example
    -------
    >>> import dlfield as dl
    >>> dl.zeros((2, 3)).as_readonly().flags["WRITEABLE"]
    False
    """

    c_contiguous: bool
    f_contiguous: bool
    owndata: bool
    writeable: bool
    aligned: bool

    def __getitem__(self, name: str) -> bool:
        known = _SHORT.get(name, str(name).lower())
        if known not in self.__slots__:
            allowed = ", ".join(slot.upper() for slot in self.__slots__)
            raise KeyError(f"flags: {name!r} is unknown; allowed are {allowed}")
        return bool(getattr(self, known))

    @property
    def contiguous(self) -> bool:
        """As `c_contiguous`."""
        return self.c_contiguous


def flags_of(tensor: Tensor) -> Flags:
    """Return the flags of `tensor`."""
    boundary = tensor.dtype.alignment
    # Strides of single points are never used.
    steps = [stride for stride, extent in zip(tensor.strides, tensor.shape, strict=True) if extent > 1]
    return Flags(
        c_contiguous=tensor.is_contiguous("C"),
        f_contiguous=tensor.is_contiguous("F"),
        owndata=False,
        writeable=not tensor.readonly,
        aligned=tensor.size == 0 or all(number % boundary == 0 for number in (tensor.ptr, *steps)),
    )
