"""`dlfield.gt4py` and gt4py.storage: presets, labels and signatures of its annotations, and a missing GT4Py."""
# ruff: noqa: F821 (names of GTScript in the body of a stencil)

from collections.abc import Callable, Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from childproc import run_cases, run_python
from dlfield import gt4py as ours
from dlfield.gt4py import wrap
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


script = pytest.importorskip("gt4py.cartesian.gtscript")
ANNOTATIONS: list[tuple[Any, tuple[str, ...]]] = [
    (script.Field[float], ("I", "J", "K")),
    (script.Field[script.K, float], ("K",)),
    (script.Field[script.IJ, (float, (3, 2))], ("I", "J", "0", "1")),
    (script.GlobalTable[float, (3,)], ("0",)),
]


@pytest.mark.parametrize(("annotation", "dims"), ANNOTATIONS)
def test_get_dims_takes_annotations_of_gt4py(annotation: Any, dims: tuple[str, ...]) -> None:
    assert dl.get_dims(np.zeros((2, 3)), annotation) == dims


def test_annotations_of_gt4py_are_read_and_written() -> None:
    signature = dl.Signature.from_annotations({"x": script.Field[script.IJ, (np.float32, (3,))], "dt": float})
    assert repr(signature.fields["x"]) == ("FieldSpec('float32', ('I', 'J', '0'), access='rw', shape=(None, None, 3))")


@cache
def stencil() -> Any:
    def body(out: float, inp: float, surface: float, vector: float, unused: float, factor: float) -> None:  # noqa: ARG001
        with computation(PARALLEL), interval(...):  # type: ignore[name-defined]
            out = inp + surface + vector[0, 0, 0][1] * factor  # type: ignore[index]  # noqa: F841

    body.__annotations__ = {
        "out": script.Field[float],
        "inp": script.Field[float],
        "surface": script.Field[script.IJ, np.float32],
        "vector": script.Field[(float, (3,))],
        "unused": script.Field[float],
        "factor": float,
    }
    return script.stencil(backend="numpy", definition=body)


def test_get_dims_takes_entries_of_a_stencils_field_info() -> None:
    info = stencil().field_info
    assert dl.get_dims(np.zeros(3), info["vector"]) == ("I", "J", "K", "0")
    assert dl.get_dims(np.zeros(3), info["surface"]) == ("I", "J")


def test_a_signature_comes_from_a_stencil() -> None:
    signature = dl.Signature.from_stencil(stencil())
    names = ["out", "inp", "surface", "vector", "unused"]
    assert list(signature.fields) == names
    assert [spec.access for spec in signature.fields.values()] == ["w", "r", "r", "r", "r"]
    assert [name for name, spec in signature.fields.items() if spec.optional] == ["unused"]
    vector = signature.fields["vector"]
    assert (vector.dims, vector.shape) == (("I", "J", "K", "0"), (None, None, None, 3))
    # As `dl.empty(..., backend="numpy")` with these dims.
    assert vector.layout == dl.empty((2, 2, 2, 3), backend="numpy", dims="IJK0").layout
    assert (str(signature.device), signature.on_mismatch, signature.allow_overlap) == ("cpu", "raise", False)
    fields = {
        "inp": np.ones((3, 3, 2)),
        "surface": np.ones((3, 3), "f4"),
        "vector": dl.zeros((3, 3, 2, 3), backend="numpy"),
    }
    assert signature.bind(out=np.ones((3, 3, 2)), **fields).domain == (3, 3, 2)


def test_frozen_lazy_and_wrapped_stencils_have_the_same_signature() -> None:
    plain = stencil()
    origin = {name: (0,) * info.ndim for name, info in plain.field_info.items()}
    others = [
        plain.freeze(origin=origin, domain=(3, 3, 2)),
        wrap(plain),
        script.lazy_stencil(backend="numpy", definition=plain.definition_func),
    ]
    expected = repr(dl.Signature.from_stencil(plain))
    assert [repr(dl.Signature.from_stencil(other)) for other in others] == [expected] * 3


def test_device_copies_and_overlap_of_a_signature_can_be_chosen() -> None:
    options: dict[str, Any] = {"device": "cuda:0", "on_mismatch": "copy", "allow_overlap": True}
    signature = dl.Signature.from_stencil(stencil(), **options)
    assert (str(signature.device), signature.on_mismatch, signature.allow_overlap) == ("cuda:0", "copy", True)


def test_the_device_and_the_layout_of_a_stencils_signature_are_those_of_its_backend() -> None:
    # Compiling for a GPU needs one.
    compiled = SimpleNamespace(field_info=stencil().field_info, backend="gt:gpu")
    signature = dl.Signature.from_stencil(compiled)
    assert (str(signature.device), signature.fields["inp"].layout) == ("cuda:0", (2, 1, 0))
    # Another alignment than the preset's is not an error: the stencil runs on any.
    assert signature.fields["inp"].alignment_size == 1


@pytest.mark.parametrize("given", [5, np.zeros(3), stencil])
def test_no_stencil_is_an_error(given: Any) -> None:
    with pytest.raises(TypeError, match=r"stencil: expected a stencil of gtscript"):
        dl.Signature.from_stencil(given)
