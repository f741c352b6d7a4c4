"""Runs cases in processes of their own, so that a crash names its case and the others go on."""

from __future__ import annotations

import ast
import faulthandler
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from adversary.entries import Entry

TESTS = Path(__file__).parents[1]
# A case that runs longer hangs. Loaded machines take seconds for what usually takes milliseconds.
LIMIT = 120
ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    # `memory.FREED`.
    # Freed objects are overwritten, and use without the GIL is fatal.
    "PYTHONMALLOC": "debug",
    # So is freed memory; blocks of 32 KiB are unmapped at once, so that a later use crashes.
    "MALLOC_PERTURB_": "165",
    "MALLOC_MMAP_THRESHOLD_": str(1 << 15),
    "JAX_PLATFORMS": "cpu",
    "OMP_NUM_THREADS": "1",
}


class Finding(NamedTuple):
    seed: int
    text: str


class Hunt(NamedTuple):
    """How many cases were run, the calls of dlfield's functions in them, and what was found."""

    cases: int
    calls: int
    findings: list[Finding]


def worker(seeds: Iterable[int], only: Sequence[str] = (), *, verbose: bool = False) -> None:
    """Run cases in this process; print each seed before its case, and what was found after it.

    `only` has parts of the names of functions: those are called alone, if there is any.
    """
    # Imported here: the parent needs no framework.
    import gc

    from adversary.case import Case
    from adversary.entries import entries

    faulthandler.enable()
    # A case that hangs prints where, and ends the process.
    faulthandler.register(signal.SIGALRM, chain=True)
    turns = Turns([entry for entry in entries() if not only or any(part in entry.name for part in only)])
    gc.collect()
    gc.freeze()
    for seed in seeds:
        print(f"seed {seed}", flush=True)
        signal.setitimer(signal.ITIMER_REAL, LIMIT)
        case = Case(seed, turns.function(seed), verbose=verbose)
        findings = case.run()
        # What is still there are modules that were imported: later collections would take as long as all modules do.
        gc.freeze()
        for text in findings:
            print(f"found {text!r}", flush=True)
        print(f"calls {case.calls}", flush=True)
    print("end", flush=True)


class Turns:
    """Which function each case calls: seeds in a row call all in turn, then again those that take arrays."""

    def __init__(self, functions: Sequence[Entry]) -> None:
        arrays = [entry for entry in functions if entry.takes_arrays()]
        self.sorted = [*functions, *arrays, *arrays]
        self.rounds, self.shuffled = 0, self.sorted

    def function(self, seed: int) -> Entry:
        """The function of one case. Each round has an order of its own."""
        rounds, at = divmod(seed, len(self.sorted))
        if rounds != self.rounds:
            self.rounds, self.shuffled = rounds, list(self.sorted)
            random.Random(rounds).shuffle(self.shuffled)
        return self.shuffled[at] if rounds else self.sorted[at]


class Process:
    """A worker over every `step`-th seed, started again after a crash."""

    def __init__(self, start: int, stop: int, step: int, functions: Sequence[str] = ()) -> None:
        self.next, self.stop, self.step = start, stop, step
        self.findings: list[Finding] = []
        self.cases = self.calls = 0
        self.until = math.inf
        self.command = [sys.executable, str(TESTS / "adversary")]
        self.functions = ["--functions", *functions] if functions else []

    def run(self) -> None:
        """Run until all seeds are through, or `until` is over."""
        while self.next < self.stop and time.monotonic() < self.until:
            self._run_one()

    def enter(self, finding: Finding) -> None:
        """Enter a finding, and print it: a search may take hours."""
        self.findings.append(finding)
        print(f"seed {finding.seed}: {finding.text}", flush=True)

    def _run_one(self) -> None:
        arguments = ["--worker", str(self.next), str(self.stop), str(self.step)]
        process = subprocess.Popen(
            [*self.command, *arguments, *self.functions],
            env={**os.environ, **ENVIRONMENT},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        said: list[str] = []
        stderr = process.stderr
        reader = threading.Thread(target=lambda: said.extend(stderr))
        reader.start()
        seed, ended = self.next, False
        for line in process.stdout:
            if time.monotonic() > self.until:
                ended = True
                process.kill()
                break
            word, _, rest = line.partition(" ")
            if word == "seed":
                seed = int(rest)
                self.next = seed + self.step
                self.cases += 1
            elif word == "calls":
                self.calls += int(rest)
            elif word == "found":
                self.enter(Finding(seed, ast.literal_eval(rest)))
            ended = line == "end\n"
        status = process.wait()
        reader.join()
        if not ended:
            self.next = max(self.next, seed + self.step)
            how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
            # Not the list of all modules, which `faulthandler` prints last.
            where = "".join(line for line in said[:60] if not line.startswith("Extension modules"))
            self.enter(Finding(seed, f"the process ended, {how}:\n{where}"))


def hunt(
    start: int,
    count: int,
    seconds: float = math.inf,
    workers: int = 2,
    *,
    first: bool = False,
    functions: Sequence[str] = (),
) -> Hunt:
    """Run cases in some processes. With `first` it stops at what is found."""
    processes = [Process(start + at, start + count, workers, functions) for at in range(workers)]
    for process in processes:
        process.until = time.monotonic() + seconds
    threads = [threading.Thread(target=process.run) for process in processes]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(0.1)
        if first and any(process.findings for process in processes):
            for process in processes:
                process.until = 0
    findings = [finding for process in processes for finding in process.findings]
    cases, calls = (sum(getattr(process, name) for process in processes) for name in ("cases", "calls"))
    return Hunt(cases, calls, sorted(findings))
