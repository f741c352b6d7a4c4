"""Compare the uses of `unsafe` in each Rust file with docs/unsafe.md: `make lint`; `--renew` writes the table.

The table may only get smaller. Where new unsafe code is right, change its row by hand, and say why in the commit.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "unsafe.md"
HEAD = "| file | blocks | functions, traits and implementations |\n|---|---|---|\n"

# Comments, texts and characters, in which the word and a quote mean nothing. A text may have escaped quotes, or be raw.
NO_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|r(#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])'""", re.DOTALL)
BLOCK = re.compile(r"\bunsafe\s*\{")
# Types of functions, such as a field `unsafe extern "C" fn(..)`, have no name, and are no unsafe code.
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


def listed(page: str) -> dict[str, Count]:
    """Return the counts of the table."""
    rows = re.findall(r"^\| `([^`]+)` \| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    return {file: Count(int(blocks), int(declarations)) for file, blocks, declarations in rows}


def total(counts: dict[str, Count]) -> str:
    """Return the sums as the page states them."""
    blocks, declarations = (sum(column) for column in zip(*counts.values(), strict=True))
    return f"{blocks} blocks and {declarations} declarations in {len(counts)} files."


def main() -> int:
    """Print what differs, and return the exit status."""
    page = PAGE.read_text(encoding="utf8")
    before, now = listed(page), counted()
    rows = "".join(f"| `{file}` | {count.blocks} | {count.declarations} |\n" for file, count in now.items())
    wanted = re.sub(r"^\d+ blocks and .* files\.$", total(now), page.split(HEAD)[0], flags=re.MULTILINE) + HEAD + rows
    status = 0
    for file, count in now.items():
        allowed = before.get(file, Count(0, 0))
        if any(found > most for found, most in zip(count, allowed, strict=True)):
            print(f"{file}: {count}; allowed is {allowed}, as docs/unsafe.md says")
            status = 1
    if status == 0 and page != wanted:
        if "--renew" in sys.argv:
            PAGE.write_text(wanted, encoding="utf8")
        else:
            print("there is less than docs/unsafe.md says: run `python tools/unsafe_count.py --renew`")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
