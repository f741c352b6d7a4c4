"""`FieldSpec` and `Signature`: properties, repr and refusals."""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import dlfield as dl


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
    assert {name: signature[name].default for name in ("device", "on_mismatch")} == {
        "device": "cpu",
        "on_mismatch": "raise",
    }
    assert (str(made.device), made.on_mismatch, made.fields) == ("cpu", "raise", {})


def dtypes() -> Iterator[tuple[Any, Any]]:
    yield float, "float64"
    yield np.float32, "float32"
    yield "c16", "complex128"
    yield np.dtype("bool"), "bool"
    yield ml_dtypes.bfloat16, ml_dtypes.bfloat16
    yield "=i8", "int64"


@pytest.mark.parametrize(("given", "found"), list(dtypes()))
def test_dtypes_of_numpy(given: Any, found: Any) -> None:
    assert dl.FieldSpec(given, "I").dtype == np.dtype(found)


def test_dtypes_of_torch_and_jax(torch: Any, jnp: Any) -> None:
    assert dl.FieldSpec(torch.float32, "I").dtype == np.dtype("float32")
    assert dl.FieldSpec(torch.bfloat16, "I").dtype == np.dtype(ml_dtypes.bfloat16)
    assert dl.FieldSpec(jnp.float16, "I").dtype == np.dtype("float16")


def test_a_repr_evaluates_to_the_same() -> None:
    texts = [
        "FieldSpec('float64', ('I',))",
        "FieldSpec('int32', ())",
        "FieldSpec('bool', ('I', 'J', '0'), access='w')",
        "FieldSpec('bool', ('I', 'x'), access='rw', layout=(1, 0), alignment_size=8, shape=(None, 5), optional=True)",
    ]
    for text in texts:
        assert repr(eval(text, {"FieldSpec": dl.FieldSpec})) == text
    whole = f"Signature(a={texts[0]}, b={texts[3]}, device='cpu', on_mismatch='copy', allow_overlap=True)"
    assert repr(eval(whole, {"FieldSpec": dl.FieldSpec, "Signature": dl.Signature})) == whole
    assert repr(dl.Signature(device=(2, 1))) == "Signature(device='cuda:1')"


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


class Case(NamedTuple):
    call: Callable[[], object]
    error: type[Exception]
    message: str


def spec(error: type[Exception], message: str, dtype: Any = "f8", dims: Any = "IJ", **keywords: Any) -> Case:
    return Case(lambda: dl.FieldSpec(dtype, dims, **keywords), error, message)


def signature(error: type[Exception], message: str, **keywords: Any) -> Case:
    return Case(lambda: dl.Signature(**keywords), error, message)


make: Any = dl.FieldSpec
FIELD = dl.FieldSpec("float64", "I")
CASES = {
    "no dtype": Case(lambda: make(), TypeError, r"dtype"),
    "by position": Case(lambda: make("f8", "IJ", "w"), TypeError, r"position"),
    "another keyword": Case(lambda: make("f8", "IJ", mode="w"), TypeError, r"mode"),
    "big-endian": spec(dl.DTypeError, r"dtype: .*big.endian|>f8", dtype=">f8"),
    "no such dtype": spec(dl.DTypeError, r"dtype: .*nonsense", dtype="nonsense"),
    "components": spec(
        dl.DTypeError, r'dtype: .*is a sub-array type; allowed is a scalar type.*dims, as "0"', dtype=("f8", 3)
    ),
    "dims twice": spec(dl.DimsError, r"dims: .*I", dims="II"),
    "dims empty label": spec(dl.DimsError, r"dims", dims=("I", "")),
    "dims no text": spec(dl.DimsError, r"dims: 5 is not a string or a sequence", dims=5),
    "dims numbers": spec(dl.DimsError, r"dims: 0\.5 is not a label", dims=(0.5, 1)),
    "dims too many": spec(dl.DimsError, r"dims: more than 64", dims=[str(n) for n in range(70)]),
    "access": spec(ValueError, r"access: 'x'; allowed is 'r', 'w' or 'rw'", access="x"),
    "access order": spec(ValueError, r"access: 'wr'", access="wr"),
    "access no text": spec(ValueError, r"access: 3; allowed", access=3),
    "layout short": spec(dl.LayoutError, r"layout: \[0\] for 2 dimensions", layout=(0,)),
    "layout twice": spec(dl.LayoutError, r"layout: \[0, 0\]", layout=(0, 0)),
    "layout text": spec(dl.LayoutError, r"layout: 'C'", layout="C"),
    "layout fraction": spec(TypeError, r"layout: 1\.0 is not an integer", layout=(0, 1.0)),
    "alignment 0": spec(dl.LayoutError, r"alignment_size: 0 bytes; allowed is 1 or more", alignment_size=0),
    "alignment huge": spec(dl.LayoutError, r"alignment_size: .*64 bits", alignment_size=1 << 64),
    "alignment text": spec(TypeError, r"alignment_size: '64' is not an integer", alignment_size="64"),
    "shape short": spec(dl.LayoutError, r"shape: 1 entries for 2 dimensions", shape=(3,)),
    "shape negative": spec(dl.LayoutError, r"shape: extent -1 at axis 1", shape=(None, -1)),
    "shape number": spec(TypeError, r"shape: 5 is not a sequence of integers, names of sizes or None", shape=5),
    "shape fraction": spec(TypeError, r"shape: 1\.5 is not an integer", shape=(1.5, 2)),
    "shape without end": spec(dl.LayoutError, r"shape: 65 dimensions", shape=iter(int, 1)),
    "optional": spec(TypeError, r"optional: 'no'; allowed is True or False", optional="no"),
    "no spec": signature(TypeError, r"^x: 'float64'; allowed is a FieldSpec for each keyword", x="float64"),
    "the type": signature(TypeError, r"^x: <class .*FieldSpec'>; allowed is a FieldSpec", x=dl.FieldSpec),
    "mistaken keyword": signature(TypeError, r"^on_mismach: 'copy'; allowed is a FieldSpec", on_mismach="copy"),
    "on_mismatch": signature(ValueError, r"on_mismatch: 'cast'; allowed is 'raise' or 'copy'", on_mismatch="cast"),
    "device": signature(dl.DeviceError, r"device.*tpu", device="tpu"),
    "device is a field": signature(TypeError, r"device: FieldSpec\(.* is not a Device", device=FIELD),
    "by position of a signature": Case(lambda: dl.Signature(FIELD), TypeError, r"each field by its name"),  # type: ignore[call-overload]
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_named(name: str) -> None:
    case = CASES[name]
    with pytest.raises(case.error) as caught:
        case.call()
    shown = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert re.search(case.message, shown), shown


def test_an_arguments_exception_is_raised() -> None:
    def endless() -> Iterator[str]:
        yield "I"
        raise RuntimeError("mine")

    for keywords in ({"shape": endless()}, {"layout": endless()}):
        with pytest.raises((RuntimeError, TypeError)):
            dl.FieldSpec("f8", "IJ", **keywords)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="mine"):
        dl.FieldSpec("f8", endless())  # type: ignore[arg-type]


@pytest.mark.parametrize("made", [FIELD, dl.Signature(x=FIELD), dl.Signature(x=FIELD).bind(x=np.zeros(3))])
def test_nothing_about_them_can_be_changed(made: Any) -> None:
    for name in ("dtype", "fields", "x", "domain", "anything"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(made, name, 5)
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Derived", (type(made),), {})


def test_a_bound_comes_from_bind_only() -> None:
    with pytest.raises(TypeError, match=r"cannot create|No constructor"):
        dl.Bound()
