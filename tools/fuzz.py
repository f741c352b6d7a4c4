"""The properties, Rust's and Python's, the fuzz targets and the adversary, with other cases in each run: `make fuzz`.

Goes round until the time is over or something is found, and then says how to see it again. What is found becomes a test
with that very case written down: the tests draw the same cases in every run, so it would not be found again.
"""

import argparse
import os
import secrets
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import fuzz_targets

ROOT = Path(__file__).parents[1]
DOUBLE = {
    "DLFIELD_FAKE_CUDA": "1",
    "DLFIELD_FAKE_CUDA_DEVICES": "2",
    "LD_LIBRARY_PATH": str(ROOT / "target/cuda_sim/lib"),
}
RUST = ["cargo", "test", "--quiet", "--features", "cuda,ndarray", "--test"]
PYTHON = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "hypothesis", "--hypothesis-profile=fuzz"]
# Calls with hostile objects, in one round.
ADVERSARY_CASES = 10_000


def searches(seed: int) -> list[tuple[dict[str, str], list[str]]]:
    """Return what one round runs: additions to the environment, and a command."""
    rust, python = {"PROPTEST_RNG_SEED": str(seed), "PROPTEST_CASES": "64"}, f"--hypothesis-seed={seed}"
    return [
        (rust, [*RUST, "it"]),
        ({}, [*PYTHON, python]),
        ({**DOUBLE, **rust}, [*RUST, "cuda"]),
        (DOUBLE, [*PYTHON, python, "tests/py/cuda"]),
        *(({}, fuzz_targets.search(target, seed, seconds=20)) for target in fuzz_targets.TARGETS),
        (
            {},
            [sys.executable, "tests/py/support/adversary", f"--start={seed}", f"--count={ADVERSARY_CASES}", "--first"],
        ),
    ]


def main() -> int:
    """Search; return 0 if nothing was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", type=float, help="how long to search: what runs then is not finished")
    end = time.monotonic() + parser.parse_args().seconds
    rounds = 0
    while True:
        for environment, command in searches(secrets.randbelow(1 << 32)):
            shown = " ".join([f"{name}={value}" for name, value in environment.items()] + [shlex.join(command)])
            print(f"== {shown}", flush=True)
            status = run(command, {**os.environ, **environment}, end - time.monotonic())
            if status is None:
                print(f"nothing found in {rounds} full rounds")
                return 0
            if status != 0:
                print(f"found; again with:\n  {shown}")
                return 1
        rounds += 1


def run(command: list[str], environment: dict[str, str], seconds: float) -> int | None:
    """Return the command's exit status, or None if the time was over first."""
    # A group of its own, with which the tests end that cargo has started.
    process = subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True)
    try:
        return process.wait(max(seconds, 0))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
        return None


if __name__ == "__main__":
    sys.exit(main())
