"""Memory exchanged with PyTorch, both ways: same pointer, kept alive, and workarounds for PyTorch's behaviour."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest

import dlfield as dl

READS: dict[str, Callable[[Any], Any]] = {
    "describe": dl.describe,
    "from_dlpack": dl.from_dlpack,
    "from_dlpack on a device": lambda tensor: dl.from_dlpack(tensor, device="cpu", copy=False),
    "as_numpy": dl.as_numpy,
    "from_array": dl.from_array,
    "bind": lambda tensor: dl.Signature(x=dl.FieldSpec(None)).bind(x=tensor),
    "assignment": lambda tensor: dl.zeros(tuple(tensor.shape), "c16").__setitem__(..., tensor),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize(
    "make",
    [
        lambda torch: torch.tensor([1 + 2j]).conj(),
        lambda torch: torch.tensor([1 + 2j]).conj().imag,
        lambda torch: torch.tensor(1 + 2j).conj().imag,
        lambda torch: torch.tensor(1 + 2j, dtype=torch.complex128).conj().imag.reshape(1, 1),
        lambda torch: torch.tensor([1j] * 9, dtype=torch.complex128).conj().imag[5],
        lambda torch: torch.tensor([1j] * 9).conj()[3:4].imag,
        lambda torch: torch.view_as_complex(torch.arange(18.0).view(9, 2)).conj()[7:].imag[:1],
        lambda torch: torch.tensor([1 + 2j]).as_subclass(type("Mine", (torch.Tensor,), {})).conj(),
        # Any strides, element type and offset.
        lambda torch: torch._neg_view(torch.tensor([1.0, 3.0])),
        lambda torch: torch._neg_view(torch.tensor([1, 3], dtype=torch.int32)).detach(),
        lambda torch: torch._neg_view(torch.tensor(3, dtype=torch.int8)),
        lambda torch: torch.as_strided(torch.tensor([1 + 2j, 3 + 4j, 5 + 6j]).conj().imag, (3,), (1,)),
        # Complex numbers that are aligned to half their size.
        lambda torch: torch.frombuffer(bytearray(24), dtype=torch.complex128, offset=8).conj().imag,
        lambda torch: torch.from_numpy(np.zeros(1, [("f", "f8"), ("z", "c16"), ("g", "f8")])["z"]).conj().imag,
        lambda torch: torch.view_as_complex(torch.from_numpy(np.zeros(9)[1:].reshape(4, 2))).conj().imag,
    ],
    ids=[
        *("conjugate", "negative", "number", "one by one", "element", "slice", "view of pairs", "subclass"),
        *("negated", "negated integers", "a negated integer", "other strides"),
        *("buffer", "record", "odd pairs"),
    ],
)
def test_lazy_torch_tensors_are_refused(torch: Any, make: Any, read: Callable[..., Any]) -> None:
    """PyTorch conjugates lazily: the memory holds other values than the tensor."""
    with pytest.raises(dl.ExchangeError, match="resolve_conj"):
        read(make(torch))


def test_torchs_read_only_wrapper_is_read_only(torch: Any) -> None:
    """A borrowed struct has no flags; the wrapper's managed tensor has the read-only flag."""
    wrapper = getattr(torch.utils.dlpack, "ReadOnlyTensorWrapper", None)
    if wrapper is None:
        pytest.skip("this PyTorch has none")
    tensor = torch.zeros(3)
    readonly = wrapper(tensor)
    assert dl.describe(readonly).readonly
    assert dl.from_dlpack(readonly).readonly
    assert dl.describe(readonly).ptr == tensor.data_ptr()
    with pytest.raises(dl.ExchangeError, match="read-only"):
        dl.describe(readonly, writable=True)
    with pytest.raises(dl.ExchangeError, match="read-only"):
        dl.Signature(field=dl.FieldSpec("float32", "I", access="w")).bind(field=readonly)
    assert not dl.describe(tensor).readonly


def test_a_mode_that_moves_the_memory_is_noticed(torch: Any) -> None:
    """Asking whether a tensor of one element is negated runs the code of an active mode, which may move its memory."""
    tensor, other = torch.zeros(1), torch.full((1,), 7.0)

    class Moving(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
            answer = func(*args, **(kwargs or {}))
            if func is torch.Tensor.is_neg:
                tensor.data = other
            return answer

    before = tensor.data_ptr()
    with Moving():
        assert dl.describe(tensor).ptr == other.data_ptr() != before


def test_a_mode_that_moves_an_earlier_argument_is_noticed(torch: Any) -> None:
    """Asking whether a written tensor requires grad runs the code of an active mode, too."""
    read, written, other = (torch.zeros(4) for _ in range(3))

    class Moving(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if getattr(func, "__self__", None) is torch.Tensor.requires_grad:
                read.data = other
            return func(*args, **(kwargs or {}))

    signature = dl.Signature(read=dl.FieldSpec("float32", "I"), written=dl.FieldSpec("float32", "I", access="w"))
    with Moving(), pytest.raises(dl.ExchangeError, match='field "read": moved'):
        signature.bind(read=read, written=written)
    other = torch.zeros(4)
    with Moving():
        assert signature.bind(written=written, read=read)["read"].ptr == other.data_ptr()


def test_a_gradient_that_is_required_during_the_import_is_noticed(torch: Any) -> None:
    """Code of an active mode runs after the check for grad, when the tensor is asked whether it is negated."""
    written = torch.zeros(4)[::2]

    class Requiring(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is torch.Tensor.is_neg:
                written.requires_grad_()
            return func(*args, **(kwargs or {}))

    signature = dl.Signature(written=dl.FieldSpec("float32", "I", access="w"))
    with Requiring(), pytest.raises(dl.ExchangeError, match="grad"):
        signature.bind(written=written)


def test_keywords_do_not_change_what_is_accepted(torch: Any) -> None:
    tensor = torch.zeros(3, requires_grad=True)
    for keywords in ({}, {"device": "cpu"}, {"copy": False}, {"copy": True}):
        assert dl.from_dlpack(tensor.detach(), **keywords).shape == (3,)
        with pytest.raises(dl.ExchangeError, match="requires grad"):
            dl.from_dlpack(tensor, **keywords)
    assert dl.describe(tensor, device="cpu").protocol == "dlpack-c"


def test_a_message_does_not_show_a_tensor_whose_storage_was_freed() -> None:
    """PyTorch's own `repr` of it crashes."""
    torch = pytest.importorskip("torch")
    freed = torch.ones(1000)
    freed.untyped_storage().resize_(0)
    with pytest.raises(TypeError, match=r"<class 'torch\.Tensor'>"):
        np.add(dl.ones(1000, "f4"), 1, out=freed)
    with pytest.raises(dl.ExchangeError, match=r"^stream: .* got <class 'list'>"):
        dl.from_dlpack(np.ones(3), stream=[1, ({}, freed)])
    with pytest.raises(dl.DTypeError, match=r"expected an element type, .* got <class 'torch\.Tensor'>"):
        dl.zeros(3, freed)


MESSAGE = (
    r"a PyTorch tensor that requires grad, and autograd does not track access by other libraries; to keep the gradient "
)


def signature(access: Literal["r", "w", "rw"] = "r", on_mismatch: Literal["raise", "copy"] = "raise") -> dl.Signature:
    return dl.Signature(x=dl.FieldSpec("float64", "I", access=access), on_mismatch=on_mismatch)


TAKES: dict[str, Callable[[Any], object]] = {
    "from_dlpack": dl.from_dlpack,
    "from_dlpack of a description": lambda p: dl.from_dlpack(dl.describe(p)),
    "from_dlpack with a copy": lambda p: dl.from_dlpack(p, copy=True),
    "from_dlpack on a device": lambda p: dl.from_dlpack(p, device="cpu"),
    "from_array": dl.from_array,
    "describe to write": lambda p: dl.describe(p, writable=True),
    "as_numpy": dl.as_numpy,
    "as_numpy of a description": lambda p: dl.as_numpy(dl.describe(p)),
    "as_jax": dl.as_jax,
    "assignment": lambda p: dl.zeros(3).__setitem__(..., p),
    "assignment to a part": lambda p: dl.zeros((2, 3)).__setitem__(0, p),
    "addition": lambda p: dl.zeros(3) + p,
    "addition in place": lambda p: dl.zeros(3).__iadd__(p),
    "ufunc": lambda p: np.hypot(dl.zeros(3), p),
    "mask": lambda p: np.add(dl.zeros(3), 1, where=p),
    "a list": lambda p: dl.from_array([p, p]),
    "a list that is assigned": lambda p: dl.zeros((2, 3)).__setitem__(..., [[*p], [*p]]),
    "a list that is assigned by positions": lambda p: dl.zeros((2, 3)).__setitem__([0, 1], [p, p]),
    "a list as an operand": lambda p: [p, p] * dl.zeros((2, 3)),
    "a list of the right shape": lambda p: dl.zeros_like([p]),
    "a fill value": lambda p: dl.full(3, p[0]),
    "bind to write": lambda p: signature("w").bind(x=p),
    "bind to read and write": lambda p: signature("rw").bind(x=p),
    "bind with copies": lambda p: signature("w", on_mismatch="copy").bind(x=p),
    "bind a description to write": lambda p: signature("w").bind(x=dl.describe(p)),
}


@pytest.mark.parametrize("take", TAKES.values(), ids=TAKES.keys())
def test_taking_a_tensor_from_autograd_is_refused(torch: Any, jax: Any, take: Callable[[Any], object]) -> None:
    assert jax
    parameter = torch.nn.Parameter(torch.ones(3, dtype=torch.float64))
    for tensor in (parameter, parameter * 2):
        with pytest.raises(dl.ExchangeError, match=MESSAGE):
            take(tensor)
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        dual = forward.make_dual(parameter.detach(), torch.ones(3, dtype=torch.float64))
        assert dl.describe(dual).ptr == parameter.data_ptr()
        with pytest.raises(dl.ExchangeError, match=r"tensor that has a tangent .*; pass \w+\.detach\(\)"):
            take(dual)
        dual = dual.detach()
    # The fix that the message names.
    try:
        take(parameter.detach())
        take(dual)
    except TypeError as error:
        assert "where" in str(error) or "bool" in str(error) or "'safe'" in str(error)  # noqa: PT017


def test_wrapped_tensors_are_refused_too(torch: Any, xarray: Any) -> None:
    assert xarray
    parameter = torch.ones(3, requires_grad=True)
    for target in ("numpy", "jax", "cupy"):
        found = dl.preflight(parameter, target)
        assert found.verdict == "impossible"
        assert "detach()" in str(found)
    assert dl.preflight(parameter, "torch").verdict == "zero-copy"


def test_a_tensor_may_be_described_bound_to_read_and_returned(torch: Any) -> None:
    parameter = torch.ones(3, dtype=torch.float64, requires_grad=True)
    assert dl.describe(parameter).ptr == parameter.data_ptr()
    assert dl.describe(dl.describe(parameter)).ptr == parameter.data_ptr()
    with signature().bind(x=parameter) as fields:
        assert fields.x.ptr == parameter.data_ptr()
    assert dl.as_torch(parameter) is parameter
    assert dl.zeros_like(parameter).shape == (3,)
    assert dl.get_dims(parameter) is None


def test_gradients_are_right(torch: Any) -> None:
    """Regression: a gradient was 0 instead of 8."""
    x = torch.full((2,), 2.0, requires_grad=True)
    with pytest.raises(dl.ExchangeError, match=MESSAGE):
        dl.from_dlpack(x * 2)
    (dl.as_torch(x * 2) ** 2).sum().backward()
    assert x.grad.tolist() == [16.0, 16.0]


def test_tensors_without_a_gradient_are_accepted(torch: Any) -> None:
    with torch.no_grad():
        made = torch.ones(3, requires_grad=True) * 2
    assert float(dl.from_dlpack(made)[0]) == 2
    frozen = torch.ones(3)
    assert dl.from_dlpack(frozen).ptr == frozen.data_ptr()
