"""Builds modules of Fortran routines with f2py, and shared libraries for ctypes.

Without a Fortran compiler, C functions take the routines' places: f2py only reads Fortran, and a routine is a C
function with an underscore after its name that takes addresses. So all that f2py does is tested on every machine.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np

SOURCES = Path(__file__).parent / "fortran"

# The languages in which the routines can be compiled here.
LANGUAGES = ["c", *(["fortran"] if shutil.which("gfortran") else [])]


def shared_library(folder: Path, source: Path, target: str, *others: str) -> Path:
    """Compile a source in C or Fortran, and link it."""
    compiler = ["gfortran"] if source.suffix == ".f90" else [os.environ.get("CC", "cc")]
    command = [*compiler, "-O1", "-shared", "-fPIC", "-o", target, str(source), *others]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / target


def f2py_module(folder: Path, signatures: Path, source: Path) -> Any:
    """Make a module of the routines in `source` and import it. f2py reads their signatures, `.pyf` or Fortran."""
    name = signatures.stem
    command = [sys.executable, "-m", "numpy.f2py", str(signatures), "--quiet"]
    command += ["-m", name] if signatures.suffix != ".pyf" else []
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    f2py = Path(np.__file__).parent / "f2py" / "src"
    includes = [f"-I{path}" for path in (sysconfig.get_path("include"), np.get_include(), f2py)]
    target = name + str(sysconfig.get_config_var("EXT_SUFFIX"))
    # What f2py writes in Fortran, for modules.
    wrappers = [path.name for path in folder.glob(f"{name}-f2pywrappers2.f90")]
    written = [*wrappers, f"{name}module.c", str(f2py / "fortranobject.c")]
    library = shared_library(folder, source, target, *written, *includes)
    spec = importlib.util.spec_from_file_location(name, library)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
