"""Print the imports between Rust files that point up, and circles of files that import each other: `make lint`.

A file that declares another as its module may import it, and may pass on its imports; whoever imports that from the
first file depends on the second one.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent

# The layers of the library, upward. A module may import from its own entry and from earlier lines; a longer name counts
# before a shorter one. Entries of one line do not import each other.
LAYERS = [
    "error",
    "device dtype dims interrupt",
    "preset",
    "layout",
    "descriptor",
    "traverse",
    "protocol",
    "memory",
    "copy",
    "tensor",
    "arithmetic debug preflight signature",
    "python::ffi::attach",
    "python::interrupt",
    "python::nearest",
    "python::ffi",
    "python::package",
    "python::trace",
    "python::py_owner",
    # Imports look for these two classes.
    "python::module::classes::buffer_parts python::module::classes::freelist",
    "python::module::classes::descriptor python::module::classes::tensor",
    "python::own_classes",
    "python::convert",
    "python::consumers",
    "python::sync",
    "python::copies",
    "python::tensor_api",
    "python::import",
    "python::from_py python::into_py",
    "python::module::values",
    "python::module::classes",
    "python::module::export",
    "python::module::ufunc",
    "python::module::methods",
    "python::module::signature",
    "python::module::functions",
    "python::module",
    "python",
]

# The path of a module as a tuple of names.
Module = tuple[str, ...]


def module_of(file: Path, src: Path) -> Module:
    """Return the module that a file is."""
    parts = file.relative_to(src).with_suffix("").parts
    return parts[:-1] if parts[-1] in {"mod", "lib"} else parts


def code_of(file: Path) -> str:
    """Return a file's code without comments and unit tests."""
    code = re.sub(r"//[^\n]*", "", file.read_text(encoding="utf8"))
    return re.sub(r"#\[cfg\(test\)\]\s*mod tests \{.*", "", code, flags=re.DOTALL)


def split(tree: str) -> Iterator[str]:
    """Yield the entries of a list in braces, which may have lists in braces themselves."""
    depth, entry = 0, ""
    for character in tree + ",":
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            yield entry.strip()
            entry = ""
        else:
            entry += character


def paths(tree: str, prefix: Module = ()) -> Iterator[Module]:
    """Yield the paths that a `use` declaration names."""
    if "{" not in tree:
        path = re.sub(r"\s+as\s+\w+$", "", tree.strip())
        yield prefix + tuple(name for name in path.split("::") if name and name != "self")
        return
    start, _, rest = tree.partition("{")
    for entry in split(rest.rpartition("}")[0]):
        if entry:
            # `self` in front of everything is the module, in a list it is the path so far.
            yield from paths(entry, prefix + tuple(name for name in start.strip().split("::") if name))


class Tree:
    """The modules of a crate, and what each imports."""

    def __init__(self, src: Path) -> None:
        self.code = {module_of(file, src): code_of(file) for file in sorted(src.rglob("*.rs"))}
        self.passed_on = {module: dict(self.uses(module, public=True)) for module in self.code}

    def uses(self, module: Module, *, public: bool = False) -> Iterator[tuple[str, Module]]:
        """Yield each name that a module imports, with its path from the root of the crate."""
        visibility = r"pub(?:\([^)]*\))?\s+" if public else r"(?:pub(?:\([^)]*\))?\s+)?"
        for tree in re.findall(visibility + r"use\s+([^;]+);", self.code[module]):
            for path in paths(tree):
                yield path[-1] if path else "", self.from_root(module, path)
        if not public:
            for text in re.findall(r"\b(?:crate|super)(?:::\w+)++(?!::\{)", self.code[module]):
                path = tuple(text.split("::"))
                yield path[-1], self.from_root(module, path)

    def from_root(self, module: Module, path: Module) -> Module:
        """Return a path from the root of the crate; empty for one into another crate."""
        if path[:1] == ("crate",):
            return path[1:]
        here = module
        while path[:1] == ("super",):
            here, path = here[:-1], path[1:]
        relative = here != module or (*module, *path[:1]) in self.code
        return (*here, *path) if relative else ()

    def file_of(self, path: Module, depth: int = 0) -> Module:
        """Return the module that defines what is at a path."""
        module = path
        rest: Module = ()
        while module not in self.code:
            module, rest = module[:-1], (module[-1], *rest)
        if rest and depth < len(self.code) and (found := self.passed_on[module].get(rest[0])):
            return self.file_of((*found, *rest[1:]), depth + 1)
        return module

    def imports(self, module: Module) -> set[Module]:
        """Return the modules that a module imports, without those that it declares itself."""
        found = {self.file_of(path) for _, path in self.uses(module) if path}
        return {other for other in found if other and other != module and other[: len(module)] != module}


def circles(imports: dict[Module, set[Module]]) -> Iterator[list[Module]]:
    """Yield the sets of modules each of which imports all others of its set, also by way of others."""
    reached: dict[Module, set[Module]] = {}
    for module in imports:
        found, new = set[Module](), [module]
        while new:
            for other in imports.get(new.pop(), set()) - found:
                found.add(other)
                new.append(other)
        reached[module] = found
    rest = [module for module in imports if module in reached[module]]
    while rest:
        first = rest[0]
        circle = [module for module in rest if module in reached[first] and first in reached[module]]
        yield circle
        rest = [module for module in rest if module not in circle]


def layer_of(module: Module) -> tuple[int, Module]:
    """Return the number of a module's layer, and the entry of that layer which the module belongs to."""
    entries = [(number, tuple(name.split("::"))) for number, names in enumerate(LAYERS) for name in names.split()]
    return max((entry for entry in entries if module[: len(entry[1])] == entry[1]), key=lambda entry: len(entry[1]))


def upward(imports: dict[Module, set[Module]]) -> Iterator[tuple[Module, Module]]:
    """Yield the imports from a higher layer, or from another entry of the same layer."""
    for module, others in imports.items():
        number, entry = layer_of(module)
        for other in sorted(others):
            other_number, other_entry = layer_of(other)
            if other_number > number or (other_number == number and other_entry != entry):
                yield module, other


def main() -> int:
    """Print what is found."""
    failed = False
    tree = Tree(ROOT / "src")
    # The root of a crate may import everything.
    imports = {module: tree.imports(module) for module in tree.code if module}
    for module, other in upward(imports):
        failed = True
        print(f"{'::'.join(module)} imports {'::'.join(other)}, which is in a higher layer")
    for circle in circles(imports):
        failed = True
        print(f"{len(circle)} files import each other:")
        for module in circle:
            others = ", ".join("::".join(other) for other in sorted(imports[module]) if other in circle)
            print(f"  {'::'.join(module)} -> {others}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
