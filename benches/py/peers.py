"""Functions that import an array like `describe` and `from_dlpack`; two are compiled here, from `benches/peers`."""

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import nanobind
import numpy as np
import numpy.typing as npt
import torch
import tvm_ffi
from cuda.core.utils import StridedMemoryView
from gt4py.cartesian.stencil_object import _extract_array_infos

import dlfield as dl

SOURCES = Path(__file__).parents[1] / "peers"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dlfield-bench"


@dataclass(frozen=True)
class Consumer:
    """A function `call` that imports an array; `argument` makes its argument from the array.

    `misreads` returns whether a result is not the array.
    """

    call: Callable[[Any], Any]
    argument: Callable[[Any], Any] = lambda obj: obj
    misreads: Callable[[Any], bool] = lambda _result: False

    def verdict(self, obj: Any) -> str:
        """Return the reason why this object cannot be measured, or an empty string."""
        try:
            result = self.call(self.argument(obj))
        except Exception:  # each library raises other types
            return "refuses"
        if result is obj:
            return "itself"
        return "misreads" if self.misreads(result) else ""


def consumers() -> dict[str, Consumer]:
    """Return dlfield's functions, every peer and the floor, by their names in the tables."""
    nanobind_peer, dlpark_peer = build_nanobind(), build_crate("dlpark_peer")
    return {
        "describe": Consumer(dl.describe),
        "from_dlpack": Consumer(dl.from_dlpack),
        "nanobind": Consumer(nanobind_peer.take_ro),
        "tvm_ffi.from_dlpack": Consumer(tvm_ffi.from_dlpack),
        "np.from_dlpack": Consumer(np.from_dlpack),
        "np.asarray": Consumer(np.asarray, misreads=_is_of_objects),
        "torch.from_dlpack": Consumer(torch.from_dlpack),
        "dlpark": Consumer(dlpark_peer.take),
        # These two need a second argument, hence the lambda; its 20 ns are small compared with their times.
        "cuda.core": Consumer(lambda obj: StridedMemoryView.from_any_interface(obj, -1)),
        "gt4py": Consumer(
            lambda fields: _extract_array_infos(fields, "cpu"),
            argument=lambda obj: {"field": obj},
            misreads=lambda infos: _is_of_objects(infos["field"].array),
        ),
        "no-op": Consumer(nanobind_peer.noop),
    }


def _is_of_objects(array: npt.NDArray[Any]) -> bool:
    """Whether NumPy wrapped an object that it cannot import: an array of one Python object."""
    return array.dtype == object


@cache
def build_nanobind() -> ModuleType:
    """Compile the nanobind peer, optimized as in nanobind's own build, and import it."""
    sources = Path(nanobind.source_dir())
    includes = (nanobind.include_dir(), sources.parent / "ext/robin_map/include", sysconfig.get_path("include"))
    CACHE.mkdir(parents=True, exist_ok=True)
    library = CACHE / f"nanobind_peer{sysconfig.get_config_var('EXT_SUFFIX')}"
    flags = "-std=c++17 -O3 -DNDEBUG -DNB_COMPACT_ASSERTIONS -fno-strict-aliasing -fno-stack-protector"
    compiler = [os.environ.get("CXX", "g++"), *flags.split(), "-fvisibility=hidden", "-fPIC", "-shared"]
    files = (SOURCES / "nanobind_peer.cpp", sources / "nb_combined.cpp")
    subprocess.run([*compiler, *(f"-I{path}" for path in includes), *files, "-o", library], check=True)
    return _load("nanobind_peer", library)


@cache
def build_crate(name: str) -> ModuleType:
    """Build the peer in the crate `name` of `benches/peers`, optimized like dlfield, and import it."""
    manifest = SOURCES / name / "Cargo.toml"
    environment = os.environ | {"PYO3_PYTHON": sys.executable, "PYO3_BUILD_EXTENSION_MODULE": "1"}
    cargo = ["cargo", "build", "--quiet", "--release", "--locked"]
    subprocess.run([*cargo, "--manifest-path", manifest, "--target-dir", CACHE], check=True, env=environment)
    return _load(name, CACHE / f"release/lib{name}.so")


def _load(name: str, library: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, library)
    if spec is None or spec.loader is None:
        raise ImportError(f"{library} is not an extension module", name=name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def versions() -> dict[str, str]:
    """Return the versions of dlfield and all peers."""
    names = ("dlfield", "numpy", "torch", "jax", "apache-tvm-ffi", "nanobind", "cuda-core", "gt4py")
    found = {name: importlib.metadata.version(name) for name in names}
    for crate in ("dlpark", "pyo3-dlpack"):
        lock = SOURCES / f"{crate.replace('-', '_')}_peer/Cargo.lock"
        locked = tomllib.loads(lock.read_text())["package"]
        found |= {package["name"]: package["version"] for package in locked if package["name"] == crate}
    return found
