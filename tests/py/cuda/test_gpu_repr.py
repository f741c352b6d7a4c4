"""`repr` of memory that the host cannot read: it copies and shows only the elements that NumPy would show."""

import re

import numpy as np
import pytest

import dlfield as dl
from dlfield import storage
from driver import IS_FAKE, Driver
from storages import CLEAN, DEVICE, HOST, copies, pair

DEVICES = ("cuda:0", "cuda_host", "cuda_managed")


def values_of(text: str) -> str:
    """The values in a repr."""
    found = re.match(r"(?s)\w+\((.*?),\s+shape=", text)
    assert found is not None, text
    return found[1]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(), (0, 4), (2, 3), (1000,), (1001,), (7, 200), (6, 200), (8, 9, 10, 11), (2000, 1)])
@pytest.mark.parametrize("dtype", ["f8", "i2", "bfloat16"])
def test_values_are_shown_as_on_the_host(device: str, shape: tuple[int, ...], dtype: str) -> None:
    array = np.random.default_rng(1).integers(0, 99, shape).astype(dl.zeros(0, dtype).dtype)
    field = dl.from_array(array, device=device)
    expected = dl.from_array(array)
    assert repr(field) == repr(expected).replace("device='cpu'", f"device='{device}'")
    assert (str(field), f"{field}") == ((str(expected),) * 2 if shape == () else (repr(field),) * 2)


def test_views_and_layouts_are_shown() -> None:
    for keywords in ({"backend": "F"}, {"alignment_size": 64}, {"dims": "KJ"}):
        field = dl.from_array(np.arange(4000.0).reshape(40, 100), device="cuda:0", **keywords)
        for view in (field, field[::-2, 3:], field.T, field.as_readonly()):
            assert values_of(repr(view)) == values_of(repr(view.to_device("cpu")))


def test_print_options_are_numpys() -> None:
    field = dl.from_array(np.arange(300.0).reshape(3, 100) / 7, device="cuda:0")
    for options in ({"threshold": 10}, {"threshold": 10, "edgeitems": 1}, {"precision": 2}):
        with np.printoptions(**options):  # type: ignore[arg-type]
            assert values_of(repr(field)) == values_of(repr(field.to_device("cpu")))

    with np.printoptions(edgeitems=0, threshold=0):
        assert "..." in repr(field)


def test_graph_capture(driver: Driver) -> None:
    """During graph capture `repr` works without the values; it does not wait, and captures nothing."""
    field, scalar = dl.ones((3, 4), device="cuda:0"), dl.ones((), device="cuda:0")
    with driver.stream() as stream, dl.cuda.stream(stream):
        with driver.capturing(stream):
            texts = repr(field), str(scalar), f"{field}"
        for text in texts:
            assert "<values on cuda:0, not read: " in text
            assert "dtype=float64" in text
        assert "[1., 1., 1., 1.]" in repr(field)
        del field, scalar


def test_repr_waits_for_the_stream(driver: Driver) -> None:
    with driver.stream() as stream, dl.cuda.stream(stream):
        field = dl.zeros((2, 3), "u1", device="cuda:0")
        driver.fill(field.ptr, 7, 6, stream)
        assert "[7, 7, 7]" in repr(field)
        del field


@pytest.mark.parametrize("state", [CLEAN, HOST, DEVICE])
def test_a_pair_shows_its_up_to_date_values(state: int) -> None:
    field = pair(state, np.full((4, 3), 6.0))
    with copies(to_host=3 if state == DEVICE else 0):
        text = repr(field)
        assert str(field) == f"{field}" == text
    assert values_of(text).count("6.") == 12
    assert text.splitlines()[1].startswith(" " * len("SoftwareManagedGPUStorage("))
    assert "device='cuda:0'" in text
    assert text.endswith(f"sync_state={field.sync_state!r})")
    assert field.sync_state.state == state, "nothing was brought up to date"


def test_a_pair_without_dimensions_is_a_number() -> None:
    field = storage.storage(np.array(2.5), device="gpu")
    assert str(field) == f"{field}" == "2.5"


def test_only_what_is_shown_is_copied(driver: Driver) -> None:
    field = dl.ones((512, 512, 16), device="cuda:0")
    driver.wait_for_work()
    before = driver.report()
    with pytest.raises(TypeError, match=r"Tensor\(shape=\(512, 512, 16\)"):
        dl.zeros(3, dims="I", device=field)  # type: ignore[arg-type]
    assert not IS_FAKE or driver.report()["bytes_to_host"] == before["bytes_to_host"]
    assert "..." in repr(field)
    assert not IS_FAKE or driver.report()["bytes_to_host"] - before["bytes_to_host"] == 6 * 6 * 6 * 8
