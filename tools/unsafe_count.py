"""Compare the uses of `unsafe` in each Rust file with `tools/unsafe.txt`: `make lint`; `--renew` writes that file.

The numbers may only fall. Where new unsafe code is right, change its line by hand, and say why in the commit.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
LIST = ROOT / "tools" / "unsafe.txt"
HEAD = "# Blocks, and declarations of functions, traits and implementations, by `tools/unsafe_count.py`.\n"

# Comments, texts and characters, in which the word and a quote mean nothing. A text may have escaped quotes, or be raw.
NO_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|r(#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])'""", re.DOTALL)
BLOCK = re.compile(r"\bunsafe\s*\{")
# Types of functions, such as a field `unsafe extern "C" fn(..)`, have no name, and are not unsafe code.
DECLARATION = re.compile(r"\bunsafe\s+(?:(?:extern\s+)?fn\s+\w|extern\s*\{|impl\b|trait\b)")


class Count(NamedTuple):
    """The uses of `unsafe` in one file."""

    blocks: int
    declarations: int


def counted() -> dict[str, Count]:
    """Return the counts of all files that have any."""
    found = {}
    for file in sorted((ROOT / "src").rglob("*.rs")):
        code = NO_CODE.sub("", file.read_text(encoding="utf8"))
        count = Count(len(BLOCK.findall(code)), len(DECLARATION.findall(code)))
        if any(count):
            found[str(file.relative_to(ROOT))] = count
    return found


def listed(text: str) -> dict[str, Count]:
    """Return the counts of the file."""
    rows = re.findall(r"^(\d+) (\d+) (\S+)$", text, re.MULTILINE)
    return {file: Count(int(blocks), int(declarations)) for blocks, declarations, file in rows}


def formatted(counts: dict[str, Count]) -> str:
    """Return the file's text, which ends with the sums."""
    lines = [f"{count.blocks} {count.declarations} {file}\n" for file, count in counts.items()]
    blocks, declarations = (sum(column) for column in zip(*counts.values(), strict=True))
    return f"{HEAD}{''.join(lines)}# {blocks} {declarations} in {len(counts)} files\n"


def main() -> int:
    """Print what differs, and return the exit status."""
    text = LIST.read_text(encoding="utf8")
    before, now = listed(text), counted()
    status = 0
    for file, count in now.items():
        most = before.get(file, Count(0, 0))
        if any(found > limit for found, limit in zip(count, most, strict=True)):
            print(f"{file}: expected at most {most}, got {count}; tools/unsafe.txt has the limits")
            status = 1
    if status == 0 and text != formatted(now):
        if "--renew" in sys.argv:
            LIST.write_text(formatted(now), encoding="utf8")
        else:
            print("tools/unsafe.txt has larger numbers: run `python tools/unsafe_count.py --renew`")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
