"""`python -m dlfield`: what is installed and what it can exchange, and a demonstration."""

import argparse
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

import dlfield as dl
from dlfield import _demo
from dlfield._installed import frameworks, offered_protocols


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status: 0 for success, 1 where something is missing or wrong."""
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
        demo.error(f"--output: found {options.output}, its folder must exist")
    return _demo.run(options.output)


def _info() -> None:
    python = f"{platform.python_implementation()} {platform.python_version()}"
    print(f"dlfield  {dl.__version__}")
    print(f"python   {python} on {platform.system()} {platform.machine()}")
    print("cuda     no: this build of dlfield has no CUDA support yet, its memory is the host's")
    print()
    print(f"{'framework':<15} {'version':<14} exchanges memory by")
    own = ", ".join(offered_protocols(dl.zeros(1)))
    print(f"{'dlfield':<15} {dl.__version__:<14} {own}")
    for framework in frameworks():
        what = framework.note or ", ".join(framework.protocols)
        print(f"{framework.name:<15} {framework.version or '-':<14} {what}")


if __name__ == "__main__":
    sys.exit(main())
