"""Run the comparisons and list those that dlfield loses; `--write` puts the tables into the README and `docs/`."""

import argparse
import os
from pathlib import Path

# Idle threads of a linear algebra library would disturb the measurements.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import allocation
import arithmetic
import binding
import copies
import exchange
import extension
import growth
import halo
import stencil
from peers import versions
from report import Line, heading, table, write

ROOT = Path(__file__).parents[2]
SECTIONS = (
    "allocation",
    "exchange",
    "copies",
    "binding",
    "arithmetic",
    "extension",
    "stencil",
    "halo",
    "growth",
    "cuda",
)
# Only docs/measured.md shows them.
ON_REQUEST = ("extension", "halo")

# The rows of the README: what is measured, and the peer.
README = (
    ("`empty` of (8, 8, 8), gt:cpu_ifirst", "`np.empty`"),
    ("`describe(ndarray)`", "`nanobind(ndarray)`"),
    ("`describe(torch.Tensor)`", "`tvm_ffi.from_dlpack(torch.Tensor)`"),
    ("`from_dlpack(ndarray)`", "`np.from_dlpack(ndarray)`"),
    ("`as_torch(tensor)`", "`torch.from_numpy(ndarray)`"),
    ("Rust `empty(a, b, c)`, NumPy", "nanobind"),
    ("`Signature.bind`, 4 numpy fields, each", "GT4Py's `_extract_array_infos`"),
    ("copy into F order, fresh 168 MB, 2 threads", "NumPy"),
    ("`a + b` of (128, 128, 80)", "NumPy's arrays"),
    ("gt:cpu_kfirst Laplacian on (4, 4, 4), `dlfield.gt4py.wrap`, NumPy arrays", "the plain stencil"),
)

DOCUMENT = """\
{heading}
{count} comparisons. `dlfield` misses its goal, or has none and is slower than the peer, in {losing}:

{losses}
## All comparisons

{everything}"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="benches/py", description=__doc__)
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument("section", nargs="?", choices=SECTIONS, help="measure this one only")
    extent.add_argument("--all", action="store_true", help=f"measure {' and '.join(ON_REQUEST)}, too")
    parser.add_argument("--write", action="store_true", help="write the pages whose rows are all measured")
    arguments = parser.parse_args()
    if arguments.section == "cuda":
        _on_a_gpu(arguments.write)
        return
    unwanted = () if arguments.all else ON_REQUEST
    sections = [arguments.section] if arguments.section else [name for name in SECTIONS if name not in unwanted]
    lines: list[Line] = []
    if "allocation" in sections:
        lines += allocation.lines()
    if "exchange" in sections:
        found, document = exchange.measure()
        lines += found
        _show(document, ROOT / "docs/exchange.md" if arguments.write else None)
    if "copies" in sections:
        found, document = copies.measure(ROOT / "docs/copies.svg" if arguments.write else None)
        lines += found
        _show(document, ROOT / "docs/copies.md" if arguments.write else None)
    if "binding" in sections:
        lines += binding.lines()
    if "arithmetic" in sections:
        lines += arithmetic.lines()
    if "extension" in sections:
        lines += extension.lines()
    if "stencil" in sections:
        lines += stencil.lines()
    if "halo" in sections:
        lines += halo.lines()
    if "growth" in sections:
        _show(growth.document(heading(versions())), ROOT / "docs/growth.md" if arguments.write else None)
    losing = [line for line in lines if line.loses]
    document = DOCUMENT.format(
        heading=heading(versions()),
        count=len(lines),
        losing=len(losing),
        losses=table(losing),
        everything=table(lines),
    )
    # The lines of a page come from one run, so only a run of all its sections replaces them.
    complete = arguments.write and not arguments.section
    _show(document, ROOT / "docs/measured.md" if complete and arguments.all else None)
    if complete:
        by_name = {(line.what, line.peer): line for line in lines}
        write(ROOT / "README.md", f"{heading(versions())}\n{table((by_name[row] for row in README), goals=False)}")


def _show(document: str, page: Path | None) -> None:
    """Print a document, and put it between the markers of a page if one is given."""
    print(document)
    if page:
        write(page, document)


def _on_a_gpu(save: bool) -> None:
    # This module imports CuPy, which needs a device.
    import gpu

    document = gpu.measure()
    print(document)
    if save:
        write(ROOT / "docs/cuda.md", document)


if __name__ == "__main__":
    main()
