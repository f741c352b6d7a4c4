"""Runs code in a Python process of its own."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

TESTS = Path(__file__).parents[1]

# Runs each case in a fork of the process, made after the common imports.
FORKING = r"""
import os, sys, traceback
def run_case(name, code):
    print(end="\0", flush=True)
    child = os.fork()
    if child == 0:
        try:
            exec(compile(code, f"<{name}>", "exec"), globals())
        except BaseException:
            traceback.print_exc(file=sys.stdout)
            sys.stdout.flush()
            os._exit(1)
        sys.stdout.flush()
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != 0:
        print(f"{name}: exit status {status}", flush=True)
"""


def run_python(code: str, timeout: float = 600) -> str:
    """Run `code` in a new interpreter and return its output; it has to exit with 0 and write nothing to stderr.

    The code can import the modules that the tests import. The timeout is for processes that hang; no test
    measures time with it.
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env=environment(),
    )
    assert (done.returncode, done.stderr) == (0, ""), f"exit status {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def environment() -> dict[str, str]:
    """The variables of this process, with the folders of tests that it imports from on the path of modules."""
    folders = [folder for folder in sys.path if TESTS in Path(folder).parents]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (*folders, os.environ.get("PYTHONPATH"))))}


def started(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a new interpreter that runs `code`, with pipes for its input and outputs."""
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment())


def line(process: subprocess.Popen[str]) -> str:
    """The next line that a process writes."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def case_outputs(prelude: str, cases: Mapping[str, str], timeout: float = 300) -> dict[str, str]:
    """Run each case after `prelude`, in a process of its own; what each wrote, and how it ended if not well.

    One new interpreter runs `prelude` and is then forked, so that frameworks are imported once.
    """
    runs = [f"run_case({name!r}, {textwrap.dedent(code)!r})" for name, code in cases.items()]
    output = run_python("\n".join([FORKING, textwrap.dedent(prelude), "sys.stdout.flush()", *runs]), timeout)
    return dict(zip(cases, output.split("\0")[1:], strict=True))


def run_cases(prelude: str, cases: Mapping[str, str], timeout: float = 300) -> None:
    """Run each case after `prelude`, in a process of its own; all have to succeed, and a crash ends only its case."""
    failed = {name: output for name, output in case_outputs(prelude, cases, timeout).items() if output}
    assert not failed, "\n".join(failed.values())
