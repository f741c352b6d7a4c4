"""Casts of fields on a device: done there, with the host's values; what only the host casts is an error."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dlfield as dl
from catalog import dtype_named
from driver import Driver

VALUES = np.array([[0.1, -2.5, 65519.0], [np.inf, np.nan, 1e-8]])
CASTS: dict[str, Callable[[dl.Tensor, dl.Tensor], Any]] = {
    "t[...] = x": lambda t, x: t.__setitem__(..., x),
    "t[part] = x": lambda t, x: t.__setitem__((slice(1), slice(None, None, -1)), x[:1]),
    "from_array": lambda t, x: dl.from_array(x, t.dtype, device=t.device, backend="F"),
    "from_array in memory": lambda t, x: dl.from_array(
        x, t.dtype, device=t.device, buffer=dl.zeros(6, t.dtype, device=t.device)
    ),
    "astype": lambda t, x: x.astype(t.dtype),
}
BY_CUPY: dict[str, Callable[[dl.Tensor, dl.Tensor], Any]] = {
    "t[positions] = x": lambda t, x: t.__setitem__([1, 0], x),
    "astype": lambda _, x: x.astype("i4"),
}
pytestmark = [pytest.mark.usefixtures("cupy"), pytest.mark.filterwarnings("ignore:invalid value")]


def pair(device: str, dtype: Any) -> tuple[dl.Tensor, dl.Tensor]:
    return dl.zeros((2, 3), dtype, device=device), dl.from_array(VALUES, device=device)


def as_on_the_host(cast: Callable[[dl.Tensor, dl.Tensor], Any], dtype: Any, on_device: tuple[Any, Any]) -> bool:
    target, source = pair("cpu", dtype)
    on_host = cast(target, source), target
    return all(
        field is None or field.to_device("cpu").tobytes() == expected.tobytes()
        for field, expected in zip(on_device, on_host, strict=True)
    )


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64", ml_dtypes.bfloat16])
@pytest.mark.parametrize("cast", CASTS)
def test_no_cast_copies_to_the_host(driver: Driver, cast: str, dtype: Any) -> None:
    target, source = pair("cuda:0", dtype)
    before = driver.report()
    found = CASTS[cast](target, source)
    after = driver.report()
    for counter in ("copies_to_host", "copies_to_device", "stream_syncs", "event_syncs", "context_syncs"):
        assert after.get(counter) == before.get(counter), counter
    assert as_on_the_host(CASTS[cast], dtype, (found, target))


@pytest.mark.parametrize("cast", BY_CUPY)
def test_cupy_casts_where_it_moves_the_elements(cast: str) -> None:
    target, source = pair("cuda:0", "float32")
    assert as_on_the_host(BY_CUPY[cast], "float32", (BY_CUPY[cast](target, source), target))


@pytest.mark.parametrize(("here", "there"), [("float8_e5m2", "float16"), ("complex64", "bfloat16")])
def test_what_only_the_host_casts_is_an_error(here: str, there: str) -> None:
    source, target = (dl.zeros(3, dtype_named(name), device="cuda:0") for name in (here, there))
    expected = rf"got {here} to {there} on cuda:0, as only the host casts them; copy to 'cpu' first"
    with pytest.raises(dl.DTypeError, match=expected):
        target[...] = source
    with pytest.raises(dl.DTypeError, match=expected):
        dl.from_array(source, target.dtype, device="cuda:0")
    with pytest.raises(dl.DTypeError, match=expected):
        dl.from_array(source, target.dtype, device="cuda:0", buffer=target)
    assert dl.from_array(source, target.dtype).tolist() == [0.0] * 3
    with pytest.raises(TypeError, match="same_kind"):
        dl.zeros(3, "int32", device="cuda:0")[...] = target


def test_astype_follows_the_rule() -> None:
    field = dl.ones(3, device="cuda:0")
    with pytest.raises(TypeError, match="'safe'"):
        field.astype("float32", casting="safe")
    with pytest.raises(ValueError, match="'same_value' looks at values on the host; copy the field from cuda:0 first"):
        field.astype("float32", casting="same_value")
