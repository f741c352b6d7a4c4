"""Whether the adversary finds the old crashes: `make mutants`.

Takes the fix of each out of a copy of the sources, builds the module, and runs the adversary on it with the same
seeds. The first runs are of unchanged sources: they find nothing, so what the others find is due to the change.
"""

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from mutations import MUTATIONS

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "target/mutants"
TREE = FOLDER / "tree"
EXTENSION = FOLDER / "extension"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")


def main() -> int:
    """Search on each mutant; return how many were not found, and how many findings the unchanged sources have."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000, help="how many cases to run on each")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--only", nargs="+", default=[""], help="mutations whose name contains one of these texts")
    given = parser.parse_args()
    chosen = [mutation for mutation in MUTATIONS if any(text in mutation.name for text in given.only)]
    copy_sources()
    build_extension()
    build_module()
    unexpected = 0
    for functions in dict.fromkeys(mutation.functions for mutation in chosen):
        cases, found = search(given.start, given.count, functions)
        where = f" in {', '.join(functions)}" if functions else ""
        print(f"unchanged sources{where}: {found or 'nothing'} found in {cases} cases", flush=True)
        unexpected += bool(found)
    # Whether the example extension is that of unchanged sources.
    is_original = True
    for mutation in chosen:
        copy_sources()
        if not is_original:
            build_extension()
        mutation.apply(TREE)
        if mutation.of_extension:
            build_extension()
        is_original = not mutation.of_extension
        build_module()
        cases, found = search(given.start, given.count, mutation.functions)
        print(
            f"{mutation.name}: {f'found after {cases} cases, {found}' if found else f'NOT FOUND in {cases} cases'}",
            flush=True,
        )
        unexpected += not found
    return unexpected


def copy_sources() -> None:
    """Make the copy as the sources are. Cargo compares times: what is equal already is left alone."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in listed.stdout.splitlines():
        source, copy = ROOT / name, TREE / name
        if source.is_file() and not (copy.exists() and copy.read_bytes() == source.read_bytes()):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)


def build_module() -> None:
    """Build the module of the copy."""
    _build(TREE, ["--package", "dlfield-python"], "lib_native.so", TREE / f"python/dlfield/_native{SUFFIX}")


def build_extension() -> None:
    """Build the example extension of the copy."""
    EXTENSION.mkdir(exist_ok=True)
    folder = TREE / "examples/rust_extension"
    _build(folder, ["--features", "cuda,kinds,peers"], "librust_extension.so", EXTENSION / f"rust_extension{SUFFIX}")


def _build(folder: Path, arguments: list[str], made: str, target: Path) -> None:
    # A folder of its own: the module of `make test` stays. Incremental, as one line differs from build to build.
    settings = {"CARGO_TARGET_DIR": str(FOLDER / "build"), "CARGO_INCREMENTAL": "1", "PYO3_PYTHON": sys.executable}
    command = ["cargo", "build", "--quiet", "--profile", "checked", *arguments]
    subprocess.run(command, cwd=folder, env={**os.environ, **settings}, check=True)
    # Not written over: the file may be mapped.
    target.unlink(missing_ok=True)
    shutil.copyfile(FOLDER / "build/checked" / made, target)


def search(start: int, count: int, functions: Sequence[str]) -> tuple[int, str]:
    """Run the adversary on the copy until it finds something; return the cases, and the first line of its finding."""
    paths = [str(TREE / "python"), str(EXTENSION), os.environ.get("PYTHONPATH", "")]
    command = [
        sys.executable,
        str(ROOT / "tests/py/support/adversary"),
        f"--start={start}",
        f"--count={count}",
        "--first",
    ]
    command += ["--functions", *functions] if functions else []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    lines = run.stdout.splitlines()
    # A worker that cannot import the module exits with a status, too: that finds no mutation.
    found = [line for line in lines if line.startswith("seed ") and "exit status" not in line]
    return int(lines[-1].split()[0]), found[0] if found else ""


if __name__ == "__main__":
    sys.exit(main())
