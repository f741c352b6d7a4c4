"""Count the instructions of the statements in `operations.py`, and compare them with `benches/instructions.md`.

`counts.py MODULES [--renew]`: MODULES is the folder with dlfield and the example extension as they are released. It
fails where the count in dlfield has risen by more than three percent; `--renew` writes the table instead.

Callgrind counts, so neither time nor other processes have an influence on what dlfield executes.
"""

import argparse
import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
TABLE = HERE.parent / "instructions.md"
TOLERANCE = 0.03
#: The objects whose instructions are those of dlfield.
OWN = re.compile(r"/(_native|rust_extension)\.[^/]*so$")
#: Of `operations.py`.
GROUPS = ("arrays", "gt4py")
REQUEST = "desc: Trigger: Client Request: "
PACKAGES = ("numpy", "torch", "jax", "apache-tvm-ffi", "gt4py")

DOCUMENT = """\
# Instructions of each operation

`make counts RENEW=1` wrote this table. An operation is a statement of `benches/py/operations.py`, which has the values
of its names, too. The first number is how many instructions one execution takes on one thread, in all libraries,
without those of the loop around it; the second, how many of them are in dlfield's compiled module or in the example
extension.

- Tools: {tools}
- Others: {others}

| operation | instructions | in dlfield |
| --- | ---: | ---: |
{rows}"""

# The instructions of an operation: all, and those of dlfield.
Counts = dict[str, tuple[int, int]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="counts.py", description=__doc__)
    parser.add_argument("modules", type=Path)
    parser.add_argument("--renew", action="store_true")
    arguments = parser.parse_args()
    counts = count(arguments.modules.absolute())
    if arguments.renew:
        rows = "".join(f"| `{name}` | {total} | {own} |\n" for name, (total, own) in counts.items())
        TABLE.write_text(DOCUMENT.format(tools=tools(), others=others(), rows=rows))
        return 0
    return compare(counts)


def compare(counts: Counts) -> int:
    """Print what differs from the table, and return the exit status."""
    text = TABLE.read_text()
    known = {
        name: (int(total), int(own)) for name, total, own in re.findall(r"^\| `(.+)` \| (\d+) \| (\d+) \|$", text, re.M)
    }
    then = dict(re.findall(r"^- (Tools|Others): (.+)$", text, re.M))
    if then["Tools"] != tools():
        print(f"counts: not comparable: the table is of {then['Tools']}, this is {tools()}")
        return 0
    risen = _differing(known, counts, 1, lambda old, new: new > old * (1 + TOLERANCE))
    fallen = _differing(known, counts, 1, lambda old, new: new < old * (1 - TOLERANCE))
    if fallen:
        print(
            "counts: fewer in dlfield than in benches/instructions.md; make counts RENEW=1 keeps that:",
            *fallen,
            sep="\n",
        )
    if risen:
        print(
            "counts: more in dlfield than in benches/instructions.md; if that is meant, make counts RENEW=1:",
            *risen,
            sep="\n",
        )
    # Those of others depend on their versions, and on where objects lie: the same program differs by up to ten percent.
    others_risen = _differing(known, counts, 0, lambda old, new: new > old * (1 + TOLERANCE))
    if then["Others"] == others() and others_risen:
        print("counts: more in all libraries together, which is not an error:", *others_risen, sep="\n")
    if changed := sorted(known.keys() ^ counts.keys()):
        print("counts: benches/instructions.md has other operations; make counts RENEW=1:", *changed, sep="\n  ")
    if not (risen or changed):
        print(f"counts: none of {len(counts)} operations takes more instructions than benches/instructions.md says")
    return int(bool(risen or changed))


def _differing(known: Counts, counts: Counts, column: int, differs: Callable[[int, int], bool]) -> list[str]:
    """Return a line for each operation whose old and new count differ so."""
    lines = []
    for name in sorted(known.keys() & counts.keys()):
        old, new = known[name][column], counts[name][column]
        if differs(old, new):
            lines.append(f"  {name}: {old} -> {new}, {100 * (new - old) / max(old, 1):+.1f} %")
    return lines


def tools() -> str:
    """Return what all counts depend on."""
    rustc = subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    return f"Python {sys.version_info[0]}.{sys.version_info[1]}, rustc {rustc}, {platform.machine()}"


def others() -> str:
    """Return the versions of what else has instructions in the counts."""
    valgrind = subprocess.run(["valgrind", "--version"], check=True, capture_output=True, text=True).stdout.strip()
    python = f"Python {platform.python_version()} by {platform.python_compiler()}"
    packages = (f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    return ", ".join([python, " ".join(platform.libc_ver()), *packages, valgrind.replace("-", " "), _processor()])


def _processor() -> str:
    """Return what the C library chooses its functions by, in short."""
    file = Path("/proc/cpuinfo")
    found = (
        dict(re.findall(r"^(vendor_id|cpu family|model)\s*: (\S+)$", file.read_text(), re.M)) if file.exists() else {}
    )
    return " ".join(found.values()) or "another processor"


def count(modules: Path) -> Counts:
    """Count the instructions of all operations; each group has a process of its own."""
    marks = modules.parent / "marks.so"
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", HERE.parent / "marks.c", "-o", marks], check=True)
    with ThreadPoolExecutor() as pool:
        groups = pool.map(lambda group: _count(group, modules, marks), GROUPS)
        return {name: counted for group in groups for name, counted in group.items()}


def _count(group: str, modules: Path, marks: Path) -> Counts:
    folder = modules.parent
    for old in folder.glob(f"{group}.*"):
        old.unlink()
    # Not the caller's variables: their length moves the stack.
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(modules),
        "PYTHONHASHSEED": "0",
        "JAX_PLATFORMS": "cpu",
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1"),
    }
    valgrind = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={group}.out"]
    program: list[str | Path] = [sys.executable, HERE / "operations.py", group, marks]
    # First without valgrind, where GT4Py compiles its stencil and Python its modules in a fraction of the time.
    for command in (program, [*valgrind, *program]):
        subprocess.run(command, check=True, cwd=folder, env=environment)
    return read(folder, group)


def read(folder: Path, group: str) -> Counts:
    """Return the counts that callgrind has written: the warm-up of each statement, few calls of it, and many."""
    parts = [_part(folder / f"{group}.out.{number}") for number in range(1, 1 + len([*folder.glob(f"{group}.out.*")]))]
    found = {}
    for few, many in zip(parts[1::3], parts[2::3], strict=True):
        (calls, name), (more_calls, _) = few.name.split(" ", 1), many.name.split(" ", 1)
        more = int(more_calls) - int(calls)
        found[name] = ((many.total - few.total) / more, (many.own - few.own) / more)
    # Of the loop alone.
    total, own = found.pop(next(iter(found)))
    return {name: (round(each[0] - total), round(each[1] - own)) for name, each in found.items()}


@dataclass
class Part:
    """What was executed between two marks: its name, all instructions, and those of dlfield."""

    name: str = ""
    total: int = 0
    own: int = 0


def _part(path: Path) -> Part:
    """Return a part that callgrind has written."""
    part = Part()
    is_own, is_call = False, False
    objects: dict[str, bool] = {}
    for line in path.read_text().splitlines():
        key, _, value = line.partition("=")
        if line.startswith(REQUEST):
            part.name = line.removeprefix(REQUEST)
        elif key in ("ob", "cob"):
            # A name follows its number where it is first used.
            number, _, name = value.partition(" ")
            if name:
                objects[number] = bool(OWN.search(name))
            if key == "ob":
                is_own = objects[number]
        elif key == "calls":
            # The next line has the cost of the function that is called, which has lines of its own.
            is_call = True
        elif line[:1].isdigit() or line[:1] in ("+", "-", "*"):
            if not is_call:
                cost = int(line.split()[1])
                part.total += cost
                part.own += cost * is_own
            is_call = False
    return part


if __name__ == "__main__":
    sys.exit(main())
