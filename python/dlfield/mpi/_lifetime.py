"""The end of MPI: processes that still wait for this one have to hear of it, and nothing may call MPI afterwards."""

import atexit
import sys
import time
from typing import Any, Protocol

from mpi4py import MPI

from dlfield._native import Error


class Connection(Protocol):
    """What other processes may wait for."""

    def stop(self) -> None:
        """Tell them that nothing more will come."""

    def ended(self) -> bool:
        """Take what they have sent; return whether they have said the same and have taken all of this process."""


# Those that were not released.
connections: set[Connection] = set()

# Seconds to wait at the end for the others. Mostly they end as well; mpi4py may be about to end all after an error.
_PATIENCE = 10


def check_running(name: str) -> None:
    """Raise if MPI was finalized: a call then would end the process."""
    if MPI.Is_finalized():
        raise Error(f"{name}: expected a call before MPI.Finalize(), got one after it")


def _end(*_: Any) -> None:
    for each in connections:
        each.stop()
    # After an exception nothing is worth waiting for.
    limit = time.monotonic() + (0 if hasattr(sys, "last_type") else _PATIENCE)
    while [each for each in connections if not each.ended()] and time.monotonic() < limit:
        time.sleep(0.001)


@atexit.register
def _at_exit() -> None:
    """End while there is an interpreter: mpi4py finalizes MPI after it has ended."""
    if not MPI.Is_finalized():
        _end()


# MPI calls this at the start of its end. It keeps what it gets, also when the interpreter has dropped everything:
# messages that come late need their buffers.
MPI.COMM_SELF.Set_attr(MPI.Comm.Create_keyval(delete_fn=_end), connections)
