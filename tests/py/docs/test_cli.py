"""The command `dlfield`, also `python -m dlfield`, and its page of the documentation."""

import doctest
import json
import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import entry_points, version
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

import dlfield as dl
from childproc import run_python
from dlfield.__main__ import main
from dlfield.cli import bench as _bench
from page_code import DOCS, FLAGS, blocks, run_session

PAGE = DOCS / "help" / "command-line.md"


def run(*arguments: str, cwd: Path | None = None, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command in `cwd`, with `path` added to the import path."""
    searched = os.pathsep.join(str(one) for one in (path, os.environ.get("PYTHONPATH")) if one)
    return subprocess.run(
        [sys.executable, "-m", "dlfield", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": searched},
    )


@pytest.fixture(scope="module")
def info() -> str:
    """The output of `info`."""
    done = run("info")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_info_names_versions_frameworks_and_cuda(info: str) -> None:
    lines = info.splitlines()
    assert any("dlfield" in line and dl.__version__ in line for line in lines)
    unavailable_reason = dl.cuda.unavailable_reason()
    if unavailable_reason is None:
        assert len(re.findall(r"(?m)^cuda\s+yes: cuda:\d is \w", info)) == dl.cuda.device_count()
    else:
        assert f"cuda     no: {unavailable_reason}" in lines
    for name in ("numpy", "torch", "jax", "xarray", "gt4py"):
        assert any(name in line and version(name) in line for line in lines), name


def test_info_says_which_protocols_each_framework_offers(info: str) -> None:
    rows = [line for line in info.splitlines() if "__dlpack__" in line]
    lines = {row.split()[0]: row for row in rows}
    for protocol in ("__dlpack_c_exchange_api__", "__array_interface__", "__array__", "__gt_dims__", "buffer"):
        assert protocol in lines["dlfield"]
    assert "__dlpack_c_exchange_api__" in lines["torch"]
    assert "jax" in lines
    assert "__dlpack_c_exchange_api__" not in lines["numpy"]
    assert "Error" not in info, "every installed framework could be asked"


def install(folder: Path, distribution: str, version: str, module: str) -> None:
    """Create the files of an installed distribution whose module makes NumPy arrays."""
    (folder / module).mkdir(exist_ok=True)
    (folder / module / "__init__.py").write_text("from numpy import zeros")
    metadata = folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    (metadata / "top_level.txt").write_text(module)


@pytest.mark.exhaustive
def test_info_knows_distributions_of_other_names(tmp_path: Path) -> None:
    install(tmp_path, "cupy-cuda12x", "13.9.1", "cupy")
    install(tmp_path, "cupy-cuda13x", "14.0", "cupy")
    (row,) = re.findall("(?m)^cupy .*", run("info", path=tmp_path).stdout)
    assert "13.9.1 (cupy-cuda12x), 14.0 (cupy-cuda13x)" in row
    assert "__array_interface__" in row


@pytest.mark.exhaustive
def test_info_survives_a_framework_that_cannot_be_imported(tmp_path: Path) -> None:
    (tmp_path / "cupy").mkdir()
    (tmp_path / "cupy" / "__init__.py").write_text("raise RuntimeError('no driver')")
    done = run("info", path=tmp_path)
    assert done.returncode == 0
    assert re.search(r"(?m)^cupy +unknown +RuntimeError: no driver$", done.stdout)


def test_info_is_the_same_in_json(capsys: pytest.CaptureFixture[str], info: str) -> None:
    assert main(["info", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["dlfield"] == dl.__version__
    assert found["cuda"]["unavailable_reason"] == dl.cuda.unavailable_reason()
    assert len(found["cuda"]["devices"]) == dl.cuda.device_count()
    for framework in found["frameworks"]:
        assert re.search(rf"(?m)^{framework['name']} +{re.escape(framework['version'] or '-')} ", info)
        assert bool(framework["protocols"]) != bool(framework["note"])


def output_of(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit status and everything printed."""
    capsys.readouterr()
    try:
        status = main(arguments)
    except SystemExit as ended:
        status = int(ended.code or 0)
    printed = capsys.readouterr()
    return status, printed.out + printed.err


@pytest.mark.parametrize("arguments", [["nonsense"], ["info", "--nonsense"], ["explain"], ["bench", "x"]])
def test_wrong_arguments_are_explained(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status, text = output_of(arguments, capsys)
    assert (status, text.startswith("usage: ")) == (2, True)


COMMANDS = {
    "info": ("--json",),
    "demo": ("--output", "dlfield-demo.png"),
    "bench": ("--json",),
    "explain": ("TARGET", ".npy", ".dlf", "MODULE:NAME"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_names_what_a_command_takes(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, text = output_of([command, "--help"], capsys)
    assert status == 0
    assert all(word in text for word in COMMANDS[command]), text


def test_help_names_all_commands(capsys: pytest.CaptureFixture[str]) -> None:
    status, text = output_of(["--help"], capsys)
    assert output_of([], capsys) == (0, text)
    [command] = entry_points(group="console_scripts", name="dlfield")
    assert (status, command.load()) == (0, main)
    assert f"{{{','.join(COMMANDS)}}}" in text
    assert (dl.__doc__ or "").splitlines()[0] in " ".join(text.split())
    assert output_of(["--version"], capsys) == (0, f"dlfield {dl.__version__}\n")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """One call for each measurement, of small fields."""
    for name, value in {"_ROUNDS": 1, "_SECONDS": 0.0, "_SMALL": (4, 4, 4), "_LARGE": (8, 8, 8)}.items():
        monkeypatch.setattr(_bench, name, value)


@pytest.mark.usefixtures("torch", "jax")
def test_the_commands_print_what_their_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With fewer rounds, on the file that the session of the page writes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_bench, "_ROUNDS", 1)
    monkeypatch.setattr(_bench, "_SECONDS", 0.0)
    assert run_session(PAGE.read_text(encoding="utf8")) > 0
    start = "$ dlfield "
    commands = [
        block.removeprefix(start).split("\n", 1) for block in blocks(PAGE, "console") if block.startswith(start)
    ]
    assert [arguments.split()[0] for arguments, _ in commands] == ["info", "explain", "explain", "bench"]
    for arguments, expected in commands:
        _, got = output_of(shlex.split(arguments), capsys)
        assert doctest.OutputChecker().check_output(expected, got, FLAGS), got


@pytest.mark.usefixtures("quick")
def test_bench_measures_what_is_installed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--json"]) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert {"dlfield", "numpy"} <= found["versions"].keys()
    assert len(found["microseconds"]) == 5
    for times in found["microseconds"].values():
        assert {"dlfield", "numpy"} <= times.keys() <= found["versions"].keys()
        assert all(microseconds > 0 for microseconds in times.values())
    assert printed.err == "", "no progress bar outside of terminals"
    monkeypatch.setitem(_bench.__dict__, "_OTHERS", ("torch_of_nobody",))
    assert main(["bench", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["versions"].keys() == {"dlfield", "numpy"}


def test_bench_survives_a_framework_that_cannot_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_framework.py").write_text("raise RuntimeError('no driver')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(_bench.__dict__, "_OTHERS", ("broken_framework",))
    assert _bench.libraries().keys() == {"dlfield", "numpy"}


class Terminal(StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_a_progress_bar() -> None:
    terminal = Terminal()
    bar = _bench.Bar(4, terminal)
    for _ in range(4):
        bar.advance()
    assert re.findall(r"(\d+) %", terminal.getvalue()) == ["25", "50", "75", "100"]
    bar.clear()
    assert terminal.getvalue().endswith(" \r")


MODULE = """
import numpy as np
import dlfield as dl
field = dl.zeros((40, 50), dims="KI", halo=(0, 2), alignment_size=64)
plain = np.ones((2, 3), order="F")[::-1]
empty = dl.zeros((0, 3))
scalar = dl.zeros(())
five = dl.zeros((2,) * 5)
class State:
    field = np.ones(3)
class Broken:
    @property
    def field(self):
        raise ValueError("not yet computed")
broken = Broken()
text = "no array"
def __getattr__(name):
    if name != "trained":
        raise AttributeError(name)
    import torch
    return torch.ones((2, 3)).requires_grad_()
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module `model_of_test` in the folder that the command is run in."""
    (tmp_path / "model_of_test.py").write_text(MODULE)
    (tmp_path / "broken_of_test.py").write_text("1 / 0")
    (tmp_path / "ending_of_test.py").write_text("raise SystemExit(3)")
    with (tmp_path / "bools.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (True, 2)})
    np.save(tmp_path / "objects.npy", np.array([object()]))
    (tmp_path / "short.npy").write_bytes(b"\x93NUMPY")
    (tmp_path / "folder.npy").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("field", ("dims +K, I", "halo +.*2, 2", "at K=0|along I", r"\.\.\. ", "K=39 +.h")),
        ("plain", ("numpy.ndarray", "not stated; dlfield's default is I, J", "compact, backwards", "protocol")),
        ("empty", ("no elements",)),
        ("scalar", ("one element", "shape +\\(\\)")),
        ("five", ("shape +.2, 2, 2, 2, 2", "I=0")),
        ("trained", ("torch.Tensor", "requires grad", "shape +.2, 3")),
        ("State.field", ("compact in C and Fortran order", "numpy +zero-copy")),
    ],
)
def test_explain_describes_objects_of_modules(
    name: str, found: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    status, text = output_of(["explain", f"model_of_test:{name}"], capsys)
    assert status == 0, text
    for pattern in (f"model_of_test:{name}", *found):
        assert re.search(pattern, text), (pattern, text)


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("missing.npy", "cannot open missing.npy: No such file or directory"),
        ("folder.npy", "cannot open folder.npy: "),
        ("short.npy", "short.npy: "),
        ("objects.npy", "objects.npy: .*object"),
        ("bools.npy", "bools.npy: the header of the .npy file is invalid: shape: expected integers, got .True, 2."),
        ("data.nc", "expected a file .npy or .dlf, or MODULE:NAME, such as mymodel:field, got 'data.nc'"),
        (":x", "expected .*, got ':x'"),
        ("model_of_test:", "expected .*, got 'model_of_test:'"),
        ("no_such_module:x", "cannot import no_such_module: ModuleNotFoundError: No module named 'no_such_module'"),
        (".relative:x", "cannot import .relative: TypeError"),
        ("broken_of_test:x", "cannot import broken_of_test: ZeroDivisionError"),
        ("ending_of_test:x", "cannot import ending_of_test: SystemExit: 3"),
        ("model_of_test:broken.field", "model_of_test:broken.field: ValueError: not yet computed"),
        ("model_of_test:nothing", "model_of_test:nothing: AttributeError: .*nothing"),
        ("model_of_test:State", "expected an array, got model_of_test:State, a type"),
        ("model_of_test:text", "expected an array, got model_of_test:text, a str"),
    ],
)
def test_explain_says_what_is_wrong_with_its_target(target: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, text = output_of(["explain", target], capsys)
    assert status == 2
    assert re.search(rf"(?m)^dlfield explain: error: TARGET: {said}", text), text


def test_explain_in_a_program_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a local variable, with the frameworks that are imported."""
    array = np.ones((2, 3)).T
    np.save(tmp_path / "a.npy", array)
    same = dl.open_field(tmp_path / "a.npy", "c")
    assert not same.readonly
    status, text = output_of(["explain", str(tmp_path / "a.npy")], capsys)
    first, rest = repr(dl.explain(same)).split("\n", 1)
    assert (status, first.split()) == (0, ["what", "a", "dlfield.Tensor"])
    assert text.split("\n", 1)[1].splitlines()[:-4] == rest.splitlines()[:-4]
    with pytest.raises(dl.NotAnArrayError):
        dl.explain("text")
    run_python("import dlfield as dl; text = dl.explain(dl.ones(3)); assert 'torch      not imported' in text, text")


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((2, 3)), "compact in C order"),
        (np.zeros((2, 3, 4)).transpose(0, 2, 1), "compact, neither in C nor in Fortran order"),
        (np.zeros((2, 3))[:, ::-1], "compact, backwards in memory"),
        (np.zeros((2, 3))[:, ::2], "not compact: there are gaps"),
        (np.broadcast_to(np.zeros(3), (2, 3)), "elements share memory"),
        (np.zeros((2, 1, 3))[:, :, :1].T, "not compact: there are gaps"),
    ],
)
def test_explain_says_not_compact_of_gaps_only(array: np.ndarray, said: str) -> None:
    assert re.search(rf"(?m)^layout .*\), {said}$", dl.explain(array))


def test_explain_finds_modules_in_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "my_model_of_test.py").write_text("import numpy as np\nfield = np.ones((2, 3))")
    done = run("explain", "my_model_of_test:field", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "I=1  o o o" in done.stdout


@pytest.mark.usefixtures("torch", "jax")
@pytest.mark.exhaustive
def test_demo_runs_a_stencil_and_saves_its_picture(tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    done = run("demo", "--output", str(picture), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "WRONG" not in done.stdout
    pointers = re.findall(r"(?m)^\s*(?:dlfield|NumPy|PyTorch|JAX)\s+(0x[0-9a-f]+)", done.stdout)
    assert len(pointers) == 4
    assert len(set(pointers)) == 1, "the same memory for all"
