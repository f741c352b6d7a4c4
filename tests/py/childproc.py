"""Code run in a Python process of its own."""

import subprocess
import sys
import textwrap


def run_python(code: str, timeout: float = 600) -> str:
    """Run `code` in a new interpreter and return its output; it has to exit with 0 and write nothing to stderr.

    The timeout is for processes that hang: no test is about how long one takes.
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=timeout, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), f"exit status {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout
