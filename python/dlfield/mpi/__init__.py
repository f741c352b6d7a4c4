"""Fields in MPI programs: exchange of halos, and message buffers in every layout. Needs `mpi4py`.

`HaloExchange` fills the halos of fields that are distributed over a Cartesian grid of processes. `buffer` passes a
tensor of any layout to mpi4py's own functions. The guide is `docs/processes/mpi.md`.
"""

try:
    from dlfield.mpi._agreement import RankError
    from dlfield.mpi._buffers import buffer
    from dlfield.mpi._halo import HaloExchange
except ModuleNotFoundError as missing:
    if missing.name != "mpi4py":
        raise
    raise ModuleNotFoundError(
        "dlfield.mpi needs mpi4py, which is not installed; fix: pip install mpi4py, and an MPI library such as "
        "pip install mpich",
        name="mpi4py",
    ) from missing

__all__ = ["HaloExchange", "RankError", "buffer"]
