"""Check what wheels contain: the package, its compiled module and its licences, and nothing else.

A wheel is unpacked into the user's Python: a test, a source file or a build result in it would be installed too.
A source package contains the repository without the inputs of fuzz targets.
"""

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Files of the package besides Python files: types for its users.
TYPES = ("dlfield/_native.pyi", "dlfield/py.typed")
MODULE = re.compile(r"dlfield/_native\.(cpython|cp)[\w.-]*\.(so|pyd)")
METADATA = ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE-APACHE", "licenses/LICENSE-MIT")


def in_repository(folder: Path) -> set[str]:
    """Return the names of the files in a folder of the repository, seen from there."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
    return set(listed.stdout.split("\0")) - {""}


def expected() -> set[str]:
    """Return the names of the files of the package that are in the repository."""
    listed = (name for name in in_repository(ROOT / "python") if name.startswith("dlfield/"))
    return {name for name in listed if name.endswith(".py") or name in TYPES} | set(TYPES)


def source_faults(package: Path) -> list[str]:
    """Return what is wrong with a source package, one line each."""
    with tarfile.open(package) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    parts = {name for name in in_repository(ROOT) if not name.startswith("fuzz/corpus/")} | {"PKG-INFO"}
    return [f"unexpected: {found}" for found in sorted(names - parts)] + [
        f"missing: {found}" for found in sorted(parts - names)
    ]


def faults(wheel: Path) -> list[str]:
    """Return what is wrong with a wheel, one line each."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        licences = {name: archive.read(name) for name in names if "/licenses/" in name}
    name, version, *_ = wheel.name.split("-")
    folder = f"{name}-{version}.dist-info/"
    modules = {found for found in names if MODULE.fullmatch(found)}
    parts = expected() | modules | {folder + part for part in METADATA}
    # A list of the crates in the module, which maturin writes from version 1.10 on.
    parts |= {found for found in names if found.startswith(f"{folder}sboms/") and found.endswith(".cyclonedx.json")}
    lines = [f"{len(modules)} compiled modules, expected one"] if len(modules) != 1 else []
    lines += [f"unexpected: {found}" for found in sorted(names - parts)]
    lines += [f"missing: {found}" for found in sorted(parts - names)]
    for found, text in licences.items():
        if text != (ROOT / Path(found).name).read_bytes():
            lines.append(f"not the repository's licence: {found}")
    return lines


def main() -> int:
    """Print what is wrong with the packages named on the command line; return 0 if nothing is."""
    packages = [Path(name) for name in sys.argv[1:]]
    found = [
        f"{package.name}: {line}"
        for package in packages
        for line in (faults(package) if package.suffix == ".whl" else source_faults(package))
    ]
    print("\n".join(found) or f"contents checked: {', '.join(package.name for package in packages)}")
    return 1 if found or not packages else 0


if __name__ == "__main__":
    sys.exit(main())
