"""The mutations that the adversary has to find (`make mutants`) still apply to the sources."""

import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
TOOL = runpy.run_path(str(ROOT / "tools" / "mutations.py"))
MUTATIONS, Mutation = TOOL["MUTATIONS"], TOOL["Mutation"]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_takes_out_a_fix_of_todays_sources(mutation: Any, tmp_path: Path) -> None:
    copy = tmp_path / mutation.file
    copy.parent.mkdir(parents=True)
    shutil.copyfile(ROOT / mutation.file, copy)
    mutation.apply(tmp_path)
    assert copy.read_text() != (ROOT / mutation.file).read_text()


def test_a_text_that_is_not_there_once_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a fix, and the same fix")
    for old, count in (("fix", 2), ("other", 0)):
        with pytest.raises(LookupError, match=f"gone: the old text occurs {count} times in file; adapt mutations.py"):
            Mutation("gone", "file", old, "").apply(tmp_path)


def test_each_mutation_has_a_name_of_its_own() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)
