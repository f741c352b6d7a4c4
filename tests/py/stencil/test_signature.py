"""`FieldSpec` and `Signature`: properties, texts, copies and refusals."""

import copy
import inspect
import pickle
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dlfield as dl
from calls import copying, signature, spec


def test_a_spec_has_read_access_and_no_constraints_by_default() -> None:
    spec = dl.FieldSpec("float64", "IJK")
    assert (spec.dtype, spec.dims, spec.access) == (np.dtype("float64"), ("I", "J", "K"), "r")
    assert (spec.layout, spec.alignment_size, spec.shape, spec.optional) == (None, 1, None, False)


def test_a_spec_has_the_given_properties() -> None:
    spec = dl.FieldSpec(
        "f4", ("K", "cell", "0"), access="rw", layout=[2, 1, 0], alignment_size=64, shape=(5, None, 3), optional=True
    )
    assert (spec.dtype, spec.dims, spec.access) == (np.dtype("float32"), ("K", "cell", "0"), "rw")
    assert (spec.layout, spec.alignment_size, spec.shape, spec.optional) == ((2, 1, 0), 64, (5, None, 3), True)


def test_the_defaults_of_the_text_signature_are_true() -> None:
    parameters = inspect.signature(dl.FieldSpec).parameters
    spec = dl.FieldSpec("float64", "I")
    for name in ("access", "layout", "shape", "optional", "backend"):
        assert parameters[name].default == getattr(spec, name)
    explicit = {
        name: parameter.default for name, parameter in parameters.items() if parameter.kind.name == "KEYWORD_ONLY"
    }
    assert repr(dl.FieldSpec("float64", "I", **explicit)) == repr(spec)
    signature = inspect.signature(dl.Signature).parameters
    made: Any = dl.Signature()
    assert (signature["device"].default, signature["on_mismatch"].default) == ("cpu", "raise")
    assert (str(made.device), made.on_mismatch, made.fields) == ("cpu", "raise", {})


def test_dtypes_of_numpy_torch_and_jax(torch: Any, jnp: Any) -> None:
    given = [float, np.float32, "c16", np.dtype("bool"), ml_dtypes.bfloat16, "=i8", torch.bfloat16, jnp.float16]
    names = ["float64", "float32", "complex128", "bool", "bfloat16", "int64", "bfloat16", "float16"]
    assert [dl.FieldSpec(dtype, "I").dtype for dtype in given] == [np.dtype(name) for name in names]


def test_a_signature_has_its_fields_in_order() -> None:
    names = ["out", "inp", "a", "ä b"]
    specs: dict[str, Any] = {name: dl.FieldSpec("float64", "I") for name in names}
    sig = dl.Signature(device="cuda:1", on_mismatch="copy", **specs)
    assert list(sig.fields) == names
    assert (str(sig.device), sig.on_mismatch) == ("cuda:1", "copy")
    # The caller gets a copy of the dictionary.
    sig.fields.clear()
    assert list(sig.fields) == names
    assert repr(sig.fields["a"]) == "FieldSpec('float64', ('I',))"


# A specification, its `repr`, and its short text, which says what a field must be.
TEXTS = [
    (spec(), "'float64', ('I', 'J')", "float64, I J"),
    (spec((), "int8"), "'int8', ()", "int8, ()"),
    (spec(None, None), "None", "any, ..."),
    (
        spec(("cell", "0"), "float32 | float64", access="w"),
        "'float32 | float64', ('cell', '0'), access='w'",
        "float32 | float64, cell 0, w",
    ),
    (
        spec(access="rw", layout=(1, 0), alignment_size=64, optional=True),
        "'float64', ('I', 'J'), access='rw', layout=(1, 0), alignment_size=64, optional=True",
        "float64, I J, rw, layout=[1, 0], alignment_size=64, optional",
    ),
    (
        spec("KJI", "complex64", backend="gtmc", alignment_size=8),
        "'complex64', ('K', 'J', 'I'), alignment_size=8, backend='gtmc'",
        "complex64, K J I, alignment_size=8, backend=gtmc",
    ),
    (spec(shape=(5, None)), "'float64', ('I', 'J'), shape=(5, None)", "float64, I=5 J"),
    (
        spec("IJK", shape=("I", "J - 1", "n+1")),
        "'float64', ('I', 'J', 'K'), shape=('I', 'J-1', 'n+1')",
        "float64, I J-1 K=n+1",
    ),
    (spec(None, shape=("n", None, 3)), "'float64', shape=('n', None, 3)", "float64, n * 3"),
    (spec(None, layout=(1, 0)), "'float64', layout=(1, 0)", "float64, * *, layout=[1, 0]"),
]
DUPLICATES: list[Callable[[Any], Any]] = [
    lambda one: eval(repr(one), {"FieldSpec": dl.FieldSpec, "Signature": dl.Signature}),
    copy.copy,
    copy.deepcopy,
    *[lambda one, protocol=protocol: pickle.loads(pickle.dumps(one, protocol)) for protocol in (2, 3, 4, 5)],
]


@pytest.mark.parametrize(("field", "shown", "text"), TEXTS)
def test_the_text_says_what_a_field_must_be_and_copies_keep_it(field: dl.FieldSpec, shown: str, text: str) -> None:
    assert repr(field) == f"FieldSpec({shown})"
    assert str(field) == f"Field[{text}]"
    for duplicate in DUPLICATES:
        twin = duplicate(field)
        assert repr(twin) == repr(field)
        for name in ("dtype", "dtypes", "dims", "access", "layout", "alignment_size", "shape", "optional", "backend"):
            assert getattr(twin, name) == getattr(field, name), name


def test_the_text_of_a_signature_names_the_device() -> None:
    sig = dl.Signature(device="cpu", a=spec(shape=("n", None)), b=spec("I", access="w", shape=("n",)))
    assert str(sig) == "(a: Field[float64, I=n J, cpu], b: Field[float64, I=n, cpu, w])"
    assert str(dl.Signature()) == "()"
    assert str(dl.Signature(device="cuda:1", x=spec())) == "(x: Field[float64, I J, cuda:1])"
    assert repr(dl.Signature(device=(2, 1))) == "Signature(device='cuda:1')"


@pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")
@pytest.mark.parametrize("duplicate", DUPLICATES)
def test_a_copied_signature_binds_as_before(duplicate: Callable[[Any], Any]) -> None:
    fields = {f"field{number}": field for number, (field, _, _) in enumerate(TEXTS)}
    whole = signature(fields | {"device": "cuda:1", "on_mismatch": "copy", "allow_overlap": True})
    assert repr(duplicate(whole)) == repr(whole)
    assert repr(whole).endswith(", device='cuda:1', on_mismatch='copy', allow_overlap=True)")
    twin = duplicate(copying(x=spec(access="w")))
    for _ in range(2):
        array = np.zeros((2, 3), "float32")
        with twin.bind(x=array) as bound:
            dl.as_numpy(bound.x)[...] = 2
        assert array.sum() == 12


def test_they_can_be_referenced_weakly() -> None:
    for one in (dl.FieldSpec("f8"), dl.Signature()):
        assert weakref.ref(one)() is one


# Keywords of `FieldSpec`, and the error; the gallery has more.
REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"mode": "w"}, TypeError, "mode"),
    ({"dtype": ">f8"}, dl.DTypeError, "dtype: .*big.endian|>f8"),
    ({"dtype": ("f8", 3)}, dl.DTypeError, "dtype: expected a type of one element, .*dims, as '0'"),
    ({"dims": "II"}, dl.DimsError, "dims: .*I"),
    ({"dims": ("I", "")}, dl.DimsError, "dims"),
    ({"dims": 5}, dl.DimsError, "dims: expected a string or a sequence of labels, got 5"),
    ({"dims": [str(n) for n in range(70)]}, dl.DimsError, "dims: .* got more than 64"),
    ({"access": 3}, ValueError, "access: .* got 3"),
    ({"layout": (0, 0)}, dl.LayoutError, r"layout: .* got \(0, 0\)"),
    ({"layout": "C"}, dl.LayoutError, "layout: .* got 'C'"),
    ({"layout": (0, 1.0)}, TypeError, r"layout: expected an integer, got 1\.0"),
    ({"alignment_size": 0}, dl.LayoutError, "alignment_size: .* got 0$"),
    ({"alignment_size": 1 << 64}, dl.LayoutError, "alignment_size: .*64 bits"),
    ({"alignment_size": "64"}, TypeError, "alignment_size: expected an integer, got '64'"),
    ({"shape": (None, -1)}, dl.LayoutError, "shape: .* got -1 at axis 1"),
    ({"shape": 5}, TypeError, "shape: expected a sequence of integers, names of sizes or None, got 5"),
    ({"shape": (1.5, 2)}, TypeError, r"shape: expected an integer, got 1\.5"),
    ({"shape": "IJ"}, TypeError, "^shape: "),
    ({"shape": ("I", b"J")}, TypeError, "^shape: "),
    ({"shape": iter(int, 1)}, dl.LayoutError, "shape: .* got 65$"),
]


@pytest.mark.parametrize(("keywords", "error", "message"), REFUSED)
def test_bad_input_is_named(keywords: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        spec(**keywords)
    with pytest.raises(TypeError, match=r"device: expected a Device, .*, got FieldSpec\("):
        signature({"device": spec()})


def test_an_arguments_exception_is_raised() -> None:
    def endless() -> Iterator[str]:
        yield "I"
        raise RuntimeError("mine")

    for keywords in ({"shape": endless()}, {"layout": endless()}):
        with pytest.raises((RuntimeError, TypeError)):
            dl.FieldSpec("f8", "IJ", **keywords)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="mine"):
        dl.FieldSpec("f8", endless())  # type: ignore[arg-type]


@pytest.mark.parametrize("made", [spec(), dl.Signature(x=spec()), dl.Signature(x=spec("I")).bind(x=np.zeros(3))])
def test_nothing_about_them_can_be_changed(made: Any) -> None:
    for name in ("dtype", "fields", "x", "domain", "anything"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(made, name, 5)
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Derived", (type(made),), {})


def test_a_bound_comes_from_bind_only() -> None:
    with pytest.raises(TypeError, match=r"cannot create|No constructor"):
        dl.BoundCall()
