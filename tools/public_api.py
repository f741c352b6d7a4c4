"""Check the public interface of the Rust library: `make api`.

The lists in `tools/public_api/` are what `cargo public-api` prints with the default features and with all. A change of
the interface shows as a change of these files, which `make api RENEW=1` writes. Each crate whose types are in the
interface must be re-exported, each function, method and macro must have an example that uses it, and each type has one.
"""

import difflib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LISTS = ROOT / "tools" / "public_api"

# The file of a list, and the features. The last run leaves the JSON from which the examples are read.
FEATURES = {"default.txt": [], "all.txt": ["--all-features"]}

# What a path may begin with besides crates that are re-exported: the library, the standard library, a number type.
KNOWN = re.compile(r"dlfield|alloc|core|std|bool|[iuf]\d+")

Item = dict[str, Any]


def listed(features: list[str]) -> str:
    """Return the list of the interface with these features; derived traits included, automatic and blanket ones not."""
    command = ["cargo", f"+{os.environ['API_TOOLCHAIN']}", "public-api", "-ss", "--color=never", *features]
    # The list is made from rustdoc's JSON, which is unstable; this variable makes a stable toolchain write it.
    environment = os.environ | {"RUSTC_BOOTSTRAP": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout


def changes(name: str, now: str) -> list[str]:
    """Return the lines of the interface that differ from those in the repository."""
    path = LISTS / name
    before = path.read_text(encoding="utf8") if path.exists() else ""
    old, new = (before.splitlines(), now.splitlines())
    lines = difflib.unified_diff(old, new, f"{name} in the repository", "now", n=0, lineterm="")
    return [line for line in lines if not line.startswith("@@")]


def hidden_crates(interface: str) -> list[str]:
    """Return the crates whose types are in the interface, but which are not re-exported."""
    exported = set(re.findall(r"^pub use dlfield::(\w+)$", interface, flags=re.MULTILINE))
    named = set(re.findall(r"(?<![\w:'])([a-z]\w*)::", interface))
    return sorted(name for name in named - exported if not KNOWN.fullmatch(name))


def examples(docs: str | None) -> str:
    """Return the code blocks of a documentation text."""
    return "\n".join(re.findall(r"```[^\n]*\n(.*?)```", docs or "", flags=re.DOTALL))


def public_items(index: dict[str, Item], key: int, path: str) -> Iterator[tuple[str, Item]]:
    """Yield the types, functions and macros below a module, and their methods, with their paths."""
    item = index.get(str(key))
    if item is None:
        return
    ((kind, inner),) = item["inner"].items()
    if kind == "use":
        found = index.get(str(inner["id"]))
        if inner["is_glob"] and found:
            for child in found["inner"]["module"]["items"]:
                yield from public_items(index, child, path)
        elif found:
            yield from public_items(index, inner["id"], path)
        return
    name = f"{path}::{item['name']}" if path else item["name"]
    if kind == "module":
        for child in inner["items"]:
            yield from public_items(index, child, name)
    elif kind in {"struct", "enum", "trait", "type_alias", "function", "macro"}:
        yield name, item
        methods = inner["items"] if kind == "trait" else []
        for block in inner.get("impls", []) if kind in {"struct", "enum"} else []:
            inherent = index[str(block)]["inner"]["impl"]
            methods += inherent["items"] if inherent["trait"] is None else []
        for method in methods:
            found = index.get(str(method))
            if found and "function" in found["inner"] and (kind == "trait" or found["visibility"] == "public"):
                yield f"{name}::{found['name']}", found


def without_example(rustdoc: Path) -> list[str]:
    """Return the functions whose documentation has no example that calls them, and the types without any example.

    Errors show in the examples of functions.
    """
    crate = json.loads(rustdoc.read_text(encoding="utf8"))
    missing = {}
    for path, item in public_items(crate["index"], crate["root"], ""):
        name, code = item["name"], examples(item["docs"])
        named = re.search(rf"\b{name}\b", code) if {"function", "macro"} & item["inner"].keys() else code
        if not named and not name.endswith("Error"):
            span = item["span"]
            missing[path] = f"{span['filename']}:{span['begin'][0]}: {path}"
    return list(missing.values())


def main() -> int:
    """Print what is wrong; return whether anything is."""
    renew, wrong, interface = "--renew" in sys.argv, False, ""
    for name, features in FEATURES.items():
        interface = listed(features)
        if renew:
            LISTS.mkdir(exist_ok=True)
            (LISTS / name).write_text(interface, encoding="utf8")
        elif changed := changes(name, interface):
            wrong = True
            print(*changed, sep="\n")
            print("The public interface has changed. If that is meant, renew the list: make api RENEW=1")
            print(f"and commit tools/public_api/{name}")
    for crate in hidden_crates(interface):
        wrong = True
        print(f"types of the crate {crate} are in the public interface: re-export it in src/lib.rs, or hide them")
    for place in without_example(Path(os.environ["CARGO_TARGET_DIR"]) / "doc" / "dlfield.json"):
        wrong = True
        print(f"{place} has no example")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
