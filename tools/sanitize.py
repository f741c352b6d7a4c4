"""The module and the example extension under sanitizers: `make sanitize`.

The runtime of a sanitizer has to be in the program that loads the module: so each sanitizer gets an interpreter of its
own, in a folder that looks like a copy of `.venv`. A program that is not installed is named, and is not a failure.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FILES = ROOT / "tools/sanitizers"
TARGET = ROOT / "target/sanitize"
VENV = Path(sys.prefix)
PYTHON_TESTS = ROOT / "tests/py"
# What the programs import.
FOLDERS = [PYTHON_TESTS / "support", PYTHON_TESTS / "tensor", PYTHON_TESTS / "alloc"]

# Python tests that cannot run under AddressSanitizer, and why.
LEFT_OUT = {
    "adversary": "runs below, without the tests of the adversary itself, which crash processes",
    "dask_cluster": "starts a cluster",
    "docs": "compares sessions with pages, in processes with compilers and clusters",
    "docs_fortran": "as test_docs",
    "notebook": "starts a browser",
    "mpi": "starts processes of MPI",
    "ray": "starts a cluster",
}
# As many cases as in `make test`.
ADVERSARY_CASES = 500
# Tests in Rust with several threads, by parts of their names.
RUST_LIBRARY = ["copy::parts", "memory::", "tensor::owner"]
RUST_TESTS = ["reads::", "owners::", "imports::", "threads"]


class MissingError(Exception):
    """A program or library is not installed; the text names it."""


def run(command: Iterable[object], /, folder: Path = ROOT, **variables: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, and return what it said."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", **variables}
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout + done.stderr, "")


def built(command: Iterable[object], /, folder: Path = ROOT, **variables: Any) -> str:
    """Run a command that has to succeed, and return what it said."""
    done = run(command, folder, **variables)
    if done.returncode:
        raise SystemExit(f"{' '.join(done.args)}\n{done.stdout}")
    return done.stdout


class Sanitized:
    """The interpreter and the modules with one sanitizer."""

    def __init__(self, name: str, flags: str, toolchain: dict[str, Any]) -> None:
        self.folder = TARGET / name
        self.name = name
        self.build_variables: dict[str, Any] = {
            **toolchain,
            "RUSTFLAGS": flags,
            "CARGO_TARGET_DIR": str(self.folder / "build"),
            "CARGO_PROFILE_CHECKED_DEBUG": "line-tables-only",
        }
        if run(["rustc", "--version"], **toolchain).returncode:
            raise MissingError(f"the toolchain {toolchain}")
        self.host = re.findall(r"^host: (.*)$", built(["rustc", "-vV"], **toolchain), re.MULTILINE)[0]
        libraries = Path(built(["rustc", "--print", "target-libdir"], **toolchain).strip())
        runtimes = sorted(libraries.glob(f"librustc-*_rt.{name}.a"))
        if not runtimes:
            raise MissingError(f"the runtime of {name} in {libraries}")
        self.runtime = runtimes[0]
        self.python = self.folder / "bin/python"
        for report in self.folder.glob("report.*"):
            report.unlink()

    def make_interpreter(self) -> None:
        """Link an interpreter with the runtime. With C++: what throws in a module is intercepted too."""
        if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
            raise MissingError("a shared libpython")
        self.python.parent.mkdir(parents=True, exist_ok=True)
        folder, version = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("LDVERSION")
        runtime = ["-Wl,--whole-archive", self.runtime, "-Wl,--no-whole-archive", "-Wl,--export-dynamic"]
        libraries = ["-Wl,--no-as-needed", "-lstdc++", f"-L{folder}", f"-Wl,-rpath,{folder}", f"-lpython{version}"]
        include = f"-I{sysconfig.get_path('include')}"
        built(
            ["cc", FILES / "launcher.c", "-o", self.python, include, *runtime, *libraries, "-lpthread", "-ldl", "-lm"]
        )
        shutil.copyfile(VENV / "pyvenv.cfg", self.folder / "pyvenv.cfg")
        packages = self.folder / "lib"
        packages.unlink(missing_ok=True)
        packages.symlink_to(VENV / "lib")

    def make_modules(self, sources: dict[str, list[str]]) -> None:
        """Build the crates in these folders with these arguments, and install them next to `.venv`."""
        for name in ("wheels", "python"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        wheels = self.folder / "wheels"
        options = ["--quiet", "--profile", "checked", "--strip", "false", "--auditwheel", "skip"]
        where = ["--target", self.host, "--interpreter", sys.executable, "--out", wheels]
        for folder, arguments in sources.items():
            built(
                [VENV / "bin/maturin", "build", *options, *where, *arguments],
                ROOT / folder,
                VIRTUAL_ENV=str(VENV),
                **self.build_variables,
            )
        target = ["--no-deps", "--target", self.folder / "python"]
        built(
            [VENV / "bin/uv", "pip", "install", "--quiet", "--python", sys.executable, *target, *wheels.glob("*.whl")]
        )

    def call(self, arguments: Iterable[object], options: str, **variables: Any) -> subprocess.CompletedProcess[str]:
        """Run the interpreter. Its reports go to files: pytest would swallow them."""
        path = os.pathsep.join(str(folder) for folder in (self.folder / "python", *FOLDERS))
        return run(
            [self.python, *arguments],
            PYTHONPATH=path,
            **{
                f"{self.name.upper()}_OPTIONS": f"{options}:log_path={self.folder}/report",
                "PYTHONMALLOC": "malloc",
                **variables,
            },
        )

    def reports(self) -> list[str]:
        """Return what the sanitizer has reported since the last call."""
        found = []
        for path in sorted(self.folder.glob("report.*")):
            found.append(path.read_text())
            path.unlink()
        return found


def address() -> bool:
    """AddressSanitizer: the tests in Python, and the adversary."""
    asan = address_sanitizer()
    options = "detect_leaks=0:allocator_may_return_null=1"
    ignored = [f"--ignore={path}" for name in LEFT_OUT for path in PYTHON_TESTS.rglob(f"test_{name}.py")]
    tests = asan.call(["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/py", *ignored], options)
    print(f"asan: the Python tests: {tests.stdout.splitlines()[-1]}")
    for name, reason in LEFT_OUT.items():
        print(f"asan: without test_{name}.py: it {reason}")
    adversary = asan.call(["tests/py/support/adversary", "--start", "0", "--count", ADVERSARY_CASES], options)
    print(f"asan: the adversary: {adversary.stdout.splitlines()[-1]}")
    failed = [run.stdout for run in (tests, adversary) if run.returncode]
    return told("asan", [*asan.reports(), *failed])


def address_sanitizer() -> Sanitized:
    """Build the interpreter and both modules with AddressSanitizer."""
    # The stable toolchain has the runtime; the variable makes it accept the flag.
    asan = Sanitized("asan", "-Zsanitizer=address", {"RUSTC_BOOTSTRAP": "1"})
    asan.make_interpreter()
    asan.make_modules({".": [], "examples/rust_extension": ["--features", "cuda,kinds,peers"]})
    return asan


def leaks() -> bool:
    """LeakSanitizer, which is a part of AddressSanitizer: what is left when everything was dropped."""
    asan = address_sanitizer()
    # Python is compiled without frame pointers.
    options = "allocator_may_return_null=1:fast_unwind_on_malloc=0:malloc_context_size=40"
    suppressions: dict[str, Any] = {"LSAN_OPTIONS": f"suppressions={FILES}/lsan.supp:print_suppressions=0"}
    found = {}
    for argument in ("leak", ""):
        done = asan.call([FILES / "leaks_at_exit.py", argument], options, **suppressions)
        blocks = [block for report in asan.reports() for block in report.split("\n\n") if " leak of " in block]
        found[argument] = [block for block in blocks if is_own(block)]
        others = len(blocks) - len(found[argument])
    print(f"lsan: {done.stdout.strip()}, {len(found[''])} leaks, and {others} of Python and other libraries")
    missed = [] if found["leak"] else ["a tensor that was leaked on purpose is not found"]
    return told("lsan", [*found[""], *missed])


def is_own(leak: str) -> bool:
    """Whether a call of the module has allocated this, and not an import in it: other modules keep what they make."""
    for frame in leak.splitlines():
        if "_native" in frame or "PyImport_ImportModuleLevelObject" in frame:
            return "_native" in frame
    return False


def threads() -> bool:
    """ThreadSanitizer: the tests in Rust that have threads, and what runs in Python without the GIL."""
    # With the standard library compiled anew: the sanitizer has to see what its locks do.
    toolchain: dict[str, Any] = {"RUSTUP_TOOLCHAIN": "nightly", "CARGO_UNSTABLE_BUILD_STD": "std"}
    tsan = Sanitized("tsan", "-Zsanitizer=thread", toolchain)
    sysroot = Path(built(["rustc", "--print", "sysroot"], **toolchain).strip())
    if not (sysroot / "lib/rustlib/src/rust/library/std").exists():
        raise MissingError("rust-src: rustup component add rust-src --toolchain nightly")
    options = f"allocator_may_return_null=1:log_path={tsan.folder}/report"
    wrong: list[str] = []
    for target, names in ((["--lib"], RUST_LIBRARY), (["--test", "it"], RUST_TESTS)):
        command = ["cargo", "test", "--quiet", "--features", "ndarray", *target, "--target", tsan.host]
        variables: dict[str, Any] = {**tsan.build_variables, "TSAN_OPTIONS": options, "PROPTEST_CASES": "4"}
        done = run([*command, "--", *names], **variables)
        results = re.findall(r"^test result: (.*?);", done.stdout, re.MULTILINE)
        print(f"tsan: cargo test {' '.join(target)}: {'; '.join(results)}")
        wrong += [done.stdout] if done.returncode or " 0 passed" in "".join(results) else []
    wrong += tsan.reports()
    tsan.make_interpreter()
    tsan.make_modules({".": []})
    found = {}
    for argument in ("race", ""):
        # Python and NumPy are not compiled with the sanitizer.
        done = tsan.call([FILES / "threads_without_gil.py", argument], "ignore_noninstrumented_modules=1")
        found[argument] = tsan.reports()
    print(f"tsan: without the GIL: {done.stdout.strip()}, {len(found[''])} reports")
    missed = [] if found["race"] else ["a race that was made on purpose is not found"]
    return told("tsan", [*wrong, *found[""], *missed])


def told(part: str, wrong: list[str]) -> bool:
    """Print what is wrong; return whether nothing is."""
    for text in wrong:
        print(f"{part} FOUND:\n{text}")
    return not wrong


PARTS: dict[str, Callable[[], bool]] = {"asan": address, "lsan": leaks, "tsan": threads}


def main() -> int:
    """Run the parts that are named, or all; return 0 if nothing was found."""
    well = True
    for name in sys.argv[1:] or PARTS:
        try:
            well &= PARTS[name]()
        except MissingError as missing:
            print(f"{name}: NOT RUN: this machine does not have {missing}")
    return int(not well)


if __name__ == "__main__":
    sys.exit(main())
