"""`dlfield.mpi.ghex` on several processes of MPI, where GHEX is installed: it is compiled on installation."""

import importlib.util
from pathlib import Path

import pytest

import ranks

PROGRAM = Path(__file__).parents[1] / "support" / "mpi_programs" / "ghex_exchange.py"
PAGE = Path(__file__).parents[3] / "docs" / "processes" / "mpi.md"

# Not imported here: that would start MPI.
pytestmark = pytest.mark.skipif(importlib.util.find_spec("ghex") is None, reason="GHEX is not installed")


@pytest.mark.parametrize("processes", [1, 2, 4, 6])
def test_it_exchanges_the_same_bits(processes: int) -> None:
    assert ranks.run(processes, "-m", "mpi4py", PROGRAM) == "done\n"


def test_the_example_in_the_docstring() -> None:
    code = "import doctest, dlfield.mpi.ghex; print(doctest.testmod(dlfield.mpi.ghex))"
    assert ranks.run(1, "-c", code) == "TestResults(failed=0, attempted=10)\n"


def test_the_docs_run_as_shown() -> None:
    code = f"import doctest; print(doctest.testfile({str(PAGE)!r}, module_relative=False))"
    assert ranks.run(1, "-c", code) == "TestResults(failed=0, attempted=12)\n"
