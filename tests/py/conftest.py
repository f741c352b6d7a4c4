"""Settings for the whole run, and the frameworks as fixtures.

A missing framework skips its tests by name; in CI it is an error instead.
"""

import gc
import importlib.util
import os
import re
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import dlfield
from dlfield.gt4py import prepare_build
from dlfield.interop import frameworks

if os.environ.get("DLFIELD_REAL_CUDA"):
    # `make test-cuda`: JAX uses the GPU, and would otherwise reserve most of its memory.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
else:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")

# `make test` and `make check` draw the same examples in every run, `make fuzz` random ones (--hypothesis-profile).
always = settings(deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("test", always, derandomize=True, max_examples=50)
settings.register_profile("check", always, derandomize=True, max_examples=200)
settings.register_profile("fuzz", always, max_examples=500)
settings.load_profile("test")


# Importing them for their docstrings would start MPI in this process, or need every framework.
collect_ignore = ["support"]

FRAMEWORKS = ("torch", "jax", "gt4py", "tvm_ffi", "xarray", "ml_dtypes", "mpi4py")


def pytest_configure(config: pytest.Config) -> None:
    """Fail in CI if a framework is missing; keep GT4Py's compiled stencils out of the working tree.

    GT4Py reads the path of its cache when it is imported.
    """
    missing = [name for name in FRAMEWORKS if importlib.util.find_spec(name) is None]
    if missing and os.environ.get("CI"):
        raise pytest.UsageError(f"CI skips no test of an exchange, but these are not installed: {missing}")
    cache = tempfile.TemporaryDirectory(prefix="dlfield-gt-cache-")
    os.environ["GT_CACHE_ROOT"] = cache.name
    os.environ["DACE_CONFIG"] = str(Path(cache.name) / "dace.conf")
    config.add_cleanup(cache.cleanup)
    prepare_build()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skip a file that imports a framework which is missing."""
    report = yield
    found = re.search(r"No module named '(\w+)", str(report.longrepr)) if report.failed else None
    if found and found[1] in FRAMEWORKS:
        report.outcome, report.longrepr = "skipped", (report.nodeid, 0, f"Skipped: {found[1]} is not installed")
    return report


@pytest.fixture(scope="module", autouse=True)
def freeze_garbage_collector() -> None:
    """Exclude older objects from garbage collection: to search those of the frameworks takes half a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(params=[dlfield.describe, dlfield.from_dlpack], ids=["describe", "from_dlpack"])
def read(request: pytest.FixtureRequest) -> Any:
    """A function that takes an object of another library as it is."""
    return request.param


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture
def jax() -> Any:
    return pytest.importorskip("jax")


@pytest.fixture
def jnp(jax: Any) -> Any:
    return jax.numpy


@pytest.fixture
def tvm_ffi() -> Any:
    return pytest.importorskip("tvm_ffi")


@pytest.fixture
def xarray() -> Any:
    return pytest.importorskip("xarray")


@pytest.fixture
def fresh_answers() -> Iterator[None]:
    """Clear the cache of `preflight`, before and after the test: it asks the frameworks for their dtypes again."""
    frameworks.shares.cache_clear()
    yield
    frameworks.shares.cache_clear()


@pytest.fixture
def scratch_preset(request: pytest.FixtureRequest) -> str:
    """A preset name that no other test uses: presets live as long as the process."""
    return f"test:{request.node.name}"


# A compiler takes ten seconds for a stencil: `make test` has one, in the one file that uses `stencil`.
BACKENDS = ["numpy", "debug", pytest.param("gt:cpu_kfirst", marks=pytest.mark.exhaustive), "gt:cpu_ifirst"]


@pytest.fixture(scope="session", params=BACKENDS)
def stencil(request: pytest.FixtureRequest) -> Any:
    """The stencil `mix`, compiled for each backend."""
    wrapped = pytest.importorskip("wrapped")
    return wrapped.gtscript.stencil(backend=request.param, definition=wrapped.mix)


@pytest.fixture(scope="session")
def quick() -> Any:
    """The stencil `mix` on a backend that needs no compiler."""
    wrapped = pytest.importorskip("wrapped")
    return wrapped.gtscript.stencil(backend="numpy", definition=wrapped.mix)


@pytest.fixture(scope="session")
def adding() -> Any:
    """The stencil `add` on the same backend."""
    wrapped = pytest.importorskip("wrapped")
    return wrapped.gtscript.stencil(backend="numpy", definition=wrapped.add)
