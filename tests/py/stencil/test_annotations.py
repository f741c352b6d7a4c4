"""`dl.Field[...]` and the other annotations of a field, in `get_dims` and in `Signature.from_annotations`."""
# ruff: noqa: F821 (it takes the texts in `dl.Field[...]` for annotations)

import re
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple, Optional, get_args, get_type_hints

import numpy as np
import pytest

import dlfield as dl
import kernel_annotations

# Type checkers read `dl.Field` as `Annotated`; most of these tests are about what it is at run time.
Field: Any = dl.Field


def spec_of(annotation: Any) -> dl.FieldSpec:
    """Return the only specification in an `Annotated[Any, ...]`."""
    kind, spec = get_args(annotation)
    assert kind is Any
    assert isinstance(spec, dl.FieldSpec)
    return spec


def test_an_annotation_is_annotated_any_with_its_spec() -> None:
    spec = spec_of(Field["float64", "IJK", "w"])
    assert repr(spec) == "FieldSpec('float64', ('I', 'J', 'K'), access='w')"
    assert spec_of(Field["float64", "IJK"]).access == "r"
    assert repr(Field) == "dlfield.Field"


def test_any_before_the_dtype_is_for_type_checkers() -> None:
    def step(inp: dl.Field[Any, "float32", "IJ", "rw"]) -> None: ...

    assert repr(spec_of(get_type_hints(step, include_extras=True)["inp"])) == repr(
        spec_of(Field["float32", "IJ", "rw"])
    )


@pytest.mark.parametrize("dtype", [np.float32, np.dtype("float32"), "f4"])
def test_dtypes_are_those_of_a_spec(dtype: Any) -> None:
    assert spec_of(Field[dtype, "IJ"]).dtype == np.float32


def test_dtypes_of_torch(torch: Any) -> None:
    assert spec_of(Field[torch.float32, "IJ"]).dtype == np.float32


def test_dims_may_be_a_sequence_or_left_out() -> None:
    assert spec_of(Field["float64", ("cell", "K")]).dims == ("cell", "K")
    assert spec_of(Field["float64"]).dims is None


def test_labels_without_blanks_name_no_sizes() -> None:
    spec = spec_of(Field["float64", "IJ0"])
    assert (spec.dims, spec.shape) == (("I", "J", "0"), None)


def test_labels_with_blanks_name_sizes() -> None:
    assert spec_of(Field["float64", "I J"]).shape == ("I", "J")
    spec = spec_of(Field["float64", " cell+1 K-2  0 "])
    assert (spec.dims, spec.shape) == (("cell", "K", "0"), ("cell+1", "K-2", None))
    assert spec_of(Field["float64", "I+1"]).shape == ("I+1",)


def test_several_dtypes() -> None:
    assert spec_of(Field["float32 | float64", "I"]).dtypes == (np.dtype("float32"), np.dtype("float64"))
    assert spec_of(Field[(np.float32, "float64"), "I"]).dtypes == (np.dtype("float32"), np.dtype("float64"))


class Bad(NamedTuple):
    make: Callable[[], object]
    error: type[Exception]
    message: str


BAD = {
    "nothing": Bad(lambda: Field[()], TypeError, "found 0 entries; allowed are Field"),
    "Any alone": Bad(lambda: Field[Any], TypeError, "found 0 entries"),
    "too much": Bad(lambda: Field["float64", "IJ", "w", 3], TypeError, "found 4 entries"),
    "dtype": Bad(lambda: Field["nonsense", "IJ"], dl.DTypeError, "dtype: .*nonsense"),
    "dims": Bad(lambda: Field["float64", 5], dl.DimsError, "dims: 5 is not"),
    "dims twice": Bad(lambda: Field["float64", "I I"], dl.DimsError, "dims: .*I"),
    "a size without a label": Bad(lambda: Field["float64", "+1 J"], dl.DimsError, r"dims: '\+1 J'; allowed are labels"),
    "a size without a number": Bad(lambda: Field["float64", "I+ J"], dl.DimsError, r"dims: 'I\+ J'; allowed"),
    "a data dimension with a number": Bad(lambda: Field["float64", "0+1 J"], dl.DimsError, r"dims: '0\+1 J'; allowed"),
    "a name that is no size": Bad(lambda: Field["float64", "I* J"], dl.LayoutError, r"shape: .*I\*"),
    "access": Bad(lambda: Field["float64", "IJ", "x"], ValueError, "access: 'x'; allowed is"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_entries_are_named(name: str) -> None:
    case = BAD[name]
    with pytest.raises(case.error, match=case.message):
        case.make()


def gtscript() -> Any:
    return pytest.importorskip("gt4py.cartesian.gtscript")


def test_get_dims_takes_every_annotation() -> None:
    plain = np.zeros((2, 3))
    assert dl.get_dims(plain, Field["float64", "KJ"]) == ("K", "J")
    assert dl.get_dims(plain, Annotated[Any, dl.FieldSpec("float64", "KJ")]) == ("K", "J")
    assert dl.get_dims(plain, Annotated[np.ndarray, "the field", dl.FieldSpec("float64", "KJ")]) == ("K", "J")
    assert dl.get_dims(plain, dl.FieldSpec("float64", "KJ")) == ("K", "J")
    assert dl.get_dims(plain, Optional[Field["float64", "KJ"]]) == ("K", "J")  # noqa: UP045 (not the same as X | None)
    assert dl.get_dims(plain, Field["float64", "KJ"] | None) == ("K", "J")
    assert dl.get_dims(plain, ["K", "J"]) == ("K", "J")
    assert dl.get_dims(plain, Field["float64"]) is None
    assert dl.get_dims(dl.zeros((2, 3)), Field["float64", "KJ"]) == ("I", "J")


def test_get_dims_takes_annotations_of_gt4py() -> None:
    script = gtscript()
    plain = np.zeros((2, 3))
    assert dl.get_dims(plain, script.Field[float]) == ("I", "J", "K")
    assert dl.get_dims(plain, script.Field[script.K, float]) == ("K",)
    assert dl.get_dims(plain, script.Field[script.IJ, (float, (3, 2))]) == ("I", "J", "0", "1")
    assert dl.get_dims(plain, script.GlobalTable[float, (3,)]) == ("0",)


def test_get_dims_takes_entries_of_a_stencils_field_info() -> None:
    info = stencil().field_info
    assert dl.get_dims(np.zeros(3), info["vector"]) == ("I", "J", "K", "0")
    assert dl.get_dims(np.zeros(3), info["surface"]) == ("I", "J")


@pytest.mark.parametrize("annotation", [5, float, Annotated[Any, "IJ"]])
def test_get_dims_rejects_what_is_no_annotation_of_a_field(annotation: Any) -> None:
    with pytest.raises(dl.DimsError, match=re.escape("is not a string or a sequence of labels")):
        dl.get_dims(np.zeros(3), annotation)


def test_a_field_or_something_else_is_no_annotation() -> None:
    with pytest.raises(TypeError, match="allowed is one field, or a field or None"):
        dl.get_dims(np.zeros(3), Field["float64", "I"] | int)


def step(inp: Any, out: Any, dt: float, mask: Any = None) -> None:
    """Have annotations."""


step.__annotations__ |= {"inp": Field["float64", "IJ"], "out": Field["float64", "IJ", "w"], "mask": Field["bool", "I"]}


def test_a_signature_comes_from_a_functions_annotations() -> None:
    signature = dl.Signature.from_annotations(step, device="cuda:1", on_mismatch="copy")
    assert repr(signature) == (
        "Signature(inp=FieldSpec('float64', ('I', 'J')), out=FieldSpec('float64', ('I', 'J'), access='w'), "
        "mask=FieldSpec('bool', ('I',), optional=True), device='cuda:1', on_mismatch='copy')"
    )


def test_a_signature_from_annotations_or_a_stencil_may_allow_overlap() -> None:
    assert dl.Signature.from_annotations(step, allow_overlap=True).allow_overlap
    assert dl.Signature.from_stencil(stencil(), allow_overlap=True).allow_overlap


def test_a_signature_comes_from_a_mapping_or_a_class() -> None:
    class Fields:
        inp: dl.Field[Any, "float64", "IJ"]
        count: int

    expected = "Signature(inp=FieldSpec('float64', ('I', 'J')), device='cpu')"
    assert repr(dl.Signature.from_annotations(Fields)) == expected
    assert repr(dl.Signature.from_annotations(Fields.__annotations__)) == expected


def test_a_class_has_the_fields_of_its_bases() -> None:
    class More(kernel_annotations.Fields):
        out: Field["float64", "IJ", "w"]

    assert list(dl.Signature.from_annotations(More).fields) == ["inp", "out"]


def test_text_in_a_mapping_is_an_error() -> None:
    with pytest.raises(TypeError, match="\"Field\\['float64'\\]\" is text, which only a function or a class") as caught:
        dl.Signature.from_annotations({"inp": Field["float64"], "out": "Field['float64']"})
    assert caught.value.__notes__ == ["annotation of 'out'"]


def test_annotations_that_are_text_are_evaluated() -> None:
    assert list(dl.Signature.from_annotations(kernel_annotations.step).fields) == ["inp", "out"]
    assert list(dl.Signature.from_annotations(kernel_annotations.Fields).fields) == ["inp"]


def test_annotations_of_gt4py_are_read_and_written() -> None:
    script = gtscript()
    signature = dl.Signature.from_annotations({"x": script.Field[script.IJ, (np.float32, (3,))], "dt": float})
    spec = signature.fields["x"]
    assert (spec.dtype, spec.dims, spec.access, spec.shape) == (
        np.dtype("float32"),
        ("I", "J", "0"),
        "rw",
        (None, None, 3),
    )


def test_annotations_without_a_field_are_an_error() -> None:
    for annotated in (lambda x: x, {}, {"dt": float}):
        with pytest.raises(TypeError, match=r"annotations: .* has none of a field; annotate fields with dl\.Field"):
            dl.Signature.from_annotations(annotated)
    with pytest.raises(TypeError, match="annotations: 5; allowed is a function, a class or a mapping"):
        dl.Signature.from_annotations(5)


def test_an_annotation_that_cannot_be_evaluated_names_its_parameter() -> None:
    def step(inp: Any) -> None: ...

    step.__annotations__["inp"] = "Missing['float64', 'IJ']"
    with pytest.raises(NameError, match="Missing") as caught:
        dl.Signature.from_annotations(step)
    assert caught.value.__notes__ == ["annotation of 'inp'"]


def stencil(backend: str = "numpy", **options: Any) -> Any:
    script = gtscript()

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
    return script.stencil(backend=backend, definition=body, **options)


def test_a_signature_comes_from_a_stencil() -> None:
    signature = dl.Signature.from_stencil(stencil())
    assert {name: spec.access for name, spec in signature.fields.items()} == {
        "out": "w",
        "inp": "r",
        "surface": "r",
        "vector": "r",
        "unused": "r",
    }
    assert [name for name, spec in signature.fields.items() if spec.optional] == ["unused"]
    vector = signature.fields["vector"]
    assert (vector.dims, vector.shape) == (("I", "J", "K", "0"), (None, None, None, 3))
    # As `dl.empty(..., backend="numpy")` with these dims.
    assert vector.layout == dl.empty((2, 2, 2, 3), backend="numpy", dims="IJK0").layout
    assert (str(signature.device), signature.on_mismatch) == ("cpu", "raise")
    fields = {
        "inp": np.ones((3, 3, 2)),
        "surface": np.ones((3, 3), "f4"),
        "vector": dl.zeros((3, 3, 2, 3), backend="numpy"),
    }
    assert signature.bind(out=np.ones((3, 3, 2)), **fields).domain == (3, 3, 2)


def test_frozen_lazy_and_wrapped_stencils_have_the_same_signature() -> None:
    from gt4py.cartesian.gtscript import lazy_stencil

    from dlfield.gt4py import wrap

    plain = stencil()
    expected = repr(dl.Signature.from_stencil(plain))
    origin = {name: (0,) * info.ndim for name, info in plain.field_info.items()}
    assert repr(dl.Signature.from_stencil(plain.freeze(origin=origin, domain=(3, 3, 2)))) == expected
    assert repr(dl.Signature.from_stencil(wrap(plain))) == expected
    lazy = lazy_stencil(backend="numpy", definition=plain.definition_func)
    assert repr(dl.Signature.from_stencil(lazy)) == expected


def test_the_device_and_the_copies_of_a_stencils_signature_can_be_chosen() -> None:
    signature = dl.Signature.from_stencil(stencil(), device="cuda:0", on_mismatch="copy")
    assert (str(signature.device), signature.on_mismatch) == ("cuda:0", "copy")


def test_the_device_and_the_layout_of_a_stencils_signature_are_those_of_its_backend() -> None:
    # Compiling for a GPU needs one.
    compiled = SimpleNamespace(field_info=stencil().field_info, backend="gt:gpu")
    signature = dl.Signature.from_stencil(compiled)
    assert (str(signature.device), signature.fields["inp"].layout) == ("cuda:0", (2, 1, 0))
    # Another alignment than the preset's is no error: the stencil runs on any.
    assert signature.fields["inp"].alignment_size == 1


@pytest.mark.parametrize("given", [5, np.zeros(3), step])
def test_no_stencil_is_an_error(given: Any) -> None:
    with pytest.raises(TypeError, match=r"stencil: found .*; allowed is a stencil of gtscript"):
        dl.Signature.from_stencil(given)


def test_annotations_do_not_import_gt4py() -> None:
    code = """
import sys
import numpy as np
import dlfield as dl
dl.get_dims(np.zeros(3), dl.Field["float64", "I"])
dl.Signature.from_annotations({"x": dl.Field["float64", "I"], "dt": float})
sys.exit("gt4py" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
