"""The command `dlfield`, also `python -m dlfield`: what is installed, a demonstration, measurements, explanations."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import dlfield as dl
from dlfield.cli import bench as _bench
from dlfield.cli import demo as _demo
from dlfield.cli import explain as _explain
from dlfield.cli import info as _info

# Not the package's docstring: `python -OO` removes it.
_DESCRIPTION = "Fields with the layout a stencil needs, shared without a copy with every array library."
_JSON = "print JSON instead of text"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status: 0 for success, 1 if something is missing or wrong.

    Without arguments it prints the help. Wrong arguments end the process with status 2 and a line that says what is
    wrong.
    """
    parser = argparse.ArgumentParser(prog="dlfield", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"dlfield {dl.__version__}")
    commands = parser.add_subparsers(dest="command")
    info = commands.add_parser("info", help="version, frameworks and the protocols each offers, CUDA")
    info.add_argument("--json", action="store_true", help=_JSON)
    demo = commands.add_parser("demo", help="a GT4Py stencil on memory that NumPy, PyTorch and JAX share")
    demo.add_argument(
        "--output",
        type=Path,
        default=Path("dlfield-demo.png"),
        help="where the picture goes (default: %(default)s)",
    )
    bench = commands.add_parser("bench", help="compare dlfield with the installed frameworks, in seconds")
    bench.add_argument("--json", action="store_true", help=_JSON)
    explain = commands.add_parser("explain", help="what an array is, its memory, and who can share it")
    explain.add_argument("target", metavar="TARGET", help="a file .npy or .dlf, or MODULE:NAME, as mymodel:field")
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
    elif options.command == "info":
        _info.print_info(as_json=options.json)
    elif options.command == "bench":
        _bench.bench(as_json=options.json)
    elif options.command == "explain":
        try:
            print(_explain.explain_target(options.target))
        except _explain.ExplainError as error:
            explain.error(str(error))
    else:
        if not options.output.absolute().parent.is_dir():
            demo.error(f"--output: found {options.output}, whose folder does not exist")
        return _demo.run(options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
