"""The code of docs/fortran.md runs as shown, on its Fortran where there is a compiler, and always on the same in C."""

import sys
from pathlib import Path

import pytest

from fortran_modules import LANGUAGES, SOURCES, f2py_module, shared_library
from pages import DOCS, blocks, run_session

PAGE = DOCS / "fortran.md"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_runs_as_shown(language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    routines, module = blocks(PAGE, "fortran")
    Path("stencils.f90").write_text(routines)
    Path("levels.f90").write_text(module)
    folder = SOURCES if language == "c" else tmp_path
    suffix = {"c": ".c", "fortran": ".f90"}[language]
    # f2py reads the page's Fortran in both cases.
    built = f2py_module(tmp_path, tmp_path / "stencils.f90", folder / f"stencils{suffix}")
    monkeypatch.setitem(sys.modules, "stencils", built)
    shared_library(tmp_path, folder / f"levels{suffix}", "levels.so")
    assert run_session("\n".join(blocks(PAGE, "python"))) > 35


def test_the_commands_of_the_page_build_its_sources() -> None:
    assert blocks(PAGE, "console") == [
        "$ python -m numpy.f2py -c -m stencils stencils.f90\n",
        "$ gfortran -shared -fPIC levels.f90 -o levels.so\n",
    ]
