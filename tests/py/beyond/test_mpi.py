"""`dlfield.mpi` and `dlfield.mpi.ghex` on several processes of MPI; every run has a time limit."""

import doctest
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ranks
from page_code import DOCS, ROOT, blocks

PROGRAMS = Path(__file__).parents[1] / "support" / "mpi_programs"
PACKAGE = ROOT / "python" / "dlfield" / "mpi"


@pytest.mark.parametrize(
    ("processes", "cases"),
    [(2, 15), *(pytest.param(*case, marks=pytest.mark.exhaustive) for case in [(1, 40), (3, 15), (4, 15), (6, 8)])],
)
@settings(max_examples=1)
@given(seed=st.integers(0, 10**9))
def test_random_exchanges(processes: int, cases: int, seed: int) -> None:
    """Every point of every halo against the oracle, and the messages and bytes that this took."""
    assert ranks.run(processes, "-m", "mpi4py", PROGRAMS / "random_halos.py", str(seed), str(cases)) == ""


def test_wrong_use_is_an_error_on_every_process() -> None:
    assert ranks.run(4, "-m", "mpi4py", PROGRAMS / "halo_errors.py") == "done\n"


@pytest.fixture
def leftovers_removed() -> Iterator[None]:
    """MPICH leaves memory of its own where processes end like this."""
    before = set(Path("/dev/shm").glob("mpich_shm_*"))
    yield
    for path in set(Path("/dev/shm").glob("mpich_shm_*")) - before:
        path.unlink(missing_ok=True)


@pytest.mark.usefixtures("leftovers_removed")
@pytest.mark.parametrize("how", ["killed", "raised"])
def test_a_process_that_ends(how: str) -> None:
    """MPI ends the others: at once if it was killed, and with `python -m mpi4py` also after an exception."""
    done = ranks.start(3, "-m", "mpi4py", PROGRAMS / "dies.py", how, timeout=60)
    assert done.returncode != 0
    assert "not reached" not in done.stdout


def test_a_process_that_is_ahead() -> None:
    assert ranks.run(2, "-m", "mpi4py", PROGRAMS / "halo_ahead.py") == "done\n"


@pytest.mark.parametrize(
    ("processes", "cases"),
    [
        (3, ("freed", "copied", "dropped")),
        (3, ("dropped_by_all",)),
        (3, ("started_twice",)),
        (3, ("ended",)),
        (2, ("finalized",)),
        (1, ("too_many",)),
    ],
)
def test_exchanges_end_and_let_the_program_end(processes: int, cases: tuple[str, ...]) -> None:
    assert ranks.run(processes, "-m", "mpi4py", PROGRAMS / "halo_ends.py", *cases) == ""


def test_message_buffers() -> None:
    assert ranks.run(2, "-m", "mpi4py", PROGRAMS / "message_buffers.py") == "done\n"


def test_examples_in_docstrings() -> None:
    """In processes of their own: importing `dlfield.mpi` starts MPI, which other tests should not run under."""
    pytest.importorskip("mpi4py")
    modules = [f"dlfield.mpi.{path.stem}" for path in PACKAGE.glob("_*.py") if ">>>" in path.read_text()]
    assert len(modules) == 2
    code = "import doctest, importlib, sys\n"
    code += "".join(f"print(doctest.testmod(importlib.import_module({name!r})))\n" for name in modules)
    found = ranks.run(1, "-c", code).splitlines()
    assert [line.split(", attempted=")[0] for line in found] == [f"{doctest.TestResults.__name__}(failed=0"] * 2


@pytest.mark.parametrize("processes", [2, *(pytest.param(n, marks=pytest.mark.exhaustive) for n in (1, 4, 6))])
def test_the_diffusion_has_the_same_bits_as_on_one_process(processes: int) -> None:
    first = ranks.run(processes, "-m", "mpi4py", ROOT / "examples" / "diffusion_mpi.py").splitlines()[0]
    assert first.startswith(f"{processes} processes as ")
    assert first.endswith(": all bits equal to one process")


def test_the_page_runs_as_printed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    code = blocks(DOCS / "processes" / "mpi.md", "python")
    assert len(code) == 9
    program.write_text("\n".join(code))
    assert ranks.run(4, "-m", "mpi4py", program) == ""


# GHEX is compiled on installation. Not imported here: that would start MPI.
needs_ghex = pytest.mark.skipif(importlib.util.find_spec("ghex") is None, reason="GHEX is not installed")


@needs_ghex
@pytest.mark.parametrize("processes", [1, 2, 4, 6])
def test_ghex_exchanges_the_same_bits(processes: int) -> None:
    assert ranks.run(processes, "-m", "mpi4py", PROGRAMS / "ghex_exchange.py") == "done\n"


@needs_ghex
def test_the_example_in_the_docstring_of_ghex() -> None:
    code = "import doctest, dlfield.mpi.ghex; print(doctest.testmod(dlfield.mpi.ghex))"
    assert ranks.run(1, "-c", code) == "TestResults(failed=0, attempted=10)\n"


@needs_ghex
def test_the_page_runs_as_shown_with_ghex() -> None:
    code = f"import doctest; print(doctest.testfile({str(DOCS / 'processes' / 'mpi.md')!r}, module_relative=False))"
    assert ranks.run(1, "-c", code) == "TestResults(failed=0, attempted=12)\n"
