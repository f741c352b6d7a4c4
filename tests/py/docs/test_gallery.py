"""The gallery of mistakes: each one gets the message that its file shows."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dlfield as dl
import mistakes
from childproc import environment
from mistakes import ANY_TEXT, Mistake, is_same

DOCS = Path(__file__).parents[3] / "docs"
QUESTIONS = (DOCS / "help" / "messages.md").read_text(encoding="utf8")
GALLERY = mistakes.gallery()


def title(mistake: Mistake) -> str:
    return f"{mistake.subject}: {mistake.words}"


@pytest.fixture(scope="module")
def messages() -> dict[str, str]:
    """Today's message of each mistake, by its code: of a new process, as messages name the presets of other tests."""
    program = [sys.executable, str(Path(mistakes.__file__)), "--json"]
    done = subprocess.run(program, capture_output=True, text=True, env=environment(), check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("mistake", GALLERY, ids=title)
def test_the_mistake_gets_its_message(mistake: Mistake, messages: dict[str, str]) -> None:
    if mistake.code not in messages:
        pytest.skip(f"not all of these are installed: {', '.join(mistake.modules())}")
    if "cannot be used: " in mistake.message and dl.cuda.is_available():
        pytest.skip("this machine has a GPU")
    if "needs cupy" in mistake.message and importlib.util.find_spec("cupy"):
        pytest.skip("CuPy is installed")
    if ".share()" in mistake.code and not hasattr(os, "memfd_create"):
        pytest.skip("shared memory for tensors needs Linux")
    found = messages[mistake.code]
    assert is_same(found, mistake.message), found


FIXED = [mistake for mistake in GALLERY if mistake.fix]


@pytest.mark.parametrize("mistake", FIXED, ids=title)
def test_advice_that_is_code_works_when_pasted(mistake: Mistake, messages: dict[str, str]) -> None:
    words = set(re.findall(r"\w+(?=[=(\[])", mistake.message)) & set(re.findall(r"\w+(?=[=(\[])", mistake.fix))
    assert words or "did you mean" in mistake.message, "the advice is in the message"
    if mistake.fix not in messages:
        pytest.skip(f"not all of these are installed: {', '.join(mistake.modules())}")
    assert not messages[mistake.fix]


def test_each_mistake_is_there_once_and_has_a_message() -> None:
    assert len({title(mistake) for mistake in GALLERY}) == len({mistake.code for mistake in GALLERY}) == len(GALLERY)
    assert [title(mistake) for mistake in GALLERY if not mistake.message.strip(ANY_TEXT)] == []


def test_the_gallery_has_every_error() -> None:
    errors = [
        name for name in dl.__all__ if isinstance(error := getattr(dl, name), type) and issubclass(error, dl.Error)
    ]
    raised = {mistake.message.split(":")[0] for mistake in GALLERY}
    assert {f"dlfield.{name}" for name in errors} - {"dlfield.Error"} <= raised
    assert len(GALLERY) >= 200


@pytest.mark.parametrize("heading", re.findall(r"^### (.*)$", QUESTIONS, re.MULTILINE))
def test_the_headings_of_the_questions_are_messages(heading: str) -> None:
    words = re.fullmatch("`(.+)`", heading)
    assert words is not None
    assert any(words[1] in mistake.message for mistake in GALLERY)
