"""Starts a program on several processes of MPI."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

# Open MPI refuses root and more processes than cores otherwise; MPICH ignores this. One thread for each process.
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "RAYON_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONFAULTHANDLER": "1",
}


def mpiexec() -> str:
    """The program that starts the processes: that of the Python environment, or one on the path."""
    near = Path(sys.executable).parent / "mpiexec"
    found = str(near) if near.exists() else shutil.which("mpiexec")
    if found is None:
        missing = "no mpiexec next to the Python interpreter or on the path; fix: pip install mpich"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return found


def start(ranks: int, *arguments: str | Path, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run `python *arguments` on so many processes; a hang is an error after the timeout, in seconds."""
    pytest.importorskip("mpi4py")
    searched = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
    command = [mpiexec(), "-n", str(ranks), sys.executable, *map(str, arguments)]
    environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": searched}
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, env=environment)


def run(ranks: int, *arguments: str | Path, timeout: float = 300) -> str:
    """As `start`, for programs that have to succeed; returns their output."""
    done = start(ranks, *arguments, timeout=timeout)
    assert done.returncode == 0, f"exit status {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout
