"""Calls of functions with `@dl.kernel`: arguments bound by annotation, and refused calls."""
# ruff: noqa: ARG001, F722, F821 (kernels use few of their arguments; it takes texts in `dl.Field[...]` for annotations)

import inspect
import pickle
import re
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest

import dlfield as dl
import kernel_annotations
from fakes_interfaces import Exposing
from leak_checks import grown

# As type checkers see it; `dl.Field` is tested in kernel_annotations.py.
Inp = Annotated[Any, dl.FieldSpec("float64", "IJ")]
Out = Annotated[Any, dl.FieldSpec("float64", "IJ", access="w")]
Maybe = Annotated[Any, dl.FieldSpec("bool", "I")] | None

TEXT = "step(inp: Field[float64, I J, cpu], out: Field[float64, I J, cpu, w], dt: float = 1.0)"


@dl.kernel
def step(inp: Inp, out: Out, dt: float = 1.0) -> tuple[Any, Any, float]:
    """Return what the body gets."""
    return inp, out, dt


def pair() -> tuple[Any, dl.Tensor]:
    return np.ones((3, 4)), dl.zeros((4, 3), dims="JI")


def test_the_body_gets_bound_fields_and_scalars_and_returns_its_result() -> None:
    x, y = pair()
    inp, out, dt = step(x, out=y, dt=0.5)
    assert isinstance(inp, dl.Descriptor)
    assert (inp.ptr, inp.shape, inp.strides) == (x.ctypes.data, x.shape, x.strides)
    assert (out.ptr, out.shape, out.strides, out.dims) == (y.ptr, (3, 4), (8, 24), ("I", "J"))
    assert dt == 0.5
    assert step(x, y)[2] == 1.0


def test_a_kernel_is_a_function_like_the_one_it_wraps() -> None:
    assert inspect.isfunction(step)
    assert (step.__name__, step.__qualname__, step.__module__, step.__doc__) == (
        "step",
        "step",
        __name__,
        "Return what the body gets.",
    )
    assert list(inspect.signature(step).parameters) == ["inp", "out", "dt"]
    assert inspect.signature(step).parameters["dt"].default == 1.0
    assert step.__wrapped__(1, 2, 3) == (1, 2, 3)  # type: ignore[attr-defined]
    assert pickle.loads(pickle.dumps(step)) is step


def test_annotations_that_are_text_are_evaluated() -> None:
    x, y = pair()
    assert kernel_annotations.step(x, y, 2) == ((3, 4), (8, 24), 2.0)
    assert kernel_annotations.local()(x) == (3, 4)
    assert kernel_annotations.Model().total(x) == 4.0


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
    x, _ = pair()
    model = Model()
    assert model.method(x) == Model.method(model, x, n=3) == (2.0, (3, 4), 3)
    assert model.inner(x) == Model.outer(x) == (3, 4)
    assert Model.made(x) == model.also(x) == (Model, (3, 4))
    with pytest.raises(TypeError, match=re.escape("Model.method(): argument 'inp' is missing")):
        Model.method(model)  # type: ignore[call-arg]


def test_sizes_agree_by_name() -> None:
    @dl.kernel
    def flux(center: dl.Field[Any, "float32 | float64", "I K"], face: dl.Field[Any, "float64", "I+1 K", "w"]) -> Any:
        return center.dtype, face.shape

    assert flux(np.ones((3, 4), "f4"), np.ones((4, 4))) == (np.dtype("float32"), (4, 4))
    with pytest.raises(dl.LayoutError) as caught:
        flux(np.ones((3, 4)), np.ones((3, 4)))
    assert str(caught.value) == (
        'flux(): field "face": size of I: 2, as 3 points are I+1; field "center" has I = 3\n'
        "    flux(center: Field[float32 | float64, I K, cpu], face: Field[float64, I+1 K, cpu, w])"
    )
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

    x, _ = pair()
    assert split(x, b=1, c=x) == ((3, 4), 1, (3, 4), 0.5)
    with pytest.raises(TypeError, match=re.escape("takes 2 positional arguments, found 3")) as caught:
        split(x, 1, x)  # type: ignore[call-arg]
    field = "Field[float64, I J, cpu]"
    assert f"split(a: {field}, /, b: int, *, c: {field}, d: float = 0.5)" in str(caught.value)
    with pytest.raises(TypeError, match=re.escape("positional-only arguments passed as keyword arguments: 'a'")):
        split(a=x, b=1, c=x)  # type: ignore[call-arg]


def test_names_of_parameters_are_free() -> None:
    @dl.kernel
    def odd(domain: Inp, _dl_bind: Inp, type: float, wrapper: int, ä: Maybe = None) -> Any:  # noqa: A002
        return domain.shape, _dl_bind.shape, type, wrapper, ä

    x, _ = pair()
    assert odd(x, x, 1, 2) == ((3, 4), (3, 4), 1.0, 2, None)


def test_fields_that_may_be_left_out() -> None:
    @dl.kernel
    def masked(inp: Inp, mask: Maybe, other: Inp = None) -> Any:
        return mask is not None and mask.shape, other

    x, _ = pair()
    assert masked(x, None) == (False, None)
    assert masked(x, np.ones(3, bool)) == ((3,), None)
    with pytest.raises(TypeError, match="argument 'mask' is missing"):
        masked(x)  # type: ignore[call-arg]


def test_device_and_copies() -> None:
    @dl.kernel(on_mismatch="copy")
    def double(out: Annotated[Any, dl.FieldSpec("float64", "I", access="rw")]) -> None:
        as_array(out)[...] *= 2

    x = np.ones(3, "float32")
    with pytest.warns(dl.LayoutWarning, match="a temporary copy is used"):
        double(x)
    assert x.tolist() == [2, 2, 2]

    @dl.kernel(device="cuda:0")
    def on_device(inp: Inp) -> None: ...

    with pytest.raises(dl.DeviceError, match=r"on_device\(inp: Field\[float64, I J, cuda:0\]\)"):
        on_device(np.ones((3, 4)))


def as_array(field: dl.Descriptor) -> Any:
    interface = {"version": 3, "shape": field.shape, "strides": field.strides, "typestr": field.dtype.str}
    return np.asarray(Exposing(__array_interface__=interface | {"data": (field.ptr, False)}))


class Hooked:
    """An array with hooks that record their calls."""

    def __init__(self, calls: list[str]) -> None:
        self.array = np.ones((3, 4))
        hooks = {name: lambda name=name: calls.append(name) for name in ("acquire", "touch", "release")}
        self.__gt_data_interface__ = {None: self.array.__array_interface__ | hooks}


def test_hooks_surround_the_body_also_if_it_raises() -> None:
    calls: list[str] = []

    @dl.kernel
    def run(out: Out, fail: bool) -> None:
        calls.append("body")
        if fail:
            raise KeyError("mine")

    run(Hooked(calls), False)
    assert calls == ["acquire", "body", "touch", "release"]
    calls.clear()
    with pytest.raises(KeyError, match="mine") as caught:
        run(Hooked(calls), True)
    assert calls == ["acquire", "body", "touch", "release"]
    assert not hasattr(caught.value, "__notes__")


def test_a_warning_points_to_the_call() -> None:
    @dl.kernel
    def slow(inp: Annotated[Any, dl.FieldSpec("float64", "IJ", layout=(1, 0))]) -> None: ...

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        slow(np.ones((3, 4)))
    assert [warning.filename for warning in caught] == [__file__]


def test_a_kernel_may_call_itself() -> None:
    @dl.kernel
    def deep(inp: Inp, n: int) -> Any:
        return inp.shape if n == 0 else deep(inp, n - 1)

    assert deep(np.ones((3, 4)), 20) == (3, 4)


def test_threads_may_share_a_kernel() -> None:
    found: list[bool] = []

    def work(number: int) -> None:
        array = np.full((3, 4), float(number))
        found.append(all(step(array, np.zeros((3, 4)), number)[0].ptr == array.ctypes.data for _ in range(500)))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


class Refused(NamedTuple):
    call: Callable[[], object]
    error: type[Exception]
    message: str


X, Y = np.ones((3, 4)), np.zeros((3, 4))
call: Any = step
CALLS = {
    "missing": Refused(lambda: call(X), TypeError, "argument 'out' is missing"),
    "nothing": Refused(lambda: call(), TypeError, "argument 'inp' is missing"),
    "None": Refused(lambda: call(X, None), TypeError, "argument 'out' is None; wanted is Field[float64, I J, cpu, w]"),
    "too many": Refused(lambda: call(X, Y, 1, 2), TypeError, "takes 3 positional arguments, found 4"),
    "dtype": Refused(lambda: call(X.astype("f4"), Y), dl.DTypeError, 'field "inp": dtype: float32; wanted is float64'),
    "dims": Refused(lambda: call(X[0], Y), dl.DimsError, 'field "inp": dims: 1 dimensions without labels'),
    "no array": Refused(lambda: call(X, 5), dl.NotAnArrayError, 'field "out": '),
    "overlap": Refused(lambda: call(X, X), dl.LayoutError, 'field "out": it is written, and shares memory'),
    "scalar": Refused(lambda: call(X, Y, "1"), TypeError, "argument 'dt': '1' is a str; wanted is float"),
}


@pytest.mark.parametrize("name", CALLS)
def test_refused_calls_name_function_and_argument_and_show_the_signature(name: str) -> None:
    case = CALLS[name]
    with pytest.raises(case.error) as caught:
        case.call()
    message = str(caught.value)
    assert message.startswith(f"step(): {case.message}")
    assert message.endswith("\n    " + TEXT)


def test_two_values_for_an_argument_and_unknown_ones_are_refused() -> None:
    with pytest.raises(TypeError, match=r"step\(\) got an unexpected keyword argument 'oops'"):
        step(X, Y, oops=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"step\(\) got multiple values for argument 'inp'"):
        step(X, Y, inp=X)  # type: ignore[misc]


def test_an_exception_of_a_producer_keeps_its_message() -> None:
    class Raising:
        @property
        def __dlpack__(self) -> object:
            raise OSError("mine")

    with pytest.raises(OSError, match="mine") as caught:
        step(Raising(), Y)
    assert str(caught.value) == "mine"
    assert any(TEXT in note for note in caught.value.__notes__)


def test_a_producers_own_subclass_of_error_is_left_as_it_is() -> None:
    class Own(dl.LayoutError): ...

    class Raising:
        @property
        def __dlpack__(self) -> object:
            raise Own("mine", 5)

    with pytest.raises(Own) as caught:
        step(Raising(), Y)
    assert caught.value.args == ("mine", 5)
    assert any(TEXT in note for note in caught.value.__notes__)


def leaking_uses() -> dict[str, Callable[[], object]]:
    x, y = np.ones((3, 4)), np.zeros((3, 4))

    def fail(*args: Any) -> None:
        with pytest.raises((TypeError, dl.Error)):
            call(*args)

    def recursive() -> None:
        @dl.kernel
        def again(inp: Inp) -> None: ...

    return {
        "call": lambda: step(x, y),
        "field refused": lambda: fail(x, x),
        "scalar refused": lambda: fail(x, y, "no"),
        "argument missing": lambda: fail(x),
        "decorated": recursive,
    }


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts with glibc")
def test_nothing_leaks() -> None:
    # Errors and decorations fill tables of the interpreter now and then: 8 KB in 400 rounds were no leak.
    for growth in grown(__name__, "leaking_uses", 1500).values():
        growth.assert_none_in(1500)
