"""The code in the documentation pages is compiled and run as printed; their tables, links and pictures are checked."""

import csv
import itertools
import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import clusters
import dlfield as dl
from fortran_modules import LANGUAGES, SOURCES, f2py_module, shared_library
from page_code import DOCS, ROOT, blocks, run_session

README = ROOT / "README.md"
WRAPPER = DOCS / "kernels" / "c.md"
PAGES = sorted(page for page in DOCS.rglob("*.md") if page.parent.name != "_site")
# Pages whose code needs a compiler, a cluster, several processes or a device, and the tests that run it.
ELSEWHERE = {
    "processes/dask-ray.md": "docs/test_docs.py",
    "kernels/fortran.md": "docs/test_docs.py",
    "processes/mpi.md": "beyond/test_mpi.py",
    "gpu/storages.md": "cuda/test_gpu_docs.py",
    "kernels/c.md": "docs/test_docs.py",
}
# For a device, which tests/py/cuda/test_gpu_docs.py runs, and Rust, which the documentation tests of the crate run.
OTHERS = {("docs/gpu/fields.md", "py"), ("docs/kernels/rust.md", "rust")}
# Pages with files of a whole program, which a test below runs.
SCRIPTS = {"docs/processes/shared-memory.md"}


@pytest.fixture
def wrapper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that the page's wrapper defines, for the kernel compiled by the page's own command."""
    (kernel,), (command,) = blocks(WRAPPER, "c"), blocks(WRAPPER, "console")
    (tmp_path / "laplacian.c").write_text(kernel)
    compiler, *arguments = shlex.split(command.removeprefix("$ "))
    assert compiler == "cc"
    subprocess.run([os.environ.get("CC", "cc"), *arguments], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    defined: dict[str, Any] = {}
    exec(blocks(WRAPPER, "python")[0], defined)
    return defined


def test_the_wrapper_does_what_the_page_says(wrapper: dict[str, Any]) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("xarray")
    assert run_session("\n".join(blocks(WRAPPER, "python")[1:]), wrapper) > 30


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_of_fortran_runs_as_shown(language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On its Fortran where there is a compiler, and always on the same in C."""
    page = DOCS / "kernels" / "fortran.md"
    monkeypatch.chdir(tmp_path)
    routines, module = blocks(page, "fortran")
    Path("stencils.f90").write_text(routines)
    Path("levels.f90").write_text(module)
    folder = SOURCES if language == "c" else tmp_path
    suffix = {"c": ".c", "fortran": ".f90"}[language]
    # f2py reads the page's Fortran in both cases.
    built = f2py_module(tmp_path, tmp_path / "stencils.f90", folder / f"stencils{suffix}")
    monkeypatch.setitem(sys.modules, "stencils", built)
    shared_library(tmp_path, folder / f"levels{suffix}", "levels.so")
    assert run_session("\n".join(blocks(page, "python"))) > 35
    assert blocks(page, "console") == [
        "$ python -m numpy.f2py -c -m stencils stencils.f90\n",
        "$ gfortran -shared -fPIC levels.f90 -o levels.so\n",
    ]


@pytest.mark.exhaustive
def test_dask_and_ray_do_what_their_page_says() -> None:
    """In a process of its own: it starts clusters."""
    pytest.importorskip("ray")
    page = "page_code.DOCS / 'processes' / 'dask-ray.md'"
    clusters.run_on("", f"import page_code; assert page_code.run_session(({page}).read_text()) > 25")


def title(page: Path) -> str:
    return str(page.relative_to(ROOT))


def inside(page: Path) -> str:
    """Return the path of a page inside docs/."""
    return title(page).removeprefix("docs/")


SESSIONS = [page for page in PAGES if inside(page) not in ELSEWHERE and ">>> " in page.read_text(encoding="utf8")]


@pytest.mark.parametrize("page", SESSIONS, ids=title)
def test_the_sessions_of_the_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = page.read_text(encoding="utf8")
    if ".share()" in text and not hasattr(os, "memfd_create"):
        pytest.skip("shared memory for tensors needs Linux")
    monkeypatch.chdir(tmp_path)
    assert run_session(text) == text.count(">>> ")


@pytest.mark.parametrize("page", sorted(SCRIPTS))
def test_the_program_of_the_page_prints_what_it_says(page: str, tmp_path: Path) -> None:
    """Its files begin with their names; a console block has the command and the output."""
    if not hasattr(os, "memfd_create"):
        pytest.skip("shared memory for tensors needs Linux")
    files = [block for block in blocks(ROOT / page, "python") if block.startswith("# ")]
    (console,) = blocks(ROOT / page, "console")
    for block in files:
        (tmp_path / block.split()[1]).write_text(block, encoding="utf8")
    command, output = console.split("\n", 1)
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert (len(files), program) == (2, "python")
    run = subprocess.run(
        [sys.executable, *arguments], cwd=tmp_path, check=True, capture_output=True, encoding="utf8", timeout=120
    )
    assert run.stdout == output


@pytest.mark.parametrize("page", ELSEWHERE)
def test_the_page_is_run_elsewhere(page: str) -> None:
    assert page.rpartition("/")[2] in (ROOT / "tests" / "py" / ELSEWHERE[page]).read_text()


@pytest.mark.parametrize("page", [README, *PAGES], ids=title)
def test_all_code_of_the_page_is_of_a_kind_that_runs(page: Path) -> None:
    """Console lines and settings are for the reader; all else is run by a test above, or by one that is named there."""
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf8"), re.MULTILINE | re.DOTALL)
    assert page.read_text(encoding="utf8").count("\n```") == 2 * len(fences)
    for language, code in fences:
        if language not in ("console", "toml", "text") and inside(page) not in ELSEWHERE:
            sessions = language in ("python", "pycon") and code.startswith(">>> ")
            file = language == "python" and title(page) in SCRIPTS and re.match(r"# \w+\.py\n", code)
            assert sessions or file or (title(page), language) in OTHERS, (language, code)


@pytest.mark.parametrize("page", [README, *PAGES], ids=title)
def test_the_code_of_the_page_has_80_columns(page: Path) -> None:
    """As wide as a terminal, and as the column of the site. Outputs may break where the printed line does not."""
    fences = re.findall(r"^```\w*\n(.*?)^```$", page.read_text(encoding="utf8"), re.MULTILINE | re.DOTALL)
    assert [line for code in fences for line in code.splitlines() if len(line) > 80] == []


# The README is also the page of the packages, where relative links lead nowhere: pages of the site, and pictures.
SITE = "https://dlfield.github.io/dlfield/latest/"
PICTURE = "https://raw.githubusercontent.com/dlfield/dlfield/main/"


def all_links(page: Path) -> list[str]:
    """The links of a page, outside of its code."""
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(encoding="utf8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"\]\(([^)\s]+)\)", text)


def links(page: Path) -> list[str]:
    """The links of a page, outside of its code, that lead to files or headings."""
    return [link for link in all_links(page) if not link.startswith("http")]


def leads_somewhere(page: Path, link: str) -> bool:
    """Return whether a file exists, and has the heading that the link names."""
    target, _, heading = link.partition("#")
    file = page.parent / target if target else page
    if not heading or file.suffix != ".md":
        return file.exists()
    headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf8"), re.MULTILINE)
    return heading in {re.sub(r"[^\w -]", "", text).lower().replace(" ", "-") for text in headings}


@pytest.mark.parametrize("page", [README, *PAGES], ids=title)
def test_the_links_of_the_page_lead_somewhere(page: Path) -> None:
    assert [link for link in links(page) if not leads_somewhere(page, link)] == []


def test_the_links_of_the_readme_hold_on_the_page_of_a_package() -> None:
    assert links(README) == []
    nav = (ROOT / "mkdocs.yml").read_text()
    pages = [link.removeprefix(SITE).rstrip("/") for link in all_links(README) if link.startswith(SITE)]
    pictures = [link.removeprefix(PICTURE) for link in all_links(README) if link.startswith(PICTURE)]
    assert len(pages) > 15
    assert [page for page in pages if f" {page or 'index'}.md\n" not in nav] == []
    assert [path for path in pictures if not (ROOT / path).exists()] == []


def test_the_index_has_all_pages() -> None:
    index = DOCS / "index.md"
    found = {(DOCS / link).resolve() for link in links(index)}
    assert [title(page) for page in PAGES if page != index and page not in found] == []


def test_the_readme_is_short() -> None:
    text = README.read_text(encoding="utf8")
    assert len(text.split()) <= 700
    assert text.splitlines().index("```python") < 25


def test_the_tables_of_comparisons_have_rows_of_the_file() -> None:
    with (DOCS / "about" / "comparisons.csv").open(encoding="utf8", newline="") as file:
        rows = [row[1:7] for row in csv.reader(file)]
    page = DOCS / "about" / "measured.md"
    assert len(table(README, "operation")) == 4
    assert len(table(page, "operation")) == 25
    for shown in (*table(README, "operation"), *table(page, "operation"), *table(page, "operation", last=True)):
        assert shown in rows


def test_the_reference_has_all_names() -> None:
    text = "".join(page.read_text() for page in (DOCS / "reference").glob("*.md"))
    assert [name for name in dl.__all__ if not re.search(rf"(::: |`)(dlfield\.)?{name}\b", text)] == []


def table(page: Path, head: str, *, last: bool = False) -> list[list[str]]:
    """The rows of the first, or last, table of a page whose first column has this heading."""
    rows = page.read_text().split(f"| {head} |")[-1 if last else 1].splitlines()[2:]
    rows = list(itertools.takewhile(lambda row: row.startswith("|"), rows))
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def names(cell: str) -> list[str]:
    return re.findall("`([^`]+)`", cell)


def test_the_table_of_presets_is_right() -> None:
    found = {}
    for cell, device, alignment, layout in table(DOCS / "reference" / "presets.md", "preset"):
        ranks: Any = tuple(int(rank) for rank in layout.split(", ")) if layout[0].isdigit() else "F"
        for name in names(cell):
            # The preset C orders by index too, but the table gives its ranks.
            found[name] = (device, alignment, "C" if name == "C" else ranks)
    assert list(found) == [name for name in dl.presets() if name in found]
    assert len(found) == 20
    for name, (device, alignment, layout) in found.items():
        preset = dl.presets()[name]
        expected = "HorizontalFirst" if name.startswith("gt4py.next") else layout
        assert (preset.device.type, preset.layout) == (device, expected), name
        assert preset.layout in ("C", "F") or dl.empty((2, 3, 4), backend=name, device="cpu").layout == layout
        if alignment.isdigit():
            assert preset.alignment == int(alignment)
        else:
            field = dl.empty((3, 5), "f4", backend=name, device="cpu")
            size, has_rows = field.alignment_size, alignment.startswith("rows")
            assert alignment == (f"rows at {size} bytes" if has_rows else f"compact, base at {size} bytes")
            assert field.strides == ((4, size) if has_rows else (20, 4))


def test_the_table_of_errors_is_right() -> None:
    rows = {names(name)[0]: names(builtins) for name, builtins, _ in table(DOCS / "help" / "messages.md", "error")}
    errors = {name for name, error in vars(dl).items() if isinstance(error, type) and issubclass(error, dl.Error)}
    assert set(rows) == errors - {"Error"}
    for name, bases in rows.items():
        assert [base.__name__ for base in getattr(dl, name).__bases__] == ["Error", *bases]


def test_the_table_of_protocols_has_all_of_them() -> None:
    documented = (dl.describe.__doc__ or "").split("Parameters")[0]
    assert {name for row in table(DOCS / "reference" / "protocols.md", "what is taken") for name in names(row[1])} == {
        name for group in re.findall(r"\(([a-z, -]+)\)", documented) for name in group.split(", ")
    }


DRAWING = runpy.run_path(str(DOCS / "_site" / "draw.py"))
PICTURES: list[Callable[[], str]] = DRAWING["PICTURES"]


def test_each_picture_is_as_drawn_and_on_its_page() -> None:
    for picture in PICTURES:
        file = DRAWING["file_of"](picture.__name__)
        assert file.read_text() == picture()
        assert [page for page in file.parent.glob("*.md") if f"]({file.name})" in page.read_text()]


def test_shapes_are_inside_their_pictures() -> None:
    """Each rectangle; texts are as wide as the reader's font."""
    for picture in PICTURES:
        root = ET.fromstring(picture())
        width, height = float(root.attrib["width"]), float(root.attrib["height"])
        boxes = [element.attrib for element in root if element.tag.endswith("rect")]
        assert len(boxes) > 5
        for box in boxes:
            assert 0 <= float(box["x"]) <= width - float(box["width"])
            assert 0 <= float(box["y"]) <= height - float(box["height"])
