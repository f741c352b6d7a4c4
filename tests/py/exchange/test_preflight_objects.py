"""`preflight` of all kinds of objects: the framework's own, on devices, and those that can't be described."""

import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from catalog import count_up
from fakes import FakeTensor, Producer, RaisingProducer, int_matrix

IS_COPIED = 2


def on_device(device: tuple[int, int]) -> Producer:
    return Producer(FakeTensor(int_matrix(), device=device), device)


# String forms


def test_shown() -> None:
    shared, copied = dl.preflight(np.ones(3), "numpy"), dl.preflight(dl.ones(3).as_readonly(), "numpy", write=True)
    assert (str(shared), repr(shared), shared.reason, shared.fix) == (
        "zero-copy",
        "Preflight(verdict='zero-copy')",
        "",
        "",
    )
    assert str(copied) == f"copy: {copied.reason}; {copied.fix}"
    assert repr(copied) == f"Preflight(verdict='copy', reason={copied.reason!r}, fix={copied.fix!r})"


def test_wrong_arguments() -> None:
    call: Any = dl.preflight
    with pytest.raises(ValueError, match=r"target: expected 'numpy', 'torch', 'jax' or 'cupy', got 'tensorflow'"):
        call(np.ones(3), "tensorflow")
    with pytest.raises(dl.NotAnArrayError, match="object"):
        call(object(), "numpy")
    with pytest.raises(ValueError, match=r"target: expected 'numpy', .* got 3"):
        call(np.ones(3), 3)
    with pytest.raises(TypeError, match="write: expected True or False, got 1"):
        call(np.ones(3), "numpy", write=1)
    with pytest.raises(TypeError):
        call(np.ones(3), "numpy", True)


@pytest.mark.usefixtures("torch", "jax")
def test_copy_is_a_bool_or_none() -> None:
    shared: Any = dl.zeros((4, 6), "float32")
    uneven: Any = shared[:, ::2]
    wrong: tuple[Any, ...] = (2, -1, "no", 0.0)
    true: Any = np.True_
    # Under `is` neither is False.
    false: Any = 0
    for convert in (dl.as_numpy, dl.as_torch, dl.as_jax, dl.as_cupy, dl.from_dlpack):
        for copy in wrong:
            with pytest.raises(TypeError, match=f"copy: expected None, True or False, got {re.escape(repr(copy))}"):
                convert(shared, copy=copy)
    assert dl.as_jax(shared, copy=true).unsafe_buffer_pointer() != shared.ptr
    with pytest.raises(dl.ExchangeError, match="as_jax: copy=False"):
        dl.as_jax(uneven, copy=false)
    with pytest.raises(dl.ExchangeError, match="as_torch: copy=False"):
        dl.as_torch(uneven.as_readonly(), copy=false)


def test_the_data_is_not_touched() -> None:
    """`preflight` works on an unmapped address."""
    nowhere = np.lib.stride_tricks.as_strided(np.ones(1), (1 << 40,), (8,))
    assert dl.preflight(nowhere, "numpy")
    assert dl.preflight(dl.describe(nowhere), "numpy")


@pytest.mark.parametrize("target", ["torch", "jax"])
@pytest.mark.usefixtures("fresh_answers")
def test_missing_frameworks(target: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, target, None)
    with pytest.raises(ImportError, match=f"preflight needs {target}, which is not installed: pip install {target}"):
        dl.preflight(np.ones(3), target)
    assert dl.preflight(np.ones(3), "numpy")


# Arrays of the framework itself


def test_own_numpy_arrays() -> None:
    """`as_numpy` returns NumPy arrays of any dtype unchanged."""
    readonly = np.ones(3)
    readonly.flags.writeable = False
    for array in (np.ones(3), np.ones(3, ">f8"), np.array([None]), np.zeros(2, "i4,f8")["f1"], readonly):
        assert dl.preflight(array, "numpy")
        assert dl.as_numpy(array, copy=False) is dl.as_numpy(array) is array
    assert dl.preflight(np.ones(3, ">f8"), "numpy", write=True)
    assert dl.preflight(readonly, "numpy", write=True).verdict == "copy"
    assert dl.as_numpy(readonly, copy=True).flags.writeable


def test_own_torch_tensors(torch: Any) -> None:
    for tensor in (torch.ones(3), torch.ones(2, dtype=torch.complex64).conj(), torch.ones(3, device="meta")):
        assert dl.preflight(tensor, "torch", write=True)
        assert dl.as_torch(tensor, copy=False) is tensor
    assert dl.preflight(torch.ones(3), "numpy", write=True)
    assert dl.preflight(torch.ones(3, dtype=torch.bfloat16), "numpy")


def test_own_jax_arrays(jnp: Any) -> None:
    array = jnp.ones((3, 4))
    assert dl.preflight(array, "jax")
    assert dl.as_jax(array, copy=False) is array
    assert dl.preflight(array, "jax", write=True).verdict == "impossible"
    assert dl.preflight(array, "numpy")
    assert dl.preflight(array, "numpy", write=True).verdict == "copy"


@pytest.mark.usefixtures("torch")
def test_jax_arrays_are_copied_for_torch(jnp: Any) -> None:
    found = dl.preflight(jnp.ones(3), "torch")
    assert (found.verdict, found.fix) == ("copy", "pass copy=None for a copy")
    assert "read-only" in found.reason


@pytest.mark.parametrize("convert", [dl.as_numpy, dl.as_torch, dl.as_jax])
@pytest.mark.usefixtures("torch", "jax")
def test_conversion_of_no_array(convert: Callable[..., Any]) -> None:
    with pytest.raises(dl.NotAnArrayError, match="object"):
        convert(object())


# What can't be described


@pytest.mark.parametrize(
    ("make", "reason", "fix"),
    [
        (lambda: np.ones(3, ">f8").view(np.memmap), "expected native byte order", "newbyteorder"),
        (lambda: np.zeros(2, "i4,f8")["f1"], "multiples of the element size 8, got 12 bytes at axis 0", ""),
        (lambda: np.ma.array([1.0], mask=True), "mask", "filled"),
        (lambda: np.array([None]), "of Python objects, which cannot be shared as memory", ""),
        (lambda: Producer(FakeTensor(int_matrix(), null_shape=True)), "got NULL", ""),
    ],
    ids=["byte order", "field", "mask", "objects", "broken"],
)
@pytest.mark.usefixtures("torch")
def test_what_cannot_be_described(make: Callable[[], Any], reason: str, fix: str) -> None:
    obj = make()
    found = dl.preflight(obj, "torch")
    assert found.verdict == "impossible"
    assert reason in found.reason
    assert fix in found.fix
    for copy in (None, False, True):
        with pytest.raises(dl.Error, match=reason):
            dl.as_torch(obj, copy=copy)


def test_lazy_torch_tensors(torch: Any) -> None:
    found = dl.preflight(torch.ones(2, dtype=torch.complex64).conj(), "numpy")
    assert found.verdict == "impossible"
    assert "resolve_conj" in found.fix


@pytest.mark.usefixtures("torch")
def test_producers_that_copy() -> None:
    """With the flag IS_COPIED the address of the object's own memory is unknown."""

    def producer() -> Producer:
        return Producer(FakeTensor(int_matrix(), version=(1, 0), flags=IS_COPIED))

    assert dl.preflight(producer(), "torch").verdict == "copy"
    assert dl.as_torch(producer()).tolist() == int_matrix().tolist()
    with pytest.raises(dl.ExchangeError, match="IS_COPIED"):
        dl.as_torch(producer(), copy=False)


@pytest.mark.parametrize("target", ["numpy", "torch", "jax"])
def test_producers_that_refuse_to_share(target: Any) -> None:
    """`__array__` of pandas raises ValueError for arrays with a mask unless it may copy."""
    pandas = pytest.importorskip("pandas")
    assert dl.preflight(pandas.Series([1, None], dtype="Int64"), target).verdict == "copy"


def test_exceptions_of_the_producer_pass_through() -> None:
    with pytest.raises(RuntimeError, match="mine"):
        dl.preflight(RaisingProducer(RuntimeError("mine")), "numpy")


# Devices


@pytest.mark.parametrize(
    ("device", "name", "verdicts"),
    [
        ((2, 1), "cuda:1", ("impossible", "impossible", "impossible", "zero-copy")),
        ((13, 0), "cuda_managed", ("zero-copy", "zero-copy", "by address", "zero-copy")),
        ((3, 0), "cuda_host", ("zero-copy", "zero-copy", "by address", "copy")),
        ((10, 0), "rocm:0", ("impossible", "impossible", "impossible", "impossible")),
    ],
)
@pytest.mark.usefixtures("torch", "jax")
def test_devices(device: tuple[int, int], name: str, verdicts: tuple[str, ...]) -> None:
    targets: list[Any] = ["numpy", "torch", "jax", "cupy"]
    found = {target: dl.preflight(on_device(device), target) for target in targets}
    for (target, preflight), verdict in zip(found.items(), verdicts, strict=True):
        if verdict == "by address":
            assert preflight.verdict == ("copy" if "64 bytes" in preflight.reason else "zero-copy")
            continue
        assert preflight.verdict == verdict
        assert bool(preflight) or name in preflight.reason
        if target != "cupy" and not preflight:
            with pytest.raises((dl.DeviceError, dl.NoSuchBufferError), match=name):
                getattr(dl, f"as_{target}")(on_device(device))


# as_jax keeps copy=False


def test_jax_never_copies_silently(jax: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """copy=False raises if a version of JAX copies memory that others share."""
    field = count_up("jax")
    assert dl.as_jax(field, copy=False).unsafe_buffer_pointer() == field.ptr
    monkeypatch.setattr(jax.dlpack, "from_dlpack", lambda tensor: jax.numpy.array(tensor.to_numpy(), copy=True))
    with pytest.raises(dl.ExchangeError, match=r"as_jax: copy=False, but JAX .* has made a copy"):
        dl.as_jax(field, copy=False)
    assert dl.as_jax(field).tolist() == field.to_numpy().tolist()
