"""`on_mismatch="copy"`: when temporaries exist, and when `bind` warns of them."""

import gc
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import dlfield as dl
from calls import accessed, copying, numbers, view
from fakes_interfaces import NOWHERE, Hooked, cuda
from oracle import values

pytestmark = pytest.mark.filterwarnings("ignore::dlfield.LayoutWarning")


def test_plain_use_of_a_copy_is_refused() -> None:
    array, fine = numbers("float32"), numbers()
    bound = copying(x=accessed(), y=accessed()).bind(x=array, y=fine)
    message = '^field "x": the kernel gets a temporary copy, which is filled on entry and copied back on exit; use it'
    for read in (getattr, dl.BoundCall.__getitem__):
        with pytest.raises(RuntimeError, match=message):
            read(bound, "x")
    assert bound.y.ptr == fine.ctypes.data
    assert bound.domain == (3, 4)
    assert repr(bound).startswith("BoundCall(domain=")
    with bound:
        found = bound.x
    with pytest.raises(RuntimeError, match=message):
        bound.x  # noqa: B018
    # The description keeps the memory alive.
    del bound
    gc.collect()
    assert values(found) == numbers().tolist()


def test_an_unfilled_temporary_is_never_visible() -> None:
    log: list[str] = []
    holder: list[Any] = []

    def acquire() -> None:
        with pytest.raises(RuntimeError, match="filled on entry"):
            holder[0].x  # noqa: B018
        log.append("asked")
        raise ZeroDivisionError

    holder.append(
        copying(x=accessed(), y=accessed()).bind(x=numbers("float32"), y=Hooked(numbers(), [], acquire=acquire))
    )
    with pytest.raises(ZeroDivisionError):
        holder[0].__enter__()
    with pytest.raises(RuntimeError, match="filled on entry"):
        holder[0].x  # noqa: B018
    assert log == ["asked"]


def test_temporaries_are_copied_between_acquire_and_touch() -> None:
    """Temporaries are filled after every `acquire`, and copied back before any `touch`."""
    array = np.zeros((3, 4), "float32")
    seen: list[float] = []

    def acquire() -> None:
        array[...] = 5

    def note() -> None:
        seen.append(float(array[0, 0]))

    x = Hooked(array, [], acquire=acquire, touch=note, release=note)
    with copying(x=accessed("rw"), y=accessed()).bind(x=x, y=Hooked(numbers(), [], acquire=note)) as fields:
        assert values(fields.x) == np.full((3, 4), 5.0).tolist()
        view(fields.x)[...] = 6
    assert seen == [5, 6, 6]


def test_the_warning_comes_once_for_each_field_of_a_signature() -> None:
    fitting = np.asfortranarray(numbers())
    calls: list[tuple[Any, Any, list[str]]] = [
        (numbers(), fitting, []),
        (numbers("float32"), fitting, ['field "x": dtype: expected float64, got float32; ']),
        (numbers("float32"), numbers(), ['field "y": layout: expected (1, 0), got (0, 1) for dims (I, J); ']),
        (numbers("int32"), numbers("float32"), []),
    ]
    for _ in range(2):
        sig = copying(x=accessed(), y=accessed(layout=(1, 0)))
        for x, y, messages in calls:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                sig.bind(x=x, y=y)
            assert all(warning.category is dl.LayoutWarning and warning.filename == __file__ for warning in caught)
            for warning, message in zip(caught, messages, strict=True):
                assert str(warning.message).startswith(message)


@pytest.mark.parametrize(
    ("given", "target"),
    [("float64", "float32"), ("int64", "int32"), ("complex128", "complex64"), ("float32", "bfloat16")],
)
def test_the_warning_says_that_all_is_cast_to_a_narrower_type(given: str, target: str) -> None:
    sig = copying(x=dl.FieldSpec(target, "IJ", access="w"))
    with pytest.warns(dl.LayoutWarning, match=rf"temporary copy is used: every element is cast to {target} and back$"):
        sig.bind(x=numbers(given))
    sig = copying(x=dl.FieldSpec(target, "IJ"))
    with pytest.warns(dl.LayoutWarning, match="temporary copy is used$"):
        sig.bind(x=numbers(given))


def test_all_of_a_copy_is_written_back() -> None:
    field = dl.full((3, 4), 0.1, halo=(1, 1))
    with pytest.warns(dl.LayoutWarning), copying(x=dl.FieldSpec("float32", "IJ", access="w")).bind(x=field):
        pass
    assert np.array_equal(np.asarray(field), np.full((3, 4), np.float32(0.1), "float64"))


def test_a_layout_that_cannot_be_copied_is_slow() -> None:
    """GPU memory cannot be copied here, so each `bind` warns that the layout is slow."""
    sig = dl.Signature(device="cuda:0", on_mismatch="copy", x=accessed(layout=(1, 0)))
    for _ in range(2):
        with pytest.warns(dl.LayoutWarning, match=r'field "x": layout: .*, got \(0, 1\) .*; this is slow'):
            assert sig.bind(x=cuda(shape=(3, 4), typestr="<f8")).x.ptr == NOWHERE


def test_a_warning_that_is_an_error_leaves_nothing_behind() -> None:
    array = numbers("float32")
    sig = copying(x=accessed("w"))
    slow = dl.Signature(x=accessed(dtype="float32", layout=(1, 0)))
    held = sys.getrefcount(array)
    for refusing, message in [(sig, "dtype"), (slow, "layout")] * 3:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(dl.LayoutWarning, match=f'^field "x": {message}'):
                refusing.bind(x=array)
        assert sys.getrefcount(array) == held
    assert (array == numbers("float32")).all()
    # The failed call does not count, so the next successful one warns.
    with pytest.warns(dl.LayoutWarning, match="a temporary copy is used"):
        sig.bind(x=array)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sig.bind(x=array)


def test_a_warning_may_bind() -> None:
    """`warnings.showwarning` may be any code."""
    sig = copying(x=accessed())
    shown: list[str] = []

    def show(message: Any, *_: Any, **__: Any) -> None:
        shown.append(str(message))
        with sig.bind(x=numbers("float32")) as fields:
            assert values(fields.x) == numbers().tolist()

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        with sig.bind(x=numbers("float32")) as fields:
            assert values(fields.x) == numbers().tolist()
    assert len(shown) == 1
