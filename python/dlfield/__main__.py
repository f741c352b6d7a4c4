"""`python -m dlfield`: shows the installed frameworks and their protocols, or runs a demonstration."""

import argparse
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

import dlfield as dl
from dlfield import _demo, _native
from dlfield._installed import Framework, frameworks, offered_protocols


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status: 0 for success, 1 if something is missing or wrong."""
    parser = argparse.ArgumentParser(prog="python -m dlfield", description=(dl.__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("info", help="version, frameworks and the protocols each offers, CUDA")
    demo = commands.add_parser("demo", help="a GT4Py stencil on memory that NumPy, PyTorch and JAX share")
    demo.add_argument(
        "--output",
        type=Path,
        default=Path("dlfield-demo.png"),
        help="where the picture goes (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    if options.command == "info":
        _info()
        return 0
    if not options.output.absolute().parent.is_dir():
        demo.error(f"--output: found {options.output}, whose folder does not exist")
    return _demo.run(options.output)


def _info() -> None:
    python = f"{platform.python_implementation()} {platform.python_version()}"
    print(f"dlfield  {dl.__version__}")
    print(f"python   {python} on {platform.system()} {platform.machine()}")
    for line in _cuda():
        print(f"cuda     {line}")
    print()
    rows = [("framework", "version", "exchanges memory by")]
    rows += [
        (found.name, found.version or "-", found.note or ", ".join(found.protocols))
        for found in (Framework("dlfield", dl.__version__, offered_protocols(dl.zeros(1))), *frameworks())
    ]
    width = max(len(version) for _, version, _ in rows)
    for name, version, what in rows:
        print(f"{name:<10} {version:<{width}} {what}")


def _cuda() -> list[str]:
    """Return one line for each CUDA device, or the reason why there is none."""
    unavailable_reason = dl.cuda.unavailable_reason()
    if unavailable_reason is not None:
        return [f"no: {unavailable_reason}"]
    return [f"yes: cuda:{number} is {_native._cuda_device_name(number)}" for number in range(dl.cuda.device_count())]


if __name__ == "__main__":
    sys.exit(main())
