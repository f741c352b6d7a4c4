"""Fields in files that are mapped into memory: `save_field` and `open_field`."""

import contextlib
import errno
import fcntl
import hashlib
import io
import itertools
import math
import mmap
import os
import stat
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np

from dlfield import _native
from dlfield._native import ExchangeError, LayoutError, Tensor
from dlfield.files import header as _file_header
from dlfield.files.path import text_of_path

_NPY_MAGIC = b"\x93NUMPY"

# How a file is opened and mapped in each mode.
_MODES: dict[str, tuple[Literal["rb", "r+b"], int]] = {
    "r": ("rb", mmap.ACCESS_READ),
    "r+": ("r+b", mmap.ACCESS_WRITE),
    "c": ("rb", mmap.ACCESS_COPY),
}

# Bytes that are written at a time: as many as the caches of a processor hold.
_PIECE = 4 << 20

# How many programs may save one field at a time.
_MOST_SAVES = 100


def save_field(path: str | bytes | os.PathLike[Any], field: Any) -> None:
    """Write a field to a file that `open_field` maps into memory.

    The suffix is the format. `.npy` is NumPy's: every library reads it, and it holds values in C or F order, without
    padding. `.dlf` keeps a field of any layout, with strides, padding, alignment, dims, halo and origin;
    docs/fields/memory.md has the format. Bytes between the elements are written as zeros.

    The file is written next to `path` and then renamed. So a reader finds the old or the new file, never a part of it,
    and a field that is open keeps the old one's memory. A new file that replaces another has its permissions, without
    special bits, and its owner where the system allows that. What a save leaves that was killed, the next one removes.

    Parameters
    ----------
    path : str, bytes or path
        A path that ends in `.npy` or `.dlf`. An existing file is replaced.
    field : array
        A `Tensor`, or any array that `from_dlpack` takes. Memory of a device is copied to the file.

    Raises
    ------
    ValueError
        Another suffix.
    LayoutError
        A `.npy` file that cannot keep the field's labels, halo, origin, order or padding.
    DTypeError
        A `.npy` file for an element type that NumPy's format does not have, such as `bfloat16`.
    NotAnArrayError, ExchangeError, DeviceError
        As for `from_dlpack`.
    OSError
        The file cannot be written, or the disk is full; the new file is removed then. The name belongs to something
        other than a regular file, or to a link that the system does not let this user follow.

    Example
    -------
    >>> import tempfile, dlfield as dl
    >>> field = dl.ones((6, 5, 4), backend="gtmc", halo=(1, 1, 0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dl.save_field(f"{folder}/field.dlf", field)
    ...     again = dl.open_field(f"{folder}/field.dlf")
    >>> again.strides == field.strides, again.halo, float(again.sum())
    (True, ((1, 1), (1, 1), (0, 0)), 120.0)
    """
    text = text_of_path(path, "; the path comes first, then the field" if isinstance(field, str | os.PathLike) else "")
    target, old = _target(text)
    if target.suffix not in {".npy", ".dlf"}:
        raise ValueError(f"path: expected a name that ends in '.npy' or '.dlf', got {text!r}")
    tensor = _native._tensor(field, "field")
    state, strides, block = _native._copy_layout(tensor)
    if target.suffix == ".npy":
        start = _npy_start(tensor, strides)
        offset = len(start)
    else:
        header = _file_header.made(tensor, state, strides)
        start, offset = _file_header.encoded(header), header.offset

    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "path: there is no such folder; make it first", str(target.parent))
    with _replacing(target, old) as file:
        file.write(start)
        _write(file, offset, strides, tensor)
        file.truncate(offset + block)


def open_field(path: str | bytes | os.PathLike[Any], mode: Literal["r", "r+", "c"] = "r") -> Tensor:
    """Map a file of `save_field` or `numpy.save` into memory, without a copy.

    Pages are read when they are first used. The memory is as aligned as its place in the file, up to 4096 bytes. The
    tensor, its views and its exports keep the mapping. No other program may shorten the file meanwhile: reading what is
    gone ends the process, as with `numpy.memmap`.

    Parameters
    ----------
    path : str, bytes or path
        The file; its content says whether it is a `.npy` or a `.dlf` file.
    mode : {"r", "r+", "c"}, optional
        "r" makes a read-only tensor. With "r+", what is written to the tensor is written to the file: others that read
        or map it see it at once, the disk when the system writes its caches. "c" keeps changes in memory, for this
        tensor alone.

    Returns
    -------
    Tensor
        For a `.dlf` file with the layout, padding, dims, halo and origin of the saved field; its alignment too, if that
        is a power of two up to 4096 bytes. For a `.npy` file in C or F order, without labels.

    Raises
    ------
    ExchangeError
        A file of another format, a truncated one, or numbers in it that fit neither each other nor the file.
    DTypeError
        Elements of the other byte order, structured ones, objects, text.
    LayoutError, DimsError
        Labels or sizes in the file that are invalid.
    ValueError
        Another mode.
    OSError
        The file cannot be opened or mapped, or is not a regular file.

    Example
    -------
    >>> import tempfile, dlfield as dl, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/array.npy", np.zeros((2, 3), order="F"))
    ...     field = dl.open_field(f"{folder}/array.npy", "r+")
    ...     field[1, 2] = 7.0
    ...     float(np.load(f"{folder}/array.npy")[1, 2])
    7.0
    """
    if mode not in tuple(_MODES):
        raise ValueError(f"mode: expected 'r', 'r+' or 'c', got {mode!r}")
    opened, access = _MODES[mode]
    path = text_of_path(path)
    with open(path, opened, opener=_open_regular) as file:
        is_npy = file.read(len(_NPY_MAGIC)) == _NPY_MAGIC
        file.seek(0)
        try:
            if is_npy:
                shape, dtype, strides = _npy_header(file)
                if not dtype.hasobject:
                    _check_size(file, file.tell(), math.prod(shape) * dtype.itemsize)
                return _native.frombuffer(_mapped(file, access), shape, dtype, strides=strides, offset=file.tell())
            header = _file_header.read(file, path)
            steps = [step * (extent - 1) for step, extent in zip(header.strides, header.shape, strict=True)]
            if 0 not in header.shape and min(steps, default=0) >= 0:
                _check_size(file, header.offset, sum(steps) + np.dtype(header.dtype).itemsize)
            memory = _mapped(file, access)
            field = _native.frombuffer(memory, header.shape, header.dtype, strides=header.strides, offset=header.offset)
            _file_header.checked(header, field, path)
            return _native._with_metadata(field, header.state)
        except Exception as error:
            error.add_note(f"in the file {path!r}")
            raise


def _open_regular(path: str, flags: int) -> int:
    # A pipe would be waited for, until another program opens its other end.
    file = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    kind = os.fstat(file).st_mode
    # `open` rejects directories.
    if stat.S_ISREG(kind) or stat.S_ISDIR(kind):
        return file
    os.close(file)
    raise OSError(errno.EINVAL, "expected a .npy or .dlf file, got one that is not a regular file", path)


def _mapped(file: BinaryIO, access: int) -> mmap.mmap:
    # All of the file: `mmap` rejects one that has become shorter.
    return mmap.mmap(file.fileno(), os.fstat(file.fileno()).st_size, access=access)


def _check_size(file: BinaryIO, start: int, nbytes: int) -> None:
    """Reject a file that ends before its last element, as when it was written by a program that was stopped."""
    found = os.fstat(file.fileno()).st_size - start
    if found < nbytes:
        raise ExchangeError(f"path: the file has {max(found, 0)} of the {nbytes} bytes of its elements: write it again")


def _npy_header(file: BinaryIO) -> tuple[tuple[int, ...], np.dtype[Any], list[int] | None]:
    """Read the header of a `.npy` file; the file is at its elements then."""
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    version = None
    try:
        version = np.lib.format.read_magic(file)
        shape, in_fortran_order, dtype = readers[version](file)
        if any(isinstance(extent, bool) for extent in shape):
            raise ValueError(f"shape: expected integers, got {shape}")
    except KeyError:
        raise ExchangeError(f"expected version (1, 0) or (2, 0) of NumPy's format, got {version}") from None
    # What NumPy's reader and Python's parser raise for any text.
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError) as error:
        raise ExchangeError(f"the header of the .npy file is invalid: {error}") from error
    if not in_fortran_order:
        return shape, dtype, None
    strides, step = [], dtype.itemsize
    for extent in shape:
        strides.append(step)
        step *= max(extent, 1)
    return shape, dtype, strides


def _npy_start(field: Tensor, strides: list[int]) -> bytes:
    """Return the header of a `.npy` file, or raise an error that says what such a file cannot keep."""
    # Custom types, as those of ml_dtypes, would be written as bytes without a meaning.
    if field.dtype.isbuiltin != 1:
        raise _native.DTypeError(f"path: a .npy file cannot hold {field.dtype.name}; save it as .dlf")
    steps = [stride if extent > 1 else 0 for extent, stride in zip(field.shape, strides, strict=True)]
    is_c = field.size == 0 or steps == _compact(field, range(field.ndim))
    is_fortran = not is_c and steps == _compact(field, range(field.ndim)[::-1])
    standard = ("I", "J", "K", *map(str, range(field.ndim)))[: field.ndim]
    lost = {
        "dims": field.dims != standard,
        "halo": any(map(any, field.halo)),
        "origin": any(field.origin),
        "layout or padding": not (is_c or is_fortran),
    }
    if names := [name for name, is_lost in lost.items() if is_lost]:
        fix = "save it as .dlf, or its values alone with numpy.save"
        raise LayoutError(f"path: a .npy file cannot keep the field's {', '.join(names)}; {fix}")
    text = io.BytesIO()
    descr = np.lib.format.dtype_to_descr(field.dtype)
    np.lib.format.write_array_header_1_0(text, {"descr": descr, "fortran_order": is_fortran, "shape": field.shape})
    return text.getvalue()


def _compact(field: Tensor, axes: range) -> list[int]:
    """Return the strides without gaps, the last of these axes contiguous; 0 for those that lead nowhere."""
    strides, step = [0] * field.ndim, field.itemsize
    for axis in reversed(axes):
        if field.shape[axis] > 1:
            strides[axis] = step
            step *= field.shape[axis]
    return strides


def _target(path: str) -> tuple[Path, os.stat_result | None]:
    """Return the file that a path leads to, and its status."""
    target = Path(os.path.realpath(path))
    try:
        # The system follows links as far as it allows: none that another user has put into a folder like /tmp.
        old = Path(path).stat()
        if not stat.S_ISREG(old.st_mode):
            raise OSError(errno.EINVAL, "path: expected a regular file or a new name; pass another name", path)
        if not os.path.samestat(old, target.lstat()):
            raise OSError(errno.ELOOP, "path: a link that was changed meanwhile; save again", path)
    except FileNotFoundError:
        return target, None
    return target, old


@contextlib.contextmanager
def _replacing(target: Path, old: os.stat_result | None) -> Iterator[BinaryIO]:
    """Open a new file, which becomes the target at the end. After an error there is no new file."""
    # In the same folder, as no file can be renamed to another file system. Names may be too long to be made longer.
    sign = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]
    names = [target.with_name(f".dlfield-{sign}-{number}.tmp") for number in range(_MOST_SAVES)]
    for left in itertools.takewhile(os.path.lexists, names):
        _remove_left(left)
    number, unnamed = _created(names, 0o666 if old is None else 0o600)
    try:
        with os.fdopen(number, "w+b") as file:
            yield file
            file.flush()
            if old is not None:
                _set_access(number, old)
            unnamed.replace(target)
    except BaseException:
        unnamed.unlink(missing_ok=True)
        raise


def _created(names: list[Path], mode: int) -> tuple[int, Path]:
    """Create a file with the first name that is free, and lock it as long as it is open."""
    for path in names:
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        except FileExistsError:
            continue
        # Not all file systems have locks.
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        # Before it was locked, another save may have taken it for one that was left.
        if os.fstat(file).st_nlink > 0:
            return file, path
        os.close(file)
    raise FileExistsError(errno.EEXIST, "path: too many saves at a time; remove what they have left", str(names[0]))


def _remove_left(path: Path) -> None:
    """Remove the file of a save that was killed: nobody has locked it."""
    with contextlib.suppress(OSError):
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
        finally:
            os.close(file)


def _set_access(file: int, old: os.stat_result) -> None:
    """Give a file the owner and the permissions of the one that it replaces."""
    mode = stat.S_IMODE(old.st_mode) & 0o777
    for user, group in ((old.st_uid, old.st_gid), (-1, old.st_gid)):
        with contextlib.suppress(PermissionError):
            os.fchown(file, user, group)
            break
    else:
        # In another group, which gets what everybody has.
        mode = mode & 0o707 | (mode & 0o007) << 3
    os.fchmod(file, mode)


def _write(file: BinaryIO, offset: int, strides: list[int], field: Tensor) -> None:
    """Write the elements to their place in a new file, in pieces, between which signals are handled.

    A mapping of the file would take ten times as long: the system makes each of its pages when it is first touched.
    """
    if field.size == 0:
        return
    order = sorted(range(field.ndim), key=lambda axis: -strides[axis])
    axes = [axis for axis in order if field.shape[axis] > 1]
    # Zeros, also between the elements: those of all pieces are at the same distances.
    memory = np.zeros(0, np.uint8)
    for start, size, part in _pieces(field, strides, axes, 0):
        file.seek(offset + start)
        if size == part.nbytes and part.device == "cpu" and all(part.strides[axis] == strides[axis] for axis in axes):
            # It is in memory as it is in the file.
            file.write(part.to_numpy().transpose(order).reshape(-1).view(np.uint8).data)
            continue
        if memory.size < size:
            memory = np.zeros(size, np.uint8)
        # The same dims, as an assignment goes by labels.
        place = _native.frombuffer(memory, part.shape, part.dtype, strides=strides, dims=part.dims)
        place[...] = part
        file.write(memory[:size].data)


def _pieces(field: Tensor, strides: list[int], axes: list[int], start: int) -> Iterator[tuple[int, int, Tensor]]:
    """Yield the pieces of a field: their first byte, how many bytes they reach over, and the elements."""
    size = field.itemsize + sum((extent - 1) * step for extent, step in zip(field.shape, strides, strict=True))
    if size <= _PIECE or not axes:
        yield start, size, field
        return
    axis = axes[0]
    rows = max(_PIECE // strides[axis], 1)
    for first in range(0, field.shape[axis], rows):
        part = field[(*(slice(None),) * axis, slice(first, first + rows))]
        yield from _pieces(part, strides, axes[1:] if rows == 1 else [], start + first * strides[axis])
