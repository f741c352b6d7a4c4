"""Settings for the whole run, and the frameworks as fixtures: one that is missing skips its tests by name."""

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("JAX_PLATFORMS", "cpu")

settings.register_profile("dlfield", deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dlfield")


def pytest_configure(config: pytest.Config) -> None:
    """Keep GT4Py's compiled stencils of a run out of the working tree; its cache is chosen when it is imported."""
    cache = tempfile.TemporaryDirectory(prefix="dlfield-gt-cache-")
    os.environ["GT_CACHE_ROOT"] = cache.name
    os.environ["DACE_CONFIG"] = str(Path(cache.name) / "dace.conf")
    config.add_cleanup(cache.cleanup)


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
def scratch_preset(request: pytest.FixtureRequest) -> str:
    """A preset name that no other test uses: presets live as long as the process."""
    return f"test:{request.node.name}"
