"""Hostile objects in calls of every public function, a catalogue of hostile arrays, and the mutations to find."""

import inspect
import json
import runpy
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from adversary import pool

pytest.importorskip("rust_extension")
pytest.importorskip("torch")
pytest.importorskip("jax")

from adversary.case import Case
from adversary.entries import LEFT_OUT, Entry, entries, of_stub
from adversary.memory import FREED, NEW, Memory
from childproc import run_python
from hostile_inputs import INPUTS, HostileInput

# The fixed cases: enough for each function to be called once, and those that take arrays again.
CASES = 500
FIRST = 100


@pytest.mark.parametrize(
    ("start", "count"), [(0, FIRST), pytest.param(FIRST, CASES - FIRST, marks=pytest.mark.exhaustive)]
)
def test_nothing_is_found_in_the_fixed_cases(start: int, count: int) -> None:
    # To import the frameworks takes a worker longer than a hundred cases.
    cases, calls, findings = pool.hunt(start, count, workers=1 if count == FIRST else 2)
    said = [
        f"seed {seed}: {text}\n  again with: python tests/py/support/adversary --seed {seed}" for seed, text in findings
    ]
    assert not said, "\n".join(said)
    assert cases == count
    assert calls > count / 2


def test_the_fixed_cases_call_every_function() -> None:
    functions = entries()
    turns = pool.Turns(functions)
    called = {turns.function(seed).name for seed in range(CASES)}
    assert called == {entry.name for entry in functions}


def test_every_parameter_has_hostile_values() -> None:
    for entry in entries():
        for parameter in entry.parameters:
            assert callable(entry.kind(parameter))


def test_a_function_with_an_unknown_parameter_is_reported() -> None:
    stub = "class Tensor:\n    def turned(self, angle_in_degrees: float, *, dims: str = ...) -> Tensor: ...\n"
    [entry] = of_stub(stub)
    assert entry == Entry("Tensor.turned", entry.parameters, "Tensor")
    with pytest.raises(LookupError, match=r"KINDS has neither Tensor.turned.'angle_in_degrees' nor its name"):
        entry.kind(entry.parameters[0])
    assert callable(entry.kind(entry.parameters[1]))


def test_every_public_name_is_called_or_left_out_with_a_reason() -> None:
    called = {entry.name for entry in entries()} | LEFT_OUT.keys()
    for name in dl.__all__:
        value = getattr(dl, name)
        if inspect.isfunction(value) or inspect.isbuiltin(value):
            assert name in called
    assert all(reason for reason in LEFT_OUT.values())


def _overwrite(case: Case) -> None:
    memory = Memory(case, np.ones(3))
    dl.from_dlpack(memory.export().capsule())
    memory.data.fill(0)


def _release_twice(case: Case) -> None:
    tensor = Memory(case, np.ones(3)).export()
    dl.from_dlpack(tensor.capsule())
    tensor.deleted += 1


def _raise_system_error(_case: Case) -> None:
    raise SystemError("returned NULL without setting an exception")


kept: list[object] = []

HARM: dict[str, Callable[[Case], object]] = {
    "SystemError: returned NULL": _raise_system_error,
    "released memory was written": _overwrite,
    "taken 1 times and released 2 times": _release_twice,
    "1 references to a ndarray are left": lambda case: kept.append(case.keep(np.ones(3))),
    "dlfield's memory: ": lambda _case: kept.append(dl.zeros(3)),
    "freed memory was read": lambda case: case.read(np.frombuffer(bytes([FREED] * 64))),
    "uninitialized memory was read": lambda case: case.read(np.frombuffer(bytes([NEW] * 64))),
    "neither 0 nor 1": lambda case: case.read(np.full(3, 2, "u1").view("?")),
}


@pytest.mark.parametrize("said", HARM)
def test_harm_is_noticed(said: str) -> None:
    case = Case(0, Entry("harm", (), function=lambda: HARM[said](case)))
    [found] = case.run()
    kept.clear()
    assert said in found


@pytest.mark.parametrize(
    ("code", "said"),
    [("os.abort()", "SIGABRT"), ("os._exit(0)", "exit status 0"), ("os.kill(os.getpid(), 11)", "SIGSEGV")],
)
def test_a_process_that_ends_is_a_finding_and_others_go_on(code: str, said: str) -> None:
    process = pool.Process(7, 10, 2)
    process.command = [sys.executable, "-c", f"import os, sys; print('seed', sys.argv[2], flush=True); {code}"]
    process.run()
    assert [finding.seed for finding in process.findings] == [7, 9]
    assert all(said in finding.text for finding in process.findings)


# A process of its own, which a crash would end at the input that it has printed last.
CODE = """
import gc, json
import numpy as np
import dlfield as dl
from hostile_inputs import INPUTS, Consumer, result

def set_first(tensor):
    tensor[...] = 9.0

dlfield = Consumer(dl.from_dlpack, lambda tensor: [float(value) for value in np.asarray(tensor).flat[:6]], set_first)
# Searching the objects of PyTorch takes half a second for each input.
gc.collect()
gc.freeze()
for inputs in INPUTS.values():
    for one in inputs:
        print(json.dumps(one.what), flush=True)
        print(json.dumps(result(dlfield, one)))
"""


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    lines = [json.loads(line) for line in run_python(CODE).splitlines()]
    return dict(zip(lines[::2], lines[1::2], strict=True))


@pytest.mark.parametrize("hostile", [one for inputs in INPUTS.values() for one in inputs], ids=lambda one: one.what)
def test_a_hostile_input_is_read_right_or_refused(hostile: HostileInput, outcomes: dict[str, str]) -> None:
    assert outcomes[hostile.what] in ({"error"} if hostile.values is None else {"correct", "error"})


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
