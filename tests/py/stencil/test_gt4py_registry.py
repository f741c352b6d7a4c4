"""The presets of `dlfield.gt4py`: those that GT4Py has registered, then dlfield's own."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield import gt4py as ours
from dlfield.gt4py.registry import registered_layout

pytest.importorskip("gt4py")

from gt4py import storage as theirs

WITHOUT_GT4PY = "import sys; sys.modules['gt4py'] = None; import dlfield as dl; from dlfield import gt4py\n"


def without_gt4py(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_GT4PY + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def mine() -> Iterator[str]:
    """The name of a preset that the test may register."""
    yield "of_this_test"
    theirs.register("of_this_test", None)


@pytest.mark.parametrize("register", [theirs.register, ours.register], ids=["GT4Py's", "dlfield's"])
def test_registered_presets_count_in_both(register: Any, mine: str) -> None:
    register(mine, {**theirs.from_name("numpy"), "alignment": 8, "layout_map": lambda dims: (1, 0, 2)[: len(dims)]})
    for module in (ours, theirs):
        assert module.zeros((2, 3, 5), backend=mine).strides == (64, 128, 8)
    assert ours.from_name(mine) is theirs.from_name(mine)
    register(mine, None)
    with pytest.raises(dl.LayoutError, match="of_this_test"):
        ours.zeros((2, 3), backend=mine)


def test_a_registered_preset_replaces_one_of_dlfield() -> None:
    """The layouts of another version of GT4Py differ from those of `dlfield.presets()`."""
    before = theirs.from_name("dace:cpu")
    theirs.register("dace:cpu", theirs.from_name("gt:cpu_ifirst"))
    try:
        assert ours.zeros((2, 3, 4), backend="dace:cpu").strides == (8, 16, 48)
        assert registered_layout("dace:cpu", ("I", "J", "K")) == ((2, 1, 0), 1, "cpu")
    finally:
        theirs.register("dace:cpu", before)
    assert dl.zeros((2, 3, 4), backend="dace:cpu").layout == (1, 2, 0)


@pytest.mark.parametrize("backend", ["gtx86", "gtmc", "C", "F", "jax", "torch"])
@pytest.mark.parametrize("dims", ["IJK", "KJ", "IJK01", "K", ""])
def test_presets_that_only_dlfield_has(backend: str, dims: str) -> None:
    shape, canonical = tuple(range(2, 2 + len(dims))), sorted(dims, key="IJK01".index)
    tensor = dl.zeros(shape, backend=backend, dims=canonical)
    array = ours.zeros(shape, backend=backend, dimensions=tuple(dims))
    assert (array.strides, array.ctypes.data % tensor.alignment_size) == (tensor.strides, 0)
    info = ours.from_name(backend)
    assert (info["device"], info["layout_map"](tuple(dims))) == ("cpu", tensor.layout)
    assert info["is_optimal_layout"](array, tuple(dims))
    assert len(dims) < 2 or not info["is_optimal_layout"](array.T, tuple(dims))


def test_unknown_presets_raise_both_errors() -> None:
    with pytest.raises(RuntimeError, match=r"no preset 'nunpy'.*gt:cpu_kfirst.*did you mean 'numpy'"):
        ours.zeros((2, 3), backend="nunpy")
    with pytest.raises(dl.LayoutError):
        ours.from_array(np.zeros(3), backend="nunpy")
    with pytest.raises(ValueError, match="nunpy"):
        ours.from_name("nunpy")
    assert issubclass(ours.UnknownPresetError, dl.Error)


def test_register_names_a_wrong_argument() -> None:
    with pytest.raises(TypeError, match="name: found 5, must be a string"):
        ours.register(5, None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="info: found 'numpy', must be a dictionary"):
        ours.register("mine", "numpy")  # type: ignore[arg-type]


def test_a_preset_without_a_key_is_named(mine: str) -> None:
    theirs.register(mine, {"alignment": 1, "device": "cpu"})
    with pytest.raises(dl.LayoutError, match="preset 'of_this_test' was registered without layout_map"):
        ours.zeros((2, 3), backend=mine)


def test_everything_that_gt4py_storage_exports_is_there() -> None:
    assert all(hasattr(ours, name) for name in theirs.__all__)
    assert (ours.layout, ours.layout_registry) == (theirs.layout, theirs.layout_registry)
    with pytest.raises(AttributeError, match="'nothing'"):
        _ = ours.nothing  # type: ignore[attr-defined]


def test_dlfields_presets_answer_without_gt4py() -> None:
    without_gt4py(
        "for name, preset in dl.presets().items():\n"
        "    if preset.device == 'cpu':\n"
        "        assert gt4py.zeros((2, 3, 4), backend=name).strides == dl.zeros((2, 3, 4), backend=name).strides\n"
        "assert gt4py.from_name('gt:gpu')['device'] == 'gpu'\n"
        "assert gt4py.from_name('gt:gpu')['layout_map'](('I', 'J', 'K', '0')) == (3, 2, 1, 0)\n"
    )


def test_presets_can_be_registered_without_gt4py() -> None:
    without_gt4py(
        "gt4py.register('mine', {**gt4py.from_name('numpy'), 'layout_map': lambda dims: (1, 0)})\n"
        "assert gt4py.ones((2, 3), backend='mine').strides == (8, 16)\n"
        "gt4py.register('mine', None)\n"
        "try: gt4py.ones((2, 3), backend='mine')\n"
        "except RuntimeError: pass\n"
        "else: raise AssertionError\n"
    )


def test_what_needs_gt4py_says_so() -> None:
    without_gt4py(
        "try: gt4py.layout_registry\n"
        "except AttributeError as error: assert 'pip install gt4py' in str(error)\n"
        "else: raise AssertionError\n"
        "assert not hasattr(gt4py, 'layout')\n"
    )


def test_importing_dlfield_does_not_import_gt4py() -> None:
    code = "import sys; from dlfield import gt4py; assert 'gt4py' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
