"""The fuzz targets of `fuzz/`: a short run, the same each time, in `make check`; with another seed in `make fuzz`.

A run begins with every input of the corpus: a line of `fuzz/corpus/TARGET.hex` each, in hexadecimal. `make fuzz` keeps
the inputs that reach new code in `target/fuzz/corpus`; an input that fails is written to `target/fuzz/artifacts`.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILT = ROOT / "target/fuzz"
TARGETS = sorted(source.stem for source in (ROOT / "fuzz/fuzz_targets").glob("*.rs"))

# An input takes microseconds, with the sanitizer milliseconds: one that takes seconds would be found.
LIMITS = ["-timeout=20", "-rss_limit_mb=2048", "-max_len=512"]


def program(target: str) -> Path:
    """Return the program of a target, which cargo builds in a folder with the name of the host."""
    [built] = BUILT.glob(f"*/release/{target}")
    return built


def corpus(target: str) -> Path:
    """Return a folder with the inputs that are in the repository, a file each, as libFuzzer reads them."""
    folder = BUILT / "seeds" / target
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number, line in enumerate((ROOT / f"fuzz/corpus/{target}.hex").read_text(encoding="ascii").split()):
        (folder / f"{number:03}").write_bytes(bytes.fromhex(line))
    return folder


def search(target: str, seed: int, seconds: int) -> list[str]:
    """Return the command that searches from a seed, with the inputs of earlier searches too."""
    found, artifacts = BUILT / "corpus" / target, BUILT / "artifacts" / target
    for folder in (found, artifacts):
        folder.mkdir(parents=True, exist_ok=True)
    limits = [*LIMITS, f"-seed={seed % (1 << 31) + 1}", f"-max_total_time={seconds}", f"-artifact_prefix={artifacts}/"]
    return [str(program(target)), str(found), str(corpus(target)), "-verbosity=0", *limits]


def main() -> int:
    """Run every target for so many inputs; return 0 if none fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=int, help="inputs of each target, those of the corpus included")
    runs = parser.parse_args().runs
    for target in TARGETS:
        start, artifacts = time.monotonic(), BUILT / "artifacts" / target
        artifacts.mkdir(parents=True, exist_ok=True)
        limits = [*LIMITS, "-seed=1", f"-runs={runs}", f"-artifact_prefix={artifacts}/"]
        seeds = corpus(target)
        with tempfile.TemporaryDirectory() as found:
            command = [str(program(target)), found, str(seeds), "-verbosity=0", *limits]
            done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            print(f"{done.stdout}\nthe fuzz target {target} fails; again with:\n  {program(target)} INPUT")
            return 1
        inputs = len(list(seeds.iterdir()))
        print(
            f"{target}: {runs} inputs, {inputs} of them from the corpus, in {time.monotonic() - start:.0f} s",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
