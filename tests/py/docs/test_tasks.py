"""The programs of `examples/tasks/` run unchanged, each in an empty folder."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import ranks
from page_code import ROOT

TASKS = ROOT / "examples" / "tasks"
# What each needs, apart from NumPy.
NEEDS = {
    "c_kernel": ["xarray"],
    "dask_overlap": ["dask"],
    "explain": ["jax", "torch"],
    "files": [],
    "jax_jit": ["jax"],
    "labels": ["xarray"],
    "mpi_halo": ["mpi4py"],
    "netcdf_gt4py": ["gt4py", "matplotlib", "netCDF4", "xarray"],
    "processes": [],
    "torch_conv": ["torch"],
}
# In processes of their own.
APART = ("mpi_halo", "processes")


def test_each_task_is_listed() -> None:
    assert sorted(path.stem for path in TASKS.glob("*.py")) == sorted(NEEDS)
    listed = (ROOT / "examples" / "README.md").read_text(encoding="utf8")
    assert all(f"(tasks/{name}.py)" in listed for name in NEEDS)


@pytest.mark.parametrize("name", sorted(NEEDS))
def test_a_task_is_short(name: str) -> None:
    lines = (TASKS / f"{name}.py").read_text(encoding="utf8").splitlines()
    assert len([line for line in lines if line.strip()]) <= 27


@pytest.mark.parametrize("name", [name for name in sorted(NEEDS) if name not in APART])
def test_the_task_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in NEEDS[name]:
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    runpy.run_path(str(TASKS / f"{name}.py"), run_name="__main__")


def test_the_task_with_two_processes_runs(tmp_path: Path) -> None:
    if not hasattr(os, "memfd_create"):
        pytest.skip("shared memory for tensors needs Linux")
    command = [sys.executable, str(TASKS / "processes.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stdout) == (0, "True ('I', 'J', 'K') ((1, 1), (1, 1), (0, 0)) 2.0\n"), done.stderr


def test_the_task_with_mpi_runs() -> None:
    pytest.importorskip("mpi4py")
    assert ranks.run(4, "-m", "mpi4py", TASKS / "mpi_halo.py").startswith("864.0 ")
