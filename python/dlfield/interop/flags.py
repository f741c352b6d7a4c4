"""`Tensor.flags`: memory order and access of a tensor, with the names of `numpy.ndarray.flags`."""

from typing import Any, NamedTuple, NoReturn

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


class Flags(NamedTuple):
    """What `Tensor.flags` returns; each flag is an attribute, and an item under NumPy's names. Setting one is an error.

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

    def __getitem__(self, name: str) -> bool:  # type: ignore[override]
        known = _SHORT.get(name, str(name).lower())
        if known not in self._fields:
            expected = ", ".join(field.upper() for field in self._fields)
            raise KeyError(f"flags: expected one of {expected}, got {name!r}")
        return bool(getattr(self, known))

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(
            f"flags.{name}: expected not to be set, got {value!r}; use as_readonly() for a read-only view"
        )

    def __setitem__(self, name: str, value: Any) -> NoReturn:
        self.__setattr__(_SHORT.get(name, str(name).lower()), value)

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
