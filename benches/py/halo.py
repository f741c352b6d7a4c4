"""Measure halo exchanges on two processes, compared with mpi4py with datatypes and with packed NumPy slices."""

import json
import os
import subprocess
import sys
from pathlib import Path

from interleaved import Time
from report import Line

HERE = Path(__file__).parent

# What a case is called, and the arguments of halo_ranks.py.
CASES = {
    "faces in I, C order": ("C", "2", "1", "closed"),
    "faces in J, C order": ("C", "1", "2", "closed"),
    "faces in I, gt:cpu_ifirst": ("gt:cpu_ifirst", "2", "1", "closed"),
    "faces in J, gt:cpu_ifirst": ("gt:cpu_ifirst", "1", "2", "closed"),
    "periodic, C order": ("C", "2", "1", "periodic"),
    "periodic, gt:cpu_ifirst": ("gt:cpu_ifirst", "2", "1", "periodic"),
}
# The reach: at least 3 and 1.5 times faster.
PEERS = {"datatypes": ("subarray datatypes", 1 / 3), "slices": ("packed NumPy slices", 1 / 1.5)}


def lines() -> list[Line]:
    """Compare exchanges of 8 fields; every case has processes of its own, in which the peers take turns."""
    mpiexec = Path(sys.executable).parent / "mpiexec"
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    found = []
    for name, arguments in CASES.items():
        command = [str(mpiexec), "-n", "2", sys.executable, "-m", "mpi4py", str(HERE / "halo_ranks.py"), *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600, env=environment)
        times = {kind: Time([each * 1e9 for each in rounds]) for kind, rounds in json.loads(done.stdout).items()}
        what = f"halo of 8 fields (256, 256, 80), width 3, 2 processes, {name}"
        found += [Line(what, times["dlfield"], peer, times[kind], reach) for kind, (peer, reach) in PEERS.items()]
    return found
