"""`dlfield.gt4py` and gt4py.storage: the presets of both, and what works without GT4Py."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from childproc import run_cases, run_python
from dlfield import gt4py as ours
from dlfield.gt4py.registry import registered_layout

pytest.importorskip("gt4py")

from gt4py import storage as theirs


def test_gt4pys_limits_do_not_apply() -> None:
    """GT4Py has no empty arrays."""
    assert ours.zeros((0, 3, 4), backend="gt:cpu_kfirst").shape == (0, 3, 4)
    with pytest.raises(dl.DeviceError):
        ours.zeros((2, 3), backend="gt:gpu")


# Presets: those that GT4Py has registered, then dlfield's own.


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


def test_bad_presets_are_named(mine: str) -> None:
    theirs.register(mine, {"alignment": 1, "device": "cpu"})
    array = np.zeros((2, 3))
    cases: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: ours.zeros((2, 3)), TypeError, "backend"),  # type: ignore[call-arg]
        (lambda: ours.zeros((2, 3), backend="nunpy"), RuntimeError, "no preset 'nunpy'.*kfirst.*did you mean 'numpy'"),
        (lambda: ours.from_array(array, backend="nunpy"), dl.LayoutError, "no preset 'nunpy'"),
        (lambda: ours.from_name("nunpy"), ValueError, "nunpy"),
        (lambda: ours.zeros((2, 3), backend=mine), dl.LayoutError, f"preset '{mine}' .* without layout_map"),
        (lambda: ours.register(5, None), TypeError, "name: found 5"),  # type: ignore[arg-type]
        (lambda: ours.register("mine", "numpy"), TypeError, "info: found 'numpy'"),  # type: ignore[arg-type]
    ]
    for call, error, message in cases:
        with pytest.raises(error, match=message):
            call()


def test_everything_that_gt4py_storage_exports_is_there() -> None:
    assert all(hasattr(ours, name) for name in theirs.__all__)
    assert (ours.layout, ours.layout_registry) == (theirs.layout, theirs.layout_registry)
    with pytest.raises(AttributeError, match="'nothing'"):
        _ = ours.nothing  # type: ignore[attr-defined]


WITHOUT_GT4PY = {
    "dlfield's presets answer": """
        for name, preset in dl.presets().items():
            # GT4Py's registry has alignments in elements; the rows of gt4py.next are aligned in bytes.
            if preset.device == "cpu" and name != "gt4py.next":
                assert gt4py.zeros((2, 3, 4), backend=name).strides == dl.zeros((2, 3, 4), backend=name).strides
        assert gt4py.from_name("gt:gpu")["device"] == "gpu"
        assert gt4py.from_name("gt:gpu")["layout_map"](("I", "J", "K", "0")) == (3, 2, 1, 0)
    """,
    "presets can be registered": """
        gt4py.register("mine", {**gt4py.from_name("numpy"), "layout_map": lambda dims: (1, 0)})
        assert gt4py.ones((2, 3), backend="mine").strides == (8, 16)
        gt4py.register("mine", None)
        try:
            gt4py.ones((2, 3), backend="mine")
        except RuntimeError:
            pass
        else:
            raise AssertionError
    """,
    "what needs GT4Py says so": """
        try:
            gt4py.layout_registry
        except AttributeError as error:
            assert "pip install gt4py" in str(error)
        else:
            raise AssertionError
        assert not hasattr(gt4py, "layout")
    """,
}


def test_without_gt4py() -> None:
    run_cases('sys.modules["gt4py"] = None\nimport dlfield as dl\nfrom dlfield import gt4py', WITHOUT_GT4PY)


def test_annotations_and_dlfield_gt4py_do_not_import_gt4py() -> None:
    run_python("""
        import sys
        import numpy as np
        import dlfield as dl
        from dlfield import gt4py
        dl.get_dims(np.zeros(3), dl.Field["float64", "I"])
        dl.Signature.from_annotations({"x": dl.Field["float64", "I"], "dt": float})
        assert "gt4py" not in sys.modules
    """)
