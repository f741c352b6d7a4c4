"""Runs code with a cluster of its own: in a process group that a time limit ends, and in a folder that is removed."""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

# A cluster of two processes whose data stays where it is put, and goes to disk beyond 16 MiB in each.
DASK = """
import dask
from distributed import Client, LocalCluster, wait
import numpy as np
import dlfield as dl
import dlfield.dask

dask.config.set({
    "distributed.scheduler.work-stealing": False,
    "distributed.worker.memory.target": 1 / 64,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
})
cluster = LocalCluster(
    n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit="1GiB",
    host="127.0.0.1", local_directory=FOLDER,
)
client = Client(cluster)
first, second = sorted(client.scheduler_info()["workers"])
"""

RAY = """
import numpy as np
import ray
import dlfield as dl

ray.init(
    num_cpus=2, include_dashboard=False, object_store_memory=100 * 2**20, log_to_driver=False, logging_level="ERROR",
    _temp_dir=FOLDER,
)
"""

ENDS = {"LocalCluster": "client.close(); cluster.close()", "ray.init": "ray.shutdown()"}


def end_group(group: int) -> None:
    """Wait for workers, which end after their parent and remove what they share; then end what is left."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    os.killpg(group, signal.SIGKILL)


def run_on(cluster: str, code: str, timeout: float = 300) -> None:
    """Run `code` after `cluster`, which has `DASK`, `RAY` or neither in it; it has to exit with 0.

    All temporary files of Dask and Ray are in a folder that is removed.
    """
    end = next((end for start, end in ENDS.items() if start in cluster), "pass")
    script = (
        f"{textwrap.dedent(cluster)}\ntry:\n{textwrap.indent(textwrap.dedent(code), '    ')}\nfinally:\n    {end}\n"
    )
    # Ray's sockets are in this folder, and names of sockets have 107 bytes at most, so it is not pytest's.
    with tempfile.TemporaryDirectory(prefix="dl", ignore_cleanup_errors=True) as folder:
        searched = os.pathsep.join(filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH"))))
        # Ray sends usage statistics unless they are off.
        environment = {
            **os.environ,
            "PYTHONPATH": searched,
            "TMPDIR": folder,
            "RAY_TMPDIR": folder,
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        child = subprocess.Popen(
            [sys.executable, "-c", f"FOLDER = {folder!r}\n{script}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )
        try:
            output, _ = child.communicate(timeout=timeout)
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
                end_group(child.pid)
        assert child.returncode == 0, f"exit status {child.returncode}:\n{output}"
