"""`dl.Field[...]` and the other annotations of a field, in `get_dims` and in `Signature.from_annotations`."""
# ruff: noqa: F821 (it takes the texts in `dl.Field[...]` for annotations)

import re
from typing import Annotated, Any, Optional, get_args, get_type_hints

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


SPECS: list[tuple[Any, str]] = [
    (Field["float64", "IJK"], "'float64', ('I', 'J', 'K')"),
    (Field["float64", "IJK", "w"], "'float64', ('I', 'J', 'K'), access='w'"),
    (Field[np.float32, "IJ"], "'float32', ('I', 'J')"),
    (Field["float32 | float64", "I"], "'float32 | float64', ('I',)"),
    (Field[(np.float32, "float64"), "I"], "'float32 | float64', ('I',)"),
    (Field["float64", ("cell", "K")], "'float64', ('cell', 'K')"),
    (Field["float64"], "'float64'"),
    # Labels without blanks name no sizes, those with blanks do.
    (Field["float64", "IJ0"], "'float64', ('I', 'J', '0')"),
    (Field["float64", "I J"], "'float64', ('I', 'J'), shape=('I', 'J')"),
    (Field["float64", " cell+1 K-2  0 "], "'float64', ('cell', 'K', '0'), shape=('cell+1', 'K-2', None)"),
    (Field["float64", "I+1"], "'float64', ('I',), shape=('I+1',)"),
]


@pytest.mark.parametrize(("annotation", "text"), SPECS)
def test_an_annotation_is_annotated_any_with_its_spec(annotation: Any, text: str) -> None:
    assert repr(spec_of(annotation)) == f"FieldSpec({text})"


def test_any_before_the_dtype_is_for_type_checkers() -> None:
    def step(inp: dl.Field[Any, "float32", "IJ", "rw"]) -> None: ...

    found = spec_of(get_type_hints(step, include_extras=True)["inp"])
    assert repr(found) == repr(spec_of(Field["float32", "IJ", "rw"]))
    assert repr(Field) == "dlfield.Field"


BAD: list[tuple[Any, type[Exception], str]] = [
    ((), TypeError, "expected Field.* got 0 entries"),
    (Any, TypeError, "got 0 entries"),
    (("float64", "IJ", "w", 3), TypeError, "got 4 entries"),
    (("nonsense", "IJ"), dl.DTypeError, "dtype: .*nonsense"),
    (("float64", 5), dl.DimsError, "dims: .* got 5"),
    (("float64", "I I"), dl.DimsError, "dims: .*I"),
    (("float64", "+1 J"), dl.DimsError, r"dims: expected labels .*, got '\+1 J'"),
    (("float64", "I+ J"), dl.DimsError, r"dims: expected labels .*, got 'I\+ J'"),
    (("float64", "0+1 J"), dl.DimsError, r"dims: expected labels .*, got '0\+1 J'"),
    (("float64", "I* J"), dl.LayoutError, r"shape: .*I\*"),
    (("float64", "IJ", "x"), ValueError, "access: expected 'r', 'w' or 'rw', got 'x'"),
]


@pytest.mark.parametrize(("entries", "error", "message"), BAD)
def test_bad_entries_are_named(entries: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Field[entries]


KJ = dl.FieldSpec("float64", "KJ")
OF_GET_DIMS: list[tuple[Any, Any]] = [
    (Field["float64", "KJ"], ("K", "J")),
    (Annotated[Any, KJ], ("K", "J")),
    (Annotated[np.ndarray, "the field", KJ], ("K", "J")),
    (Annotated[dl.Descriptor | Any, KJ], ("K", "J")),
    (Annotated[dl.Descriptor, KJ], ("K", "J")),
    (KJ, ("K", "J")),
    (Optional[Field["float64", "KJ"]], ("K", "J")),  # noqa: UP045 (not the same as X | None)
    (Field["float64", "KJ"] | None, ("K", "J")),
    (["K", "J"], ("K", "J")),
    (Field["float64"], None),
]


@pytest.mark.parametrize(("annotation", "dims"), OF_GET_DIMS)
def test_get_dims_takes_every_annotation(annotation: Any, dims: Any) -> None:
    assert dl.get_dims(np.zeros((2, 3)), annotation) == dims
    assert dl.get_dims(dl.zeros((2, 3)), annotation) == ("I", "J")


@pytest.mark.parametrize("annotation", [5, float, Annotated[Any, "IJ"]])
def test_get_dims_rejects_what_is_no_annotation_of_a_field(annotation: Any) -> None:
    with pytest.raises(dl.DimsError, match=re.escape("expected a string or a sequence of labels")):
        dl.get_dims(np.zeros(3), annotation)


def test_a_field_or_something_else_is_no_annotation() -> None:
    with pytest.raises(TypeError, match="expected one field, or a field or None"):
        dl.get_dims(np.zeros(3), Field["float64", "I"] | int)


def step(inp: Any, out: Any, dt: float, mask: Any = None) -> None:
    """Have annotations."""


step.__annotations__ |= {"inp": Field["float64", "IJ"], "out": Field["float64", "IJ", "w"], "mask": Field["bool", "I"]}


def test_a_signature_comes_from_a_functions_annotations() -> None:
    signature = dl.Signature.from_annotations(step, device="cuda:1", on_mismatch="copy", allow_overlap=True)
    assert repr(signature) == (
        "Signature(inp=FieldSpec('float64', ('I', 'J')), out=FieldSpec('float64', ('I', 'J'), access='w'), "
        "mask=FieldSpec('bool', ('I',), optional=True), device='cuda:1', on_mismatch='copy', allow_overlap=True)"
    )


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


def test_annotations_without_a_field_are_an_error() -> None:
    for annotated in (lambda x: x, {}, {"dt": float}):
        with pytest.raises(TypeError, match=r"annotations: .* has none of a field; annotate fields with dl\.Field"):
            dl.Signature.from_annotations(annotated)
    with pytest.raises(TypeError, match=r"annotations: expected a function, a class or a mapping .*, got 5"):
        dl.Signature.from_annotations(5)


def test_an_annotation_that_cannot_be_evaluated_names_its_parameter() -> None:
    def step(inp: Any) -> None: ...

    step.__annotations__["inp"] = "Missing['float64', 'IJ']"
    with pytest.raises(NameError, match="Missing") as caught:
        dl.Signature.from_annotations(step)
    assert caught.value.__notes__ == ["annotation of 'inp'"]
