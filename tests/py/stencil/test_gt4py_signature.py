"""Annotations and stencils of GT4Py: the labels that they state, and the signatures that come from them."""
# ruff: noqa: F821 (names of GTScript in the body of a stencil)

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from dlfield.gt4py import wrap

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
