"""PyTorch tensors that have no memory to describe, and element types that PyTorch does not have."""

import importlib
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from catalog import CODES, dtype_named
from childproc import run_python
from dlpack_structs import SUBBYTE_PADDED
from fakes import FakeTensor, Producer
from leak_checks import grown
from matrix import ENTRANCES


def freed(tensor: Any, row: Any = ...) -> Any:
    """A tensor, or its row, whose storage is freed. The row begins 12 bytes after address 0."""
    found = tensor[row]
    tensor.untyped_storage().resize_(0)
    return found


def fake(tensor: Any) -> Any:
    mode = importlib.import_module("torch._subclasses.fake_tensor").FakeTensorMode(allow_non_fake_inputs=True)
    return mode.from_tensor(tensor)


# Tensors that PyTorch cannot export: how to make one, its name in the message, and the fix in the message.
WITHOUT_MEMORY: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "meta": (lambda torch: torch.zeros(3, device="meta"), "device meta", "device='cpu'"),
    "empty meta": (lambda torch: torch.zeros(0, device="meta"), "device meta", "device='cpu'"),
    "COO": (lambda torch: torch.eye(3).to_sparse(), "torch.sparse_coo", ".to_dense()"),
    "CSR": (lambda torch: torch.eye(3).to_sparse_csr(), "torch.sparse_csr", ".to_dense()"),
    "BSC": (lambda torch: torch.eye(4).to_sparse_bsc((2, 2)), "torch.sparse_bsc", ".to_dense()"),
    "MKL-DNN": (lambda torch: torch.zeros(2, 3).to_mkldnn(), "torch._mkldnn", ".to_dense()"),
    "nested": (lambda torch: torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)]), "nested", ".unbind()"),
    "quantized": (
        lambda torch: torch.quantize_per_tensor(torch.zeros(3), 0.1, 0, torch.quint8),
        "torch.quint8",
        ".dequantize()",
    ),
    "freed": (lambda torch: freed(torch.arange(6.0)), "storage was freed", "take it"),
    "row of a freed one": (lambda torch: freed(torch.arange(6.0).reshape(2, 3), 1), "storage was freed", "take it"),
    "fake": (lambda torch: fake(torch.zeros(2, 3)), "a fake", "outside of FakeTensorMode"),
    "row of a fake one": (lambda torch: fake(torch.zeros(2, 3))[1], "a fake", "outside of FakeTensorMode"),
    "row of a meta one": (lambda torch: torch.zeros(2, 3, device="meta")[1], "device meta", "device='cpu'"),
    "functional": (lambda torch: torch._to_functional_tensor(torch.ones(2, 3))[1], "functional", "functionalize"),
    "zeros": (lambda torch: torch._efficientzerotensor((3,)), "zeros without memory", ".clone()"),
    "masked": (
        lambda torch: torch.masked.masked_tensor(torch.ones(3), torch.tensor([True, False, True])),
        "MaskedTensor",
        "made of",
    ),
    "bits": (lambda torch: torch.empty(3, dtype=torch.bits8), "Bit types", "a type"),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", WITHOUT_MEMORY)
def test_torch_tensors_without_memory_are_refused_with_a_short_message(torch: Any, kind: str) -> None:
    """PyTorch's own message is a trace of its C++ functions; that error is chained as the cause."""
    make, found, fix = WITHOUT_MEMORY[kind]
    for name, row in ENTRANCES.items():
        if name == "t[...] =":
            continue
        with pytest.raises(dl.ExchangeError) as caught:
            row.enter(make(torch), np.zeros(3, "f4"))
        message = str(caught.value)
        assert re.match(r"(\w+|field \"\w+\"): ", message)
        assert found in message.split("; ")[0]
        assert fix in message
        assert len(message) < 200
        assert "\n" not in message
        assert re.search("Exception raised from|^data: .* got (NULL|0xc)", str(caught.value.__cause__))
    with pytest.raises(dl.ExchangeError, match="obj: "):
        dl.describe(make(torch), dims="I")
    seen = dl.preflight(make(torch), "numpy")
    assert seen.verdict == "impossible"
    assert found in seen.reason
    assert fix in f"{seen.reason}; {seen.fix}"


TRANSFORMATIONS: dict[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "vmap": lambda torch, f: torch.vmap(f)(torch.ones(2, 3)),
    "grad": lambda torch, f: torch.func.grad(lambda x: f(x).sum())(torch.ones(3)),
    "jvp": lambda torch, f: torch.func.jvp(f, (torch.ones(3),), (torch.ones(3),)),
    "functionalize": lambda torch, f: torch.func.functionalize(f)(torch.ones(3)),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_tensors_inside_of_transformations_are_refused(torch: Any, name: str) -> None:
    found = []

    def look(x: Any) -> Any:
        for take in (dl.describe, dl.from_dlpack, dl.as_numpy):
            with pytest.raises(dl.ExchangeError) as caught:
                take(x)
            found.append(str(caught.value))
        assert dl.preflight(x, "numpy").verdict == "impossible"
        return x

    TRANSFORMATIONS[name](torch, look)
    assert "inside of torch.func" in found[0]
    assert all("inside of torch.func" in text or ".detach()" in text for text in found)


# Element types that PyTorch does not have.
LACKING = ("int4", "float4_e2m1fn", "float8_e3m4")


def refused_fields() -> dict[str, Callable[[], object]]:
    """Refused calls of `as_torch` with a megabyte of each dtype, for `leak_checks`."""

    def refused(field: dl.Tensor) -> None:
        with suppress(dl.ExchangeError):
            dl.as_torch(field)

    return {name: partial(refused, dl.zeros(1 << 20, dtype_named(name))) for name in LACKING}


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize("name", LACKING)
def test_as_torch_of_a_dtype_that_torch_lacks_releases_the_memory(name: str) -> None:
    """PyTorch's import fails for these before it takes ownership of the managed tensor, and does not release it."""
    code, bits = CODES[name]
    flags = SUBBYTE_PADDED if bits < 8 else 0
    fakes = [FakeTensor(np.zeros(6, "u1"), dtype=(code, bits, 1), flags=flags) for _ in range(5)]
    for fake in fakes:
        with pytest.raises(dl.ExchangeError, match=name):
            dl.as_torch(Producer(fake))
        assert fake.deleted == 1


@pytest.mark.usefixtures("torch")
def test_refused_fields_are_not_leaked() -> None:
    for growth in grown(__name__, "refused_fields", rounds=20).values():
        growth.assert_none_in(rounds=20)


def test_an_import_function_of_torch_that_fails_once_is_not_called_again() -> None:
    """After a failure it is unknown whether the function released its tensor, so at most one tensor of a type leaks."""
    run_python("""
        import sys, types
        import numpy as np
        import dlfield as dl
        from dlpack_structs import capsule_pointer
        from fakes import FakeTensor, Producer, exchange_type, int_matrix

        calls = []

        class Memory:
            # What this PyTorch makes of any capsule.
            def __init__(self, obj):
                self.field = dl.from_dlpack(obj)
            def data_ptr(self):
                return self.field.ptr

        # Every import of this table fails without having released anything.
        tensor = exchange_type(None, refuses=calls)
        sys.modules["torch"] = types.SimpleNamespace(Tensor=tensor, from_dlpack=Memory, __spec__=None)
        fakes = [FakeTensor(int_matrix()) for _ in range(5)]
        for fake in fakes:
            made = dl.as_torch(Producer(fake))
            assert made.data_ptr() == fake.data.ctypes.data
            del made
        assert len(calls) == 1, calls
        assert [fake.deleted for fake in fakes] == [0, 1, 1, 1, 1]
    """)
