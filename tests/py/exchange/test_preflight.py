"""`preflight` against what the frameworks then do, and against `as_numpy`, `as_torch` and `as_jax`."""

import re
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from catalog import CODES, dtype_named
from matrix import LAYOUTS, Case, build, seen
from matrix_out import Framework, jax_framework, numpy_framework, torch_framework

FRAMEWORKS = ("numpy", "torch", "jax")
DTYPES = (
    *("bool", "int32", "float16", "float32", "float64", "complex128"),
    *("bfloat16", "float8_e4m3fn", "float8_e5m2", ">f8"),
)
REFUSALS = (BufferError, RuntimeError, TypeError, ValueError)


@pytest.fixture(params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> Framework:
    if request.param == "numpy":
        return numpy_framework()
    make = {"torch": torch_framework, "jax": jax_framework}[request.param]
    return make(pytest.importorskip(request.param))


@pytest.fixture(params=[False, True], ids=["writable", "readonly"])
def readonly(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=DTYPES)
def case(request: pytest.FixtureRequest, layout: str, readonly: bool) -> Case:
    return build(layout, request.param, readonly=readonly)


def expected(framework: Framework, case: Case, layout: str, readonly: bool) -> str:
    """The verdict according to the table."""
    if framework.name == "numpy":
        return "zero-copy"
    if not case.array.dtype.isnative:
        return "impossible"
    row = LAYOUTS[layout]
    if framework.name == "torch":
        shared = row.torch and not (readonly and case.array.size)
    else:
        shared = row.jax_readonly if readonly else row.jax
    return "zero-copy" if shared else "copy"


def forms(case: Case) -> list[Any]:
    """The array, and if possible the same memory as a tensor and as a description."""
    if not case.array.dtype.isnative:
        return [case.array]
    return [case.array, dl.from_dlpack(case.array), dl.describe(case.array)]


def test_verdicts_match_the_frameworks(framework: Framework, case: Case, layout: str, readonly: bool) -> None:
    before = case.state()
    check = {"zero-copy": check_shared, "copy": check_copied, "impossible": check_refused}
    for obj in forms(case):
        found = dl.preflight(obj, framework.name)
        assert found.verdict == expected(framework, case, layout, readonly)
        assert bool(found) == (found.verdict == "zero-copy")
        check[found.verdict](framework, case, obj, found)
        assert not readonly or case.state() == before
        case.renew()


def check_shared(framework: Framework, case: Case, obj: Any, _found: dl.Preflight) -> None:
    address = case.array.ctypes.data
    # NumPy's view of a JAX array caches its values, so one of them is first read after the write.
    shared = framework.convert(obj, copy=False)
    for other in (framework.convert(obj), framework.convert(obj, copy=False)):
        assert_same(framework, case, other)
        assert case.array.size == 0 or seen(other).ptr == address
    if case.array.dtype.isnative:
        assert case.array.size == 0 or seen(framework.alone(dl.from_dlpack(case.array))).ptr == address
    if case.array.flags.writeable:
        if framework.fill is None:
            case.array[...] = 1
        else:
            framework.fill(shared)
        assert_same(framework, case, shared)
        assert (case.array == np.ones((), case.array.dtype)).all()
    elif framework.name == "numpy":
        assert not shared.flags.writeable
    else:
        assert framework.fill is None or case.array.size == 0
    check_apart(framework, case, framework.convert(obj, copy=True))


def check_copied(framework: Framework, case: Case, obj: Any, found: dl.Preflight) -> None:
    refused = f"as_{framework.name}: copy=False, but {found.reason}; {found.fix}"
    with pytest.raises(dl.ExchangeError, match=f"^{re.escape(refused)}$"):
        framework.convert(obj, copy=False)
    for copy in (None, True):
        check_apart(framework, case, framework.convert(obj, copy=copy))
    try:
        alone = framework.alone(dl.from_dlpack(case.array))
    except REFUSALS:
        return
    if seen(alone).ptr == case.array.ctypes.data:
        # PyTorch treats read-only memory as writable.
        assert framework.name == "torch"
        assert not case.array.flags.writeable


def check_refused(framework: Framework, case: Case, obj: Any, found: dl.Preflight) -> None:
    assert found.fix
    for copy in (None, False, True):
        with pytest.raises(dl.Error, match=re.escape(found.reason)):
            framework.convert(obj, copy=copy)
    if case.array.flags.writeable:  # else PyTorch warns before it raises
        with pytest.raises(REFUSALS):
            framework.alone_numpy(case.array)


def assert_same(framework: Framework, case: Case, found: Any) -> None:
    what = seen(found)
    assert (what.shape, what.dtype) == (case.array.shape, case.array.dtype.name)
    # JAX gives the elements of any layout in index order only as a copy.
    content = np.asarray(found) if framework.name == "jax" else what.memory()
    assert content.tobytes() == case.array.tobytes()


def check_apart(framework: Framework, case: Case, copied: Any) -> None:
    """Check that a copy has the right values in memory of its own."""
    assert_same(framework, case, copied)
    assert case.array.size == 0 or not case.holds(seen(copied).ptr)
    before = case.state()
    if framework.fill is not None:
        framework.fill(copied)
    assert case.state() == before


def test_arrays_to_write_to(framework: Framework, case: Case, layout: str, readonly: bool) -> None:
    """JAX never writes; NumPy and PyTorch write to a copy of memory that they may not write."""
    for obj in forms(case):
        found = dl.preflight(obj, framework.name, write=True)
        if framework.fill is None:
            assert found.verdict == "impossible"
            continue
        plain = expected(framework, case, layout, readonly)
        assert found.verdict == ("copy" if framework.name == "numpy" and readonly else plain)
        assert ("does not reach obj" in found.reason) == (found.verdict == "copy")
        if found.verdict != "impossible":
            before = case.state()
            framework.fill(framework.convert(obj, copy=None if found else True))
            assert (case.state() != before) == (bool(found) and case.array.size > 0)
            case.renew()


# Element types


@pytest.mark.parametrize("name", CODES)
def test_dtypes_are_tried(framework: Framework, name: str) -> None:
    field = dl.ones((4,), dtype_named(name), alignment_size=64)
    found = dl.preflight(field, framework.name)
    if found.verdict == "impossible":
        assert name in found.reason
        assert found.fix
        for copy in (None, True):
            with pytest.raises(dl.ExchangeError, match=re.escape(found.reason)):
                framework.convert(field, copy=copy)
        with pytest.raises(REFUSALS):
            framework.alone(field)
        return
    made = framework.convert(field)
    assert (seen(made).ptr == field.ptr) == bool(found)
    assert seen(made).dtype == name
    if not found:
        assert name in found.reason
        with pytest.raises(dl.ExchangeError, match=name):
            framework.convert(field, copy=False)


@pytest.mark.usefixtures("jax", "torch")
def test_dtypes_of_the_installed_frameworks() -> None:
    """Each verdict occurs, so the test above covers all of them."""
    verdicts = {
        (name, target): dl.preflight(dl.zeros(3, dtype_named(name), alignment_size=64), target).verdict
        for name in ("bfloat16", "int4", "float6_e2m3fn")
        for target in ("torch", "jax")
    }
    assert [verdicts["bfloat16", target] for target in ("torch", "jax")] == ["zero-copy", "zero-copy"]
    assert [verdicts["int4", target] for target in ("torch", "jax")] == ["impossible", "copy"]
    # JAX 0.10 does not have this dtype, 0.12 does.
    assert verdicts["float6_e2m3fn", "torch"] == "impossible"
    assert verdicts["float6_e2m3fn", "jax"] in ("impossible", "copy")
