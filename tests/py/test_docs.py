"""The code in the documentation pages is compiled and run as printed; the README's tables are checked."""

import doctest
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

import clusters
import dlfield as dl

ROOT = Path(__file__).parents[2]
README, WRAPPER = ROOT / "README.md", ROOT / "docs" / "wrapper.md"


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a page in the given language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


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


def test_the_wrapper_has_30_lines_at_most() -> None:
    code = blocks(WRAPPER, "python")[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 30


def test_the_wrapper_does_what_the_page_says(wrapper: dict[str, Any]) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("xarray")
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    examples = "\n".join(blocks(WRAPPER, "python")[1:])
    assert examples.count(">>>") > 30
    page = doctest.DocTestParser().get_doctest(examples, wrapper, "wrapper.md", str(WRAPPER), 0)
    assert doctest.DocTestRunner(optionflags=flags).run(page).failed == 0


def test_dask_and_ray_do_what_their_page_says() -> None:
    """In a process of its own: it starts clusters."""
    pytest.importorskip("ray")
    page = str(WRAPPER.parent / "clusters.md")
    output = clusters.run_on(
        "",
        f"""
        import doctest
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        results = doctest.testfile({page!r}, module_relative=False, optionflags=flags)
        assert (results.failed, results.attempted > 30) == (0, True), results
        """,
    )
    assert "Failed example" not in output, output


def test_readme_links_the_pages() -> None:
    for page in WRAPPER.parent.glob("*.md"):
        assert f"(docs/{page.name})" in README.read_text()


def table(head: str) -> list[list[str]]:
    """The rows of the README's table whose first column has this heading."""
    rows = README.read_text().split(f"| {head} |")[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def names(cell: str) -> list[str]:
    return re.findall("`([^`]+)`", cell)


def test_the_table_of_presets_is_right() -> None:
    found = {}
    for cell, device, alignment, layout in table("preset"):
        ranks: Any = tuple(int(rank) for rank in layout.split(", ")) if layout[0].isdigit() else "F"
        for name in names(cell):
            # The preset C orders by index too, but the table gives its ranks.
            found[name] = (device, alignment, "C" if name == "C" else ranks)
    assert list(found) == [name for name in dl.presets() if name in found]
    assert len(found) == 18
    for name, (device, alignment, layout) in found.items():
        preset = dl.presets()[name]
        assert (preset.device.type, preset.layout) == (device, layout), name
        if alignment.isdigit():
            assert preset.alignment == int(alignment)
        else:
            field = dl.empty((3, 5), "f4", backend=name, device="cpu")
            assert alignment == f"compact, base at {field.alignment_size} bytes"
            assert field.strides == (20, 4)


def test_the_table_of_errors_is_right() -> None:
    rows = {names(name)[0]: names(builtins) for name, builtins, _ in table("error")}
    errors = {name for name, error in vars(dl).items() if isinstance(error, type) and issubclass(error, dl.Error)}
    assert set(rows) == errors - {"Error"}
    for name, bases in rows.items():
        assert [base.__name__ for base in getattr(dl, name).__bases__] == ["Error", *bases]


def test_the_table_of_protocols_has_all_of_them() -> None:
    documented = (dl.describe.__doc__ or "").split("Parameters")[0]
    assert {name for row in table("what is taken") for name in names(row[1])} == {
        name for group in re.findall(r"\(([a-z, -]+)\)", documented) for name in group.split(", ")
    }


def test_the_rust_of_the_readme_is_tested() -> None:
    """Each line of it is part of code that the tests compile and run."""
    sources = [*(ROOT / "src").rglob("*.rs"), *(ROOT / "tests" / "it").glob("*.rs")]
    tested = {
        line.strip().removeprefix("///").strip() for source in sources for line in source.read_text().splitlines()
    }
    lines = [line.strip() for block in blocks(README, "rust") for line in block.splitlines() if line.strip()]
    assert len(lines) > 8
    assert [line for line in lines if line not in tested] == []
