"""What a release publishes, as far as it can be checked before: workflows, metadata, the program that tries wheels."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dlfield as dl

ROOT = Path(__file__).parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_targets_that_exist_and_actions_that_cannot_change(workflow: Path) -> None:
    text = workflow.read_text()
    listed = [each for line in re.findall(r"^ +target: \[(.*)\]$", text, re.MULTILINE) for each in line.split(", ")]
    for command in [*re.findall(r"\bmake ([a-z ]+)", text), *(each.strip('"').split(" ")[0] for each in listed)]:
        assert TARGETS.issuperset(command.split()), command
    for script in re.findall(r"\.ci/\w+", text):
        assert (ROOT / script).is_file(), script
    actions = re.findall(r"uses: (\S+)", text)
    assert actions
    for action in actions:
        if action.startswith("./"):
            assert (ROOT / action).is_file(), action
        else:
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action


def test_wheels_are_built_for_the_pythons_that_the_metadata_names() -> None:
    named = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text())
    built = re.search(r"{PYTHONS:=(.*?)}", (ROOT / "tools" / "wheels.sh").read_text())
    tested = re.findall(r"python: \[(.*)\]", (ROOT / ".github" / "workflows" / "release.yml").read_text())
    assert built
    assert built[1].split() == named
    assert [re.findall(r"3\.\d+", each) for each in tested] == [named] * 2


def test_a_release_has_its_notes_and_one_version_everywhere() -> None:
    notes = [ROOT / "tools" / "notes.sh"]
    done = subprocess.run([*notes, dl.__version__], capture_output=True, text=True, check=True)
    assert "### Fields" in done.stdout
    assert subprocess.run([*notes, "0.0.1"], capture_output=True, check=False).returncode == 1
    assert f"\nversion: {dl.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_extra_all_has_the_others() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (every,) = extras.pop("all")
    assert every == f"dlfield[{','.join(extras)}]"


def test_the_program_that_tries_each_wheel_passes(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "installed.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("dlfield ")
