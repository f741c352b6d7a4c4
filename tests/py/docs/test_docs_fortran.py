"""The code of docs/fortran.md runs as shown, on its Fortran where there is a compiler, and always on the same in C."""

import doctest
import re
import sys
from pathlib import Path

import pytest

from fortran_modules import LANGUAGES, SOURCES, f2py_module, shared_library

PAGE = Path(__file__).parents[3] / "docs" / "fortran.md"


def blocks(language: str) -> list[str]:
    """Return the code blocks of the page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_runs_as_shown(language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    routines, module = blocks("fortran")
    Path("stencils.f90").write_text(routines)
    Path("levels.f90").write_text(module)
    folder = SOURCES if language == "c" else tmp_path
    suffix = {"c": ".c", "fortran": ".f90"}[language]
    # f2py reads the page's Fortran in both cases.
    built = f2py_module(tmp_path, tmp_path / "stencils.f90", folder / f"stencils{suffix}")
    monkeypatch.setitem(sys.modules, "stencils", built)
    shared_library(tmp_path, folder / f"levels{suffix}", "levels.so")
    page = doctest.DocTestParser().get_doctest(
        "\n".join(blocks("python")), {"__name__": "__main__"}, PAGE.name, str(PAGE), 0
    )
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(page)
    assert results.failed == 0
    assert results.attempted > 35


def test_the_commands_of_the_page_build_its_sources() -> None:
    assert blocks("console") == [
        "$ python -m numpy.f2py -c -m stencils stencils.f90\n",
        "$ gfortran -shared -fPIC levels.f90 -o levels.so\n",
    ]
