"""Tensors in shared memory, by name. What it needs is imported with the first one."""

from dlfield._native import Tensor


def attach(name: str, *, readonly: bool = False) -> Tensor:
    """Return the tensor that another process has put into shared memory by `Tensor.share`, on the same memory.

    That process has to be alive, with a tensor or an array on the memory. Raises `ExchangeError` for a name that no
    process has, and for memory that does not hold a tensor; for memory on a GPU `DeviceError` if this process has no
    CUDA, does not see that GPU, or CUDA does not open the memory.

    On a GPU that process also has to stay alive as long as others have the memory: CUDA frees it with its process. It
    is closed here when the last tensor or array on it is gone, after the work on it in all recorded streams. What was
    written before the name was given out is there; the order of later work of two processes is up to them: synchronize
    (`dlfield.cuda.synchronize`) before you tell the other process.

    Parameters
    ----------
    name
        What `shared_name` returned in the other process.
    readonly
        True maps the memory without write access. CUDA has no such mappings: on a GPU only the tensor is read-only.

    Example
    -------
    >>> import dlfield as dl
    >>> field = dl.zeros((2, 3), dims="KI").share()
    >>> same = dl.attach(dl.shared_name(field), readonly=True)
    >>> field[1, 2] = 5.0
    >>> float(same[1, 2]), same.dims, same.readonly
    (5.0, ('K', 'I'), True)
    """
    from dlfield import shared_memory

    return shared_memory.attach(name, readonly=readonly)


def shared_name(tensor: Tensor) -> str:
    """Return the name by which other processes of this machine attach the memory of a tensor in shared memory.

    On a GPU it first waits for the work on the memory in all recorded streams. Raises `ExchangeError` for a tensor in
    other memory.

    Example
    -------
    >>> import dlfield as dl
    >>> dl.shared_name(dl.zeros(3))
    Traceback (most recent call last):
        ...
    dlfield.ExchangeError: tensor: its memory is not shared; allowed is what Tensor.share() returned, or a view of it
    """
    from dlfield import shared_memory

    return shared_memory.shared_name(tensor)
