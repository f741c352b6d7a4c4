"""Calls of functions with `@dl.kernel`: arguments bound by annotation, and refused calls."""
# ruff: noqa: ARG001, F722, F821 (kernels use few of their arguments; it takes texts in `dl.Field[...]` for annotations)

import inspect
import pickle
import sys
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import pytest

import dlfield as dl
import kernel_annotations
from calls import view
from fakes_interfaces import Hooked, Raising
from leak_checks import grown

# As type checkers see it; `dl.Field` is tested in kernel_annotations.py.
Inp = Annotated[Any, dl.FieldSpec("float64", "IJ")]
Out = Annotated[Any, dl.FieldSpec("float64", "IJ", access="w")]
Maybe = Annotated[Any, dl.FieldSpec("bool", "I")] | None
TEXT = "step(inp: Field[float64, I J, cpu], out: Field[float64, I J, cpu, w], dt: float = 1.0)"
X, Y = np.ones((3, 4)), np.zeros((3, 4))


@dl.kernel
def step(inp: Inp, out: Out, dt: float = 1.0) -> tuple[Any, Any, float]:
    """Return what the body gets."""
    return inp, out, dt


def test_the_body_gets_bound_fields_and_scalars_and_returns_its_result() -> None:
    turned = dl.zeros((4, 3), dims="JI")
    inp, out, dt = step(X, out=turned, dt=0.5)
    assert isinstance(inp, dl.Descriptor)
    assert (inp.ptr, inp.shape, inp.strides) == (X.ctypes.data, X.shape, X.strides)
    assert (out.ptr, out.shape, out.strides, out.dims) == (turned.ptr, (3, 4), (8, 24), ("I", "J"))
    assert dt == 0.5
    assert step(X, Y)[2] == 1.0


def test_a_kernel_is_a_function_like_the_one_it_wraps() -> None:
    assert inspect.isfunction(step)
    assert (step.__name__, step.__qualname__, step.__module__) == ("step", "step", __name__)
    assert step.__doc__ == "Return what the body gets."
    assert list(inspect.signature(step).parameters) == ["inp", "out", "dt"]
    assert inspect.signature(step).parameters["dt"].default == 1.0
    assert step.__wrapped__(1, 2, 3) == (1, 2, 3)  # type: ignore[attr-defined]
    assert pickle.loads(pickle.dumps(step)) is step


def test_annotations_that_are_text_are_evaluated() -> None:
    assert kernel_annotations.step(X, dl.zeros((4, 3), dims="JI"), 2) == ((3, 4), (8, 24), 2.0)
    assert kernel_annotations.local()(X) == (3, 4)
    assert kernel_annotations.Model().total(X) == 4.0


class Model:
    factor = 2.0

    @dl.kernel
    def method(self, inp: Inp, n: int = 3) -> tuple[float, tuple[int, ...], int]:
        return self.factor, inp.shape, n

    @staticmethod
    @dl.kernel
    def inner(inp: Inp) -> Any:
        return inp.shape

    @dl.kernel
    @staticmethod
    def outer(inp: Inp) -> Any:
        return inp.shape

    @classmethod
    @dl.kernel
    def made(cls, inp: Inp) -> Any:
        return cls, inp.shape

    @dl.kernel
    @classmethod
    def also(cls, inp: Inp) -> Any:
        return cls, inp.shape


def test_methods() -> None:
    model = Model()
    assert model.method(X) == Model.method(model, X, n=3) == (2.0, (3, 4), 3)
    assert model.inner(X) == Model.outer(X) == (3, 4)
    assert Model.made(X) == model.also(X) == (Model, (3, 4))
    with pytest.raises(TypeError, match=r"^Model\.method\(\): argument 'inp' is missing"):
        Model.method(model)  # type: ignore[call-arg]


def test_sizes_agree_by_name() -> None:
    @dl.kernel
    def flux(center: dl.Field[Any, "float32 | float64", "I K"], face: dl.Field[Any, "float64", "I+1 K", "w"]) -> Any:
        return center.dtype, face.shape

    assert flux(np.ones((3, 4), "f4"), np.ones((4, 4))) == (np.dtype("float32"), (4, 4))
    with pytest.raises(dl.LayoutError, match=r'^flux\(\): field "face": expected I = 3, .* got 2') as caught:
        flux(X, X)
    assert str(caught.value).splitlines()[1:] == [
        "    flux(center: Field[float32 | float64, I K, cpu], face: Field[float64, I+1 K, cpu, w])"
    ]
    assert not caught.value.__notes__


def test_the_signature_in_errors_shows_every_kind_of_parameter() -> None:
    @dl.kernel
    def every(
        anything: Annotated[Any, dl.FieldSpec(None)],
        fixed: Annotated[Any, dl.FieldSpec("float64", "IK0", shape=("N", None, 3))],
        maybe: Maybe,
        n: int | None,
        scale: np.float32 = np.float32(2),  # noqa: B008
    ) -> None: ...

    with pytest.raises(TypeError) as caught:
        every()  # type: ignore[call-arg]
    assert str(caught.value).splitlines()[1] == (
        "    every(anything: Field[any, ..., cpu], fixed: Field[float64, I=N K 0=3, cpu], "
        "maybe: Field[bool, I, cpu, optional], n: int | None, scale: numpy.float32 = np.float32(2.0))"
    )


def test_positional_and_keyword_only_parameters() -> None:
    @dl.kernel
    def split(a: Inp, /, b: int, *, c: Inp, d: float = 0.5) -> Any:
        return a.shape, b, c.shape, d

    assert split(X, b=1, c=X) == ((3, 4), 1, (3, 4), 0.5)
    with pytest.raises(TypeError, match="takes 2 positional arguments, found 3") as caught:
        split(X, 1, X)  # type: ignore[call-arg]
    field = "Field[float64, I J, cpu]"
    assert f"split(a: {field}, /, b: int, *, c: {field}, d: float = 0.5)" in str(caught.value)
    with pytest.raises(TypeError, match="positional-only arguments passed as keyword arguments: 'a'"):
        split(a=X, b=1, c=X)  # type: ignore[call-arg]


def test_names_of_parameters_are_free() -> None:
    @dl.kernel
    def odd(domain: Inp, _dl_bind: Inp, type: float, wrapper: int, ä: Maybe = None) -> Any:  # noqa: A002
        return domain.shape, _dl_bind.shape, type, wrapper, ä

    assert odd(X, X, 1, 2) == ((3, 4), (3, 4), 1.0, 2, None)


def test_fields_that_may_be_left_out() -> None:
    @dl.kernel
    def masked(inp: Inp, mask: Maybe, other: Inp = None) -> Any:
        return mask is not None and mask.shape, other

    assert masked(X, None) == (False, None)
    assert masked(X, np.ones(3, bool)) == ((3,), None)
    with pytest.raises(TypeError, match="argument 'mask' is missing"):
        masked(X)  # type: ignore[call-arg]


def test_device_and_copies() -> None:
    @dl.kernel(on_mismatch="copy")
    def double(out: Annotated[Any, dl.FieldSpec("float64", "I", access="rw")]) -> None:
        view(out)[...] *= 2

    x = np.ones(3, "float32")
    with pytest.warns(dl.LayoutWarning, match="a temporary copy is used"):
        double(x)
    assert x.tolist() == [2, 2, 2]

    @dl.kernel(device="cuda:0")
    def on_device(inp: Inp) -> None: ...

    with pytest.raises(dl.DeviceError, match=r"on_device\(inp: Field\[float64, I J, cuda:0\]\)"):
        on_device(X)


def test_hooks_surround_the_body_also_if_it_raises() -> None:
    log: list[str] = []

    @dl.kernel
    def run(out: Out, fail: bool) -> None:
        log.append("body")
        if fail:
            raise KeyError("mine")

    hooked: Any = Hooked(np.ones((3, 4)), log)
    run(hooked, False)
    with pytest.raises(KeyError, match="mine") as caught:
        run(hooked, True)
    assert log == ["acquire x", "body", "touch x", "release x"] * 2
    assert not hasattr(caught.value, "__notes__")


def test_a_kernel_may_call_itself() -> None:
    @dl.kernel
    def deep(inp: Inp, n: int) -> Any:
        return inp.shape if n == 0 else deep(inp, n - 1)

    assert deep(np.ones((3, 4)), 20) == (3, 4)


CALLS: list[tuple[tuple[Any, ...], type[Exception], str]] = [
    ((X,), TypeError, "argument 'out' is missing"),
    ((X, None), TypeError, "argument 'out': expected"),
    ((X.astype("f4"), Y), dl.DTypeError, 'field "inp": dtype: expected float64, got float32'),
    ((X[0], Y), dl.DimsError, 'field "inp": dims: expected (I, J), in this order'),
    ((X, X), dl.OverlapError, 'field "out": it is written, and shares memory'),
]


@pytest.mark.parametrize(("arguments", "error", "message"), CALLS)
def test_refused_calls_name_function_and_argument_and_show_the_signature(
    arguments: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        step(*arguments)
    assert str(caught.value).startswith(f"step(): {message}")
    assert str(caught.value).endswith("\n    " + TEXT)


def test_two_values_for_an_argument_and_unknown_ones_are_refused() -> None:
    with pytest.raises(TypeError, match=r"step\(\) got an unexpected keyword argument 'oops'"):
        step(X, Y, oops=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"step\(\) got multiple values for argument 'inp'"):
        step(X, Y, inp=X)  # type: ignore[misc]


class Own(dl.LayoutError): ...


@pytest.mark.parametrize("error", [OSError("mine"), Own("mine", 5)])
def test_an_exception_of_a_producer_keeps_its_message(error: Exception) -> None:
    """Also one of a producer's own subclass of an error of dlfield."""
    arguments, producer = error.args, Raising("__dlpack__", error)
    with pytest.raises(type(error)) as caught:
        step(producer, Y)
    assert caught.value.args == arguments
    assert any(TEXT in note for note in caught.value.__notes__)


def leaking_uses() -> dict[str, Callable[[], object]]:
    def fail(*arguments: Any) -> None:
        with pytest.raises((TypeError, dl.Error)):
            step(*arguments)

    def decorated() -> None:
        @dl.kernel
        def again(inp: Inp) -> None: ...

    return {
        "call": lambda: step(X, Y),
        "field refused": lambda: fail(X, X),
        "scalar refused": lambda: fail(X, Y, "no"),
        "argument missing": lambda: fail(X),
        "decorated": decorated,
    }


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts with glibc")
def test_nothing_leaks() -> None:
    # Errors and decorations fill tables of the interpreter now and then: 8 KB in 400 rounds were not a leak.
    for growth in grown(__name__, "leaking_uses", 1500).values():
        growth.assert_none_in(1500)


def test_a_description_is_an_array_to_numpy() -> None:
    @dl.kernel
    def double(inp: dl.Field[Any, "float64", "IJ"], out: dl.Field[Any, "float64", "IJ", "w"]) -> None:
        np.asarray(out)[...] = 2 * np.asarray(inp)
        assert np.asarray(inp, "float32").dtype == "float32"
        assert np.array(inp).base is None

    inp, out = dl.full((3, 4), 1.5, dims="JI"), np.zeros((4, 3))
    double(inp, out)
    assert (out == 3.0).all()
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(dl.describe(inp.as_readonly()))[...] = 1.0
