"""PyTorch tensors that require grad may be described and read by stencils, and nothing else."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest

import dlfield as dl

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
        with pytest.raises(dl.ExchangeError, match=r"tensor with a tangent .*; pass \w+\.detach\(\)"):
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
